"""Measures what running replicas use, every few seconds, into the metrics' own file."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from gpuyard.control.metering import CardMeter
from gpuyard.control.resting import BusyWatch
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.seam import ReadsUsage
from gpuyard.metrics.series import Series

log = logging.getLogger(__name__)


class Sampler:
    """A thread of its own: a slow look at devices never holds up the control loop."""

    def __init__(
        self,
        engine: ReadsUsage,
        series: Series,
        running: Callable[[], tuple[ReplicaId, ...]],
        clock: Callable[[], float],
        every_seconds: float,
        busy: BusyWatch,
        cards: CardMeter,
    ) -> None:
        self._engine = engine
        self._series = series
        self._running = running
        self._clock = clock
        self._every = every_seconds
        self._busy = busy
        self._cards = cards
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(self._every):
            try:
                self.sample()
            except OSError:
                log.exception("measuring the use of running work failed; trying again")

    def sample(self) -> None:
        replicas = self._running()
        if not replicas:
            self._cards.note(self._clock(), {})
            return
        now, usages = self._clock(), self._engine.usage(replicas)
        self._busy.note(now, usages)
        self._cards.note(now, usages)
        self._series.add(now, usages)

    def end(self) -> None:
        self._over.set()
