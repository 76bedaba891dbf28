"""Dev environments that nobody uses, or whose timer has run out, are stopped, and their owners told before.

Used is what somebody does in it through browser or SSH, and what its processes and cards do by themselves: a training
started in a terminal keeps it busy. What was measured is kept in memory only; after a restart idleness counts anew.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.usage import Usage
from gpuyard.domain.workload import Kind, ReplicaId, Workload
from gpuyard.store.workplaces import Workplace

BUSY_CORES = 0.1  # of one core on average: an editor and a notebook server at rest need less
BUSY_CARD_PERCENT = 1.0
LONGEST_NOTICE_SECONDS = 600.0
FORGET_SECONDS = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be done about one environment now: stop it, or tell its owner that it will be."""

    reason: Reason
    stops: bool


def notice_seconds(of: float) -> float:
    """How long before the stop it is told: ten minutes, or a quarter of a short limit."""
    return min(LONGEST_NOTICE_SECONDS, of / 4)


def due(env: Workload, place: Workplace, busy_at: float, now: float) -> Due | None:
    """Whether a running environment is to be stopped, or its owner to be warned. `busy_at`: when it last did
    something by itself."""
    assert env.attempt is not None
    began = env.attempt.started_at or env.attempt.created_at
    if place.stop_at is not None and began <= place.stop_at:
        left = place.stop_at - now
        if left <= 0:
            return Due(because(Code.TIMER), stops=True)
        notice = notice_seconds(place.stop_at - began)
        if left <= notice and (place.warned_at is None or place.warned_at < place.stop_at - notice):
            return Due(because(Code.TIMER_SOON, seconds=round(left)), stops=False)
    limit = env.spec.idle_seconds
    if limit is None:
        return None
    used = max(began, busy_at, place.used_at or 0.0)
    left = used + limit - now
    if left <= 0:
        return Due(because(Code.IDLE, idle_seconds=limit), stops=True)
    if left <= notice_seconds(limit) and (place.warned_at is None or place.warned_at < used):
        return Due(because(Code.IDLE_SOON, idle_seconds=limit, seconds=round(left)), stops=False)
    return None


def environments(workloads: Iterable[Workload]) -> list[Workload]:
    return [workload for workload in workloads if workload.spec.kind is Kind.ENV]


class BusyWatch:
    """When each replica last did something, from measurements that come every few seconds."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._lock = threading.Lock()
        self._cpu: dict[ReplicaId, tuple[float, float]] = {}  # when, and how much it had used by then
        self._busy_at: dict[ReplicaId, float] = {}

    def note(self, now: float, usages: Mapping[ReplicaId, Usage]) -> None:
        with self._lock:
            for id, usage in usages.items():
                before = self._cpu.get(id)
                self._cpu[id] = (now, usage.cpu_seconds)
                if before is None or _is_busy(before, now, usage):
                    self._busy_at[id] = now
            for gone in self._cpu.keys() - usages.keys():
                del self._cpu[gone]
                if self._busy_at.get(gone, 0.0) < now - FORGET_SECONDS:
                    self._busy_at.pop(gone, None)

    def busy_at(self, replicas: Sequence[ReplicaId]) -> float:
        """The newest sign of life of any of them; those never measured count from when the watch began."""
        with self._lock:
            return max((self._busy_at.get(id, self._since) for id in replicas), default=self._since)


def _is_busy(before: tuple[float, float], now: float, usage: Usage) -> bool:
    then, used = before
    cores = (usage.cpu_seconds - used) / (now - then) if now > then else 0.0
    return cores >= BUSY_CORES or any((card.percent or 0.0) >= BUSY_CARD_PERCENT for card in usage.cards)
