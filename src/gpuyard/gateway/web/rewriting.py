"""What is changed in heads on the way: little, and always for a reason. Pure.

Inside, a program must find the name under which the browser knows it (Jupyter and code-server compare it with Origin),
must not find our cookies, and must not be told about the visitor by anybody but us.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from gpuyard.gateway.web.framing import partitioned, policy_without_ancestors
from gpuyard.gateway.web.heads import Answer, Request, write_head

_ALWAYS = frozenset((b"host", b"keep-alive", b"close", b"upgrade"))
_OURS = (b"yard_", b"__host-yard_", b"__secure-yard_")
UPGRADE = (b"Connection: Upgrade", b"Upgrade: websocket")


@dataclass(frozen=True, slots=True)
class Route:
    """How a request comes in and where inside it goes on."""

    scheme: bytes
    peer: bytes  # the visitor's address
    prefix: bytes = b""  # of the path, where visits are told by paths
    strip: bool = False  # the program inside does not know of the prefix


def head_inside(request: Request, route: Route) -> bytes:
    """The head as it is sent inside. What follows the first line is the same for the same headers on the same way."""
    if request.written is None or request.written[0] is not route:
        request.written = (route, write_head(b"", _lines_inside(request, route)))
    target = request.target
    if route.strip:
        target = target[len(route.prefix) :]
        target = target if target.startswith(b"/") else b"/" + target
    return request.method + b" " + target + b" HTTP/1.1" + request.written[1]


def _lines_inside(request: Request, route: Route) -> list[bytes]:
    named = request.connection - _ALWAYS
    lines = [line for name, line in request.fields if name.goes_in and name.small not in named]
    for value in request.all(b"authorization"):
        if b"yard_" not in value:  # a token of the platform is not for the programs that run on it
            lines.append(b"Authorization: " + value)
    cookies = own_cookies_removed(b";".join(request.all(b"cookie")))
    if cookies and b"cookie" not in named:
        lines.append(b"Cookie: " + cookies)
    lines.append(b"X-Forwarded-For: %b\r\nX-Forwarded-Proto: %b" % (route.peer, route.scheme))
    lines.append(b"X-Forwarded-Host: " + request.host)
    if route.strip:
        lines.append(b"X-Forwarded-Prefix: " + route.prefix)
    if request.chunked:
        lines.append(b"Transfer-Encoding: chunked")
    elif request.length is not None:
        lines.append(b"Content-Length: %d" % request.length)
    if request.wants_websocket:
        lines += UPGRADE
    return lines


@lru_cache(maxsize=256)
def own_cookies_removed(header: bytes) -> bytes:
    kept = []
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


def head_outside(
    answer: Answer, route: Route, framing: Iterable[bytes], shown: bytes = b"", *, framed: bool = False
) -> bytes:
    """The head as the visitor gets it. `framing` tells how the body ends, or to what the connection changes; `shown` is
    the line that says whose pages may show it; `framed`: it is shown so just now."""
    fields, named = answer.fields, answer.connection - _ALWAYS
    if named or route.prefix:
        fields = [f for f in fields if f[0].small not in named and not (route.prefix and f[0].is_of_host)]
    if framed:  # nobody is asked for a password over the console's pages
        fields = [f for f in fields if not f[0].asks]
    if 300 < answer.status < 309 and answer.status != 304:
        lines = [line for name, line in fields if name.goes_out and not name.keeps]
        lines.append(b"Cache-Control: no-store")
    else:
        lines = [line for name, line in fields if name.goes_out]
    for cookie in answer.all(b"set-cookie"):
        if not cookie.partition(b"=")[0].strip(b" \t").lower().startswith(_OURS):
            bound = _bound_to_host(cookie, route.prefix)
            lines.append(b"Set-Cookie: " + (partitioned(bound) if framed else bound))
    for policy in answer.all(b"content-security-policy"):
        if rest := policy_without_ancestors(policy):
            lines.append(b"Content-Security-Policy: " + rest)
    for place in answer.all(b"location"):
        moved = route.strip and place.startswith(b"/") and not place.startswith(b"//")
        lines.append(b"Location: " + (route.prefix + place if moved else place))
    if shown:
        lines.append(shown)
    lines += framing
    return write_head(b"HTTP/1.1 %d %b" % (answer.status, answer.phrase), lines)


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
