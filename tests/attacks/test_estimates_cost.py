"""Somebody fills the queue with jobs of which no two ask for the same, so that looking ahead takes for ever."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from tests.draw import a_job, a_node, running

from gpuyard.domain.policy import Policy
from gpuyard.domain.resources import Cards, Resources
from gpuyard.domain.workload import Workload
from gpuyard.forecast.estimate import Seen, Stage, in_turn, staged, starts
from gpuyard.forecast.runtimes import RunTimes
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.proposals import fragments

HOUR = 3600.0
T = TypeVar("T")
MOST_CALLS = 6_000_000  # of functions of ours: about two seconds


def declared(job: Workload, seconds: float) -> Workload:
    return replace(job, spec=replace(job.spec, max_seconds=seconds))


def books_of(nodes: int, waiting: int, *, alike: bool) -> Books:
    """Every machine has one card free; nobody in the queue can do with one."""
    books = Books([a_node(f"n{n:04d}", cards=8, cpu=96, memory_gib=700) for n in range(nodes)], {}, Policy())
    for n in range(nodes):
        holds = a_job(f"hold{n:06d}", cards=7, cpu=1, memory_gib=1, at=0.0, owner="zelda")
        books.put(running(declared(holds, HOUR + n), (f"n{n:04d}", tuple(range(7)))))
    for n in range(waiting):
        cards, gib, cpu = (4, 1.0, 1.0) if alike else (2 + n % 7, 1 + n / 64, 1 + n % 50 / 10)
        job = a_job(f"wait{n:06d}", cards=cards, cpu=cpu, memory_gib=gib, at=1.0 + n, owner="mallory")
        books.put(declared(job, HOUR + n % 97))
    return books


def crowded(nodes: int, waiting: int, *, alike: bool) -> Stage:
    books = books_of(nodes, waiting, alike=alike)
    return staged(books, in_turn(books, 100.0), RunTimes(), 100.0)


def calls_of(work: Callable[[], T]) -> tuple[T, int]:
    """What it gives, and how many functions were called for it."""
    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        return work(), calls
    finally:
        sys.setprofile(None)


def looked(stage: Stage) -> tuple[dict[str, Seen], int]:
    """What is seen of all that wait."""
    ids = [waiter.id for waiter in stage.scene.waiters]
    return calls_of(lambda: starts(stage, ids, 0))


def test_a_thousand_that_differ_cost_no_more_than_a_bounded_look_and_all_are_told_something() -> None:
    stage = crowded(200, 1000, alike=False)
    seen, calls = looked(stage)
    assert calls < MOST_CALLS
    assert len(seen) == 1000
    first, last = (seen[stage.scene.waiters[place].id] for place in (0, -1))
    assert first.spread is not None
    assert last.spread is not None
    assert last.rough
    assert first.spread.late < last.spread.late
    assert not any(one.unknown for one in seen.values())


def test_a_thousand_alike_are_played_through() -> None:
    seen, calls = looked(crowded(200, 1000, alike=True))
    assert calls < MOST_CALLS
    assert not any(one.rough or one.unknown for one in seen.values())


def test_few_that_differ_are_played_through() -> None:
    seen, calls = looked(crowded(20, 60, alike=False))
    assert calls < MOST_CALLS
    assert not any(one.rough or one.unknown for one in seen.values())


def test_what_is_fragmented_is_found_at_a_bounded_cost_where_no_two_ask_for_the_same() -> None:
    books = books_of(200, 1000, alike=False)
    books.renew_typical(tuple(Typical(Resources(cpu_milli=n, cards=Cards("nvidia", 1000)), 1) for n in range(1, 900)))
    inquiry = Inquiry(books, 100.0)
    inquiry.one.verdicts  # noqa: B018  the pass itself is not what is looked at
    found, calls = calls_of(lambda: fragments(inquiry))
    inquiry.close()
    assert calls < MOST_CALLS // 10
    assert len(found.nodes) == 200
    assert all(one.free == 1000 for one in found.nodes)
