"""The cheapest of several sets that are enough. Pure counting: what `enough` means is the caller's business."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Protocol, TypeVar

STEPS_AT_MOST = 300


class Priced(Protocol):
    @property
    def price(self) -> float: ...


P = TypeVar("P", bound=Priced)
Test = Callable[[Sequence[P]], bool]


def cheapest(offers: Sequence[P], enough: Test[P], allowed: Test[P], below: float = inf) -> list[P] | None:
    """The cheapest of all allowed sets that are enough; None when none is cheaper than `below`.

    `offers` come with the lowest price first. A larger set is never less enough, and a smaller one never less allowed.
    With very many offers the search ends early, with a set of which nothing can be left out.
    """
    first = _one_by_one(offers, enough, allowed)
    best = spared(first, enough) if first is not None else None
    steps = STEPS_AT_MOST

    def look(position: int, chosen: list[P], price: float) -> None:
        nonlocal best, steps
        steps -= 1
        if steps < 0 or price >= below or (best is not None and price >= _price(best)):
            return
        if chosen and enough(chosen):
            best = chosen
            return
        if position == len(offers) or not enough([*chosen, *offers[position:]]):
            return
        one = offers[position]
        if allowed([*chosen, one]):
            look(position + 1, [*chosen, one], price + one.price)
        look(position + 1, chosen, price)

    look(0, [], 0.0)
    return best if best is not None and _price(best) < below else None


def spared(chosen: Sequence[P], enough: Test[P]) -> list[P]:
    """Without those that are not needed after all, the dearest first."""
    kept = list(chosen)
    for one in sorted(chosen, key=lambda offer: offer.price, reverse=True):
        rest = [other for other in kept if other is not one]
        if rest and enough(rest):
            kept = rest
    return kept


def _one_by_one(offers: Sequence[P], enough: Test[P], allowed: Test[P]) -> list[P] | None:
    chosen: list[P] = []
    for one in offers:
        if allowed([*chosen, one]):
            chosen.append(one)
            if enough(chosen):
                return chosen
    return None


def _price(chosen: Sequence[P]) -> float:
    return sum(one.price for one in chosen)
