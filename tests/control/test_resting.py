"""Dev environments that nobody uses, and timers: warned of, then stopped, and started again by their owner only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.test_control import sim
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.control.resting import BusyWatch
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import CardUse, Usage
from gpuyard.domain.workload import Kind, ReplicaId, State, Wanted
from gpuyard.store import workloads as rows
from gpuyard.store import workplaces
from gpuyard.store.database import Database


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8)])) as yard:
        yield yard


def an_env(yard: Yard, *, idle: float | None = None, stop_in: float | None = None, cards: float = 1) -> str:
    job = a_job(cards=cards, env=sim(100_000))
    id = yard.submit(replace(job, spec=replace(job.spec, kind=Kind.ENV, idle_seconds=idle)))
    with yard.database.write() as conn:
        workplaces.add(conn, id, None if stop_in is None else yard.time + stop_in)
    yard.pass_time()
    assert yard.state(id) is State.RUNNING
    return id


def test_one_that_nobody_uses_is_warned_then_stopped_and_its_cards_are_free(yard: Yard) -> None:
    id = an_env(yard, idle=1000.0, cards=8)
    other = yard.submit(a_job("second0001", cards=8, env=sim(1000)))
    yard.pass_time(700)
    assert Code.IDLE_SOON not in yard.told(id)
    yard.pass_time(60)
    assert yard.told(id).count(Code.IDLE_SOON) == 1
    yard.pass_time(100)
    assert yard.told(id).count(Code.IDLE_SOON) == 1
    yard.pass_time(200, steps=8)
    assert (yard.state(id), yard.get(id).reason.code) == (State.PAUSED, Code.IDLE)
    assert yard.state(other) is State.RUNNING


def test_work_through_browser_or_ssh_keeps_it_running_and_is_warned_of_anew(yard: Yard) -> None:
    id = an_env(yard, idle=1000.0)
    yard.pass_time(800)
    with yard.database.write() as conn:
        workplaces.touch(conn, id, yard.time)
    yard.pass_time(700)
    assert yard.state(id) is State.RUNNING
    yard.pass_time(100)
    assert yard.told(id).count(Code.IDLE_SOON) == 2


def test_what_runs_in_it_keeps_it_running(yard: Yard) -> None:
    id = an_env(yard, idle=1000.0)
    replica = ReplicaId(id, 1, "worker", 0)
    for cpu in range(0, 3000, 500):
        yard.control.busy.note(yard.time, {replica: Usage(float(cpu), 1)})
        yard.pass_time(500)
    assert yard.state(id) is State.RUNNING
    for _ in range(4):
        yard.control.busy.note(yard.time, {replica: Usage(2500.0, 1)})
        yard.pass_time(500, steps=6)
    assert yard.state(id) is State.PAUSED


def test_a_busy_card_counts_as_use_and_a_card_that_is_only_held_does_not() -> None:
    watch, replica = BusyWatch(0.0), ReplicaId("w", 1, "main", 0)
    for at in (10.0, 20.0):
        watch.note(at, {replica: Usage(1.0, 1, cards=(CardUse(0, 50.0, 1),))})
    assert watch.busy_at([replica]) == 20.0
    watch.note(30.0, {replica: Usage(1.0, 1, cards=(CardUse(0, 0.0, 70 << 30),))})
    assert watch.busy_at([replica]) == 20.0


def test_a_timer_is_told_of_before_and_stops_it(yard: Yard) -> None:
    id = an_env(yard, stop_in=3600.0)
    yard.pass_time(2900)
    assert Code.TIMER_SOON not in yard.told(id)
    yard.pass_time(200)
    assert yard.told(id).count(Code.TIMER_SOON) == 1
    yard.pass_time(600, steps=8)
    assert (yard.state(id), yard.get(id).reason.code) == (State.PAUSED, Code.TIMER)


def test_it_stays_stopped_until_its_owner_starts_it_and_then_an_old_timer_means_nothing(yard: Yard) -> None:
    id = an_env(yard, stop_in=100.0)
    yard.pass_time(200, steps=8)
    yard.pass_time(50, steps=8)
    assert yard.state(id) is State.PAUSED
    yard.want(id, Wanted.RUN)
    yard.pass_time(steps=8)
    yard.pass_time(1000, steps=8)
    assert yard.state(id) is State.RUNNING


def test_started_with_other_resources_it_asks_for_those_from_now_on(yard: Yard) -> None:
    id = an_env(yard, cards=1)
    yard.want(id, Wanted.PAUSE)
    yard.pass_time(steps=8)
    before = yard.get(id)
    wider = replace(before.spec, roles=a_job(cards=4, env=sim(1000)).spec.roles)
    with yard.database.write() as conn:
        assert rows.amend(conn, before, wider, [], asked_at=yard.time)
        assert not rows.amend(conn, before, wider, [], asked_at=yard.time)
        rows.want(conn, id, Wanted.RUN, "ann", yard.time)
    yard.pass_time(steps=8)
    after = yard.get(id)
    assert after.state is State.RUNNING
    assert after.submitted_at > before.submitted_at
    assert after.attempt is not None
    assert len(after.attempt.replicas[0].allotment.cards) == 4


def test_the_picture_in_memory_knows_what_it_asks_for_anew(yard: Yard) -> None:
    id = an_env(yard, cards=1)
    yard.want(id, Wanted.PAUSE)
    yard.pass_time(steps=8)
    before = yard.get(id)
    with yard.database.write() as conn:
        rows.amend(conn, before, replace(before.spec, idle_seconds=5.0), [])
    yard.pass_time()
    assert yard.control.picture.live[id] == yard.get(id)
    assert yard.control.picture.audit() == []
