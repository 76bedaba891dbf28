"""Which node takes a replica, and whole gangs: all replicas or none."""

from __future__ import annotations

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.resources import WHOLE_CARD, Resources
from gpuyard.domain.workload import Spec
from gpuyard.scheduling.room import Room, Rooms

Allotments = dict[tuple[str, int], Allotment]


def place_gang(spec: Spec, rooms: Rooms, *, past_kept: bool = False) -> Allotments | None:
    """Take room for every replica, or leave the rooms as they were and return None."""
    taken: Allotments = {}
    for role in spec.roles:
        for index in range(role.replicas):
            allotment = best_offer(role.resources, rooms, past_kept=past_kept)
            if allotment is None:
                give_back(taken, rooms)
                return None
            rooms.take(allotment)
            taken[role.name, index] = allotment
    return taken


def give_back(taken: Allotments, rooms: Rooms) -> None:
    for allotment in taken.values():
        rooms.give_back(allotment)


def best_offer(asked: Resources, rooms: Rooms, *, past_kept: bool = False) -> Allotment | None:
    """The offer of the node that fits most tightly, so that large free nodes stay large."""
    offers = ((room, room.offer(asked, past_kept=past_kept)) for room in rooms.tightest_first(asked))
    fitting = ((room, offer) for room, offer in offers if offer is not None)
    if asked.cards is not None and asked.cards.is_share:
        best = min(fitting, key=lambda found: (_breaks_a_card(*found), found[0].key(found[1].device)), default=None)
    else:
        best = next(fitting, None)
    return best[1] if best is not None else None


def _breaks_a_card(room: Room, offer: Allotment) -> bool:
    """A share that fits on a card already shared comes before one that needs a whole card."""
    return room.cards[offer.cards[0].index] == WHOLE_CARD
