"""Chips that are linked in rings: a request stays within one ring, or takes every chip of the node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpuyard.domain.policy import Policy
from gpuyard.domain.resources import WHOLE_CARD, Cards

Rings = tuple[tuple[int, ...], ...]

# Which ring to take from, by how many of its chips are free, so that whole rings and pairs survive.
_PREFERRED = {1: (1, 3, 2, 4), 2: (2, 4, 3), 4: (4,)}


def rings_of(policy: Policy, device: str, chips: Iterable[int]) -> Rings:
    """The rings of one node, as far as it has their chips. Empty when the device knows no rings."""
    present = set(chips)
    rings = (tuple(chip for chip in ring if chip in present) for ring in policy.rings.get(device, ()))
    return tuple(ring for ring in rings if ring)


def allowed_sizes(rings: Rings) -> tuple[int, ...]:
    """1, 2, 4 ... up to a ring, and the whole node."""
    longest = max((len(ring) for ring in rings), default=0)
    sizes = [1 << power for power in range(longest.bit_length()) if 1 << power <= longest]
    whole = sum(len(ring) for ring in rings)
    return (*sizes, whole) if whole and whole not in sizes else tuple(sizes)


def choose_chips(count: int, rings: Rings, left: Mapping[int, int]) -> tuple[int, ...] | None:
    """The chips a request of whole chips gets, or None when no ring can serve it."""
    free = [[chip for chip in ring if left[chip] == WHOLE_CARD] for ring in rings]
    if count == sum(len(ring) for ring in rings):
        everything = [chip for ring in free for chip in ring]
        return tuple(everything) if len(everything) == count else None
    if count not in allowed_sizes(rings):
        return None
    fitting = [ring for ring in free if len(ring) >= count]
    if not fitting:
        return None
    return tuple(min(fitting, key=lambda ring: (_liking(count, len(ring)), ring[0]))[:count])


def copies_in(count: int, rings: Rings, left: Mapping[int, int]) -> int:
    """How many requests of so many whole chips the rings could serve, one after the other."""
    free = [sum(left[chip] == WHOLE_CARD for chip in ring) for ring in rings]
    if count == sum(len(ring) for ring in rings):
        return int(sum(free) == count)
    return sum(one // count for one in free) if count in allowed_sizes(rings) else 0


def _liking(count: int, free: int) -> int:
    order = _PREFERRED.get(count, ())
    return order.index(free) if free in order else len(order) + free


def sizes_instead(cards: Cards, is_one_of_several: bool, rings: Sequence[Rings]) -> tuple[int, ...]:
    """The sizes a request may have when its own can be had on none of these nodes; empty when it keeps the rule.

    Over several nodes only whole nodes work together.
    """
    known = [ring for ring in rings if ring]
    if cards.is_share or not known:
        return ()
    wholes = sorted({sum(len(part) for part in ring) for ring in known})
    if is_one_of_several:
        return () if cards.whole in wholes else tuple(wholes)
    sizes = sorted({size for ring in known for size in allowed_sizes(ring)})
    return () if cards.whole in sizes or cards.whole > wholes[-1] else tuple(sizes)
