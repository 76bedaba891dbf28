"""Asks running preemptible work, every few seconds, when it last saved: that is what a preemption would cost it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from gpuyard.domain.errors import YardError
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.seam import Progress, ReadsProgress

log = logging.getLogger(__name__)


class ProgressWatch:
    """A thread of its own: users' folders may lie on slow disks. The loop takes what was found when it comes by."""

    def __init__(
        self, engine: ReadsProgress, running: Callable[[], Mapping[ReplicaId, str | None]], every_seconds: float
    ) -> None:
        self._engine = engine
        self._running = running
        self._every = every_seconds
        self._over = threading.Event()
        self._found: dict[str, Progress] = {}

    def run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self.look()
            except (YardError, OSError):
                log.exception("reading when running work was saved failed; trying again")

    def end(self) -> None:
        self._over.set()

    def look(self) -> None:
        """One replica that saved speaks for its workload: most trainings save in one place."""
        running = self._running()
        newest: dict[str, Progress] = {}
        for id, progress in (self._engine.progress(running) if running else {}).items():
            known = newest.get(id.workload)
            if known is None or progress.saved_at > known.saved_at:
                newest[id.workload] = progress
        self._found = newest

    def take(self) -> dict[str, Progress]:
        """The newest look, once. What got lost after it was taken comes again with the next one."""
        found, self._found = self._found, {}
        return found
