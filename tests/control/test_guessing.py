"""Guesses are written down, and what became of them: the next ones are corrected by it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job, a_node
from tests.store.lines import submit, take

from gpuyard.control.guessing import Guesser
from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.lifecycle import Launched, Observed, Placed, StopAsked
from gpuyard.domain.workload import Life, Seen, Workload
from gpuyard.forecast.calibration import OPEN_AT_MOST, Calibration, Guess
from gpuyard.forecast.look import Spread
from gpuyard.store import guesses, nodes
from gpuyard.store.database import Database
from gpuyard.world.outlook import Outlook
from gpuyard.world.view import View


class Platform:
    """One machine with eight cards, a clock that is set by hand, and the thread's work done when it is asked for."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1000.0
        with database.write() as conn:
            nodes.save(conn, [a_node("a", 8)], 0.0)
        self.outlook = self.anew()

    def anew(self) -> Outlook:
        view = View(self.database, lambda: self.now)
        self.outlook = Outlook(self.database, view, lambda: self.now)
        self.guesser = Guesser(self.database, self.outlook, view.waiting)
        return self.outlook

    def submit(self, id: str, seconds: float = 600.0) -> Workload:
        job = self.job(id, seconds)
        submit(self.database, job)
        return job

    def job(self, id: str, seconds: float = 600.0) -> Workload:
        job = a_job(id, cards=8, cpu=1, memory_gib=1, at=self.now)
        return replace(job, spec=replace(job.spec, max_seconds=seconds, grace_seconds=0.0))

    def start(self, job: Workload) -> Workload:
        cards = tuple(CardShare(index, 1000) for index in range(8))
        job = take(
            self.database, job, Placed({("worker", 0): Allotment("a", 1000, 1 << 30, 0, "nvidia", cards)}), self.now
        )
        job = take(self.database, job, Launched({}), self.now)
        return self.see(job, Seen(Life.RUNNING, started_at=self.now))

    def end(self, job: Workload) -> Workload:
        return self.see(job, Seen(Life.ENDED, exit_code=0, ended_at=self.now))

    def see(self, job: Workload, seen: Seen) -> Workload:
        assert job.attempt is not None
        return take(self.database, job, Observed({replica.id: seen for replica in job.attempt.replicas}), self.now)

    def written(self) -> dict[str, float | None]:
        with self.database.read() as conn:
            return {row.workload: row.waited for row in guesses.all(conn)}


@pytest.fixture
def platform(database: Database) -> Platform:
    return Platform(database)


def test_a_guess_is_written_for_what_waits_and_settled_when_it_starts(platform: Platform) -> None:
    first = platform.start(platform.submit("runs000001"))
    waits = platform.submit("waits00001")
    platform.guesser.look()
    assert platform.written() == {"waits00001": None}
    platform.guesser.look()  # once is enough
    platform.now += 450.0
    platform.end(first)
    platform.start(waits)
    platform.guesser.look()
    assert platform.written() == {"waits00001": 450.0}


def test_what_leaves_the_queue_without_a_start_teaches_nothing(platform: Platform) -> None:
    platform.start(platform.submit("runs000001"))
    waits = platform.submit("waits00001")
    platform.guesser.look()
    take(platform.database, waits, StopAsked("ann"), platform.now)
    platform.guesser.look()
    assert platform.written() == {}


def test_what_was_learned_outlives_a_restart_and_corrects_the_next_guess(platform: Platform) -> None:
    platform.start(platform.submit("runs000001"))
    asked = platform.submit("waits00001")
    before = platform.outlook.one(asked).start
    with platform.database.write() as conn:  # everybody waited only half as long as was seen
        rows = [guesses.GuessRow(f"k{n:09d}", 10.0 + n, 600.0, 600.0, 1200.0, 270.0) for n in range(40)]
        guesses.add(conn, rows)
    after = platform.anew().one(asked).start
    assert before is not None
    assert after is not None
    assert before.middle == pytest.approx(1600.0)
    assert after.middle == pytest.approx(1270.0, abs=5.0)
    assert after.late is not None
    assert before.late is not None
    assert after.late < before.late


def test_a_queue_that_moves_more_slowly_than_guessed_is_heard_of_while_it_waits(platform: Platform) -> None:
    platform.start(platform.submit("runs000001"))
    jobs = [platform.job(f"waits{number:05d}") for number in range(60)]
    submit(platform.database, *jobs)
    with platform.database.write() as conn:
        kept = [guesses.GuessRow(f"k{n:09d}", 10.0 + n, 600.0, 600.0, 900.0, 600.0) for n in range(40)]
        guesses.add(conn, [*kept, *(guesses.GuessRow(job.id, 990.0, 600.0, 600.0, 900.0, None) for job in jobs)])
        written = [Guess(*row) for row in guesses.all(conn)]
    outlook = platform.anew()
    asked = outlook.one(jobs[-1]).start
    assert asked is not None
    assert asked.late is not None
    spread = Spread(600.0, 600.0)
    assert outlook.calibration(platform.now).corrected(spread).late > 2 * (
        Calibration(written, platform.now).corrected(spread).late
    )


def test_no_more_guesses_wait_for_their_outcome_than_teach_something(platform: Platform) -> None:
    platform.start(platform.submit("runs000001"))
    submit(platform.database, *(platform.job(f"waits{number:05d}") for number in range(OPEN_AT_MOST + 30)))
    platform.guesser.look()
    platform.guesser.look()
    assert len(platform.written()) == OPEN_AT_MOST
