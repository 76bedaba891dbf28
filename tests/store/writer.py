"""A process that writes, for tests that race several of them: `python -m tests.store.writer URL NAME TURNS`.

Each turn reads the shared counter job and saves it with the next priority number in its story, as control would; a
stale save is tried again. It also submits a job of its own, and admits into a quota of eight only while there is room.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import sqlalchemy as sa
from tests.draw import a_job

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import State, StoryEvent
from gpuyard.store import facts, workloads
from gpuyard.store.database import Database

COUNTER = "counter001"
QUOTA = 8
ADMITTED = "test.admitted"


def main(url: str, name: str, turns: int) -> None:
    database = Database.open(url)
    for turn in range(turns):
        with database.write() as conn:
            workloads.insert(conn, a_job(f"{name}{turn:08d}"), (), idempotency_key=None, request_digest=None)
        while not count(database, name):
            pass
        with database.write() as conn:
            admit(conn)
    database.close()


def count(database: Database, name: str) -> bool:
    """Read, think, save: between the two anybody may have been faster."""
    with database.read() as conn:
        job = workloads.get(conn, COUNTER)
    assert job is not None
    after = replace(job, version=job.version + 1, not_before=job.not_before + 1)
    line = StoryEvent(0.0, because(Code.ADOPTED, attempt=0), State.QUEUED, by=name)
    with database.write() as conn:
        return workloads.save(conn, job, after, [line])


def admit(conn: sa.Connection) -> None:
    admitted = int(facts.get(conn, ADMITTED) or 0)
    if admitted < QUOTA:
        facts.put(conn, ADMITTED, str(admitted + 1))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
