"""The line of those who wait. Those that are alike to the scheduler stand in one batch: one verdict serves them all."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from math import inf

from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.fit import Ask
from gpuyard.scheduling.quota import Amounts, Payer, least_amounts
from gpuyard.scheduling.service import NONE

BatchKey = tuple[str, str, int, bool, float, float, Ask]


class Batch:
    """Same group, owner, priority and request, and the same rank. The oldest is asked first."""

    __slots__ = (
        "amounts",
        "ask",
        "fresh",
        "group",
        "jobs",
        "longest",
        "never",
        "one_told_at",
        "owner",
        "payer",
        "priority",
        "rank",
        "told",
        "told_at",
    )

    def __init__(self, workload: Workload, ask: Ask, longest: float, rank: float = NONE) -> None:
        self.group = workload.group
        self.owner = workload.owner
        self.priority = workload.spec.priority
        self.payer = Payer(workload.group, workload.owner, workload.spec.preemptible)
        self.amounts: Amounts = least_amounts(workload.spec)
        self.ask = ask
        self.longest = longest  # seconds after which each of them is surely over
        self.rank = rank  # by what it has been given, or has left, where the policy looks at that
        self.jobs: list[tuple[float, str]] = []  # (submitted_at, id)
        self.never: Reason | None = None  # set when no waiting will help
        self.told: Reason | None = None  # what its members were told last ...
        self.told_at = -inf  # ... and when
        self.one_told_at = -inf  # when one of them was last told something of its own
        self.fresh: set[str] = set()  # members that were not told this

    def place_of(self, workload: Workload) -> int:
        """How many of the batch are before it."""
        return bisect_left(self.jobs, (workload.submitted_at, workload.id))


def longest_run(workload: Workload) -> float:
    """After this it is over, for sure: its declared maximum and the time to stop it."""
    spec = workload.spec
    return inf if spec.max_seconds is None else spec.max_seconds + spec.grace_seconds


class Line:
    def __init__(
        self,
        ask_of: Callable[[Workload], Ask],
        never: Callable[[Batch], Reason | None],
        rank_of: Callable[[Workload], float],
    ) -> None:
        self._ask_of = ask_of
        self._never = never
        self._rank_of = rank_of
        self.groups: dict[str, dict[BatchKey, Batch]] = {}
        self.parked: dict[BatchKey, Batch] = {}  # those that can never start: nobody asks them
        self.workloads: dict[str, Workload] = {}
        self.resting: dict[str, Workload] = {}  # those that back off for a while
        self.told: dict[str, Reason] = {}  # reasons that were told since their workload was last put
        self._batch_of: dict[str, tuple[BatchKey, Batch]] = {}
        self._bounded = 0  # how many wait whose end is sure

    def put(self, workload: Workload) -> None:
        known = self.workloads.get(workload.id)
        if known is not None:
            if _same_place(known, workload) and self._rank_of(known) == self._rank_of(workload):
                self._renew(known, workload)
                return
            self.remove(workload.id)
        self.workloads[workload.id] = workload
        if workload.not_before > 0:
            self.resting[workload.id] = workload
        else:
            self._stand(workload)

    def _renew(self, known: Workload, workload: Workload) -> None:
        """It stands where it stood. When its reason is not the one that was told, it will be told again."""
        id = workload.id
        self.workloads[id] = workload
        if known.reason != workload.reason and self.told.pop(id, None) != workload.reason and id in self._batch_of:
            self._batch_of[id][1].fresh.add(id)

    def known_reason(self, id: str) -> Reason:
        """What it was told last, whether or not its owner has put that back."""
        return self.told.get(id) or self.workloads[id].reason

    def remove(self, id: str) -> None:
        workload = self.workloads.pop(id, None)
        self.told.pop(id, None)
        if workload is None or self.resting.pop(id, None) is not None:
            return
        key, batch = self._batch_of.pop(id)
        del batch.jobs[batch.place_of(workload)]
        batch.fresh.discard(id)
        self._bounded -= batch.longest != inf
        if not batch.jobs:
            self._drop(key, batch)

    def wake(self, now: float) -> None:
        """Those whose back-off is over stand in line again."""
        for id in [id for id, workload in self.resting.items() if workload.not_before <= now]:
            self._stand(self.resting.pop(id))

    def batch_of(self, id: str) -> Batch | None:
        found = self._batch_of.get(id)
        return found[1] if found else None

    @property
    def has_sure_ends(self) -> bool:
        return self._bounded > 0

    def batches(self) -> Iterator[Batch]:
        for batches in self.groups.values():
            yield from batches.values()

    def _stand(self, workload: Workload) -> None:
        ask, longest, rank = self._ask_of(workload), longest_run(workload), self._rank_of(workload)
        spec = workload.spec
        key = (workload.group, workload.owner, spec.priority, spec.preemptible, longest, rank, ask)
        batch = self.groups.get(workload.group, {}).get(key) or self.parked.get(key)
        if batch is None:
            batch = Batch(workload, ask, longest, rank)
            batch.never = self._never(batch)
            if batch.never is None:
                self.groups.setdefault(workload.group, {})[key] = batch
            else:
                self.parked[key] = batch
        insort(batch.jobs, (workload.submitted_at, workload.id))
        batch.fresh.add(workload.id)
        self._bounded += longest != inf
        self._batch_of[workload.id] = (key, batch)

    def _drop(self, key: BatchKey, batch: Batch) -> None:
        if batch.never is not None:
            del self.parked[key]
            return
        del self.groups[batch.group][key]
        if not self.groups[batch.group]:
            del self.groups[batch.group]


def _same_place(before: Workload, after: Workload) -> bool:
    """Nothing changed that the scheduler looks at."""
    return (before.spec is after.spec or before.spec == after.spec) and (
        before.group,
        before.owner,
        before.submitted_at,
        before.not_before,
    ) == (
        after.group,
        after.owner,
        after.submitted_at,
        after.not_before,
    )
