"""What is remembered of a workload, and who may change it when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job
from tests.store.lines import RUNNING, launching, placing, run_to_the_end, seeing, submit, submitted, take

from gpuyard.domain.errors import Conflict
from gpuyard.domain.lifecycle import LaunchFailed, StopAsked, advance
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import Cards, Resources
from gpuyard.domain.workload import (
    Cause,
    Life,
    Mount,
    Port,
    ReplicaId,
    RoleSpec,
    Seen,
    Spec,
    State,
    StoryEvent,
    Together,
    Verdict,
    Wanted,
    Where,
    Workload,
)
from gpuyard.store import codec, workloads
from gpuyard.store.database import Database
from gpuyard.store.feed import changes_since, newest_change


def read(database: Database, id: str) -> Workload:
    with database.read() as conn:
        found = workloads.get(conn, id)
    assert found is not None
    return found


def test_everything_a_job_asked_for_is_read_back_as_it_was_written(database: Database) -> None:
    worker = RoleSpec(
        "worker",
        ("python", "训练.py", "--text", 'a "b"\n\x00\ud800'),
        3,
        Resources(cpu_milli=500, memory=1 << 40, shm=0, cards=Cards("ascend", 250, ("910B", "910C"))),
        image="pytorch:2",
        env=(("A", ""), ("B", "ü")),
        mounts=(Mount("home", "/data", "sub", True), Mount("share", "/s")),
        ports=(Port(6006, "tb"), Port(1)),
        where=Where(("a", "b"), (("disk", "ssd"), ("zone", "北"))),
    )
    spec = Spec(
        "train",
        (worker, RoleSpec("ps", ("true",))),
        priority=1,
        preemptible=True,
        retries={Cause.OOM: 7},
        max_seconds=0.5,
        grace_seconds=0.0,
        workdir="ab" * 32,
        together=Together.SPREAD,
        checkpoint="out/保存",
    )
    job = replace(a_job(at=1_763_000_000.123456), spec=spec)
    submit(database, job)
    assert read(database, job.id) == job


def test_what_is_left_at_its_default_takes_no_room_in_a_row_and_reads_well_without(database: Database) -> None:
    job = a_job(cards=1)
    text = codec.spec_to_text(job.spec)
    assert not {"models", "where", "together", "checkpoint"} & set(text.replace('"', " ").split())
    assert codec.spec_from_text(text) == job.spec


def test_when_work_was_saved_is_read_back_and_news_of_it_alone_are_written(database: Database) -> None:
    job = a_job(cards=1)
    submit(database, job)
    job = take(database, job, placing(job))
    job = take(database, job, launching(job))
    job = take(database, job, seeing(job, RUNNING))
    assert job.attempt is not None
    for saved_at, step in ((20.5, 1 << 40), (30.5, None)):
        attempt = replace(job.attempt, saved_at=saved_at, saved_step=step)
        after = replace(job, attempt=attempt, version=job.version + 1)
        with database.write() as conn:
            assert workloads.save(conn, job, after, ())
        job = after
        assert read(database, job.id) == job
        with database.read() as conn:
            assert workloads.attempts(conn, job.id) == [attempt]


def test_an_attempt_with_its_replicas_endings_and_handles_is_read_back(database: Database) -> None:
    job = a_job(cards=1, replicas=3)
    submit(database, job)
    job = take(database, job, placing(job))
    job = take(database, job, launching(job))
    job = take(database, job, seeing(job, RUNNING))
    assert read(database, job.id) == job
    failed = because(Code.EXIT_CODE, exit_code=3, replica="worker-1")
    look = Seen(Life.ENDED, 3, Cause.EXIT, failed, 11.5, 12.0)
    assert job.attempt is not None
    event = seeing(job, RUNNING)
    event.seen[job.attempt.replicas[1].id] = look  # type: ignore[index]
    job = take(database, job, event)
    assert job.attempt is not None
    assert job.attempt.ending is not None
    assert job.attempt.ending.verdict is Verdict.FAILED
    assert read(database, job.id) == job


def test_replicas_keep_the_order_of_their_roles(database: Database) -> None:
    roles = (RoleSpec("worker", ("true",), 12), RoleSpec("ps", ("true",), 2))
    job = replace(a_job(), spec=Spec("gang", roles))
    submit(database, job)
    job = take(database, job, placing(job))
    assert job.attempt is not None
    expected = [ReplicaId(job.id, 1, role.name, index) for role in roles for index in range(role.replicas)]
    found = read(database, job.id).attempt
    assert found is not None
    assert [replica.id for replica in found.replicas] == expected


def test_every_attempt_is_kept_and_the_newest_is_part_of_the_workload(database: Database) -> None:
    job = a_job()
    submit(database, job)
    job = take(database, job, placing(job))
    first = ReplicaId(job.id, 1, "worker", 0)
    job = take(database, job, LaunchFailed(first, "no"))
    job = take(database, job, seeing(job, Seen(Life.ABSENT)))
    assert job.state is State.QUEUED
    job = take(database, job, placing(job))
    with database.read() as conn:
        kept = workloads.attempts(conn, job.id)
    assert [attempt.number for attempt in kept] == [1, 2]
    assert kept[-1] == job.attempt == read(database, job.id).attempt
    assert kept[0].ended_at == 10.0


def test_a_stale_save_changes_nothing(database: Database) -> None:
    job = a_job()
    submit(database, job)
    with database.write() as conn:
        assert workloads.want(conn, job.id, Wanted.STOP, "ann", 5.0)
    step = advance(job, placing(job), 6.0)
    with database.write() as conn:
        before = newest_change(conn)
        assert not workloads.save(conn, job, step.workload, step.story)
        assert newest_change(conn) == before
        assert len(workloads.story(conn, job.id)) == 1
    stored = read(database, job.id)
    assert (stored.state, stored.wanted, stored.attempt) == (State.QUEUED, Wanted.STOP, None)


def test_a_batch_saves_the_fresh_and_names_the_stale(database: Database) -> None:
    jobs = [a_job(f"job{number:07d}") for number in range(900)]
    submit(database, *jobs)
    with database.write() as conn:
        for job in jobs[::3]:
            workloads.want(conn, job.id, Wanted.PAUSE, "ann", 5.0)
    steps = [(job, step.workload, step.story) for job in jobs for step in [advance(job, placing(job), 6.0)]]
    unknown = a_job("ghost00001")
    steps.append((unknown, replace(unknown, version=2), ()))
    with database.write() as conn:
        results = workloads.save_many(conn, steps)
    assert results == [number % 3 != 0 for number in range(900)] + [False]
    with database.read() as conn:
        placed = [job.id for job in workloads.live(conn) if job.state is State.PLACED]
    assert len(placed) == 600


def test_two_steps_of_one_workload_in_one_batch_are_taken_in_order(database: Database) -> None:
    job = a_job()
    submit(database, job)
    first = advance(job, placing(job), 1.0)
    second = advance(first.workload, launching(first.workload), 2.0)
    steps = [
        (job, first.workload, first.story),
        (first.workload, second.workload, second.story),
        (job, first.workload, ()),
    ]
    with database.write() as conn:
        assert workloads.save_many(conn, steps) == [True, True, False]
    assert read(database, job.id) == second.workload


def test_a_change_that_keeps_its_version_is_a_mistake_and_is_refused(database: Database) -> None:
    job = a_job()
    submit(database, job)
    with pytest.raises(ValueError, match="version"), database.write() as conn:
        workloads.save(conn, job, replace(job, state=State.FAILED), ())
    assert read(database, job.id) == job


def test_a_line_can_be_added_to_the_story_without_a_change(database: Database) -> None:
    job = a_job()
    submit(database, job)
    line = StoryEvent(7.0, because(Code.IMAGE_NOT_USED, image="x", engine="process"), State.QUEUED)
    with database.write() as conn:
        assert workloads.save(conn, job, job, [line])
    with database.read() as conn:
        assert workloads.story(conn, job.id) == [*submitted(job), line]


def test_the_story_is_in_the_order_in_which_things_happened(database: Database) -> None:
    job = a_job()
    submit(database, job)
    run_to_the_end(database, job)
    with database.read() as conn:
        told = [line.reason.code for line in workloads.story(conn, job.id)]
    assert told == [Code.SUBMITTED, Code.PLACED, Code.STARTING, Code.RUNNING, Code.SUCCEEDED]


def test_a_failed_transaction_leaves_neither_state_nor_story_nor_news(database: Database) -> None:
    job = a_job()
    submit(database, job)
    position = database.feed.position()
    step = advance(job, placing(job), 6.0)

    def save_and_fail() -> None:
        with database.write() as conn:
            workloads.save(conn, job, step.workload, step.story)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        save_and_fail()
    assert read(database, job.id) == job
    assert database.feed.position() == position
    with database.read() as conn:
        assert workloads.story(conn, job.id) == submitted(job)


def test_the_same_key_of_the_same_owner_is_one_job_by_law_of_the_database(database: Database) -> None:
    first, second, other = a_job("job0000001"), a_job("job0000002"), a_job("job0000003", owner="bob")
    with database.write() as conn:
        workloads.insert(conn, first, (), idempotency_key="k", request_digest="d")
        workloads.insert(conn, other, (), idempotency_key="k", request_digest="e")
    with pytest.raises(Conflict), database.write() as conn:
        workloads.insert(conn, second, (), idempotency_key="k", request_digest="d")
    with database.read() as conn:
        assert workloads.find_by_key(conn, "ann", "k") == (first.id, "d")
        assert workloads.find_by_key(conn, "bob", "k") == (other.id, "e")
        assert workloads.find_by_key(conn, "ann", "\x00") is None
        assert workloads.get(conn, second.id) is None


def test_jobs_without_a_key_are_all_different(database: Database) -> None:
    submit(database, a_job("job0000001"), a_job("job0000002"))
    with database.read() as conn:
        assert len(workloads.live(conn)) == 2


def test_what_is_wanted_is_written_once_and_refused_for_what_has_ended(database: Database) -> None:
    job = a_job()
    submit(database, job)
    with database.write() as conn:
        assert workloads.want(conn, job.id, Wanted.STOP, "bob", 5.0)
        assert workloads.want(conn, job.id, Wanted.STOP, "eve", 6.0)
        assert not workloads.want(conn, "ghost00001", Wanted.STOP, "bob", 5.0)
    stored = read(database, job.id)
    assert (stored.wanted, stored.wanted_by, stored.version) == (Wanted.STOP, "bob", 2)
    take(database, stored, StopAsked("bob"))
    with database.write() as conn:
        assert not workloads.want(conn, job.id, Wanted.RUN, "bob", 7.0)


def test_why_it_waits_is_written_without_a_new_version_and_told_once_per_kind(database: Database) -> None:
    job, gone = a_job(), a_job("job0000002")
    submit(database, job, gone)
    placed = take(database, gone, placing(gone))
    position = database.feed.position()
    for used in (7, 8):
        with database.write() as conn:
            reason = because(Code.OVER_QUOTA, who="vision", used=used)
            workloads.set_reasons(conn, {job.id: reason, gone.id: reason, "ghost00001": reason}, 20.0)
    stored = read(database, job.id)
    assert stored == replace(job, reason=because(Code.OVER_QUOTA, who="vision", used=8))
    assert read(database, gone.id) == placed
    assert database.feed.position() == position
    with database.read() as conn:
        lines = workloads.story(conn, job.id)[1:]
    assert lines == [StoryEvent(20.0, because(Code.OVER_QUOTA, who="vision", used=7), State.QUEUED)]


def test_a_retry_is_told_once_and_what_comes_after_its_pause_is_told_too(database: Database) -> None:
    retry = because(Code.RETRY, number=1, limit=2, seconds=4.0)
    job = replace(a_job(), reason=retry)
    submit(database, job)
    for reason in (because(Code.BACK_OFF, until=9.0), because(Code.BUSY, asked=1), because(Code.BACK_OFF, until=30.0)):
        with database.write() as conn:
            workloads.set_reasons(conn, {job.id: reason}, 20.0)
        assert read(database, job.id).reason == reason
    with database.read() as conn:
        told = [line.reason.code for line in workloads.story(conn, job.id)[1:]]
    assert told == [Code.BUSY, Code.BACK_OFF]


def test_live_work_is_all_that_has_not_ended_oldest_first(database: Database) -> None:
    jobs = [a_job(f"job{number:07d}", at=100.0 - number) for number in range(4)]
    submit(database, *jobs)
    run_to_the_end(database, jobs[0])
    started = take(database, jobs[1], placing(jobs[1]))
    with database.read() as conn:
        assert workloads.live(conn) == [jobs[3], jobs[2], started]


def test_the_query_for_live_work_reads_the_index_of_live_work(database: Database) -> None:
    ended = [replace(a_job(f"end{n:07d}"), state=State.SUCCEEDED, ended_at=5.0) for n in range(3000)]
    submit(database, a_job(), *ended)
    if database.dialect == "postgresql":
        with database.exclusive() as conn:
            conn.exec_driver_sql("ANALYZE workloads")
    with database.read() as conn:
        query = workloads.live_query().compile(dialect=conn.dialect)
        prefix = "EXPLAIN QUERY PLAN " if database.dialect == "sqlite" else "EXPLAIN "
        plan = " ".join(str(row) for row in conn.exec_driver_sql(prefix + str(query)))
    assert "ix_workloads_live" in plan


def test_many_are_read_in_the_order_asked_for_and_the_unknown_are_left_out(database: Database) -> None:
    jobs = [a_job(f"job{number:07d}") for number in range(1000)]
    submit(database, *jobs)
    asked = [job.id for job in reversed(jobs)]
    with database.read() as conn:
        assert workloads.get_many(conn, [*asked, "ghost00001"]) == list(reversed(jobs))
        assert workloads.get_many(conn, []) == []
        assert workloads.get(conn, "a\x00b") is None


def test_what_ended_long_ago_is_forgotten_with_all_that_belongs_to_it(database: Database) -> None:
    old, young, alive = a_job("job0000001"), a_job("job0000002"), a_job("job0000003")
    submit(database, old, young, alive)
    run_to_the_end(database, old)
    run_to_the_end(database, young)
    position = database.feed.position()
    with database.write() as conn:
        assert workloads.delete_ended_before(conn, 12.0, 10) == []
        assert workloads.delete_ended_before(conn, 13.0, 1) == [old.id]
    with database.read() as conn:
        assert [change.id for change in changes_since(conn, position)] == [old.id]
        assert workloads.get(conn, old.id) is None
        assert workloads.story(conn, old.id) == []
        assert workloads.attempts(conn, old.id) == []
        assert workloads.get(conn, young.id) is not None
        assert workloads.live(conn) == [alive]


def test_the_shipped_folders_still_named_by_a_workload_are_known(database: Database) -> None:
    job = a_job("job0000001", env=(("X", '"workdir":"no"'),))
    shipped = replace(a_job("job0000002"), spec=replace(job.spec, workdir="ab" * 32))
    submit(database, job, shipped)
    with database.read() as conn:
        assert workloads.workdirs_named(conn) == {("ann", "ab" * 32)}
