"""What became of earlier guesses widens or narrows the next ones, so that nine of ten starts keep the late moment.

The look ahead knows neither who will come later and pass, nor that times change. So every guess is compared with what
really happened, as a ratio. The ratio that nine of ten of the newest guesses stayed below corrects the next guess.
Guesses that still wait count with what they have waited so far (the estimate of Kaplan and Meier), and for the late
moment until the newest look expects their start: else only the lucky ones would be heard of, and what goes wrong now
only when it is over. And every late moment that was passed puts the next ones off, every one that was kept brings
them nearer, so that in the long run one of ten is passed, whatever the ratios do (adaptive conformal inference).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from types import MappingProxyType
from typing import NamedTuple

from gpuyard.forecast.look import Spread

AIM = 0.9  # the part of starts that shall come before the late moment
NEWEST = 100  # outcomes that are looked back at for the late moment ...
NEWEST_MIDDLE = 200  # ... and for the middle
LEAST = 20  # with fewer known ends nothing is learned yet ...
AT_FIRST = 1.5  # ... and the late moment is this much later than the look ahead says
STEP = 0.02  # by so much, as a logarithm, a moment that was passed makes the next ones later ...
MOST_DRIFT = 1.0  # ... and no more than this, nor sooner
NARROWEST, WIDEST = (
    0.7,
    8.0,
)  # bounds of the late moment: a quiet past is no promise, a bad one no reason to be mute
SOONEST, LATEST = 0.1, 10.0  # bounds of the correction of the middle
FLOOR = 60.0  # seconds added to both sides of a ratio: below a minute all waits are alike
OPEN_AT_MOST = 1000  # guesses that wait for their outcome; more teach little more
NOBODY: Mapping[str, float] = MappingProxyType({})


class Guess(NamedTuple):
    """What was guessed for one that waits, in seconds from then, and how long it waited; None: it still waits."""

    workload: str
    at: float
    middle: float  # as the look ahead saw it
    late: float
    told: float  # the late moment after correction
    waited: float | None = None


class Calibration:
    """The correction as it is at one moment. `expected`: when the newest look sees those start that still wait."""

    def __init__(self, guesses: Sequence[Guess] = (), now: float = 0.0, expected: Mapping[str, float] = NOBODY) -> None:
        known = [guess for guess in guesses if guess.waited is not None]
        known.sort(key=lambda guess: guess.at + (guess.waited or 0.0))
        waiting = [guess for guess in guesses if guess.waited is None]
        self.known = len(known)
        self._middle, self._late, self._least = 1.0, AT_FIRST, 0.0
        if self.known >= LEAST:
            newest = [*known[-NEWEST:], *waiting]
            lasting = {guess.workload: max(now, expected.get(guess.workload, now)) for guess in waiting}
            middles = [_ratio(guess, guess.middle, now) for guess in [*known[-NEWEST_MIDDLE:], *waiting]]
            outlasting = [_ratio(guess, guess.middle, lasting.get(guess.workload, now)) for guess in newest]
            lates = [_ratio(guess, guess.late, lasting.get(guess.workload, now)) for guess in newest]
            self._middle = min(LATEST, max(SOONEST, exp(_reached(middles, 0.5))))
            self._least = min(WIDEST, exp(_reached(outlasting, 0.5)))
            self._late = exp(_reached(lates, AIM))
        self._late = min(WIDEST, max(NARROWEST, self._late * exp(_drift(guesses, now))))

    def corrected(self, seen: Spread) -> Spread:
        """The two moments, later or sooner by what was learned. The late one is not before the middle as it would be
        if all that wait now did so for as long as the newest look says: that is the least of what is coming."""
        middle = max(0.0, (seen.middle + FLOOR) * self._middle - FLOOR)
        least = (seen.middle + FLOOR) * self._least - FLOOR
        return Spread(middle, max(middle, least, (seen.late + FLOOR) * self._late - FLOOR))


def _ratio(guess: Guess, guessed: float, until: float) -> tuple[float, bool]:
    """How much longer than guessed it waited, as a logarithm, and whether that is final; else it waits until then."""
    waited = until - guess.at if guess.waited is None else guess.waited
    return log((max(0.0, waited) + FLOOR) / (guessed + FLOOR)), guess.waited is not None


def _reached(ratios: list[tuple[float, bool]], part: float) -> float:
    """The ratio that this part of them stays below, those that are not final counted for as long as they last."""
    ratios.sort(key=lambda one: (one[0], not one[1]))
    surviving = 1.0
    for place, (ratio, final) in enumerate(ratios):
        if final:
            surviving *= 1.0 - 1.0 / (len(ratios) - place)
            if 1.0 - surviving >= part - 1e-9:
                return ratio
    return ratios[-1][0]


def _drift(guesses: Sequence[Guess], now: float) -> float:
    """Every moment that was told and has come makes the next ones later when it was passed, and a little sooner when
    it was kept: one step on is worth nine back, so that it rests where one of ten is passed."""
    settled = []
    for guess in guesses:
        kept = guess.waited is not None and guess.waited <= guess.told
        moment = guess.at + (guess.waited if kept and guess.waited is not None else guess.told)
        if moment <= now:
            settled.append((moment, kept))
    drift = 0.0
    for _, kept in sorted(settled):
        drift = min(MOST_DRIFT, max(-MOST_DRIFT, drift + STEP * (AIM - 1.0 if kept else AIM)))
    return drift
