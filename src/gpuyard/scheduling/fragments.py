"""Free cards that typical requests cannot use: too little left of each, too few beside each other, or no cores left.

What is typical is given, or learned from what was submitted of late: distinct requests of one replica, with how often
each was made. Counts are whole numbers and so is the measure, thousandths of a card, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gpuyard.domain.resources import WHOLE_CARD, Cards, Resources, is_model
from gpuyard.scheduling.rings import allowed_sizes, choose_chips

if TYPE_CHECKING:
    from gpuyard.scheduling.room import Stack

REQUESTS, CARDS = 95, 99  # per cent of all that typical requests cover; the rarest beyond are left out
# Where hardly two are alike, those that come first among each: what is worked out for typical requests stays bounded.
FREQUENT_AT_MOST, LARGE_AT_MOST = 150, 250


class Typical(NamedTuple):
    """What one replica typically asks for, memory left out, and how often that was asked, as `typical_from` counts."""

    resources: Resources
    times: int


def typical_from(counts: Mapping[Resources, int]) -> tuple[Typical, ...]:
    """The requests that are made most often, until they cover nearly all, and those that ask for most of the cards,
    until they cover nearly all cards: whole machines are asked for seldom, and soon gone where nobody counts with them.
    What is frequent counts twice, what is only large once: it comes less surely. The most frequent first."""
    alike: dict[Resources, int] = {}
    for asked, count in counts.items():
        plain = Resources(cpu_milli=asked.cpu_milli, cards=asked.cards)
        alike[plain] = alike.get(plain, 0) + count
    cards = {asked: count * (asked.cards.milli if asked.cards else 0) for asked, count in alike.items()}
    found = {asked: alike[asked] for asked in islice(_covering(cards, CARDS), LARGE_AT_MOST)}
    found |= {asked: 2 * alike[asked] for asked in islice(_covering(alike, REQUESTS), FREQUENT_AT_MOST)}
    return tuple(Typical(asked, found[asked]) for asked in _largest_first(found))


def _covering(amounts: Mapping[Resources, int], part: int) -> Iterator[Resources]:
    """Those with the largest amounts, until they cover so many per cent of it."""
    wanted, covered = sum(amounts.values()) * part, 0
    for asked in _largest_first(amounts):
        if covered * 100 >= wanted:
            return
        yield asked
        covered += amounts[asked]


def _largest_first(amounts: Mapping[Resources, int]) -> list[Resources]:
    return sorted(amounts, key=lambda asked: (-amounts[asked], _order(asked)))


def _order(asked: Resources) -> tuple[object, ...]:
    cards = asked.cards
    cpu = -1 if asked.cpu_milli is None else asked.cpu_milli
    return (cards is not None, cards.device, cards.milli, cards.models, cpu) if cards else (False, "", 0, (), cpu)


def unusable(stack: Stack, asked: Resources) -> int:
    """How much of the stack's free cards this request cannot use now: all of it where it does not fit."""
    cards = asked.cards
    if cards is None or not may_use(stack, cards) or not _fits(stack, asked, cards):
        return stack.milli
    least = min(cards.milli, WHOLE_CARD)
    left = stack.room.cards
    return sum(left[index] for index in stack.indices if 0 < left[index] < least)


def may_use(stack: Stack, cards: Cards) -> bool:
    """Are these the cards it asks for, whatever is free?"""
    named = not cards.models or any(is_model(model, stack.model) for model in cards.models)
    return stack.device == cards.device and named


def has_cards(stack: Stack, cards: Cards) -> bool:
    """Are these cards enough for it, were all of them free?"""
    in_rings = cards.is_share or not stack.rings or cards.whole in allowed_sizes(stack.rings)
    return len(stack.indices) >= cards.whole and in_rings and may_use(stack, cards)


def could_serve(stack: Stack, asked: Resources, cards: Cards) -> bool:
    """Would it fit here, were all cards and cores free?"""
    return stack.room.node.cpu_milli >= stack.room.fair_share(asked)[0] and has_cards(stack, cards)


def _fits(stack: Stack, asked: Resources, cards: Cards) -> bool:
    room, left = stack.room, stack.room.cards
    if room.fair_share(asked)[0] > room.cpu:
        return False
    if cards.is_share:
        return any(left[index] >= cards.milli for index in stack.indices)
    if stack.rings:
        return choose_chips(cards.whole, stack.rings, left) is not None
    return stack.whole >= cards.whole


def fragmented(stack: Stack, typicals: Iterable[Typical]) -> int:
    """What is free here and of no use, in thousandths of a card: the mean over the typical requests that may come
    here at all. Nothing where none may."""
    here = [one for one in typicals if one.resources.cards is not None and may_use(stack, one.resources.cards)]
    asked = sum(one.times for one in here)
    return sum(one.times * unusable(stack, one.resources) for one in here) // asked if asked else 0


__all__ = ["Typical", "could_serve", "fragmented", "has_cards", "may_use", "typical_from", "unusable"]
