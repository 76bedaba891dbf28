"""Which node is asked first: one key for each way of placing, smaller first. New ways are added here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gpuyard.domain.cluster import Node
from gpuyard.domain.policy import Placing, Policy

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Stack

Key = tuple[int, ...]  # ends with the stack's serial number, so that no two are alike


def key_for(placing: Placing) -> Callable[[Stack], Key]:
    return _KEYS[placing]


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
    Placing.IN_ORDER: _in_order,
    Placing.SPREAD: _spread,
}


def in_order(nodes: Iterable[Node], policy: Policy) -> tuple[Node, ...]:
    """The admin's own order first, then by name as people count: node-9 before node-10."""
    named = {name: place for place, name in enumerate(policy.servers)}
    return tuple(sorted(nodes, key=lambda node: (named.get(node.name, len(named)), _natural(node.name), node.name)))


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part)
