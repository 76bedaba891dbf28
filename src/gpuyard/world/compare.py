"""What another policy would change on the present cluster: the same world, planned twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from gpuyard.domain.policy import Policy
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Eviction, Plan, Snapshot


@dataclass(frozen=True, slots=True)
class Move:
    """A waiting workload whose place among the waiting differs. Counted from 1; None: it does not wait there."""

    workload: Workload
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many of a group's workloads start, wait and make room."""

    starting: int = 0
    waiting: int = 0
    evicted: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """Under the policy that was tried, against the one in force."""

    starts: tuple[Workload, ...]  # would start now, and do not
    stays: tuple[Workload, ...]  # start now, and would not
    evictions: tuple[tuple[Workload, Eviction], ...]  # would make room, and do not
    spared: tuple[Workload, ...]  # make room now, and would not
    moves: tuple[Move, ...]  # in the order of the policy that was tried
    groups: Mapping[str, tuple[Tally, Tally]]  # before, after


def compare(snapshot: Snapshot, policy: Policy) -> Comparison:
    before, after = plan(snapshot), plan(replace(snapshot, policy=policy))
    works = {workload.id: workload for workload in (*snapshot.queue, *snapshot.holding)}
    started_before, started_after = _started(before), _started(after)
    evicted_before = {eviction.workload for eviction in before.evictions}
    evicted_after = {eviction.workload for eviction in after.evictions}
    return Comparison(
        starts=_those(works, started_after, lambda id: id not in started_before),
        stays=_those(works, started_before, lambda id: id not in started_after),
        evictions=tuple((works[e.workload], e) for e in after.evictions if e.workload not in evicted_before),
        spared=_those(works, [e.workload for e in before.evictions], lambda id: id not in evicted_after),
        moves=tuple(_moves(works, before, after)),
        groups=_groups(works, before, after),
    )


def _started(decided: Plan) -> dict[str, None]:
    return dict.fromkeys(placement.workload for placement in decided.placements)


def _those(works: Mapping[str, Workload], ids: Iterable[str], wanted: Callable[[str], bool]) -> tuple[Workload, ...]:
    return tuple(works[id] for id in ids if wanted(id))


def _moves(works: Mapping[str, Workload], before: Plan, after: Plan) -> list[Move]:
    was = {id: place for place, id in enumerate(before.waiting, 1)}
    will_be = {id: place for place, id in enumerate(after.waiting, 1)}
    moved = [id for id in dict.fromkeys([*will_be, *was]) if was.get(id) != will_be.get(id)]
    return [Move(works[id], was.get(id), will_be.get(id)) for id in moved]


def _groups(works: Mapping[str, Workload], before: Plan, after: Plan) -> dict[str, tuple[Tally, Tally]]:
    names = sorted({workload.group for workload in works.values()})
    tallies = [_tallies(works, decided) for decided in (before, after)]
    return {name: (tallies[0].get(name, Tally()), tallies[1].get(name, Tally())) for name in names}


def _tallies(works: Mapping[str, Workload], decided: Plan) -> dict[str, Tally]:
    counts: dict[str, list[int]] = {}
    kinds = (_started(decided), decided.waiting, [eviction.workload for eviction in decided.evictions])
    for kind, ids in enumerate(kinds):
        for id in ids:
            counts.setdefault(works[id].group, [0, 0, 0])[kind] += 1
    return {group: Tally(*count) for group, count in counts.items()}
