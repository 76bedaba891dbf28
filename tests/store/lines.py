"""Small pieces the store's tests share: a submitted job, and the steps of its way."""

from __future__ import annotations

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.lifecycle import Event, Launched, Observed, Placed, Step, advance
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Life, Seen, State, StoryEvent, Workload
from gpuyard.store import workloads
from gpuyard.store.database import Database


def submitted(job: Workload) -> list[StoryEvent]:
    return [StoryEvent(job.submitted_at, because(Code.SUBMITTED, by=job.owner), State.QUEUED, by=job.owner)]


def submit(database: Database, *jobs: Workload) -> None:
    with database.write() as conn:
        for job in jobs:
            workloads.insert(conn, job, submitted(job), idempotency_key=None, request_digest=None)


def placing(job: Workload) -> Placed:
    places = [(role.name, index) for role in job.spec.roles for index in range(role.replicas)]
    return Placed({place: Allotment("a", 100, 1 << 30, 0, "nvidia", (CardShare(0, 1000),)) for place in places})


def launching(job: Workload) -> Launched:
    assert job.attempt is not None
    return Launched({replica.id: f"handle of {replica.id}" for replica in job.attempt.replicas})


def seeing(job: Workload, seen: Seen) -> Observed:
    assert job.attempt is not None
    return Observed({replica.id: seen for replica in job.attempt.replicas})


RUNNING = Seen(Life.RUNNING, started_at=11.5)
ENDED_WELL = Seen(Life.ENDED, exit_code=0, started_at=11.5, ended_at=12.25)


def take(database: Database, job: Workload, event: Event, now: float = 10.0) -> Workload:
    """Advance a job and save it; it must be fresh."""
    step: Step = advance(job, event, now)
    with database.write() as conn:
        assert workloads.save(conn, job, step.workload, step.story)
    return step.workload


def run_to_the_end(database: Database, job: Workload) -> Workload:
    job = take(database, job, placing(job))
    job = take(database, job, launching(job))
    job = take(database, job, seeing(job, RUNNING))
    return take(database, job, seeing(job, ENDED_WELL), now=12.5)
