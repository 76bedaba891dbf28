"""Following a log live: small pieces, at the reader's pace, without a gap and without a repeat.

Nothing is queued for a reader: a piece is read from disk when the one before has been taken, so a slow reader costs no
memory and a fast writer none either. The file tells of new output, the store tells of the end.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because
from gpuyard.engines.logs import Chunk, Gap, LogFile, Piece

PIECE_BYTES = 32 * 1024
SHORTEST_PAUSE, LONGEST_PAUSE = 0.04, 0.12  # between two looks at a quiet file, in seconds
LOOK_ANYWAY_SECONDS = 2.0  # at the store, even without news
CHECK_RIGHTS_SECONDS = 3.0
READERS_AT_ONCE = 8  # threads that read logs for followers; the rest of the api has its own
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at what is followed. No log yet: it has not started. Over: nothing more will be written to it."""

    log: LogFile | None
    over: bool


class News:
    """Notices that something in the store has changed, without asking it."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self) -> None:
        self.count += 1


class Followers:
    """How many follow at the moment, in all and by user."""

    def __init__(self, per_user: int, most: int) -> None:
        self._per_user = per_user
        self._most = most
        self._by_user: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads: anyio.CapacityLimiter | None = None
        self.news = News()

    @property
    def number(self) -> int:
        return self._by_user.total()

    @property
    def threads(self) -> anyio.CapacityLimiter:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(READERS_AT_ONCE)
        return self._threads

    async def in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=self.threads)

    def enter(self, user: str) -> None:
        with self._lock:
            if self._by_user[user] >= self._per_user or self._by_user.total() >= self._most:
                raise TooMany(because(Code.TOO_MANY_TRIES, seconds=5), 5.0)
            self._by_user[user] += 1

    def leave(self, user: str) -> None:
        with self._lock:
            self._by_user[user] -= 1
            if self._by_user[user] <= 0:
                del self._by_user[user]


class FollowResponse(StreamingResponse):
    """A stream that gives its follower's place back however it ends, even if it never began."""

    media_type = "text/event-stream"

    def __init__(self, follow: Follow, leave: Callable[[], None]) -> None:
        super().__init__(follow.events(), headers={"X-Accel-Buffering": "no"})
        self._leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


class Follow:
    """One reader of one log."""

    def __init__(
        self,
        first: Sight,
        look: Callable[[], Sight],
        start: Callable[[LogFile], int],
        still_allowed: Callable[[], bool],
        stopping: Callable[[], bool],
        followers: Followers,
        heartbeat_seconds: float,
    ) -> None:
        self._sight = first
        self._look = look
        self._start = start
        self._still_allowed = still_allowed
        self._stopping = stopping
        self._followers = followers
        self._heartbeat_seconds = heartbeat_seconds
        self._position = 0
        self._seen_size = -1
        self._pause = SHORTEST_PAUSE
        self._looked_at = self._checked_at = self._spoke_at = time.monotonic()
        self._known_news = -1
        self._dismissed = False  # the reader has to go although the log goes on

    async def events(self) -> AsyncIterator[bytes]:
        yield b": following\n\n"
        async for word in self._wait_for_log():
            yield word
        if self._sight.log is not None and not self._dismissed:
            self._position = await self._followers.in_thread(self._start, self._sight.log)
            async for event in self._read_to_the_end(self._sight.log):
                yield event
        if not self._dismissed:
            yield encode("end", {})

    async def _wait_for_log(self) -> AsyncIterator[bytes]:
        while self._sight.log is None and not self._sight.over and not self._dismissed:
            async for word in self._rest():
                yield word
            await self._look_around()

    async def _read_to_the_end(self, log: LogFile) -> AsyncIterator[bytes]:
        while not self._dismissed:
            # Whether it is over is known before the file is read: what was written until then is read now.
            over, told = self._sight.over, False
            async for event in self._new_output(log, over):
                told = True
                yield event
            if told:
                self._pause, self._spoke_at = SHORTEST_PAUSE, time.monotonic()
            elif over:
                return
            else:
                async for word in self._rest():
                    yield word
            await self._look_around()

    async def _new_output(self, log: LogFile, over: bool) -> AsyncIterator[bytes]:
        size = log.size()
        if size < self._position:  # the job truncated its own log
            self._position = size
        if size == self._seen_size and not over:
            return
        before = self._position
        pieces = await self._followers.in_thread(log.read, self._position, PIECE_BYTES)
        for piece, following in zip_longest(pieces, pieces[1:]):
            nothing_joins = isinstance(following, Gap) or (over and piece.end >= size)
            event, self._position = told_piece(piece, to_the_last_byte=nothing_joins)
            if event:
                yield event
            if self._position != piece.end:
                break
        # Only when nothing came of it is there nothing to read until the file grows.
        self._seen_size = size if self._position == before else -1

    async def _rest(self) -> AsyncIterator[bytes]:
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
        if time.monotonic() - self._spoke_at >= self._heartbeat_seconds:
            self._spoke_at = time.monotonic()
            yield b": still here\n\n"

    async def _look_around(self) -> None:
        """May the reader stay? Is there news in the store? The latter less often the more followers there are."""
        now = time.monotonic()
        if self._stopping():
            self._dismissed = True
        elif now - self._checked_at >= CHECK_RIGHTS_SECONDS:
            self._checked_at = now
            self._dismissed = not await self._followers.in_thread(self._still_allowed)
        if self._dismissed or self._sight.over:
            return
        since, news = now - self._looked_at, self._followers.news.count
        soon = 0.1 + 0.005 * self._followers.number
        if since >= LOOK_ANYWAY_SECONDS or (news != self._known_news and since >= soon):
            self._known_news, self._looked_at = news, now
            self._sight = await self._followers.in_thread(self._look)


# --- pieces as events ---------------------------------------------------------------------------------------------


def told_piece(piece: Piece, *, to_the_last_byte: bool) -> tuple[bytes, int]:
    """The event for a piece and the offset after it. A character that is not whole yet is left for the next one."""
    if not isinstance(piece, Chunk):
        return encode("gap", {"from": piece.start, "to": piece.end}, piece.end), piece.end
    length = len(piece.data) if to_the_last_byte else whole_characters(piece.data)
    if not length:
        return b"", piece.start
    end = piece.start + length
    text = piece.data[:length].decode("utf-8", "replace")
    return encode("log", {"text": text, "from": piece.start, "to": end}, end), end


def whole_characters(data: bytes) -> int:
    """How many bytes there are before a character that the end of the data cuts off."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needed > back else len(data)
    return len(data)


def encode(name: str, data: dict[str, Any], offset: int | None = None) -> bytes:
    """One server-sent event; its id is the offset from which to go on. JSON has no bare line ends, so one line does."""
    id = "" if offset is None else f"id: {offset}\n"
    return f"{id}event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
