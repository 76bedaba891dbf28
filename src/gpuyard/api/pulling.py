"""One who waits for an image to be fetched: told of every step as it comes, without a thread that waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

MOST_STEPS = 100


class Steps:
    """Told from any thread, read by one reader. One who reads slowly misses steps, never the end."""

    def __init__(self) -> None:
        """Made where it is read."""
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._steps: deque[str] = deque(maxlen=MOST_STEPS)
        self._last: dict[str, Any] | None = None

    @property
    def has_any(self) -> bool:
        return bool(self._steps)

    def tell(self, text: str) -> None:
        self._steps.append(text)
        self._wake()

    def end(self, line: dict[str, Any]) -> None:
        self._last = line
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the server has gone
            self._loop.call_soon_threadsafe(self._news.set)

    async def next(self, seconds: float) -> tuple[list[str], dict[str, Any] | None]:
        """What is new, after this time at the latest; and the last line, once it is told."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()
        last = self._last
        return [self._steps.popleft() for _ in range(len(self._steps))], last


class Pulled(StreamingResponse):
    """Lines of JSON. Whoever hangs up waits no longer, and neither does one who may not be here any more. At least an
    empty word every few seconds: who is gone is noticed."""

    media_type = "application/x-ndjson"

    def __init__(
        self, steps: Steps, leave: Callable[[], None], may_stay: Callable[[], bool], every: float, gone: dict[str, Any]
    ) -> None:
        super().__init__(self._lines(), headers={"X-Accel-Buffering": "no"})
        self._steps, self._leave, self._may_stay = steps, leave, may_stay
        self._every, self._gone = every, gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()

    async def _lines(self) -> AsyncIterator[str]:
        looked_at = time.monotonic()
        while True:
            told, last = await self._steps.next(self._every)
            for text in told:
                yield _line({"told": text})
            if last is not None:
                yield _line(last)
                return
            if not told:
                yield _line({"told": ""})
            if time.monotonic() - looked_at >= self._every:
                looked_at = time.monotonic()
                if not await run_in_threadpool(self._may_stay):
                    yield _line(self._gone)
                    return


def _line(told: dict[str, Any]) -> str:
    return json.dumps(told) + "\n"
