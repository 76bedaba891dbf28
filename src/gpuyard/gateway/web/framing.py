"""Whose pages may show ours inside them: the console's, under the names it has, those of the same visit, and no others.

The console is another origin than every visit, and most often another site. So that a page inside it is let in, its
cookies are told to be for that very surrounding only (partitioned): on no other page are they sent along.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from gpuyard.domain.doorways import Doorway
from gpuyard.gateway.web.heads import Request

SERVER_NOTE = "server.json"
LOOK_SECONDS = 2.0
NOBODY, ITSELF = "'none'", "'self'"
FRAMED = b"yard_framed"  # part of the name of every cookie that was given inside the console
_DIRECTIVE = b"frame-ancestors"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


class Framing:
    """`ancestors` is current as of a moment ago: the server may come back on another port."""

    def __init__(self, folder: Path, doorway: Doorway) -> None:
        self._note, self._doorway = folder / SERVER_NOTE, doorway
        self._looked_at = 0.0
        self.ancestors = ITSELF
        self.line = _line(ITSELF)

    def look(self, now: float) -> None:
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        found = consoles(_told(self._note), self._doorway.hosts)
        if found:  # while the server is away its open pages are still its own
            self.ancestors = " ".join((ITSELF, *found))
            self.line = _line(self.ancestors)


def _line(told: str) -> bytes:
    return b"Content-Security-Policy: frame-ancestors " + told.encode("ascii")


def _told(note: Path) -> str:
    try:
        url = json.loads(note.read_text(encoding="utf-8")).get("url")
    except (OSError, ValueError, AttributeError):
        return ""
    return url if isinstance(url, str) else ""


def consoles(url: str, hosts: frozenset[str]) -> list[str]:
    """The console at this address, under all its names; none when it says nothing that can be used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return []
    if parts.scheme not in ("http", "https") or not host:
        return []
    names = {"*"} if "*" in hosts else {name for name in (*hosts, host) if _NAME.fullmatch(name)}
    behind = f":{port}" if port else ""
    return [f"{parts.scheme}://{name}{behind}" for name in sorted(names)]


def policy_without_ancestors(value: bytes) -> bytes:
    """A program's own policy, but for who may show it: that is decided here. A header may hold several, with commas."""
    kept = []
    for policy in value.split(b","):
        parts = [part.strip(b" \t") for part in policy.split(b";")]
        rest = [part for part in parts if part and part.split(None, 1)[0].lower() != _DIRECTIVE]
        if rest:
            kept.append(b"; ".join(rest))
    return b", ".join(kept)


def comes_in_a_frame(request: Request) -> bool:
    """By the browser's own word, which no page can forge."""
    return request.get(b"sec-fetch-dest") == b"iframe"


def can_be_partitioned(doorway: Doorway, host: str) -> bool:
    """Such cookies must be secure ones. Browsers count this machine itself as secure, with or without TLS."""
    name = host.rpartition(":")[0] or host
    return doorway.scheme == "https" or name == "localhost" or name.endswith(".localhost")


def is_framed(request: Request) -> bool:
    """It comes with a cookie that was given inside the console."""
    return any(FRAMED in header for header in request.all(b"cookie"))


def partitioned(cookie: bytes) -> bytes:
    """A program's cookie, so that it is taken and sent inside the console, and there only."""
    kept = [part for part in cookie.split(b";") if part.partition(b"=")[0].strip(b" \t").lower() not in _REPLACED]
    return b";".join([*kept, b" SameSite=None", b" Secure", b" Partitioned"])


_REPLACED = frozenset((b"samesite", b"secure", b"partitioned"))
