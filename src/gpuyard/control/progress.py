"""Asks preemptible work, every few seconds, when it last saved: that is what a preemption would cost it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

from gpuyard.domain.workload import ReplicaId, State, Verdict, Workload
from gpuyard.engines.seam import Engine, Progress, ReadsProgress

log = logging.getLogger(__name__)

LOOK_BACK_SECONDS = 60.0  # so long after a preemption it is asked what was saved in the grace time


class ProgressWatch:
    """A thread of its own: users' folders may lie on slow disks. The loop says whom to ask and takes what was found."""

    def __init__(self, engine: Engine, every_seconds: float) -> None:
        self._engine = engine
        self._every = every_seconds
        self._over = threading.Event()
        self._asked: Mapping[ReplicaId, str | None] = {}
        self._found: dict[str, Progress] = {}

    def run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self.look()
            except Exception:  # whatever a look finds: the next one may go well, and control must not lose this thread
                log.exception("reading when work was saved failed; trying again")

    def end(self) -> None:
        self._over.set()

    def watch(self, workloads: Iterable[Workload], now: float) -> None:
        """Among these, ask those that count from now on."""
        self._asked = {
            replica.id: replica.handle
            for workload in workloads
            if workload.attempt is not None and _counts(workload, now)
            for replica in workload.attempt.replicas
        }

    def look(self) -> None:
        """One replica that saved speaks for its workload: most trainings save in one place."""
        asked = self._asked
        newest: dict[str, Progress] = {}
        found = self._engine.progress(asked) if asked and isinstance(self._engine, ReadsProgress) else {}
        for id, progress in found.items():
            known = newest.get(id.workload)
            if known is None or progress.saved_at > known.saved_at:
                newest[id.workload] = progress
        self._found = newest

    def take(self) -> dict[str, Progress]:
        """The newest look, once. What gets lost after it was taken comes again with the next one."""
        found, self._found = self._found, {}
        return found


def _counts(workload: Workload, now: float) -> bool:
    attempt = workload.attempt
    if not workload.spec.preemptible or attempt is None:
        return False
    if workload.state is State.RUNNING:
        return True
    was_preempted = attempt.ending is not None and attempt.ending.verdict is Verdict.PREEMPTED
    return workload.state is State.QUEUED and was_preempted and now - (attempt.ended_at or 0.0) < LOOK_BACK_SECONDS
