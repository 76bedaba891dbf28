"""Work that moves so that another has its cards together, through control: it comes back where it was promised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.dialects.policy import to_text
from gpuyard.domain.policy import Defragment, Defragmenting, Policy
from gpuyard.domain.promises import promise_of
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import State, StoryEvent, Wanted, Workload
from gpuyard.store import sharing
from gpuyard.store.database import Database

LARGE = "large00001"


def a_small_one(id: str) -> Workload:
    env = (("YARD_SIM_SECONDS", "36000"), ("YARD_SIM_CHECKPOINT_SECONDS", "60"))
    job = a_job(id, cards=1, cpu=1, env=env)
    return replace(job, spec=replace(job.spec, preemptible=True))


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    """A small job on each of two nodes, with three cards free beside it, that has run for a quarter of an hour."""
    with closing(Yard(database, [a_node("a", 4), a_node("b", 4)])) as yard:
        allow(yard, Defragmenting.MOVE)
        for number in (1, 2):
            filling = yard.submit(a_job(f"filling00{number}", cards=3, cpu=1, env=(("YARD_SIM_SECONDS", "36000"),)))
            yard.pass_time(1)
            yard.submit(a_small_one(f"small0000{number}"))
            yard.pass_time(1)
            assert yard.state(filling) is State.RUNNING
        for number in (1, 2):
            yard.want(f"filling00{number}", Wanted.STOP)
        yard.pass_time(900)
        yard.control.progress.look()
        yard.pass_time()
        assert {node_of(yard, "small00001"), node_of(yard, "small00002")} == {"a", "b"}
        yield yard


def allow(yard: Yard, mode: Defragmenting) -> None:
    policy = Policy(defragment=Defragment(mode, after=0.0))
    with yard.database.write() as conn:
        sharing.set_policy_text(conn, to_text(policy))


def node_of(yard: Yard, id: str) -> str:
    attempt = yard.get(id).attempt
    assert attempt is not None
    return attempt.replicas[0].allotment.node


def line(yard: Yard, id: str, code: Code) -> StoryEvent:
    return [event for event in yard.story(id) if event.reason.code is code][-1]


def the_one_that_moves(yard: Yard) -> Workload:
    (moving,) = [w for id in ("small00001", "small00002") if promise_of(w := yard.get(id)) is not None]
    return moving


def large(**more: Any) -> Workload:
    return a_job(LARGE, cards=4, cpu=1, name="large", owner="bob", env=(("YARD_SIM_SECONDS", "600"),), **more)


def test_one_moves_to_the_place_it_was_promised_the_other_starts_and_both_stories_tell_it(yard: Yard) -> None:
    yard.submit(large())
    yard.pass_time(1, steps=1)
    moving = the_one_that_moves(yard)
    promise, left = promise_of(moving), node_of(yard, moving.id)
    assert promise is not None
    assert yard.get(LARGE).reason.code is Code.MOVING
    yard.pass_time(30)
    back = yard.get(moving.id)
    assert (back.state, back.attempts_made) == (State.RUNNING, 2)
    assert back.attempt is not None
    assert {("worker", 0): back.attempt.replicas[0].allotment} == promise.places
    assert node_of(yard, moving.id) != left
    assert (yard.state(LARGE), node_of(yard, LARGE)) == (State.RUNNING, left)
    told = line(yard, moving.id, Code.MOVES).reason.facts
    assert (told["by"], told["by_name"], told["by_owner"], told["rule"]) == (LARGE, "large", "bob", "defragment")
    assert told["nodes"] == [node_of(yard, moving.id)]
    assert told["lost_seconds"] <= 61
    assert told["saved"] is True
    codes = yard.told(moving.id)
    assert codes[codes.index(Code.MOVES) :] == [
        *(Code.MOVES, Code.REQUEUED, Code.PLACED, Code.STARTING, Code.RUNNING),
    ]
    assert line(yard, moving.id, Code.PLACED).at >= line(yard, LARGE, Code.PLACED).at


def test_the_promise_outlives_the_server_and_whoever_comes_meanwhile(yard: Yard) -> None:
    yard.submit(large())
    yard.pass_time(1, steps=1)
    moving = the_one_that_moves(yard)
    promise = promise_of(moving)
    yard.crash()
    for number in range(4):
        yard.submit(a_job(f"later0000{number}", cards=2, cpu=1, priority=900, env=(("YARD_SIM_SECONDS", "600"),)))
    yard.pass_time(30)
    back = yard.get(moving.id)
    assert promise is not None
    assert back.attempt is not None
    assert back.state is State.RUNNING
    assert {("worker", 0): back.attempt.replicas[0].allotment} == promise.places
    assert yard.state(LARGE) is State.RUNNING


def test_nobody_moves_again_before_it_has_run_for_a_while(yard: Yard) -> None:
    yard.submit(large())
    yard.pass_time(30)
    (moved,) = [id for id in ("small00001", "small00002") if yard.get(id).attempts_made == 2]
    yard.want(LARGE, Wanted.STOP)
    yard.pass_time(30)
    yard.submit(a_job("large00002", cards=4, cpu=1))  # a whole node is free: nobody needs to move
    yard.pass_time(30)
    assert yard.get(moved).attempts_made == 2


def test_nothing_moves_while_moves_are_only_proposed(yard: Yard) -> None:
    allow(yard, Defragmenting.PROPOSE)
    yard.submit(large())
    yard.pass_time(30)
    assert yard.get(LARGE).reason.code is Code.BUSY
    assert all(yard.get(id).attempts_made == 1 for id in ("small00001", "small00002"))


def test_whoever_is_stopped_while_it_moves_is_stopped(yard: Yard) -> None:
    yard.submit(large())
    yard.pass_time(1, steps=1)
    moving = the_one_that_moves(yard)
    yard.want(moving.id, Wanted.STOP)
    yard.pass_time(30)
    assert yard.state(moving.id) is State.STOPPED
    assert yard.state(LARGE) is State.RUNNING
