"""What was submitted of late, from which it is learned what is typical."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Spec, State, Workload
from gpuyard.scheduling.fragments import Typical, typical_from

REMEMBERED = 1000  # submissions: enough for the rarer ones, and what was usual before that is forgotten
GANG_AT_MOST = 16  # replicas that one submission counts for: a single large one is not what is typical
LEARNED_FROM = 20  # fewer say nothing
LEARNED_EVERY = 20  # per cent of those remembered are new: then it is learned anew
PARTS = 1000  # how often is told in tenths of a per cent: what changes by less is no news


class Asked:
    """The newest submissions. The older half counts once, the newer half twice."""

    def __init__(self, newest: Iterable[tuple[str, Spec, float]] = ()) -> None:
        """Of those that are given, with the moment of each, oldest first, the newest are remembered."""
        self._recent: dict[str, tuple[Spec, float]] = {}
        self._new = 0
        for id, spec, at in newest:
            self.note(id, spec, at)

    def __contains__(self, id: str) -> bool:
        return id in self._recent

    def lacks(self, workload: Workload) -> bool:
        """Whether it came since. Whoever looks now and then sees short work when it has a place, or is over."""
        if workload.id in self._recent:
            return False
        return workload.state is State.QUEUED or workload.submitted_at > self._oldest()

    def _oldest(self) -> float:
        """What came before this may have been forgotten."""
        return next(at for _, at in self._recent.values()) if len(self._recent) == REMEMBERED else -inf

    def note(self, id: str, spec: Spec, at: float) -> bool:
        """Remember one. True when enough have come to learn from them."""
        self._recent[id] = spec, at
        if len(self._recent) > REMEMBERED:
            del self._recent[next(iter(self._recent))]
        self._new += 1
        return len(self._recent) >= LEARNED_FROM and self._new * 100 >= LEARNED_EVERY * len(self._recent)

    def typical(self) -> tuple[Typical, ...]:
        self._new = 0
        if len(self._recent) < LEARNED_FROM:
            return ()
        counts: dict[Resources, int] = {}
        half = len(self._recent) // 2
        for place, (spec, _) in enumerate(self._recent.values()):
            for role in spec.roles:
                times = min(role.replicas, GANG_AT_MOST) * (2 if place >= half else 1)
                counts[role.resources] = counts.get(role.resources, 0) + times
        return _in_parts(typical_from(counts))


def _in_parts(typical: tuple[Typical, ...]) -> tuple[Typical, ...]:
    every = sum(one.times for one in typical)
    return tuple(Typical(one.resources, max(1, round(PARTS * one.times / every))) for one in typical)
