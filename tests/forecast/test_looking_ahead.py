"""A look ahead: exact where all is known, ordered where it is not, the same each time, and honest about doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, groups_with, running

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import Ordering, Policy
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Workload
from gpuyard.forecast.estimate import Seen, end, in_turn, staged, starts, summed_up
from gpuyard.forecast.look import chances
from gpuyard.forecast.runtimes import LEAST_RUNS, START_SECONDS, Run, RunTimes
from gpuyard.rehearsal import Arrival, Habits, rehearse
from gpuyard.scheduling.books import Books

BY_AGE = Policy(order=Ordering(fair_share=False, age_points=0), backfill=False)
HOUR = 3600.0


def job(id: str, cards: float, seconds: float | None, at: float = 0.0, **more: object) -> Workload:
    made = a_job(id, cards=cards, cpu=0.1, memory_gib=0.1, at=at)
    return replace(made, spec=replace(made.spec, max_seconds=seconds, grace_seconds=0.0, **more))  # type: ignore[arg-type]


def books_of(nodes: list[Node], jobs: list[Workload], groups: dict[str, Group] | None = None) -> Books:
    books = Books(nodes, groups or {}, BY_AGE)
    for one in jobs:
        books.put(one)
    return books


def seen(books: Books, times: RunTimes, now: float = 0.0) -> dict[str, Seen]:
    stage = staged(books, in_turn(books, now), times, now)
    return starts(stage, [*books.line.workloads], len(times))


NOTHING = RunTimes()

# --- exact --------------------------------------------------------------------------------------------------------

sizes_on_one = st.tuples(
    st.just(1), st.lists(st.tuples(st.integers(1, 8), st.integers(1, 500)), min_size=1, max_size=12)
)
alike_on_many = st.integers(1, 8).flatmap(
    lambda cards: st.tuples(
        st.integers(1, 4), st.lists(st.tuples(st.just(cards), st.integers(1, 500)), min_size=1, max_size=16)
    )
)


@settings(deadline=None)
@given(st.one_of(sizes_on_one, alike_on_many))
def test_when_all_run_times_are_declared_and_nobody_else_comes_it_is_exact(
    world: tuple[int, list[tuple[int, int]]],
) -> None:
    number, asked = world
    nodes = [a_node(f"n{place}", cards=8) for place in range(number)]
    jobs = [job(f"job{place:07d}", cards, float(seconds)) for place, (cards, seconds) in enumerate(asked)]
    told = seen(books_of(nodes, jobs), NOTHING)
    arrivals = [Arrival(one, float(one.spec.max_seconds or 0)) for one in jobs]
    result = rehearse(nodes, {}, BY_AGE, arrivals, habits=Habits(start_seconds=START_SECONDS))
    for outcome in result.outcomes:
        spread = told[outcome.id].spread
        assert spread is not None
        assert spread.middle == spread.late
        assert spread.middle == pytest.approx(outcome.starts[0] - START_SECONDS)


def test_what_runs_is_counted_from_its_start() -> None:
    holds = running(job("runs000001", 8, 600.0), ("a", tuple(range(8))))
    told = seen(books_of([a_node("a", 8)], [holds, job("waits00001", 8, 60.0)]), NOTHING, now=200.0)
    assert told["waits00001"].spread == (400.0, 400.0)


def test_a_limit_holds_back_its_own_group_only() -> None:
    groups = groups_with([Quota("vision", "nvidia", 2000)])
    holds = running(job("runs000001", 2, 600.0), ("a", (0, 1)))
    mine, other = job("waits00001", 2, 60.0), replace(job("waits00002", 2, 60.0), group="speech")
    told = seen(books_of([a_node("a", 8)], [holds, mine, other], groups), NOTHING)
    assert told["waits00001"].spread == (600.0, 600.0)
    assert told["waits00002"].spread == (0.0, 0.0)


def of_group(group: str, one: Workload) -> Workload:
    return replace(one, group=group)


def test_what_is_guaranteed_to_others_is_not_waited_for() -> None:
    groups = groups_with([Quota("speech", "nvidia", guaranteed=4000)]) | {"vision": Group("vision")}
    holds = running(of_group("vision", job("runs000001", 4, 600.0)), ("a", (0, 1, 2, 3)))
    waits = [of_group("vision", job("waits00001", 4, 60.0)), of_group("vision", job("never00001", 5, 60.0))]
    told = seen(books_of([a_node("a", 8)], [holds, *waits], groups), NOTHING)
    assert told["waits00001"].spread == (600.0, 600.0)
    assert (told["never00001"].spread, told["never00001"].unknown) == (None, because(Code.GUESS_NEVER))


def test_a_group_waits_for_its_own_guarantee() -> None:
    groups = groups_with([Quota("speech", "nvidia", guaranteed=4000)]) | {"vision": Group("vision")}
    own = running(of_group("speech", job("own0000001", 4, 300.0)), ("a", (0, 1, 2, 3)))
    others = running(of_group("vision", job("others0001", 4, 600.0)), ("a", (4, 5, 6, 7)))
    told = seen(
        books_of([a_node("a", 8)], [own, others, of_group("speech", job("waits00001", 4, 60.0))], groups), NOTHING
    )
    assert told["waits00001"].spread == (300.0, 300.0)


def test_what_a_group_has_borrowed_comes_back_to_all() -> None:
    groups = groups_with([Quota("speech", "nvidia", guaranteed=4000)]) | {"vision": Group("vision")}
    first = running(of_group("speech", job("first00001", 4, 300.0)), ("a", (0, 1, 2, 3)))
    second = running(of_group("speech", job("second0001", 4, 900.0)), ("a", (4, 5, 6, 7)))
    told = seen(
        books_of([a_node("a", 8)], [first, second, of_group("vision", job("waits00001", 4, 60.0))], groups), NOTHING
    )
    assert told["waits00001"].spread == (300.0, 300.0)


# --- ordered ------------------------------------------------------------------------------------------------------

past = st.lists(st.floats(1, 10_000), min_size=LEAST_RUNS, max_size=40)


def learned(seconds: list[float], name: str = "any") -> RunTimes:
    return RunTimes(Run("ann", name, "1x8", one) for one in seconds)


@settings(deadline=None)
@given(past, st.integers(1, 12), st.integers(1, 3))
def test_the_middle_is_never_after_the_late_one_and_who_stands_behind_starts_no_sooner(
    seconds: list[float], waiting: int, number: int
) -> None:
    nodes = [a_node(f"n{place}", cards=8) for place in range(number)]
    holds = [running(job(f"runs{place:06d}", 8, None), (f"n{place}", tuple(range(8)))) for place in range(number)]
    line = [job(f"waits{place:05d}", 8, None, at=1.0 + place) for place in range(waiting)]
    told = seen(books_of(nodes, [*holds, *line]), learned(seconds), now=50.0)
    spreads = [told[one.id].spread for one in line]
    before = (0.0, 0.0)
    for spread in spreads:
        assert spread is not None
        assert spread.middle <= spread.late
        assert spread >= before
        before = spread


@settings(deadline=None)
@given(past, st.integers(0, 8))
def test_more_work_ahead_never_means_a_sooner_start(seconds: list[float], extra: int) -> None:
    nodes, times = [a_node("a", 8)], learned(seconds)
    holds, mine = running(job("runs000001", 8, None), ("a", tuple(range(8)))), job("zzzzz00001", 8, None, at=100.0)
    ahead = [job(f"ahead{place:05d}", 8, None, at=1.0 + place) for place in range(extra)]
    alone = seen(books_of(nodes, [holds, mine]), times, now=200.0)[mine.id].spread
    behind = seen(books_of(nodes, [holds, *ahead, mine]), times, now=200.0)[mine.id].spread
    assert alone is not None
    assert behind is not None
    assert behind >= alone


@settings(deadline=None)
@given(past, st.integers(1, 6))
def test_the_same_question_has_the_same_answer(seconds: list[float], waiting: int) -> None:
    holds = running(job("runs000001", 8, None), ("a", tuple(range(8))))
    jobs = [holds, *(job(f"waits{place:05d}", 4, None, at=float(place)) for place in range(waiting))]
    answers = [seen(books_of([a_node("a", 8)], jobs), learned(seconds), now=50.0) for _ in range(2)]
    assert answers[0] == answers[1]


@settings(deadline=None)
@given(st.text(min_size=1, max_size=12), st.integers(1, 64))
def test_the_points_that_are_drawn_are_spread_evenly(seed: str, worlds: int) -> None:
    points = sorted(chances(seed, worlds))
    assert len(points) == worlds
    assert all(0.0 <= point < 1.0 for point in points)
    assert {int(point * worlds + 1e-9) % worlds for point in points} == set(range(worlds))


@settings(deadline=None)
@given(past, st.integers(2, 40))
def test_a_sum_over_a_long_queue_grows_with_what_is_ahead(seconds: list[float], waiting: int) -> None:
    holds = running(job("runs000001", 8, None), ("a", tuple(range(8))))
    line = [job(f"waits{place:05d}", 8, None, at=float(place)) for place in range(waiting)]
    books = books_of([a_node("a", 8)], [holds, *line])
    sums = summed_up(staged(books, in_turn(books, 50.0), learned(seconds), 50.0))
    assert sums == sorted(sums)
    assert all(one.middle <= one.late for one in sums)


# --- honest -------------------------------------------------------------------------------------------------------


def test_with_too_few_runs_and_no_maximum_it_does_not_know() -> None:
    holds, mine = running(job("runs000001", 8, None), ("a", tuple(range(8)))), job("waits00001", 8, None)
    told = seen(books_of([a_node("a", 8)], [holds, mine]), learned([5.0] * (LEAST_RUNS - 1)))[mine.id]
    assert told.spread is None
    assert told.unknown is not None
    assert told.unknown.code is Code.GUESS_HISTORY
    unknown = end(holds, NOTHING, 10.0)
    assert unknown is not None
    assert unknown.unknown is not None


def test_what_can_never_start_is_given_no_moment() -> None:
    told = seen(books_of([a_node("a", 8)], [job("waits00001", 16, None)]), learned([5.0] * 20))["waits00001"]
    assert told.unknown is not None
    assert told.unknown.code is Code.GUESS_NEVER
