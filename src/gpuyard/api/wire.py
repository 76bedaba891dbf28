"""How a connection must behave: a head that is small and comes soon, answers that are taken, and not too many at once.

The HTTP library bounds none of this by itself; a stranger could fill the memory with one endless header, or hold every
file descriptor with connections that say nothing; and anybody, with many large answers that they never read.
"""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 15.0
MOST_CONNECTIONS = 2048
LARGE_BYTES = 128 * 1024  # of one answer that waits to be taken; less than this, of all connections, is no danger


def raise_file_limit() -> None:
    """As many open files as the system allows: every connection, log and database handle is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_connections() -> int:
    """At most half of the open files are for clients; control, logs and the database need the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MOST_CONNECTIONS, soft // 2)


class CarefulProtocol(HttpToolsProtocol):
    """One connection."""

    most_untaken: ClassVar[int] = 128 << 20
    """Bytes of answers that wait for their readers, over all connections. Beyond it the slowest readers are let go."""
    patience: ClassVar[float] = HEAD_SECONDS
    """For a head; and, once a request is answered early, for the rest of a body that nobody will read."""
    most = staticmethod(most_connections)
    _made_at = 0.0
    _full_since: float | None = None
    _rest_timer: asyncio.TimerHandle | None = None
    _head_is_due = True
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._made_at = self.loop.time()
        self._expect_head()
        if len(self.connections) > self.most():
            self._make_room()

    @property
    def _asks_nothing(self) -> bool:
        """Nobody works on an answer for it: its request has not come yet, not wholly, or is answered."""
        return self._head_is_due or self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    def _make_room(self) -> None:
        """One that asks nothing has to go, the oldest of the address that has most of them: whoever fills all places
        loses them again to those who come from elsewhere."""
        there = [one for one in self.connections if isinstance(one, CarefulProtocol) and one._asks_nothing]
        by_address = Counter(one.client[0] if one.client else "" for one in there)
        crowded = by_address.most_common(1)[0][0]
        from_there = [one for one in there if (one.client[0] if one.client else "") == crowded]
        oldest = min(from_there, key=lambda one: one._made_at)
        self.connections.discard(oldest)
        oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        self._rest_came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._head_is_due:
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The head of the request is too large.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full_since = self.loop.time()
        if self.transport.get_write_buffer_size() > LARGE_BYTES:
            self._let_slow_readers_go()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._full_since = None

    def _let_slow_readers_go(self) -> None:
        full = [one for one in self.connections if isinstance(one, CarefulProtocol) and one._full_since is not None]
        untaken = sum(one.transport.get_write_buffer_size() for one in full)
        for slow in sorted(full, key=lambda one: one._full_since or 0.0):
            if untaken <= self.most_untaken:
                return
            untaken -= slow.transport.get_write_buffer_size()
            slow._full_since = None
            slow.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_came()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete and self.cycle.more_body:
            self._rest_timer = self.loop.call_later(self.patience, self.transport.close)

    def on_message_complete(self) -> None:
        self._rest_came()
        super().on_message_complete()

    def _rest_came(self) -> None:
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None

    def _expect_head(self) -> None:
        self._head_came()
        self._head_is_due, self._head_bytes = True, 0
        self._head_timer = self.loop.call_later(self.patience, self._give_up)

    def _head_came(self) -> None:
        self._head_is_due = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if self._head_is_due and not self.transport.is_closing():
            self.transport.close()
