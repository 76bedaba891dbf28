"""A workload's way through control, on both databases, with the simulated engine and a clock moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.people import Quota
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Cause, State, Wanted
from gpuyard.engines.simulated import virtual_nodes
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Database


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8), a_node("b", 8)])) as yard:
        yield yard


def sim(seconds: float = 10, **more: object) -> tuple[tuple[str, str], ...]:
    settings = {"seconds": seconds, **more}
    return tuple((f"YARD_SIM_{name.upper()}", str(value)) for name, value in settings.items())


def test_a_job_runs_and_succeeds_and_its_story_tells_it(yard: Yard) -> None:
    id = yard.submit(a_job(cards=2, env=sim(10)))
    yard.pass_time()
    assert yard.state(id) is State.RUNNING
    yard.pass_time(11)
    assert yard.state(id) is State.SUCCEEDED
    assert yard.told(id) == [Code.SUBMITTED, Code.PLACED, Code.STARTING, Code.RUNNING, Code.SUCCEEDED]


def test_a_failing_job_fails_with_its_exit_code(yard: Yard) -> None:
    id = yard.submit(a_job(env=sim(1, exit=3)))
    yard.pass_time()
    yard.pass_time(2)
    assert (yard.state(id), yard.get(id).exit_code, yard.get(id).reason.code) == (State.FAILED, 3, Code.EXIT_CODE)


def test_stop_ends_a_running_job_and_frees_its_cards(yard: Yard) -> None:
    id = yard.submit(a_job("first00001", cards=8, replicas=2, env=sim(1000)))
    second = yard.submit(a_job("second0001", cards=8, env=sim(1000)))
    yard.pass_time()
    assert yard.state(second) is State.QUEUED
    assert yard.get(second).reason.code is Code.BUSY
    yard.want(id, Wanted.STOP)
    yard.pass_time()
    assert yard.state(id) is State.STOPPED
    assert yard.state(second) is State.RUNNING


def test_a_deaf_job_is_ended_after_its_grace_time(yard: Yard) -> None:
    id = yard.submit(a_job(env=sim(1000, deaf=1)))
    yard.pass_time()
    yard.want(id, Wanted.STOP)
    yard.pass_time()
    assert yard.state(id) is State.STOPPING
    yard.pass_time(11)
    assert yard.state(id) is State.STOPPED


def test_pause_frees_the_cards_and_keeps_the_place_and_resume_is_not_a_retry(yard: Yard) -> None:
    id = yard.submit(a_job(cards=8, replicas=2, env=sim(1000)))
    yard.pass_time()
    yard.want(id, Wanted.PAUSE)
    yard.pass_time()
    assert yard.state(id) is State.PAUSED
    other = yard.submit(a_job("other00001", cards=8, replicas=2, env=sim(20)))
    yard.pass_time(1)
    assert yard.state(other) is State.RUNNING
    behind = yard.submit(a_job("behind0001", cards=8, replicas=2, env=sim(5)))
    yard.want(id, Wanted.RUN)
    yard.pass_time(1)
    assert yard.state(id) is State.QUEUED
    yard.pass_time(30)
    assert (yard.state(id), yard.state(behind)) == (State.RUNNING, State.QUEUED)
    assert yard.get(id).attempts_made == 2
    assert not yard.get(id).retries_used


def test_a_lost_node_is_retried_elsewhere_with_back_off(yard: Yard) -> None:
    id = yard.submit(a_job(cards=8, env=sim(1000)))
    yard.pass_time()
    attempt = yard.get(id).attempt
    assert attempt is not None
    yard.engine.faults.lost_nodes.add(attempt.replicas[0].allotment.node)
    yard.pass_time()
    assert yard.state(id) is State.QUEUED
    assert yard.get(id).reason.code is Code.BACK_OFF
    yard.pass_time(3)
    assert yard.state(id) is State.RUNNING
    assert yard.get(id).retries_used == {Cause.LOST: 1}


def test_a_refused_launch_is_retried_and_an_unsure_one_is_asked_again(yard: Yard) -> None:
    yard.engine.faults.refuse_launches = 1
    id = yard.submit(a_job(env=sim(1000)))
    yard.pass_time()
    assert Code.LAUNCH_FAILED in yard.told(id)
    yard.pass_time(3)
    assert yard.state(id) is State.RUNNING
    yard.engine.faults.unsure_launches = 2
    unsure = yard.submit(a_job("unsure0001", env=sim(1000)))
    yard.pass_time(0, steps=6)
    assert yard.state(unsure) is State.RUNNING
    assert yard.get(unsure).attempts_made == 1


def test_one_failed_replica_ends_the_whole_gang_and_is_named(yard: Yard) -> None:
    id = yard.submit(a_job(cards=8, replicas=2, env=sim(1000)))
    yard.pass_time()
    attempt = yard.get(id).attempt
    assert attempt is not None
    yard.engine.faults.vanish.add(attempt.replicas[1].id)
    yard.pass_time()
    assert yard.get(id).retries_used == {Cause.LOST: 1}
    lost = [line for line in yard.story(id) if line.reason.code is Code.SUPERVISOR_LOST]
    assert lost[0].reason.facts["replica"] == "worker-1"


def test_the_maximum_duration_ends_an_attempt(yard: Yard) -> None:
    job = a_job(env=sim(1000))
    id = yard.submit(replace(job, spec=replace(job.spec, max_seconds=60.0)))
    yard.pass_time()
    yard.pass_time(61)
    assert (yard.state(id), yard.get(id).reason.code) == (State.FAILED, Code.TIME_UP)


def test_a_new_control_adopts_what_runs(yard: Yard) -> None:
    id = yard.submit(a_job(cards=8, env=sim(100)))
    yard.pass_time()
    yard.crash()
    yard.pass_time(1)
    assert yard.state(id) is State.RUNNING
    assert Code.ADOPTED in yard.told(id)
    yard.pass_time(100)
    assert yard.state(id) is State.SUCCEEDED
    assert yard.get(id).attempts_made == 1


def test_a_quota_set_while_others_wait_counts_at_once(yard: Yard) -> None:
    yard.set_quota(Quota("vision", "nvidia", 0))
    id = yard.submit(a_job(cards=1))
    yard.pass_time()
    assert yard.get(id).reason.code is Code.QUOTA_NEVER
    yard.set_quota(Quota("vision", "nvidia", 1000))
    yard.pass_time()
    assert yard.state(id) is State.RUNNING


def test_work_that_nobody_wants_is_swept_away(yard: Yard) -> None:
    id = yard.submit(a_job(env=sim(1000)))
    yard.pass_time()
    with yard.database.write() as conn:
        before = yard.get(id)
        gone = replace(before, state=State.FAILED, version=before.version + 1)
        workload_rows.save_many(conn, [(before, gone, [])])
    yard.pass_time()
    assert not list(yard.engine.sweep([]))


def test_simulated_cards_are_labelled_in_the_story(database: Database) -> None:
    with closing(Yard(database, virtual_nodes(1, 8))) as yard:
        id = yard.submit(a_job(cards=2))
        yard.pass_time()
        assert Code.CARDS_SIMULATED in yard.told(id)
