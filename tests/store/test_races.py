"""Several processes write at once: nothing is lost, nothing is locked out, no quota is passed, no change is missed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.draw import a_job
from tests.store.lines import submit
from tests.store.writer import ADMITTED, COUNTER, QUOTA

from gpuyard.store import facts, workloads
from gpuyard.store.database import Database
from gpuyard.store.feed import changes_since

WRITERS, TURNS = 4, 40
PROJECT = Path(__file__).parents[2]


def test_racing_processes_lose_no_update_pass_no_quota_and_are_never_locked_out(
    database: Database, database_url: str
) -> None:
    submit(database, a_job(COUNTER))
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.writer", database_url, f"w{number}", str(TURNS)],
            cwd=PROJECT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    followed, position = follow(database, writers)
    errors = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS, errors
    with database.read() as conn:
        counter = workloads.get(conn, COUNTER)
        lines = workloads.story(conn, COUNTER)
        live = {job.id for job in workloads.live(conn)}
        admitted = facts.get(conn, ADMITTED)
        followed += [change.id for change in changes_since(conn, position)]
    assert counter is not None
    assert counter.version == 1 + WRITERS * TURNS
    assert counter.not_before == WRITERS * TURNS
    assert len(lines) == 1 + WRITERS * TURNS
    assert len(live) == 1 + WRITERS * TURNS
    assert admitted == str(QUOTA)
    assert sorted(followed) == sorted([*live, *[COUNTER] * (WRITERS * TURNS)])


def follow(database: Database, writers: list[subprocess.Popen[str]]) -> tuple[list[str], int]:
    """Follow the feed while they write, as control does; every change must be met exactly once."""
    seen: list[str] = []
    position = 0
    while any(writer.poll() is None for writer in writers):
        database.feed.wait_for_change(position, 0.2)
        with database.read() as conn:
            for change in changes_since(conn, position):
                assert change.seq > position
                seen.append(change.id)
                position = change.seq
    return seen, position


def test_nothing_acknowledged_is_lost_when_writers_are_killed(database: Database, database_url: str) -> None:
    code = (
        "import sys; from gpuyard.store.database import Database; from tests.store.lines import submit; "
        "from tests.draw import a_job; d = Database.open(sys.argv[1])\n"
        "for n in range(10**6):\n"
        "    submit(d, a_job(f'{sys.argv[2]}{n:07d}')); print(f'{sys.argv[2]}{n:07d}', flush=True)"
    )
    acknowledged: list[str] = []
    for number in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, database_url, f"k{number:02d}"],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
        )
        with writer:
            assert writer.stdout is not None
            acknowledged += [writer.stdout.readline().strip() for _ in range(7 + 11 * number)]
            writer.kill()
            acknowledged += [line.strip() for line in writer.stdout if line.endswith("\n")]
    with database.read() as conn:
        live = workloads.live(conn)
        assert {job.id for job in live} >= set(acknowledged)
        assert all(len(workloads.story(conn, job.id)) == 1 for job in live), "state and story come together"
