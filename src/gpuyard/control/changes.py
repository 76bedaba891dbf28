"""What one pass changes: every workload's first version, its newest one, and the story in between."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuyard.domain.lifecycle import Event, advance, can
from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import StoryEvent, Workload
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.store.feed import newest_change
from gpuyard.world.picture import Picture


class Outdated(Exception):
    """The cluster or the quotas changed while the pass was thinking: think again."""


class Changes:
    """Collects the transitions of one pass on top of the picture, then writes them all or none."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._before: dict[str, Workload] = {}
        self._after: dict[str, Workload] = {}
        self._story: dict[str, list[StoryEvent]] = {}

    def __bool__(self) -> bool:
        return bool(self._after)

    def now(self, id: str) -> Workload | None:
        return self._after.get(id) or self._picture.live.get(id)

    def apply(self, id: str, event: Event, at: float) -> Workload | None:
        """Advance a workload if its present state knows the event; an event that came too late is dropped."""
        workload = self.now(id)
        if workload is None or not can(workload, type(event)):
            return None
        step = advance(workload, event, at)
        if step.workload is not workload:
            self._before.setdefault(id, workload)
            self._after[id] = step.workload
        self.tell(id, step.story)
        return step.workload

    def tell(self, id: str, story: Iterable[StoryEvent]) -> None:
        """Add lines to a workload's story; one that is otherwise unchanged gets a new version for it."""
        lines = list(story)
        if not lines:
            return
        if id not in self._after:
            workload = self._picture.live[id]
            self._before[id], self._after[id] = workload, replace(workload, version=workload.version + 1)
        self._story.setdefault(id, []).extend(lines)

    def write(self, database: Database, lock: ControlLock) -> list[Workload]:
        """One transaction. Raises Outdated when nodes, groups or users changed since the picture was taken: a placement
        must hold against now. A workload that its owner changed meanwhile is left out and comes up in the next pass."""
        ids = list(self._after)
        with database.write() as conn:
            lock.check(conn)
            since = database.feed.changes_since(conn, self._picture.position, 10_000)
            if any(change.kind != "workload" for change in since):
                raise Outdated
            rows = [(self._before[id], self._after[id], self._story.get(id, [])) for id in ids]
            before = newest_change(conn)
            done = workload_rows.save_many(conn, rows)
            upto = newest_change(conn)
        written = [self._after[id] for id, ok in zip(ids, done, strict=True) if ok]
        self._picture.wrote(before, upto, written)
        return written


def changed_reasons(picture: Picture, waiting: Iterable[tuple[str, Reason]]) -> dict[str, Reason]:
    """The reasons that differ from what the store already has."""
    return {id: reason for id, reason in waiting if (w := picture.live.get(id)) is not None and w.reason != reason}
