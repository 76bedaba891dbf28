"""The picture as the api uses it: caught up on each question, locked around, never written."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gpuyard.domain.workload import State, Workload
from gpuyard.scheduling.order import turn
from gpuyard.scheduling.plan import preview
from gpuyard.scheduling.snapshot import Preview
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture


class View:
    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._picture = Picture(database)
        self._clock = clock
        self._lock = threading.Lock()

    def preview(self, workload: Workload) -> Preview:
        """What would happen if this were submitted now."""
        with self._lock:
            self._picture.follow()
            snapshot = self._picture.snapshot(self._clock())
        return preview(snapshot, workload)

    def ahead_of(self, workload: Workload) -> list[str] | None:
        """The ids that wait before it, the next one first; None when it does not wait."""
        with self._lock:
            self._picture.follow()
            queue = [w for w in self._picture.live.values() if w.state is State.QUEUED]
        if workload.state is not State.QUEUED:
            return None
        ahead = sorted((w for w in queue if turn(w) < turn(workload)), key=turn, reverse=True)
        return [w.id for w in ahead]

    def holding(self) -> list[Workload]:
        """The workloads that have cards or cores now."""
        with self._lock:
            self._picture.follow()
            return [w for w in self._picture.live.values() if w.holds_resources]
