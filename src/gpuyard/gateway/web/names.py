"""What each header is to us: worked out once for every name, because the same few come all the time."""

from __future__ import annotations

import re

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding "
    b"upgrade http2-settings content-length".split()
)
# What only we say about the visitor.
_ABOUT_US = (b"x-forwarded-", b"x-yard-")
_ABOUT_US_WHOLE = frozenset((b"forwarded", b"x-real-ip", b"x-original-url", b"x-rewrite-url"))
# Looked at, and written anew if they go on at all.
_HANDLED_IN = frozenset((b"cookie", b"authorization"))
_HANDLED_OUT = frozenset((b"set-cookie", b"location", b"content-security-policy"))
# Who may show it inside a page of theirs; and that cookies are forgotten, which browsers do for a whole domain
# at once, the login to the console included.
_OURS_TO_SAY = frozenset((b"x-frame-options", b"clear-site-data"))
# With one name for all, a page could change more than its own place: how it is secured or served.
_SHARED_HOST = frozenset((b"strict-transport-security", b"alt-svc", b"service-worker-allowed", b"public-key-pins"))
_ASKS = b"www-authenticate"  # the browser itself asks for a name and a password
_KEPT = frozenset((b"cache-control", b"expires", b"pragma"))
_READ = HOP_BY_HOP | _HANDLED_IN | _HANDLED_OUT
_ALSO_READ = frozenset(
    b"host origin accept accept-language sec-fetch-site sec-fetch-mode sec-fetch-dest sec-websocket-key "
    b"sec-websocket-version x-forwarded-for accept-encoding".split()
)
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
MOST_KNOWN, LONGEST_KNOWN = 4096, 64


class Name:
    """One header's name: `goes_in` and `goes_out` as it is; `is_read` when its value matters to us."""

    __slots__ = ("asks", "goes_in", "goes_out", "is_of_host", "is_read", "keeps", "small")

    def __init__(self, name: bytes) -> None:
        small = name.lower()
        # To many programs `X_Forwarded_For` is the same header as the one with dashes.
        plain = small.replace(b"_", b"-")
        aliased = plain != small and plain in HOP_BY_HOP | _HANDLED_IN | {b"host"}
        about_us = plain.startswith(_ABOUT_US) or plain in _ABOUT_US_WHOLE
        self.small = small
        self.goes_in = not (aliased or about_us or small in HOP_BY_HOP or small in _HANDLED_IN)
        self.goes_out = small not in HOP_BY_HOP and small not in _HANDLED_OUT and small not in _OURS_TO_SAY
        self.is_of_host = small in _SHARED_HOST
        self.keeps = small in _KEPT
        self.asks = small == _ASKS
        self.is_read = small in _READ or small in _ALSO_READ


KNOWN: dict[bytes, Name] = {}


def name_of(text: bytes) -> Name | None:
    """None for what can be no header's name."""
    known = KNOWN.get(text)
    if known is None:
        if not _TOKEN.match(text):
            return None
        known = Name(text)
        if len(KNOWN) < MOST_KNOWN and len(text) <= LONGEST_KNOWN:
            KNOWN[text] = known
    return known
