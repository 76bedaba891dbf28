"""What becomes of cards that are free: kept for one that waits, idle only because of a quota, or of no use to anyone
that waits. For the card ledger; asked for now and then, at the end of a pass, and never by the pass itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.reasons import NEVER_STARTS, Code, Reason
from gpuyard.domain.resources import WHOLE_CARD, Cards
from gpuyard.domain.workload import Together
from gpuyard.scheduling.fit import Ask, RoleAsk
from gpuyard.scheduling.rings import choose_chips
from gpuyard.scheduling.room import Room, Rooms, Stack
from gpuyard.scheduling.sieve import Sieve

if TYPE_CHECKING:
    from gpuyard.scheduling.plan import Pass, Verdict

WANTS_AT_MOST = 32  # different requests, the smallest first: what is of no use to those is of none to larger ones
BLOCKED_AT_MOST = 64  # requests that wait for a quota
BY_QUOTA = frozenset({Code.OVER_QUOTA, Code.BORROW})

OnCards = dict[int, int]  # index of a card -> thousandths of it
NOTHING: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class FreeRest:
    """As one pass left it, by machine. Whoever holds a card now, what is kept of it is kept."""

    kept: Mapping[str, OnCards] = field(default_factory=dict)
    blocked: Mapping[str, OnCards] = field(default_factory=dict)  # those who wait for nothing but a quota would use it
    wants: tuple[RoleAsk, ...] = ()  # what those who wait ask for, one replica each

    def touches(self, node: str) -> bool:
        return node in self.kept or node in self.blocked


def rest_of(one: Pass) -> FreeRest:
    """Of a pass that has run and is not undone."""
    rooms = one.books.rooms
    kept = {room.node.name: room.kept_cards() for room in rooms if room.keeps}
    return FreeRest(kept, _blocked(one.verdicts, rooms), _wants(one.verdicts))


def _wants(verdicts: list[Verdict]) -> tuple[RoleAsk, ...]:
    asks = {verdict.batch.ask: None for verdict in verdicts if verdict.reason.code not in NEVER_STARTS}
    roles = {(role.resources, role.sieve): role for ask in asks for role in ask.roles if role.resources.cards}
    return tuple(sorted(roles.values(), key=_size)[:WANTS_AT_MOST])


def _size(role: RoleAsk) -> tuple[int, int, int]:
    asked = role.resources
    return (asked.cards.milli if asked.cards else 0, asked.cpu_milli or 0, asked.memory or 0)


# --- quotas -------------------------------------------------------------------------------------------------------


class _Left:
    """What is left in a room beside what is kept, and beside what has been counted already."""

    __slots__ = ("cards", "cpu", "memory", "name")

    def __init__(self, room: Room) -> None:
        self.name = room.node.name
        self.cpu, self.memory, self.cards = room.cpu, room.memory, dict(room.cards)
        for keep in room.keeps:
            self.cpu -= keep.cpu
            self.memory -= keep.memory
            for share in keep.cards:
                self.cards[share.index] -= share.milli


class _Served(NamedTuple):
    """Replicas of one role that one stack would be given."""

    left: _Left
    number: int
    cpu: int  # of all of them
    memory: int
    cards: OnCards

    def undo(self) -> None:
        self.left.cpu += self.cpu
        self.left.memory += self.memory
        for index, milli in self.cards.items():
            self.left.cards[index] += milli


def _serve_here(stack: Stack, left: _Left, role: RoleAsk, most: int, step: int) -> _Served | None:
    """As many as fit, so many at most, and a multiple of the step. What they take is no longer left."""
    cards = role.resources.cards
    cpu, memory, _ = stack.room.fair_share(role.resources)
    if cpu:
        most = min(most, left.cpu // cpu)
    if memory:
        most = min(most, left.memory // memory)
    if cards is None or most < step:
        return None
    shares, each = _shares(cards, stack, left.cards, most)
    number = min(most, len(shares) // each)
    number -= number % step
    if not number:
        return None
    taken: OnCards = {}
    for index, milli in shares[: number * each]:
        taken[index] = taken.get(index, 0) + milli
        left.cards[index] -= milli
    left.cpu -= number * cpu
    left.memory -= number * memory
    return _Served(left, number, number * cpu, number * memory, taken)


def _shares(cards: Cards, stack: Stack, left: Mapping[int, int], most: int) -> tuple[list[tuple[int, int]], int]:
    """What one replica after the other would take, and how many of these one takes. There may be more than asked."""
    if cards.is_share:
        fitting = [index for index in stack.indices for _ in range(min(most, left[index] // cards.milli))]
        return [(index, cards.milli) for index in fitting], 1
    if stack.rings:
        return [(chip, WHOLE_CARD) for chip in _from_rings(cards.whole, stack, dict(left), most)], cards.whole
    return [(index, WHOLE_CARD) for index in stack.indices if left[index] == WHOLE_CARD], cards.whole


def _from_rings(chips: int, stack: Stack, left: dict[int, int], most: int) -> list[int]:
    found: list[int] = []
    for _ in range(most):
        chosen = choose_chips(chips, stack.rings, left)
        if chosen is None:
            break
        found += chosen
        left.update(dict.fromkeys(chosen, 0))
    return found


def _blocked(verdicts: list[Verdict], rooms: Rooms) -> dict[str, OnCards]:
    """What those who wait for nothing but a quota would be given, had they the quota: gangs whole or not at all."""
    found: dict[str, OnCards] = {}
    lefts: dict[str, _Left] = {}
    waiting = [v for v in verdicts if _is_by_quota(v.reason) and any(r.resources.cards for r in v.batch.ask.roles)]
    for verdict in waiting[:BLOCKED_AT_MOST]:
        jobs = 1 if verdict.alone else len(verdict.batch.jobs) - verdict.position
        for served in _serve(verdict.batch.ask, jobs, rooms, lefts):
            cards = found.setdefault(served.left.name, {})
            for index, milli in served.cards.items():
                cards[index] = cards.get(index, 0) + milli
    return found


def _is_by_quota(reason: Reason) -> bool:
    return reason.code in BY_QUOTA or (reason.code is Code.ORDER and "quota" in reason.facts)


def _serve(ask: Ask, jobs: int, rooms: Rooms, lefts: dict[str, _Left]) -> list[_Served]:
    """So many jobs, or as many as are served whole: if some are not, it is tried with fewer."""
    roles = [role for role in ask.roles if role.resources.cards]
    jobs = min(jobs, *(_most_jobs(roles, role.sieve, rooms) for role in roles))
    while jobs > 0:
        served = [_serve_role(ask, role, jobs, rooms, lefts) for role in roles]
        numbers = [sum(one.number for one in some) for some in served]
        whole = min(number // role.replicas for role, number in zip(roles, numbers, strict=True))
        even = all(number == whole * role.replicas for role, number in zip(roles, numbers, strict=True))
        if whole == jobs or (even and ask.together is not Together.SPREAD):
            return [one for some in served for one in some]
        for one in (one for some in served for one in some):
            one.undo()
        jobs = whole if len(roles) == 1 else max(whole, jobs // 2)  # one role may have had what another misses
    return []


def _most_jobs(roles: Sequence[RoleAsk], sieve: Sieve, rooms: Rooms) -> int:
    """For how many the free cards that this sieve lets through would do, if all could be used."""
    free = sum(stack.milli for stack in rooms.shelf(sieve).stacks())
    return free // sum(r.replicas * r.resources.cards.milli for r in roles if r.sieve == sieve and r.resources.cards)


def _serve_role(ask: Ask, role: RoleAsk, jobs: int, rooms: Rooms, lefts: dict[str, _Left]) -> list[_Served]:
    missing = jobs * role.replicas
    at_most = jobs if ask.together is Together.SPREAD else missing  # in one place
    step = role.replicas if ask.together is Together.ONE_NODE else 1
    found: list[_Served] = []
    for stack in rooms.shelf(role.sieve):
        if missing <= 0:
            break
        if not stack.milli:
            continue
        left = lefts.get(stack.room.node.name)
        if left is None:
            left = lefts[stack.room.node.name] = _Left(stack.room)
        served = _serve_here(stack, left, role, min(missing, at_most), step)
        if served is not None:
            found.append(served)
            missing -= served.number
    return found


# --- fragments ----------------------------------------------------------------------------------------------------


def stranded(room: Room, rest: FreeRest) -> OnCards:
    """What is free here beside that, on cards that somebody waits for, and that none of those who wait could use."""
    kept = rest.kept.get(room.node.name, NOTHING)
    blocked = rest.blocked.get(room.node.name, NOTHING)
    found: OnCards = {}
    for stack in room.stacks:
        if not stack.milli or not rest.wants:
            continue
        left = {i: max(0, room.cards[i] - kept.get(i, 0) - blocked.get(i, 0)) for i in stack.indices}
        free = {index for index, milli in left.items() if milli}
        usable = _usable(stack, left, rest.wants) if free else None
        if usable is not None:
            found.update((index, left[index]) for index in free - usable)
    return found


def _usable(stack: Stack, left: Mapping[int, int], wants: tuple[RoleAsk, ...]) -> set[int] | None:
    """The cards of which somebody that waits could use what is left; None when nobody waits for such cards."""
    free = {index for index, milli in left.items() if milli}
    usable: set[int] = set()
    wanted = False
    for want in wants:
        if want.sieve.device != stack.device:
            continue
        here = _fitting(stack, left, want)
        if wanted and here <= usable:
            continue
        if want.sieve.lets(stack.room.node, stack.model) and stack.is_whole(want.sieve.whole):
            wanted = True
            usable |= here
            if usable >= free:
                break
    return usable if wanted else None


def _fitting(stack: Stack, left: Mapping[int, int], want: RoleAsk) -> set[int]:
    room, cards = stack.room, want.resources.cards
    cpu, memory, _ = room.fair_share(want.resources)
    if cards is None or cpu > room.cpu or memory > room.memory:
        return set()
    if cards.is_share:
        return {index for index, milli in left.items() if milli >= cards.milli}
    whole = {index for index, milli in left.items() if milli == WHOLE_CARD}
    if stack.rings:
        return whole if choose_chips(cards.whole, stack.rings, dict(left)) is not None else set()
    return whole if len(whole) >= cards.whole else set()
