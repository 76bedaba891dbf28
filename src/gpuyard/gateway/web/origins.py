"""Did the request come from the page it is for? Cookies alone do not tell: browsers send them along for strangers."""

from __future__ import annotations

from gpuyard.gateway.web.heads import Request


def is_own(request: Request, scheme: bytes) -> bool:
    """Reading is open to all, as links must work; but a page of another site may lead here, not load pieces from here.
    What changes something, and every WebSocket, must be of this host. `scheme` is ours: with plain http there may be a
    proxy with TLS before us, with https there is nothing plain."""
    if request.is_safe and not request.wants_websocket:
        return request.get(b"sec-fetch-site") != b"cross-site" or request.get(b"sec-fetch-mode") == b"navigate"
    given = request.all(b"origin")
    if len(given) == 1 and given[0] != b"null":
        own = request.host.lower()
        return given[0].lower() in (scheme + b"://" + own, b"https://" + own)
    # A form on a page that keeps its address to itself says `null`; then the browser's own word counts.
    return len(given) <= 1 and not request.wants_websocket and request.all(b"sec-fetch-site") == [b"same-origin"]
