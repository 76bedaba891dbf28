"""A dev environment that is stopped to be started again: control sees to it, whatever becomes of whoever asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.test_resting import an_env
from tests.control.yard import Yard
from tests.draw import a_node

from gpuyard.domain.reasons import Code
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import Spec, State, Wanted
from gpuyard.store import workloads as rows
from gpuyard.store import workplaces
from gpuyard.store.database import Database
from gpuyard.store.workplaces import Anew


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8)])) as yard:
        yield yard


def with_cards(spec: Spec, cards: int) -> Spec:
    (role,) = spec.roles
    assert role.resources.cards is not None
    resources = replace(role.resources, cards=replace(role.resources.cards, milli=cards * WHOLE_CARD))
    return replace(spec, roles=(replace(role, resources=resources),))


def ask_for_restart(yard: Yard, id: str, cards: int, timer: float | None = None) -> None:
    env = yard.get(id)
    with yard.database.write() as conn:
        workplaces.stop_to_start_anew(
            conn, env, Anew(with_cards(env.spec, cards), "ann", f"cards={cards}", timer), yard.time
        )


def is_restarting(yard: Yard, id: str) -> bool:
    with yard.database.read() as conn:
        place = workplaces.get(conn, id)
    return place is not None and place.restarting


def test_it_is_stopped_and_runs_again_with_what_was_asked_for(yard: Yard) -> None:
    id = an_env(yard, cards=1)
    yard.pass_time(100)
    ask_for_restart(yard, id, 3, timer=600.0)
    assert is_restarting(yard, id)
    yard.pass_time(60, steps=12)
    env = yard.get(id)
    assert (env.state, env.wanted, env.attempts_made, is_restarting(yard, id)) == (State.RUNNING, Wanted.RUN, 2, False)
    assert env.attempt is not None
    assert len(env.attempt.replicas[0].allotment.cards) == 3
    assert env.submitted_at > 1_000_050.0, "its place in the queue is that of the new start"
    told = yard.told(id)
    assert told.index(Code.RESTS) < told.index(Code.ASKED_ANEW) < told.index(Code.START_ASKED)
    yard.pass_time(700, steps=8)
    assert yard.get(id).reason.code is Code.TIMER


def test_a_server_that_dies_in_between_forgets_nothing(yard: Yard) -> None:
    id = an_env(yard, cards=1)
    ask_for_restart(yard, id, 2)
    yard.pass_time(0, steps=1)
    assert yard.state(id) is State.STOPPING
    yard.crash()
    yard.pass_time(60, steps=12)
    env = yard.get(id)
    assert (env.state, env.attempts_made) == (State.RUNNING, 2)
    assert env.attempt is not None
    assert len(env.attempt.replicas[0].allotment.cards) == 2


def test_a_stop_asked_for_meanwhile_wins(yard: Yard) -> None:
    id = an_env(yard)
    ask_for_restart(yard, id, 2)
    yard.want(id, Wanted.PAUSE)
    yard.pass_time(60, steps=12)
    assert (yard.state(id), is_restarting(yard, id)) == (State.PAUSED, False)


def test_one_that_is_removed_meanwhile_does_not_come_back(yard: Yard) -> None:
    id = an_env(yard)
    ask_for_restart(yard, id, 2)
    yard.want(id, Wanted.STOP)
    yard.pass_time(60, steps=12)
    assert yard.state(id) is State.STOPPED


def test_one_that_waits_asks_for_something_else_without_having_run(yard: Yard) -> None:
    first = an_env(yard, cards=8)
    ask_for_restart(yard, first, 16)
    yard.pass_time(60, steps=12)
    assert yard.state(first) is State.QUEUED, "sixteen there are never"
    ask_for_restart(yard, first, 4)
    yard.pass_time(60, steps=12)
    assert yard.state(first) is State.RUNNING


def test_what_is_changed_while_it_stops_stays_changed(yard: Yard) -> None:
    id = an_env(yard, idle=5000.0)
    ask_for_restart(yard, id, 2)
    env = yard.get(id)
    with yard.database.write() as conn:
        rows.amend(conn, env, replace(env.spec, idle_seconds=900.0), [])
    yard.pass_time(60, steps=12)
    assert (yard.state(id), yard.get(id).spec.idle_seconds) == (State.RUNNING, 900.0)
