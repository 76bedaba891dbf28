"""When a waiting workload can start at the latest, so that a short later one may use the time before.

Ends that are declared (a maximum duration is enforced) or learned (the median of earlier good runs of the same job)
tell when rooms become free. Where nobody knows, there is no such moment, and nobody passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import State, Together, Workload
from gpuyard.scheduling.fit import Ask, RoleAsk
from gpuyard.scheduling.room import Room, Rooms, Stack

Release = tuple[float, Allotment]
START_SECONDS = 10.0  # a start takes time before a maximum duration begins to count
LEAST_RUNS = 3  # fewer good runs than this teach nothing


class Start(NamedTuple):
    at: float
    rooms: list[Room]  # one for each replica


def ends_by(workload: Workload, learned: tuple[float, ...], now: float) -> float:
    """When running work will be over; infinity when nobody knows."""
    attempt, spec = workload.attempt, workload.spec
    if attempt is None:
        return now
    if workload.state is State.STOPPING:
        return now + spec.grace_seconds
    begun = attempt.started_at if attempt.started_at is not None else now
    if spec.max_seconds is not None:
        return max(now, begun + spec.max_seconds + spec.grace_seconds)
    if len(learned) < LEAST_RUNS:
        return inf
    return max(now, begun + sorted(learned)[len(learned) // 2])  # overdue: it may end at any moment


def latest_start(ask: Ask, rooms: Rooms, releases: Callable[[str], Iterable[Release]], now: float) -> Start | None:
    """The moment by which every replica has room, and where. Only for replicas alike, with whole cards or none."""
    role = ask.roles[0]
    cards = role.resources.cards
    if len(ask.roles) > 1 or (cards is not None and cards.is_share):
        return None
    found: list[tuple[float, int, Room]] = []
    for stack in rooms.shelf(role.sieve):
        if not stack.rings:
            times = _when(role, stack, sorted(releases(stack.room.node.name), key=lambda r: r[0]), now)
            found += _wanted(ask, times, stack.room)
    found.sort(key=lambda one: one[:2])
    if len(found) < role.replicas:
        return None
    chosen = found[: role.replicas]
    return Start(chosen[-1][0], [room for _, _, room in chosen])


def _wanted(ask: Ask, times: list[float], room: Room) -> list[tuple[float, int, Room]]:
    if ask.together is Together.ONE_NODE:
        whole = len(times) >= ask.replicas
        return [(times[ask.replicas - 1], room.rank, room)] * ask.replicas if whole else []
    if ask.together is Together.SPREAD:
        times = times[:1]
    return [(at, room.rank, room) for at in times]


def _when(role: RoleAsk, stack: Stack, releases: list[Release], now: float) -> list[float]:
    """The moments at which this stack has room for one, two, three ... replicas."""
    room = stack.room
    cpu, memory, _ = room.fair_share(role.resources)
    free_cpu, free_memory = room.cpu, room.memory
    cards = {index: room.cards[index] for index in stack.indices}
    each = role.resources.cards.whole if role.resources.cards else 0
    times: list[float] = []

    def note(at: float) -> None:
        whole = sum(1 for left in cards.values() if left == WHOLE_CARD)
        limits = [free_cpu // cpu if cpu else role.replicas, free_memory // memory if memory else role.replicas]
        count = min(*limits, whole // each if each else role.replicas, role.replicas)
        times.extend([at] * (count - len(times)))

    note(now)
    for at, allotment in releases:
        if at == inf or len(times) >= role.replicas:
            break
        free_cpu += allotment.cpu_milli
        free_memory += allotment.memory
        for share in allotment.cards:
            if share.index in cards:
                cards[share.index] += share.milli
        note(at)
    return times
