"""News for open pages: what has changed, told once to everyone who listens, each as much as they may know.

One task reads the change feed while anybody listens and keeps the last batches of news. A listener goes through them at
its own pace; one that fell behind, or comes back after too long, is told to load everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from gpuyard.api.board import Board, Changed, make_board, renewed
from gpuyard.domain.cluster import Node
from gpuyard.domain.workload import Workload
from gpuyard.store import nodes, workloads
from gpuyard.store.database import Database
from gpuyard.store.feed import Change, FeedTooOld, changes_since, newest_change

GATHER_SECONDS = 0.08  # what happens together is told together
KEPT = 256  # batches of news
MOST_WORKLOADS = 500  # told one by one; beyond that, lists are better loaded again
WAIT_SECONDS = 1.0
EMPTY = Board({}, {})
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Whose:
    id: str
    owner: str
    group: str


@dataclass(frozen=True, slots=True)
class Batch:
    """What changed up to a number of the feed."""

    seq: int
    workloads: tuple[Whose, ...]
    many: bool  # more workloads than are named
    machines: tuple[str, ...]  # rows of the board that came out different
    kinds: frozenset[str]  # user, group, policy: what is loaded again as a whole
    board: Board


class World(Protocol):
    """What the board is made of, as it is now."""

    def nodes(self) -> Sequence[Node]: ...

    def holding(self) -> Sequence[Workload]: ...

    def held(self, ids: Iterable[str], /) -> Mapping[str, Workload]:
        """Those of these workloads that hold cards or cores."""


class Live:
    """Belongs to one event loop."""

    def __init__(self, database: Database, world: World) -> None:
        self._database = database
        self._world = world
        self._batches: deque[Batch] = deque(maxlen=KEPT)
        self._position = 0
        self._oldest = 0  # news after this number are kept
        self._board = EMPTY
        self._listeners = 0
        self._beginning = asyncio.Lock()  # two pages may be the first
        self._ready = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def tell(self) -> None:
        """Something was written. Called by the feed, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # closed in between: nobody listens any more
                self._loop.call_soon_threadsafe(self._woken.set)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """While inside, news are gathered. Gives the number they stand at."""
        self._listeners += 1
        try:
            async with self._beginning:
                if self._task is None:
                    await self._begin()
            yield self._position
        finally:
            self._listeners -= 1
            if self._listeners == 0 and self._task is not None:
                self._task.cancel()
                self._task = None

    @property
    def position(self) -> int:
        return self._position

    def since(self, seq: int) -> list[Batch] | None:
        """News after a number; None when they are no longer all there."""
        if seq == self._position:
            return []
        first = next((i for i, batch in enumerate(self._batches) if batch.seq > seq), None)
        if first is None or (first == 0 and seq != self._oldest) or seq > self._position:
            return None
        return list(islice(self._batches, first, None))

    async def wait(self, seq: int) -> None:
        """Until there may be news after this number, or a moment has passed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS), self._ready:
                await self._ready.wait_for(lambda: self._position != seq)

    async def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._batches.clear()
        await asyncio.to_thread(self._look_at_everything)
        self._oldest = self._position
        self._task = asyncio.create_task(self._gather())

    async def _gather(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), WAIT_SECONDS)
            self._woken.clear()
            try:
                batch = await self._next()
            except Exception:  # a busy store, or a mistake of ours: pages must hear of the next change all the same
                _log.exception("no news for open pages")
                await asyncio.sleep(WAIT_SECONDS)
                continue
            if batch is not None:
                await self._publish(batch)
                await asyncio.sleep(GATHER_SECONDS)

    async def _next(self) -> Batch | None:
        """What changed since; after too long a sleep all is looked at anew, and listeners are told to do so too."""
        try:
            return await asyncio.to_thread(self._look)
        except FeedTooOld:
            await asyncio.to_thread(self._look_at_everything)
            self._batches.clear()
            self._oldest = self._position
            return None

    async def _publish(self, batch: Batch) -> None:
        async with self._ready:
            if len(self._batches) == KEPT:
                self._oldest = self._batches[0].seq
            self._batches.append(batch)
            self._position, self._board = batch.seq, batch.board
            self._ready.notify_all()

    def _look_at_everything(self) -> None:
        with self._database.read() as conn:
            self._position = newest_change(conn)
        self._board = make_board(self._world.nodes(), self._world.holding())

    def _look(self) -> Batch | None:
        with self._database.read() as conn:
            changes = changes_since(conn, self._position)
            if not changes:
                return None
            by_kind = _by_kind(changes)
            ids = by_kind.get(workloads.KIND, [])
            whose = [Whose(*row) for row in workloads.whose(conn, ids[:MOST_WORKLOADS])]
        changed = Changed(by_kind.get(nodes.KIND, ()), ids, self._world.held(ids))
        board, machines = renewed(self._board, self._world.nodes(), changed)
        others = frozenset(by_kind) - {workloads.KIND, nodes.KIND}
        return Batch(changes[-1].seq, tuple(whose), len(ids) > MOST_WORKLOADS, tuple(machines), others, board)


def _by_kind(changes: Sequence[Change]) -> Mapping[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for change in changes:
        found.setdefault(change.kind, {})[change.id] = None
    return {kind: list(ids) for kind, ids in found.items()}
