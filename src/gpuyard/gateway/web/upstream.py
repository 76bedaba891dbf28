"""Connections to what runs inside: got from the broker, used by one person for one place, kept a moment for the next
request."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

from gpuyard.gateway.web.gate import Target

IDLE_SECONDS = 3.0  # shorter than any server keeps one open, so that we seldom speak into a closed one
IDLE_MOST = 32


class Listener(Protocol):
    """Whoever waits for what comes from inside."""

    def from_inside(self, data: bytes) -> None: ...
    def inside_gone(self) -> None: ...
    def inside_full(self) -> None: ...
    def inside_ready(self) -> None: ...


class Upstream(asyncio.Protocol):
    """One connection."""

    __slots__ = ("held", "idle_since", "last", "listener", "pool", "reused", "target", "transport")
    transport: asyncio.Transport

    def __init__(self, pool: Pool, target: Target) -> None:
        self.pool, self.target = pool, target
        self.listener: Listener | None = None
        self.reused, self.last, self.held, self.idle_since = False, False, False, 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.listener is not None:
            self.listener.from_inside(data)
        else:  # nobody asked
            self.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        listener, self.listener = self.listener, None
        self.pool.lost(self)
        if listener is not None:
            listener.inside_gone()

    def pause_writing(self) -> None:
        if self.listener is not None:
            self.listener.inside_full()

    def resume_writing(self) -> None:
        if self.listener is not None:
            self.listener.inside_ready()

    def hold(self) -> None:
        if not self.held:
            self.held = True
            self.transport.pause_reading()

    def go_on(self) -> None:
        if self.held:
            self.held = False
            self.transport.resume_reading()

    def close(self) -> None:
        self.listener = None
        self.transport.close()


class Pool:
    """Idle connections, newest first."""

    def __init__(self) -> None:
        self._idle: dict[Target, list[Upstream]] = {}

    def take(self, target: Target) -> Upstream | None:
        waiting = self._idle.get(target)
        while waiting:
            upstream = waiting.pop()
            if not upstream.transport.is_closing():
                upstream.reused = True
                return upstream
        return None

    def give(self, upstream: Upstream, now: float) -> None:
        upstream.listener = None
        waiting = self._idle.setdefault(upstream.target, [])
        if len(waiting) >= IDLE_MOST or upstream.transport.is_closing():
            upstream.transport.close()
            return
        upstream.idle_since = now
        upstream.go_on()
        waiting.append(upstream)

    def lost(self, upstream: Upstream) -> None:
        waiting = self._idle.get(upstream.target)
        if waiting and upstream in waiting:
            waiting.remove(upstream)

    def sweep(self, now: float) -> None:
        """Close what has been idle for a while; with `now` far ahead, everything."""
        for target, waiting in list(self._idle.items()):
            kept = [upstream for upstream in waiting if now - upstream.idle_since < IDLE_SECONDS]
            for upstream in waiting:
                if upstream not in kept:
                    upstream.close()
            if kept:
                self._idle[target] = kept
            else:
                del self._idle[target]

    async def adopt(self, sock: socket.socket, target: Target) -> Upstream:
        """A connected socket that came from the broker."""
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        try:
            if sock.family == socket.AF_UNIX:
                _, upstream = await loop.create_unix_connection(lambda: Upstream(self, target), sock=sock)
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _, upstream = await loop.create_connection(lambda: Upstream(self, target), sock=sock)
        except BaseException:
            sock.close()
            raise
        return upstream
