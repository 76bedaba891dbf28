"""What one look ahead costs with a long queue, beside the decision that filled the same machines."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.workload import Workload
from gpuyard.engines.simulated import virtual_nodes
from gpuyard.forecast.calibration import Calibration, Guess
from gpuyard.forecast.estimate import in_turn, staged, starts
from gpuyard.forecast.runtimes import RunTimes, run_of
from gpuyard.rehearsal import Arrival, rehearse
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide
from gpuyard.store.guesses import KEPT
from lab.lines import Line, percentile
from lab.stage import a_job

NODES, WAITING, TIMES = 1000, 1000, 5
DECISIONS = 200
SIZES = (1, 2, 4, 8)
NOW = 60.0


def looking_ahead() -> list[Line]:
    """All machines are full and a thousand wait. Processor time of one thread, medians. The look ahead has a thread of
    its own; the lock of Python lets control have its turn every few milliseconds."""
    books, times = _full_books(), _history()
    order = in_turn(books, NOW)
    look = _seconds(lambda: starts(staged(books, order, times, NOW), order, len(times)))
    decision = statistics.median(_seconds_to_fill() for _ in range(TIMES))
    stage = staged(books, order, times, NOW)
    beside = _seconds_beside(books, lambda: starts(stage, order, len(times)))
    guesses = [Guess(f"g{n}", float(n), 600.0, 900.0, 1200.0, 60.0 * (n % 30)) for n in range(KEPT)]
    learning = _seconds(lambda: Calibration(guesses, 1e6))
    return [
        Line(f"one look ahead for {WAITING:,} waiting on {NODES:,} full nodes", look, 2.0, "s"),
        Line("  beside the decision that gives a thousand their nodes", look / decision, 10, "ratio"),
        Line("  one more decision while another thread looks ahead, p90", beside * 1000, 50, "ms"),
        Line(f"  correction from {KEPT:,} earlier guesses", learning * 1000, 50, "ms"),
    ]


def _seconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(TIMES):
        begun = time.thread_time()
        call()
        taken.append(time.thread_time() - begun)
    return statistics.median(taken)


def _seconds_beside(books: Books, looking: Callable[[], object]) -> float:
    """By the clock, from begin to end of a decision that finds nothing new."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            looking()

    thread = threading.Thread(target=look)
    thread.start()
    taken = []
    try:
        for _ in range(DECISIONS):
            time.sleep(0.01)
            begun = time.perf_counter()
            decide(books, NOW)
            taken.append(time.perf_counter() - begun)
    finally:
        over.set()
        thread.join()
    return percentile(taken, 0.9)


def _seconds_to_fill() -> float:
    """One decision: a thousand find their nodes, a thousand find none."""
    books = Books(virtual_nodes(NODES, 8), {"lab": Group("lab")}, Policy())
    for job in _jobs():
        books.put(job)
    begun = time.thread_time()
    plan = decide(books, NOW)
    taken = time.thread_time() - begun
    assert len(plan.placements) == NODES
    return taken


def _full_books() -> Books:
    kept: list[Books] = []
    coming = [Arrival(job, 36_000.0) for job in _jobs()]
    groups = {"lab": Group("lab")}
    rehearse(virtual_nodes(NODES, 8), groups, Policy(), coming, until=NOW, after=lambda books, _: kept.append(books))
    return kept[-1]


def _jobs() -> list[Workload]:
    """Those that run came first; what comes after them finds no room."""
    chance = random.Random(5)
    runs = [_job(f"r{number:09d}", 8, 0.0) for number in range(NODES)]
    return [*runs, *(_job(f"w{number:09d}", chance.choice(SIZES), 1.0 + number / 100) for number in range(WAITING))]


def _job(id: str, cards: int, at: float) -> Workload:
    return replace(a_job(id, seconds=36_000, cards=cards), submitted_at=at)


def _history() -> RunTimes:
    chance = random.Random(6)
    spec = [a_job(f"h{cards}", seconds=1, cards=cards).spec for cards in SIZES]
    return RunTimes(run_of("ann", chance.choice(spec), chance.lognormvariate(8.0, 1.5)) for _ in range(2000))


MEASURES = (looking_ahead,)
