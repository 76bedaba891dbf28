"""Which node is asked first: one key for each way of placing, smaller first. New ways are added here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gpuyard.domain.cluster import Node
from gpuyard.domain.policy import Placing, Policy
from gpuyard.domain.resources import GIB, WHOLE_CARD

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Stack

Key = tuple[int, ...]  # ends with the stack's serial number, so that no two are alike


def key_for(placing: Placing) -> Callable[[Stack], Key]:
    return _KEYS[placing]


def likeness(stack: Stack) -> tuple[object, ...]:
    """Two stacks that are alike, with as many cards free, are equally good, now and for what comes: machines of one
    build, linked chips free in the same manner, and as many cards' worth of cores and memory left. Between such places
    the image that one of them holds may decide."""
    room, node, free = stack.room, stack.room.node, stack.room.cards
    parts = len(node.cards) or node.cpu_milli // 1000 or 1
    core, byte = max(1, node.cpu_milli), max(1, node.memory)
    build = (stack.model, len(node.cards), core // parts // 1000, byte // parts // GIB)
    rings = sorted(sum(free[chip] == WHOLE_CARD for chip in ring) for ring in stack.rings)
    others = sum(other.whole for other in room.stacks)
    return (*build, *rings, others, room.cpu * parts // core, room.memory * parts // byte)


def _best_fit(stack: Stack) -> Key:
    """The least to spare first. Work without cards goes where few cards are free, out of the way of work with cards."""
    room = stack.room
    if stack.device:
        return (stack.whole, stack.milli, room.cpu, room.rank, stack.serial)
    return (sum(other.whole for other in room.stacks), 0, room.cpu, room.rank, stack.serial)


def _in_order(stack: Stack) -> Key:
    return (stack.room.rank, stack.serial)


def _spread(stack: Stack) -> Key:
    return (-stack.whole, -stack.milli, -stack.room.cpu, stack.room.rank, stack.serial)


def looseness(stack: Stack) -> Key:
    """Larger for the stack with more free: where one that waits is closest to starting."""
    room = stack.room
    if stack.device:
        return (stack.whole, stack.milli, room.cpu, -room.rank, -stack.serial)
    return (room.cpu, room.memory, -room.rank, -stack.serial)


_KEYS: dict[Placing, Callable[[Stack], Key]] = {
    Placing.BEST_FIT: _best_fit,
    Placing.FRAGMENTS: _best_fit,  # between places that are equally good, and where nothing is known of what is typical
    Placing.IN_ORDER: _in_order,
    Placing.SPREAD: _spread,
}


def in_order(nodes: Iterable[Node], policy: Policy) -> tuple[Node, ...]:
    """The admin's own order first, then by name as people count: node-9 before node-10."""
    named = {name: place for place, name in enumerate(policy.servers)}
    return tuple(sorted(nodes, key=lambda node: (named.get(node.name, len(named)), _natural(node.name), node.name)))


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part)
