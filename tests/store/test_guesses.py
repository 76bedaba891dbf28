"""What is remembered for telling when work starts."""

from __future__ import annotations

from tests.draw import a_job, renamed
from tests.store.lines import ENDED_WELL, RUNNING, launching, placing, seeing, submit

from gpuyard.domain.lifecycle import Event, StopAsked, advance
from gpuyard.domain.workload import Workload
from gpuyard.store import guesses, workloads
from gpuyard.store.database import Database
from gpuyard.store.guesses import GuessRow


def step(database: Database, job: Workload, event: Event, now: float) -> Workload:
    taken = advance(job, event, now)
    with database.write() as conn:
        assert workloads.save(conn, job, taken.workload, taken.story)
    return taken.workload


def test_only_what_ran_and_is_over_teaches_how_long_work_runs(database: Database) -> None:
    ran, stopped, waits = (renamed(a_job(id=f"k{n}aaaaaaaa"), name) for n, name in enumerate(("ran", "gone", "new"), 1))
    submit(database, ran, stopped, waits)
    ran = step(database, ran, placing(ran), 11.0)
    ran = step(database, ran, launching(ran), 11.0)
    ran = step(database, ran, seeing(ran, RUNNING), 11.5)
    step(database, ran, seeing(ran, ENDED_WELL), 12.25)
    step(database, stopped, StopAsked("ann"), 12.0)
    with database.read() as conn:
        found = guesses.ended_runs(conn, 0.0, 10)
        assert [(one.workload, one.owner, one.spec.name, one.seconds) for one in found] == [
            (ran.id, ran.owner, "ran", 0.75)
        ]
        assert guesses.ended_runs(conn, found[0].ended_at + 1.0, 10) == []


def test_a_guess_is_kept_until_it_is_known_how_long_it_waited_and_what_never_started_is_forgotten(
    database: Database,
) -> None:
    first, second = GuessRow("k1", 10.0, 5.0, 9.0, 12.0, None), GuessRow("k2", 11.0, 6.0, 8.0, 13.0, None)
    with database.write() as conn:
        guesses.add(conn, [second, first])
        guesses.add(conn, [])
    with database.write() as conn:
        assert guesses.all(conn) == [first, second]
        guesses.settle(conn, {"k1": 7.5, "k2": None})
        assert guesses.all(conn) == [first._replace(waited=7.5)]


def test_only_the_newest_guesses_are_kept(database: Database) -> None:
    many = [GuessRow(f"k{number:04d}", float(number), 1.0, 2.0, 3.0, 1.5) for number in range(guesses.KEPT + 20)]
    with database.write() as conn:
        guesses.add(conn, many)
        guesses.forget_old(conn)
        assert guesses.all(conn) == many[20:]
