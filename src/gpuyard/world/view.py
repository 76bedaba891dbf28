"""The picture as the api uses it: caught up on each question, locked around, never written."""

from __future__ import annotations

import threading
from collections.abc import Callable

from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import NEVER_STARTS
from gpuyard.domain.workload import State, Workload
from gpuyard.scheduling.plan import plan, preview
from gpuyard.scheduling.snapshot import Preview
from gpuyard.store.database import Database
from gpuyard.world.compare import Comparison, compare
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
        """The ids that wait before it, the next one first; None when it does not wait. What can never start is in
        nobody's way."""
        if workload.state is not State.QUEUED:
            return None
        with self._lock:
            self._picture.follow()
            snapshot = self._picture.snapshot(self._clock())
        ahead: list[str] = []
        for id, reason in plan(snapshot).waiting.items():
            if id == workload.id:
                break
            if reason.code not in NEVER_STARTS:
                ahead.append(id)
        return ahead[::-1]

    def compare(self, policy: Policy) -> Comparison:
        """What this policy would change now, were it in force."""
        with self._lock:
            self._picture.follow()
            snapshot = self._picture.snapshot(self._clock())
        return compare(snapshot, policy)

    def holding(self) -> list[Workload]:
        """The workloads that have cards or cores now."""
        with self._lock:
            self._picture.follow()
            return [w for w in self._picture.live.values() if w.holds_resources]
