"""Large bodies on their way to disk: one piece in memory at a time, and only so many uploads at once.

Nobody holds more than a few of the places, and nobody holds one without sending: whoever is slower than a least average
speed is cut off, however steadily the drops fall.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import anyio.from_thread
import anyio.to_thread
from starlette.requests import ClientDisconnect

from gpuyard.api.errors import BodyRefused
from gpuyard.api.parts import ApiLimits
from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because

AT_ONCE = 8  # so that uploads never take all the threads that answer requests
PIECE_SECONDS = 30.0


class Uploads:
    """Those under way. Belongs to one event loop."""

    def __init__(self, limits: ApiLimits) -> None:
        self._limits = limits
        self._threads: anyio.CapacityLimiter | None = None  # made in the event loop it belongs to
        self._places: dict[str, asyncio.Semaphore] = {}

    async def receive(self, user: str, stream: AsyncIterator[bytes], take: Callable[[Iterator[bytes]], None]) -> None:
        """Hand an incoming body to code that reads it in a thread. The sender waits while the disk does."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(AT_ONCE)
        async with self._place_of(user):
            pieces = _Incoming(stream, self._limits).pieces()
            await anyio.to_thread.run_sync(take, pieces, limiter=self._threads)

    @asynccontextmanager
    async def _place_of(self, user: str) -> AsyncIterator[None]:
        """One of this user's own places, before one of everybody's: whoever sends much waits for themselves."""
        places = self._places.setdefault(user, asyncio.Semaphore(self._limits.uploads_per_user))
        wait = self._limits.upload_wait_seconds
        try:
            async with asyncio.timeout(wait):
                await places.acquire()
        except TimeoutError:
            raise TooMany(because(Code.TOO_MANY_TRIES, seconds=int(wait) + 1), wait) from None
        try:
            yield
        finally:
            places.release()


class _Incoming:
    """One body, and how fast it has come so far."""

    def __init__(self, stream: AsyncIterator[bytes], limits: ApiLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._began = 0.0
        self._received = 0

    def pieces(self) -> Iterator[bytes]:
        self._began = time.monotonic()
        while piece := anyio.from_thread.run(self._next_piece):
            self._received += len(piece)
            yield piece

    def _seconds_left(self) -> float:
        """Until it must be whole, or more of it must be here."""
        granted = self._limits.upload_seconds + self._received / self._limits.upload_bytes_per_second
        return min(PIECE_SECONDS, self._began + granted - time.monotonic())

    async def _next_piece(self) -> bytes:
        """The next piece that holds something; empty at the end."""
        try:
            async with asyncio.timeout(self._seconds_left()):
                async for piece in self._stream:
                    if piece:
                        return piece
        except TimeoutError as error:
            raise _refused("it did not arrive in time") from error
        except ClientDisconnect as error:
            raise _refused("it did not arrive whole") from error
        return b""


def _refused(problem: str) -> BodyRefused:
    return BodyRefused(because(Code.BAD_VALUE, at="body", problem=problem, value=""))
