"""Who used how much of late. Past use wears down with time, so that nobody pays for ever.

Use is counted in card-seconds; work without cards counts by its cores. Something that ran at a constant rate since
`begun` is worth rate x (1 - 2^(-age/half_life)) x half_life / ln 2 now: just what it would have left behind bit by bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.policy import HOUR, Ordering
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.usage import PastUse

MOST_LEVEL = 1e15  # also when a weight or tolerance is next to nothing: the order always has a number


def rate_of(allotments: Iterable[Allotment], cores_per_card: int) -> float:
    """Cards in use, or cores as parts of a card where that is more: a sliver of a card must not bring many cores."""
    parts = (max(one.cards_milli * cores_per_card, one.cpu_milli) for one in allotments)
    return sum(parts) / cores_per_card / WHOLE_CARD


def worn(past: PastUse | None, now: float, half_life: float) -> float:
    """What past use is still worth."""
    if past is None:
        return 0.0
    return past.amount * math.exp2(-max(0.0, now - past.at) / half_life)


def worth_of_run(rate: float, begun: float, now: float, half_life: float) -> float:
    """What a run at this rate from `begun` until now is worth now."""
    age = max(0.0, now - begun)
    return rate * (1.0 - math.exp2(-age / half_life)) * half_life / math.log(2)


def charged(past: PastUse | None, rate: float, begun: float, now: float, half_life: float) -> PastUse:
    """Past use with a run added that has just ended."""
    return PastUse(worn(past, now, half_life) + worth_of_run(rate, begun, now, half_life), now)


class Running:
    """The running work of one group or person, summed up exactly, whatever the order of change."""

    __slots__ = ("_fading", "_newest", "_rate", "_runs")

    def __init__(self) -> None:
        self._runs: dict[str, tuple[float, float]] = {}
        self._rate: float | None = None
        self._fading = self._newest = 0.0

    def put(self, id: str, rate: float, begun: float) -> None:
        self._runs[id] = (rate, begun)
        self._rate = None

    def remove(self, id: str) -> None:
        del self._runs[id]
        self._rate = None

    def use(self, now: float, half_life: float, ahead: float) -> float:
        """Card-seconds: what it has used, worn down, and what it will use in the time `ahead`."""
        if not self._runs:
            return 0.0
        rate = self._sum_up(half_life) if self._rate is None else self._rate
        gone = rate - self._fading * math.exp2(-max(0.0, now - self._newest) / half_life)
        return max(0.0, gone) * half_life / math.log(2) + rate * ahead

    def _sum_up(self, half_life: float) -> float:
        """Beginnings are counted from the newest one, so that no power grows large."""
        runs, exp2 = self._runs.values(), math.exp2
        self._newest = newest = max([begun for _, begun in runs])
        self._fading = math.fsum([rate * exp2((begun - newest) / half_life) for rate, begun in runs])
        self._rate = math.fsum([rate for rate, _ in runs])
        return self._rate


def level(card_hours: float, tolerance: float) -> int:
    """Use that differs by less than the tolerance is on one level, or on neighbouring ones at most."""
    return int(min(MOST_LEVEL, math.log1p(card_hours) / math.log1p(tolerance)))


def card_hours(
    past: PastUse | None, running: Running | None, added: float, now: float, weight: float, rule: Ordering
) -> float:
    """The use that counts for the order. `added` is the rate of what this very pass has placed."""
    seconds = worn(past, now, rule.half_life) + added * rule.ahead
    if running is not None:
        seconds += running.use(now, rule.half_life, rule.ahead)
    return seconds / HOUR / weight
