"""Many ask at once when work will start, runs end while somebody is looking ahead, and the clock goes astray."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from tests.control.test_guessing import Platform
from tests.draw import a_job
from tests.store.lines import submit

from gpuyard.domain.reasons import Code
from gpuyard.forecast.estimate import Stage
from gpuyard.forecast.runtimes import LEAST_RUNS, MOST_RUNS, Length, Run, RunTimes
from gpuyard.store.database import Database
from gpuyard.world.outlook import Outlook
from gpuyard.world.view import View

YEAR = 365 * 86400.0


class SlowView(View):
    """What takes long is looked at until the gate opens."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.gate, self.entered = threading.Event(), threading.Event()

    def stage(self, *asked: Any) -> Stage:
        self.entered.set()
        assert self.gate.wait(60)
        return super().stage(*asked)


@pytest.fixture
def platform(database: Database) -> Platform:
    return Platform(database)


def test_whoever_asks_while_another_look_takes_long_is_told_so_and_does_not_wait_for_it(platform: Platform) -> None:
    view = SlowView(platform.database, lambda: platform.now)
    outlook = Outlook(platform.database, view, lambda: platform.now)
    platform.start(platform.submit("runs000001"))
    waits = platform.submit("waits00001")
    wanted = platform.job("wanted0001")
    first = threading.Thread(target=outlook.preview, args=(wanted,), daemon=True)
    first.start()
    assert view.entered.wait(30)

    told = outlook.preview(wanted)
    assert told is not None
    assert told.unknown is not None
    assert told.unknown.code is Code.GUESS_BUSY
    assert outlook.of([waits]) == {}

    view.gate.set()
    first.join(30)
    assert not first.is_alive()
    again = outlook.of([waits])["waits00001"].start
    assert again is not None
    assert again.middle == platform.now + 600.0


def test_what_is_learned_meanwhile_does_not_change_what_somebody_is_looking_at() -> None:
    times = RunTimes(Run("ann", "train", "1x1", float(n)) for n in range(MOST_RUNS))
    length = Length(a_job(cards=1, name="train"), times)
    before = [length.draw(n / 100, 50.0) for n in range(100)]
    more = times.with_more(Run("eve", f"tiny{n}", "1x2", 0.1) for n in range(MOST_RUNS))
    assert len(more) == MOST_RUNS
    assert [length.draw(n / 100, 50.0) for n in range(100)] == before


def test_runs_are_learned_after_a_clock_that_was_years_ahead_is_right_again(platform: Platform) -> None:
    def ran(id: str) -> None:
        job = platform.start(platform.submit(id))
        platform.now += 100.0
        platform.end(job)

    def unknown() -> bool:
        told = platform.outlook.preview(undeclared)
        return told is not None and told.unknown is not None and told.unknown.code is Code.GUESS_HISTORY

    undeclared = platform.job("wanted0001")
    undeclared = replace(undeclared, spec=replace(undeclared.spec, max_seconds=None))
    platform.now += YEAR
    ran("ahead00001")
    assert not unknown()  # nobody is before it: it starts at once
    platform.now -= YEAR
    for number in range(LEAST_RUNS - 1):
        ran(f"right{number:05d}")
    holds = platform.job("holds00001")
    holds = replace(holds, spec=replace(holds.spec, max_seconds=None))
    submit(platform.database, holds)
    platform.start(holds)
    platform.now += 5.0
    assert not unknown()


def test_thousands_of_tiny_jobs_of_one_person_do_not_teach_how_long_others_run() -> None:
    long = [Run("zelda", "train", "1x8", 36_000.0 + n) for n in range(500)]
    times = RunTimes(long).with_more(Run("mallory", f"tiny{n}", "1x1", 0.1) for n in range(5 * MOST_RUNS))
    known = Length(a_job(cards=8, owner="zelda", name="train"), times)
    other = Length(a_job(cards=8, owner="yves", name="first"), times)
    assert len(times) == MOST_RUNS
    assert known.draw(0.1) >= 36_000.0
    assert other.draw(0.2) >= 36_000.0  # of its shape


def test_who_is_alone_is_remembered_in_full() -> None:
    times = RunTimes(Run("ann", "train", "1x1", float(n)) for n in range(MOST_RUNS + 10))
    length = Length(a_job(cards=1, owner="ann", name="train"), times)
    assert len(times) == MOST_RUNS
    assert length.draw(0.0) == 10.0
