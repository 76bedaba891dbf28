"""How many copies of a request still fit on what is free: by its cards and cores, memory left out as for all that is
typical."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.resources import Cards
from gpuyard.scheduling.fragments import Typical, may_use
from gpuyard.scheduling.rings import copies_in

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Room, Stack


class Served(NamedTuple):
    """One typical request, and what the free cards are to it."""

    typical: Typical
    cards: Cards
    fit: int
    free: int  # thousandths of the cards it may use
    stranded: int  # of those, what is left over when as many copies as fit have been placed


def served(typicals: Iterable[Typical], rooms: Iterable[Room]) -> tuple[Served, ...]:
    """Each typical request for cards, in the order given."""
    asked = [(one, one.resources.cards) for one in typicals if one.resources.cards is not None]
    kinds = list(dict.fromkeys([cards for _, cards in asked]))
    kind_of = [kinds.index(cards) for _, cards in asked]
    fit, free = [0] * len(asked), [0] * len(kinds)
    for room in rooms:
        stacks = [stack for stack in room.stacks if stack.milli]
        most = [_most(stacks, cards) for cards in kinds]
        free = [known + here for known, (_, here) in zip(free, most, strict=True)]
        for place, (one, _) in enumerate(asked):
            if copies := most[kind_of[place]][0]:
                fit[place] += _with_cores(room, one, copies)
    return tuple(
        Served(one, cards, copies, free[kind], free[kind] - copies * cards.milli)
        for (one, cards), kind, copies in zip(asked, kind_of, fit, strict=True)
    )


def _most(stacks: Iterable[Stack], cards: Cards) -> tuple[int, int]:
    """How many copies there are cards for, and how much of the cards they may use is free."""
    usable = [stack for stack in stacks if may_use(stack, cards)]
    return sum(_by_cards(stack, cards) for stack in usable), sum(stack.milli for stack in usable)


def _by_cards(stack: Stack, cards: Cards) -> int:
    left = stack.room.cards
    if cards.is_share:
        return sum([left[index] // cards.milli for index in stack.indices if left[index] > 0])
    return copies_in(cards.whole, stack.rings, left) if stack.rings else stack.whole // cards.whole


def _with_cores(room: Room, one: Typical, most: int) -> int:
    cpu = room.fair_share(one.resources)[0]
    return min(most, max(0, room.cpu) // cpu) if cpu else most
