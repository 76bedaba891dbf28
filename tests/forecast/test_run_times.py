"""How long work runs: learned from runs that are over, the most alike first."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.draw import a_job, renamed, running

from gpuyard.domain.workload import Workload
from gpuyard.forecast.estimate import end
from gpuyard.forecast.runtimes import LEAST_RUNS, MOST_RUNS, Length, Run, RunTimes, shape_of

times = st.lists(st.floats(1, 1e6), min_size=LEAST_RUNS, max_size=50)
chance = st.floats(0, 1, exclude_max=True)


def bound(job: Workload, seconds: float) -> Workload:
    return replace(job, spec=replace(job.spec, max_seconds=seconds))


def test_runs_of_the_same_name_count_more_than_others() -> None:
    known = RunTimes([Run("bob", "other", "1x1", 10_000.0)] * 50 + [Run("ann", "train", "1x8", 60.0)] * 50)
    length = Length(renamed(a_job(cards=8, owner="ann"), "train"), known)
    assert [length.draw(point / 10) for point in range(9)] == [60.0] * 9
    stranger = Length(renamed(a_job(cards=8, owner="eve"), "new"), known)
    assert stranger.draw(0.5) == 60.0  # of the same shape
    assert Length(renamed(a_job(cards=2, owner="eve"), "new"), known).draw(0.9) == 10_000.0


@settings(deadline=None)
@given(times, chance, st.floats(0, 2e6))
def test_what_has_run_for_a_while_is_never_guessed_to_be_over_already(
    seconds: list[float], point: float, ran: float
) -> None:
    length = Length(a_job(cards=8), RunTimes(Run("ann", "x", "1x8", one) for one in seconds))
    assert length.draw(point, ran) >= ran


@settings(deadline=None)
@given(times, chance, chance, st.floats(0, 2e6))
def test_a_later_point_is_never_a_shorter_run_of_one_kind(
    seconds: list[float], one: float, other: float, ran: float
) -> None:
    length = Length(a_job(cards=8, owner="eve"), RunTimes(Run("ann", "x", "9x9", second) for second in seconds))
    low, high = sorted((one, other))
    assert length.draw(low, ran) <= length.draw(high, ran)


@settings(deadline=None)
@given(times, chance, st.floats(1, 1e6))
def test_a_declared_maximum_is_the_end_in_any_case(seconds: list[float], point: float, most: float) -> None:
    known = RunTimes(Run("ann", "x", "1x8", one) for one in seconds)
    assert Length(bound(a_job(cards=8), most), known).draw(point) <= most
    assert Length(bound(a_job(cards=8), most), RunTimes()).draw(point) == most


def test_the_oldest_runs_are_forgotten() -> None:
    known = RunTimes([Run("ann", "x", "1x8", 1.0)] * 20)
    for _ in range(MOST_RUNS):
        known.add(Run("ann", "x", "1x8", 100.0))
    assert len(known) == MOST_RUNS
    assert Length(a_job(cards=8), known).draw(0.0) == 100.0


MINE, THEIRS = "ann", "bob"


@settings(deadline=None)
@given(times, times, st.floats(0, 2e6))
def test_the_end_is_where_half_and_nine_of_ten_of_all_kinds_together_are_over(
    mine: list[float], theirs: list[float], ran: float
) -> None:
    """Counted by hand: each kind has its weight, shared by its runs that last longer than this one has run."""
    known = RunTimes([Run(MINE, "x", "1x8", one) for one in mine] + [Run(THEIRS, "y", "2x2", one) for one in theirs])
    length = Length(renamed(a_job(cards=8, owner=MINE), "x"), known)
    curve = known.curve(renamed(a_job(cards=8, owner=MINE), "x"))
    alive = sorted((one, weight / len(runs)) for weight, runs in curve.parts for one in runs if one > ran)
    assume(alive)
    whole = sum(weight for _, weight in alive)
    for part in (0.5, 0.9):
        reached = length.reached(part, ran)
        assert sum(weight for one, weight in alive if one <= reached) >= part * whole * (1 - 1e-9)
        assert sum(weight for one, weight in alive if one < reached) <= part * whole * (1 + 1e-9)


def test_few_long_runs_of_ones_own_do_not_make_the_late_moment_come_before_the_middle() -> None:
    known = RunTimes([Run(THEIRS, "y", "2x2", 60.0)] * 100 + [Run(MINE, "x", "1x8", 3600.0)] * 4)
    length = Length(renamed(a_job(cards=8, owner=MINE), "x"), known)
    assert length.reached(0.5) <= length.reached(0.9) == 3600.0


@settings(deadline=None)
@given(times, st.floats(0, 2e6))
def test_the_end_of_what_runs_is_in_order_and_never_in_the_past(seconds: list[float], now: float) -> None:
    job = running(a_job(cards=8, at=0.0), ("a", tuple(range(8))))
    told = end(job, RunTimes(Run("bob", "x", "2x2", one) for one in seconds), now)
    assert told is not None
    assert told.middle is not None
    assert told.late is not None
    assert now <= told.middle <= told.late


def test_shapes_tell_cards_and_replicas() -> None:
    assert shape_of(a_job(cards=8, replicas=4).spec) == "4x8"
    assert shape_of(a_job(cards=0.5).spec) == "1x0.5"
    assert shape_of(a_job().spec) == "1x0"
