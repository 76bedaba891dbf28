"""The parts of a server's address. Most are a scheme, a name and a port, and those are told apart here: the library's
own parser takes longer to load than the whole question takes, so that it is asked about the others only.
"""

from __future__ import annotations

from typing import NamedTuple

HIGHEST_PORT = 65535


class Address(NamedTuple):
    scheme: str
    host: str  # in small letters; empty when there is none
    port: int | None


def split_address(url: str) -> Address:
    """Raises ValueError for a port that is no number, and for a bracket left open."""
    scheme, _, rest = url.partition("://")
    host, colon, port = rest.partition("/")[0].partition(":")
    is_plain = scheme.isalpha() and _is_plain_name(host) and (_is_port(port) if colon else True)
    return Address(scheme.lower(), host.lower(), int(port) if colon else None) if is_plain else _split_other(url)


def _is_plain_name(host: str) -> bool:
    return host.isascii() and host.replace(".", "").replace("-", "").isalnum()


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= HIGHEST_PORT


def _split_other(url: str) -> Address:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return Address(parts.scheme, parts.hostname or "", parts.port)
