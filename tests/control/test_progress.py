"""Saved work and preemption through control: who is chosen, what is told, and where it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Attempt, State, StoryEvent, Workload
from gpuyard.store.database import Database


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8)])) as yard:
        yield yard


def saving(id: str, every: float, seconds: float = 3600, **more: Any) -> Workload:
    env = (("YARD_SIM_SECONDS", str(seconds)), ("YARD_SIM_CHECKPOINT_SECONDS", str(every)))
    job = a_job(id, env=env, **more)
    return replace(job, spec=replace(job.spec, preemptible=True))


def look(yard: Yard, seconds: float = 0.0) -> None:
    """Time passes, the thread that reads progress comes round, and control passes by."""
    yard.pass_time(seconds)
    yard.control.progress.look()
    yard.pass_time()


def attempt(yard: Yard, id: str) -> Attempt:
    found = yard.get(id).attempt
    assert found is not None
    return found


def line(yard: Yard, id: str, code: Code) -> StoryEvent:
    return next(event for event in yard.story(id) if event.reason.code is code)


def test_when_running_work_was_saved_is_stored_with_its_attempt(yard: Yard) -> None:
    id = yard.submit(saving("saver00001", 60, cards=1))
    yard.pass_time()
    started = attempt(yard, id).started_at or 0.0
    look(yard, 150)
    assert attempt(yard, id).saved_at == pytest.approx(started + 120, abs=1)
    assert attempt(yard, id).saved_step == 120
    lines = len(yard.story(id))
    look(yard, 60)
    assert attempt(yard, id).saved_step == 180
    assert len(yard.story(id)) == lines


def test_work_that_is_never_preempted_is_not_asked(yard: Yard) -> None:
    job = saving("firm000001", 60, cards=1)
    id = yard.submit(replace(job, spec=replace(job.spec, preemptible=False)))
    yard.pass_time()
    look(yard, 150)
    assert attempt(yard, id).saved_at is None


def test_the_one_that_loses_least_makes_room_and_goes_on_from_what_it_saved(yard: Yard) -> None:
    seldom = yard.submit(saving("seldom0001", 1000, cards=4))
    often = yard.submit(saving("often00001", 60, cards=4, seconds=900))
    yard.pass_time()
    look(yard, 630)
    urgent = yard.submit(a_job("urgent0001", cards=4, priority=900, owner="bob", env=(("YARD_SIM_SECONDS", "30"),)))
    look(yard)
    assert (yard.state(seldom), yard.state(often), yard.state(urgent)) == (State.RUNNING, State.QUEUED, State.RUNNING)
    told = line(yard, often, Code.PREEMPTED).reason.facts
    assert (told["by"], told["rule"]) == (urgent, "priority")
    assert told["lost_seconds"] == pytest.approx(30, abs=2)
    look(yard, 40)
    assert (yard.state(urgent), yard.state(often)) == (State.SUCCEEDED, State.RUNNING)
    look(yard, 310)
    assert yard.state(often) is State.SUCCEEDED  # 600 of its 900 seconds were saved before


def test_what_it_saved_after_the_last_look_is_told_once_it_waits_again(yard: Yard) -> None:
    id = yard.submit(saving("saver00001", 60, cards=8))
    yard.pass_time()
    look(yard, 330)
    assert attempt(yard, id).saved_step == 300
    yard.time += 35  # it saves again, and nobody has looked yet
    yard.submit(a_job("urgent0001", cards=8, priority=900, env=(("YARD_SIM_SECONDS", "3000"),)))
    look(yard)
    assert (yard.state(id), attempt(yard, id).saved_step) == (State.QUEUED, 360)
    told = line(yard, id, Code.SAVED_IN_TIME).reason.facts
    assert told["step"] == 360
    assert told["lost_seconds"] == pytest.approx(5, abs=2)
    assert line(yard, id, Code.PREEMPTED).reason.facts["lost_seconds"] == pytest.approx(65, abs=2)
