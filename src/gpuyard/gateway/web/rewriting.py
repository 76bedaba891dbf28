"""What is changed in heads on the way: little, and always for a reason. Pure.

Inside, a program must find the name under which the browser knows it (Jupyter and code-server compare it with Origin),
must not find our cookies, and must not be told about the visitor by anybody but us.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuyard.gateway.web.heads import Answer, Field, Request, write_head

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer transfer-encoding "
    b"upgrade http2-settings content-length".split()
)
# What only we say about the visitor.
_ABOUT_US = (b"x-forwarded-", b"x-yard-")
_ABOUT_US_WHOLE = frozenset((b"forwarded", b"x-real-ip", b"x-original-url", b"x-rewrite-url"))
# With one name for all, a page could change more than its own place: how it is secured, cleared, or served.
_SHARED_HOST = frozenset(
    (b"strict-transport-security", b"clear-site-data", b"alt-svc", b"service-worker-allowed", b"public-key-pins")
)
_OURS = (b"yard_", b"__host-yard_", b"__secure-yard_")
UPGRADE: tuple[tuple[bytes, bytes], ...] = ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))


@dataclass(frozen=True, slots=True)
class Route:
    """How a request comes in and where inside it goes on."""

    scheme: bytes
    peer: bytes  # the visitor's address
    prefix: bytes = b""  # of the path, where visits are told by paths
    strip: bool = False  # the program inside does not know of the prefix


def head_inside(request: Request, route: Route) -> bytes:
    """The head as it is sent inside."""
    upgrade = request.wants_websocket
    dropped = HOP_BY_HOP | (request.words(b"connection") - {b"host"})
    fields = [(name, value) for small, name, value in request.fields if _goes_in(small, value, dropped)]
    cookies = own_cookies_removed(request.all(b"cookie"))
    if cookies and b"cookie" not in dropped:
        fields.append((b"Cookie", cookies))
    fields += ((b"X-Forwarded-For", route.peer), (b"X-Forwarded-Proto", route.scheme))
    fields.append((b"X-Forwarded-Host", request.host))
    if route.strip:
        fields.append((b"X-Forwarded-Prefix", route.prefix))
    if request.chunked:
        fields.append((b"Transfer-Encoding", b"chunked"))
    elif request.length is not None:
        fields.append((b"Content-Length", b"%d" % request.length))
    fields += UPGRADE if upgrade else ()
    target = request.target
    if route.strip:
        target = target[len(route.prefix) :]
        target = target if target.startswith(b"/") else b"/" + target
    return write_head(request.method + b" " + target + b" HTTP/1.1", fields)


def _goes_in(small: bytes, value: bytes, dropped: frozenset[bytes] | set[bytes]) -> bool:
    if small in dropped or small == b"cookie":
        return False
    if small == b"authorization":
        return b"yard_" not in value  # a token of the platform is not for the programs that run on it
    # To many programs `X_Forwarded_For` is the same header.
    plain = small.replace(b"_", b"-")
    if plain != small and (plain in dropped or plain in (b"cookie", b"host", b"authorization")):
        return False
    return not plain.startswith(_ABOUT_US) and plain not in _ABOUT_US_WHOLE


def own_cookies_removed(headers: list[bytes]) -> bytes:
    kept = []
    for header in headers:
        for cookie in header.split(b";"):
            name = cookie.partition(b"=")[0].strip(b" \t").lower()
            if cookie.strip(b" \t") and not name.startswith(_OURS):
                kept.append(cookie.strip(b" \t"))
    return b"; ".join(kept)


def cookies_named(headers: list[bytes], name: bytes, most: int = 4) -> list[bytes]:
    """All values of that name: somebody may have set a second one for a wider domain."""
    found = []
    for header in headers:
        for cookie in header.split(b";"):
            key, _, value = cookie.strip(b" \t").partition(b"=")
            if key == name and 0 < len(value) <= 100:
                found.append(value)
    return found[:most]


def head_outside(answer: Answer, route: Route, framing: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The head as the visitor gets it. `framing` tells how the body ends, or to what the connection changes."""
    dropped = HOP_BY_HOP | answer.words(b"connection")
    fields = [_outgoing(field, route) for field in answer.fields if _goes_out(field, dropped, route)]
    if answer.status in (301, 302, 303, 307, 308):
        fields = [field for field in fields if field[0].lower() not in (b"cache-control", b"expires", b"pragma")]
        fields.append((b"Cache-Control", b"no-store"))
    fields += framing
    return write_head(b"HTTP/1.1 %d %b" % (answer.status, answer.phrase), fields)


def _goes_out(field: Field, dropped: frozenset[bytes] | set[bytes], route: Route) -> bool:
    small, _, value = field
    if small == b"set-cookie":
        return not value.partition(b"=")[0].strip(b" \t").lower().startswith(_OURS)
    return small not in dropped and not (route.prefix and small in _SHARED_HOST)


def _outgoing(field: Field, route: Route) -> tuple[bytes, bytes]:
    small, name, value = field
    if small == b"set-cookie":
        return name, _bound_to_host(value, route.prefix)
    if small == b"location" and route.strip and value.startswith(b"/") and not value.startswith(b"//"):
        return name, route.prefix + value
    return name, value


def _bound_to_host(cookie: bytes, prefix: bytes) -> bytes:
    """Only for the very host it comes from; with paths, only for the very path."""
    pair, *attributes = cookie.split(b";")
    kept = [pair]
    for attribute in attributes:
        key = attribute.partition(b"=")[0].strip(b" \t").lower()
        if key == b"domain" or (prefix and key == b"path"):
            continue
        kept.append(attribute)
    if prefix:
        kept.append(b" Path=" + prefix + b"/")
    return b";".join(kept)
