"""Where one that waits is closest to starting: there it keeps the free rest, so that nobody takes it bit by bit.

Those are the nodes with the most free among the ones that could hold all of it together if nothing else ran. The free
rest there only grows while it waits, so it starts in the end, however much small work keeps coming.
"""

from __future__ import annotations

from typing import NamedTuple

from gpuyard.domain.workload import Together
from gpuyard.scheduling.fit import Allotments, Ask, RoleAsk, give_back, how_many, place_gang, place_on
from gpuyard.scheduling.room import Keep, Precedence, Rooms, Stack

TRIED_AT_MOST = 64  # replicas that are tried out one by one; larger gangs are counted


class Prospect(NamedTuple):
    """One replica and the stack it waits for."""

    stack: Stack
    role: RoleAsk

    def keep(self, seq: int, workload: str, starts_at: float, precedence: Precedence | None) -> Keep:
        room, asked = self.stack.room, self.role.resources
        cpu, memory, _ = room.fair_share(asked)
        cards = self.stack.closest(asked.cards) if asked.cards else ()
        return Keep(seq, workload, cpu, memory, cards, starts_at, precedence)


def prospects(ask: Ask, rooms: Rooms, empty: Rooms) -> list[Prospect]:
    """`empty` are the same rooms without any work."""
    if ask.replicas > TRIED_AT_MOST:
        return [found for role in ask.roles for found in _counted(ask, role, rooms, empty)]
    if ask.together is Together.ONE_NODE and ask.replicas > 1:
        return _on_one_node(ask, rooms, empty)
    found = _alike(ask, ask.roles[0], rooms, empty) if len(ask.roles) == 1 and ask.roles[0].resources.cards else None
    return found or _loosest(ask, rooms, empty) or _anywhere(ask, rooms, empty)


def _counterpart(stack: Stack, rooms: Rooms) -> Stack:
    """The same stack in other rooms of the same nodes."""
    room = rooms.by_name[stack.room.node.name]
    return room.stacks[stack.serial - stack.room.stacks[0].serial]


def _on_one_node(ask: Ask, rooms: Rooms, empty: Rooms) -> list[Prospect]:
    for stack in rooms.shelf(ask.roles[0].sieve).loosest_first():
        taken = place_on(empty.by_name[stack.room.node.name], ask, empty)
        if taken is not None:
            give_back(taken, empty)
            return _as_prospects(taken, ask, rooms)
    return []


def _alike(ask: Ask, role: RoleAsk, rooms: Rooms, empty: Rooms) -> list[Prospect] | None:
    """As `_loosest` finds it, counted instead of tried: for replicas that are alike, where each machine has cards of
    one model only and none are linked. None: there are others."""
    found: list[Prospect] = []
    for stack in rooms.shelf(role.sieve).loosest_first():
        if stack.rings or len(stack.room.stacks) > 2:
            return None
        fitting = how_many(_counterpart(stack, empty), role.resources, role.replicas - len(found))
        found += [Prospect(stack, role)] * (min(1, fitting) if ask.together is Together.SPREAD else fitting)
        if len(found) >= role.replicas:
            return found
    return None


def _loosest(ask: Ask, rooms: Rooms, empty: Rooms) -> list[Prospect]:
    """One replica after the other, each on the loosest node that still has room for it if nothing else ran."""
    found: list[Prospect] = []
    taken: Allotments = {}
    used: set[str] = set()
    for role in ask.roles:
        missing = role.replicas
        for stack in rooms.shelf(role.sieve).loosest_first():
            alike, name = _counterpart(stack, empty), stack.room.node.name
            while missing and not (ask.together is Together.SPREAD and name in used):
                offer = alike.offer(role.resources)
                if offer is None:
                    break
                empty.take(offer)
                missing -= 1
                taken[role.name, missing] = offer
                found.append(Prospect(stack, role))
                used.add(name)
            if not missing:
                break
        if missing:
            found = []
            break
    give_back(taken, empty)
    return found


def _anywhere(ask: Ask, rooms: Rooms, empty: Rooms) -> list[Prospect]:
    """Roles of different sizes may fit together on some nodes only: then it waits for those."""
    taken = place_gang(ask, empty)
    if taken is None:
        return []
    give_back(taken, empty)
    return _as_prospects(taken, ask, rooms)


def _as_prospects(taken: Allotments, ask: Ask, rooms: Rooms) -> list[Prospect]:
    roles = {role.name: role for role in ask.roles}
    found = []
    for (name, _), allotment in taken.items():
        room = rooms.by_name[allotment.node]
        stack = room.stack_of[allotment.cards[0].index] if allotment.cards else room.stacks[0]
        found.append(Prospect(stack, roles[name]))
    return found


def _counted(ask: Ask, role: RoleAsk, rooms: Rooms, empty: Rooms) -> list[Prospect]:
    found: list[Prospect] = []
    for stack in rooms.shelf(role.sieve).loosest_first():
        missing = role.replicas - len(found)
        fitting = how_many(_counterpart(stack, empty), role.resources, missing)
        found += [Prospect(stack, role)] * (min(1, fitting) if ask.together is Together.SPREAD else fitting)
        if len(found) >= role.replicas:
            break
    return found
