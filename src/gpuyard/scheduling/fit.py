"""Which node takes a replica, and whole gangs: all replicas or none."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import Spec
from gpuyard.scheduling.room import Room

Allotments = dict[tuple[str, int], Allotment]


def place_gang(spec: Spec, rooms: Mapping[str, Room], *, past_kept: bool = False) -> Allotments | None:
    """Take room for every replica, or leave the rooms as they were and return None."""
    taken: Allotments = {}
    for role in spec.roles:
        for index in range(role.replicas):
            allotment = best_offer(role.resources, rooms, past_kept=past_kept)
            if allotment is None:
                give_back(taken, rooms)
                return None
            rooms[allotment.node].take(allotment)
            taken[role.name, index] = allotment
    return taken


def give_back(taken: Allotments, rooms: Mapping[str, Room]) -> None:
    for allotment in taken.values():
        rooms[allotment.node].give_back(allotment)


def best_offer(asked: Resources, rooms: Mapping[str, Room], *, past_kept: bool = False) -> Allotment | None:
    """The offer of the node that fits most tightly, so that large free nodes stay large."""
    best: Allotment | None = None
    best_score: tuple[int, int, int, str] | None = None
    for room in rooms.values():
        allotment = room.offer(asked, past_kept=past_kept)
        if allotment is None:
            continue
        score = tightness(asked, room, allotment)
        if best_score is None or score < best_score:
            best, best_score = allotment, score
    return best


def tightness(asked: Resources, room: Room, allotment: Allotment) -> tuple[int, int, int, str]:
    """Smaller is tighter. With cards: fewest whole cards left over, then least room on the cards; without cards: nodes
    with few free cards first, so that CPU work does not stand in the way of card work."""
    if asked.cards is None:
        cards_left = sum(room.free_whole(device) for device in room.devices)
        return (cards_left, 0, room.cpu - allotment.cpu_milli, room.node.name)
    device = asked.cards.device
    broken = sum(1 for share in allotment.cards if room.cards[share.index] == 1000)
    return (
        room.free_whole(device) - broken,
        room.free_milli(device) - allotment.cards_milli,
        room.cpu - allotment.cpu_milli,
        room.node.name,
    )
