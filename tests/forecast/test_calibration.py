"""What became of earlier guesses corrects the next ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuyard.forecast.calibration import AT_FIRST, FLOOR, LATEST, LEAST, NARROWEST, WIDEST, Calibration, Guess
from gpuyard.forecast.look import Spread

HOUR = 3600.0


def guesses(ratio: float, number: int = 60, told: float = 1e9) -> list[Guess]:
    """So many, each of which waited this many times as long as was seen."""
    return [Guess(f"k{n}", float(n), HOUR, 2 * HOUR, told, ratio * HOUR) for n in range(number)]


def test_before_anything_is_known_the_late_moment_is_put_off() -> None:
    told = Calibration().corrected(Spread(HOUR, 2 * HOUR))
    assert told.middle == pytest.approx(HOUR)
    assert told.late == pytest.approx(AT_FIRST * (2 * HOUR + 60) - 60)


@settings(deadline=None)
@given(st.floats(0.1, 10))
def test_what_was_always_wrong_by_the_same_factor_is_put_right(ratio: float) -> None:
    told = Calibration(guesses(ratio), now=1e6).corrected(Spread(HOUR, 2 * HOUR))
    assert told.middle == pytest.approx(ratio * HOUR, rel=0.02)
    assert told.middle <= told.late


def test_moments_that_were_passed_make_the_next_ones_later_and_kept_ones_sooner() -> None:
    kept = Calibration(guesses(1.0, told=3 * HOUR), now=1e6).corrected(Spread(HOUR, 2 * HOUR))
    passed = Calibration(guesses(1.0, told=HOUR / 2), now=1e6).corrected(Spread(HOUR, 2 * HOUR))
    assert passed.late > kept.late


def test_those_that_still_wait_count_with_what_they_have_waited() -> None:
    lucky = guesses(0.1, LEAST + 20)
    stuck = [Guess(f"w{n}", 100.0, HOUR, 2 * HOUR, 1e9, None) for n in range(60)]
    alone = Calibration(lucky, now=50 * HOUR).corrected(Spread(HOUR, 2 * HOUR))
    beside = Calibration([*lucky, *stuck], now=50 * HOUR).corrected(Spread(HOUR, 2 * HOUR))
    assert beside.late > 10 * alone.late


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.floats(0, 1e5), st.floats(0, 1e5), st.none() | st.floats(0, 1e6)), max_size=40
    ),
    st.floats(0, 1e5),
    st.floats(0, 1e5),
)
def test_whatever_happened_the_middle_is_not_after_the_late_one_and_nothing_is_in_the_past(
    past: list[tuple[float, float, float, float | None]], one: float, other: float
) -> None:
    made = [Guess(f"k{n}", at, min(a, b), max(a, b), max(a, b), wait) for n, (at, a, b, wait) in enumerate(past)]
    told = Calibration(made, now=2e6).corrected(Spread(min(one, other), max(one, other)))
    assert 0.0 <= told.middle <= told.late


def test_what_the_newest_look_expects_of_those_that_wait_puts_the_late_moment_off_before_they_start() -> None:
    past = guesses(1.0, LEAST + 20, told=3 * HOUR)
    stuck = [Guess(f"w{n}", 1000.0, HOUR, 2 * HOUR, 3 * HOUR, None) for n in range(60)]
    expected = {guess.workload: 1000.0 + 7 * HOUR for guess in stuck}
    silent = Calibration([*past, *stuck], 2 * HOUR).corrected(Spread(HOUR, 2 * HOUR))
    heard = Calibration([*past, *stuck], 2 * HOUR, expected).corrected(Spread(HOUR, 2 * HOUR))
    assert heard.late > 2 * silent.late
    assert heard.middle == silent.middle


# --- in the long run ------------------------------------------------------------------------------------------------

Bias = Callable[[float], float]  # how far along (0 to 1) -> the usual ratio of wait and guessed middle, as a logarithm

STREAMS: dict[str, Bias] = {
    "right": lambda along: 0.0,
    "told too soon": lambda along: 1.2,
    "told too late": lambda along: -0.3,
    "later and later": lambda along: 1.5 * along,
    "sooner and sooner": lambda along: 1.0 - along,
    "of a sudden twice as long": lambda along: 0.0 if along < 0.5 else 0.7,
}


def kept_in(bias: Bias, seed: int, every: float, count: int = 700) -> tuple[float, float]:
    """One asks every so many seconds, and is told two moments from all that is known by then. The part of those after
    the first hundred that start before the late moment, and before the middle."""
    chance = random.Random(seed)
    made: list[Guess] = []
    late = middle = 0
    for number in range(count):
        now = number * every
        waited = HOUR * exp(bias(number / count) + chance.gauss(0.0, 0.5))
        known = [one if one.at + (one.waited or 0.0) <= now else one._replace(waited=None) for one in made]
        told = Calibration(known, now).corrected(Spread(HOUR, 2 * HOUR))
        made.append(Guess(f"k{number}", now, HOUR, 2 * HOUR, told.late, waited))
        if number >= 100:
            late += waited <= told.late
            middle += waited <= told.middle
    return late / (count - 100), middle / (count - 100)


@pytest.mark.parametrize("name", STREAMS)
def test_nine_of_ten_keep_the_late_moment_whatever_the_ratios_do(name: str) -> None:
    late, middle = kept_in(STREAMS[name], 7, HOUR)
    assert 0.86 <= late <= 0.94
    assert 0.25 <= middle <= 0.75  # two hundred outcomes are looked back at: where times change it lags behind


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_heard_of_forty_and_more_guesses_later_is_told_too_late_rather_than_too_soon(name: str) -> None:
    late, middle = kept_in(STREAMS[name], 7, HOUR / 40)
    assert 0.86 <= late <= 0.98
    assert 0.25 <= middle <= 0.75


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.floats(0, 1e5), st.floats(0, 1e5), st.none() | st.floats(0, 1e7)),
        max_size=60,
    ),
    st.floats(0, 1e7),
)
def test_whatever_happened_the_late_moment_stays_within_its_bounds(
    past: list[tuple[float, float, float, float | None]], expected: float
) -> None:
    made = [Guess(f"k{n}", at, min(a, b), max(a, b), max(a, b), wait) for n, (at, a, b, wait) in enumerate(past)]
    told = Calibration(made, 2e6, {guess.workload: expected for guess in made}).corrected(Spread(HOUR, 2 * HOUR))
    assert told.late + FLOOR >= NARROWEST * (2 * HOUR + FLOOR) - 1e-6
    assert told.late + FLOOR <= max(WIDEST * (2 * HOUR + FLOOR), LATEST * (HOUR + FLOOR)) + 1e-6
