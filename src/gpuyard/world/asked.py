"""What was submitted of late, from which it is learned what is typical."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Spec, State, Workload
from gpuyard.scheduling.fragments import Typical, typical_from

COUNTED = 1000  # submissions: enough for the rarer ones, and what was usual before that is forgotten
MOST_OF_ONE = COUNTED // 2  # of one person, as long as there are others among those that are remembered
REMEMBERED = 2 * COUNTED  # so that nobody drives out the others by a thousand of their own
GANG_AT_MOST = 16  # replicas that one submission counts for: a single large one is not what is typical
LEARNED_FROM = 20  # fewer say nothing
LEARNED_EVERY = 20  # per cent of those counted are new: then it is learned anew
PARTS = 1000  # how often is told in tenths of a per cent: what changes by less is no news


class Submission(NamedTuple):
    owner: str
    asked: tuple[tuple[Resources, int], ...]  # with how many replicas
    at: float


class Asked:
    """The newest submissions. The older half counts once, the newer half twice; nobody counts more than all others."""

    def __init__(self, newest: Iterable[tuple[str, str, Spec, float]] = ()) -> None:
        """Of those that are given, with the owner and the moment of each, oldest first, the newest are remembered."""
        self._recent: dict[str, Submission] = {}
        self._new = 0
        for id, owner, spec, at in newest:
            self.note(id, owner, spec, at)

    def __contains__(self, id: str) -> bool:
        return id in self._recent

    def lacks(self, workload: Workload) -> bool:
        """Whether it came since. Whoever looks now and then sees short work when it has a place, or is over."""
        if workload.id in self._recent:
            return False
        return workload.state is State.QUEUED or workload.submitted_at > self._oldest()

    def _oldest(self) -> float:
        """What came before this may have been forgotten."""
        return next(one.at for one in self._recent.values()) if len(self._recent) == REMEMBERED else -inf

    def note(self, id: str, owner: str, spec: Spec, at: float) -> bool:
        """Remember one. True when enough have come to learn from them."""
        asked = tuple((role.resources, min(role.replicas, GANG_AT_MOST)) for role in spec.roles)
        self._recent[id] = Submission(owner, asked, at)
        if len(self._recent) > REMEMBERED:
            del self._recent[next(iter(self._recent))]
        self._new += 1
        counted = min(len(self._recent), COUNTED)
        return counted >= LEARNED_FROM and self._new * 100 >= LEARNED_EVERY * counted

    def typical(self) -> tuple[Typical, ...]:
        self._new = 0
        counted = self._counted()
        if len(counted) < LEARNED_FROM:
            return ()
        counts: dict[str, Counter[Resources]] = {}
        half = len(counted) // 2
        for place, one in enumerate(counted):
            mine = counts.setdefault(one.owner, Counter())
            for resources, replicas in one.asked:
                mine[resources] += replicas * (2 if place >= half else 1)
        return _in_parts(typical_from(_added(counts, Counter(one.owner for one in counted))))

    def _counted(self) -> list[Submission]:
        """The newest, oldest first. What somebody has beyond their part is taken only where others leave room."""
        within: list[int] = []
        beyond: list[int] = []
        newest, of = list(reversed(self._recent.values())), Counter[str]()
        for place, one in enumerate(newest):
            of[one.owner] += 1
            (within if of[one.owner] <= MOST_OF_ONE else beyond).append(place)
        return [newest[place] for place in sorted((within + beyond)[:COUNTED], reverse=True)]


def _added(counts: dict[str, Counter[Resources]], submissions: Counter[str]) -> Counter[Resources]:
    """All together; the one with most counts no more than all others, once those have submitted enough to say
    anything. Everything is multiplied and nothing divided, so that it stays exact."""
    weights = {owner: mine.total() for owner, mine in counts.items()}
    first = max(sorted(weights), key=lambda owner: weights[owner])
    others = sum(weights.values()) - weights[first]
    bound = weights[first] > others and submissions.total() - submissions[first] >= LEARNED_FROM
    added: Counter[Resources] = Counter()
    for owner, mine in counts.items():
        factor = 1 if not bound else others if owner == first else weights[first]
        for resources, times in mine.items():
            added[resources] += factor * times
    return added


def _in_parts(typical: tuple[Typical, ...]) -> tuple[Typical, ...]:
    every = sum(one.times for one in typical)
    return tuple(Typical(one.resources, max(1, round(PARTS * one.times / every))) for one in typical)
