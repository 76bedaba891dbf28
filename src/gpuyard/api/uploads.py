"""Large bodies on their way to disk: one piece in memory at a time, and only so many uploads at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import anyio.from_thread
import anyio.to_thread
from starlette.requests import ClientDisconnect

from gpuyard.api.errors import BodyRefused
from gpuyard.domain.reasons import Code, because

AT_ONCE = 8  # so that uploads never take all the threads that answer requests
PIECE_SECONDS = 30.0


class Uploads:
    """Those under way."""

    def __init__(self) -> None:
        self._threads: anyio.CapacityLimiter | None = None  # made in the event loop it belongs to

    async def receive(self, stream: AsyncIterator[bytes], take: Callable[[Iterator[bytes]], None]) -> None:
        """Hand an incoming body to code that reads it in a thread. The sender waits while the disk does."""
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(AT_ONCE)
        await anyio.to_thread.run_sync(take, _pieces(stream), limiter=self._threads)


def _pieces(stream: AsyncIterator[bytes]) -> Iterator[bytes]:
    while piece := anyio.from_thread.run(_next_piece, stream):
        yield piece


async def _next_piece(stream: AsyncIterator[bytes]) -> bytes:
    """The next piece that holds something; empty at the end."""
    try:
        async with asyncio.timeout(PIECE_SECONDS):
            async for piece in stream:
                if piece:
                    return piece
    except (TimeoutError, ClientDisconnect) as error:
        problem = "it did not arrive whole"
        raise BodyRefused(because(Code.BAD_VALUE, at="body", problem=problem, value="")) from error
    return b""
