"""What is left of a card is worth what the best mixes of typical requests make of it.

Shares are packed on cards as items are in bins. Each size has a price, such that no mix that fits on a card is worth
more than the card and all sizes, as often as they come, are covered: those of the linear program of cutting stock,
found by playing it over and over (the best mix by today's prices is made, and what is in it gets cheaper). A size that
leaves a rest nobody can use costs nearly a whole card; a rare one that would fill such rests costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from gpuyard.domain.resources import WHOLE_CARD

GRAIN = 10  # thousandths of a card: sizes are rounded up to it, what is left is rounded down
PARTS = WHOLE_CARD // GRAIN
ROUNDS = 600
STEP = 0.05  # how much cheaper what was made gets in a round

Worths = tuple[int, ...]  # by rest // GRAIN, in thousandths of a card


Sizes = tuple[tuple[int, int], ...]  # (milli, how often) of requests for one card or less of it


@lru_cache(maxsize=64)
def worths(sizes: Sizes) -> Worths:
    pricing = Pricing(sizes)
    pricing.play(ROUNDS)
    return pricing.worths()


class Pricing:
    """The same, so many rounds at a time."""

    def __init__(self, sizes: Sizes) -> None:
        often: dict[int, int] = {}
        for milli, times in sizes:
            size = min(PARTS, -(-milli // GRAIN))
            often[size] = often.get(size, 0) + times
        every = sum(often.values())
        self._part = {size: times / every for size, times in sorted(often.items())}
        self._weight, self._total = dict(self._part), dict.fromkeys(self._part, 0.0)
        self.rounds_left = ROUNDS if often else 0

    def __len__(self) -> int:
        """How many sizes there are: what a round costs."""
        return len(self._part)

    def play(self, rounds: int) -> None:
        for _ in range(min(rounds, self.rounds_left)):
            self._play_one()
        self.rounds_left = max(0, self.rounds_left - rounds)

    def _play_one(self) -> None:
        part, weight = self._part, self._weight
        prices = {size: weight[size] / part[size] for size in part}
        best, taken = _best_mixes(prices)
        for size, price in prices.items():
            self._total[size] += price / best[PARTS]
        mix = _mix(taken)
        most = max(number / part[size] for size, number in mix.items())
        for size, number in mix.items():
            weight[size] *= 1 - STEP * number / part[size] / most
        every_weight = sum(weight.values())
        self._weight = {size: one / every_weight for size, one in weight.items()}

    def worths(self) -> Worths:
        """When all rounds are played."""
        if not self._part:
            return tuple(range(0, WHOLE_CARD + 1, GRAIN))
        best, _ = _best_mixes({size: one / ROUNDS for size, one in self._total.items()})
        return tuple(round(WHOLE_CARD * worth / best[PARTS]) for worth in best)


def _best_mixes(prices: Mapping[int, float]) -> tuple[list[float], list[int]]:
    """The most that requests of these prices bring for each rest, and which of them to take first (0: leave a bit)."""
    best, taken = [0.0] * (PARTS + 1), [0] * (PARTS + 1)
    sizes = sorted(prices.items())
    for rest in range(1, PARTS + 1):
        most, first = best[rest - 1], 0
        for size, price in sizes:
            if size > rest:
                break
            worth = best[rest - size] + price
            if worth > most:
                most, first = worth, size
        best[rest], taken[rest] = most, first
    return best, taken


def _mix(taken: list[int]) -> dict[int, int]:
    mix: dict[int, int] = {}
    rest = PARTS
    while rest > 0:
        size = taken[rest]
        if size:
            mix[size] = mix.get(size, 0) + 1
        rest -= size or 1
    return mix
