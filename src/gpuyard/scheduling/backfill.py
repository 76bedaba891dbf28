"""When a waiting workload can start at the latest, so that a short later one may use the time before.

Ends that are declared (a maximum duration is enforced) or learned (the median of earlier good runs of the same job)
tell when rooms become free. Where nobody knows, there is no such moment, and nobody passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from operator import itemgetter
from typing import NamedTuple

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import State, Together, Workload
from gpuyard.scheduling.fit import Ask, RoleAsk
from gpuyard.scheduling.room import Room, Rooms, Stack

Release = tuple[float, Allotment]
START_SECONDS = 10.0  # a start takes time before a maximum duration begins to count
LEAST_RUNS = 3  # fewer good runs than this teach nothing


class Place(NamedTuple):
    """Where one replica will start, and the cards it will have there."""

    room: Room
    cards: tuple[CardShare, ...]


class Start(NamedTuple):
    at: float
    places: list[Place]  # one for each replica


def ends_by(workload: Workload, learned: tuple[float, ...], now: float) -> float:
    """When running work will be over; infinity when nobody knows. What is overdue or stops may end at any moment."""
    attempt, spec = workload.attempt, workload.spec
    if attempt is None or workload.state is State.STOPPING:
        return now
    begun = attempt.started_at
    if begun is None:
        begun = max(now, attempt.created_at + START_SECONDS)
    if spec.max_seconds is not None:
        return max(now, begun + spec.max_seconds + spec.grace_seconds)
    if not has_known_end(workload, learned):
        return inf
    return max(now, begun + sorted(learned)[len(learned) // 2])


def has_known_end(workload: Workload, learned: tuple[float, ...]) -> bool:
    """Declared, learned, or on its way."""
    return workload.spec.max_seconds is not None or len(learned) >= LEAST_RUNS or workload.state is State.STOPPING


class _Chance(NamedTuple):
    """One more replica has room in a room from a moment on."""

    at: float
    rank: int
    room: Room
    cards: list[int]

    def place(self) -> Place:
        return Place(self.room, tuple(CardShare(index, WHOLE_CARD) for index in self.cards))


def latest_start(ask: Ask, rooms: Rooms, releases: Callable[[str], Iterable[Release]], now: float) -> Start | None:
    """The moment by which every replica has room, and where. Only for replicas alike, with whole cards or none.

    What earlier ones keep is left to them.
    """
    role = ask.roles[0]
    cards = role.resources.cards
    if len(ask.roles) > 1 or (cards is not None and cards.is_share):
        return None
    best: dict[str, list[_Chance]] = {}  # of each room its best stack: several stacks share the cores of a room
    for stack in rooms.shelf(role.sieve):
        name = stack.room.node.name
        found = [] if stack.rings else _wanted(ask, _chances(role, stack, list(releases(name)), now))
        if found and (name not in best or [one.at for one in found] < [one.at for one in best[name]]):
            best[name] = found
    chances = sorted((one for found in best.values() for one in found), key=lambda one: (one.at, one.rank))
    if len(chances) < role.replicas:
        return None
    chosen = chances[: role.replicas]
    return Start(chosen[-1].at, [one.place() for one in chosen])


def _wanted(ask: Ask, chances: list[_Chance]) -> list[_Chance]:
    if ask.together is Together.ONE_NODE:
        whole = len(chances) >= ask.replicas
        return [one._replace(at=chances[ask.replicas - 1].at) for one in chances] if whole else []
    return chances[:1] if ask.together is Together.SPREAD else chances


def _chances(role: RoleAsk, stack: Stack, releases: list[Release], now: float) -> list[_Chance]:
    """When this stack has room for one, two, three ... replicas, and on which cards, for all times that are known."""
    room = stack.room
    cpu, memory, _ = room.fair_share(role.resources)
    each = role.resources.cards.whole if role.resources.cards else 0
    known = sorted((release for release in releases if release[0] < inf), key=itemgetter(0))
    free_from = _free_from(stack, known, now) if each else {}
    cards = sorted(free_from, key=lambda index: (free_from[index], index))
    enough = _enough_from(room, cpu, memory, known, now, role.replicas)
    found: list[_Chance] = []
    for count, at in enumerate(enough):
        mine = cards[count * each : (count + 1) * each]
        if len(mine) < each:
            break
        found.append(_Chance(max(at, free_from[mine[-1]]) if each else at, room.rank, room, mine))
    return found


def _free_from(stack: Stack, known: list[Release], now: float) -> dict[int, float]:
    """From when on each card that nobody keeps is free as a whole; cards of which nobody knows are left out."""
    kept, left = stack.room.kept_cards(), stack.room.cards
    free = {index: left[index] for index in stack.indices if not kept.get(index)}
    found = {index: now for index, milli in free.items() if milli == WHOLE_CARD}
    for at, allotment in known:
        for share in allotment.cards:
            if share.index in free:
                free[share.index] += share.milli
                if free[share.index] == WHOLE_CARD:
                    found[share.index] = at
    return found


def _enough_from(room: Room, cpu: int, memory: int, known: list[Release], now: float, most: int) -> list[float]:
    """From when on the room has cores and memory for one, two, three ... replicas, beside what is kept."""
    free_cpu = room.cpu - sum(keep.cpu for keep in room.keeps)
    free_memory = room.memory - sum(keep.memory for keep in room.keeps)
    times: list[float] = []
    for at, allotment in [(now, None), *known]:
        if allotment is not None:
            free_cpu += allotment.cpu_milli
            free_memory += allotment.memory
        count = min(free_cpu // cpu if cpu else most, free_memory // memory if memory else most, most)
        times += [at] * (count - len(times))
        if len(times) >= most:
            break
    return times
