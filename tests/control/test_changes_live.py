"""Quotas, groups and the policy change while work runs: nothing is killed, and the next decision keeps to the new."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tests.control.yard import Yard
from tests.draw import a_job, a_node

from gpuyard.dialects.policy import to_text
from gpuyard.domain.people import Quota
from gpuyard.domain.policy import Policy, Pool
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import State
from gpuyard.store import merging, sharing
from gpuyard.store.database import Database

LONG = (("YARD_SIM_SECONDS", "100"),)
RAN_WELL = [Code.SUBMITTED, Code.PLACED, Code.STARTING, Code.RUNNING, Code.GROUP_MERGED, Code.SUCCEEDED]


@pytest.fixture
def yard(database: Database) -> Iterator[Yard]:
    with closing(Yard(database, [a_node("a", 8)])) as yard:
        yield yard


def set_policy(yard: Yard, policy: Policy) -> None:
    with yard.database.write() as conn:
        sharing.set_policy_text(conn, to_text(policy))


def test_a_quota_lowered_below_what_runs_kills_nothing_and_holds_for_the_next(yard: Yard) -> None:
    yard.set_quota(Quota("vision", "nvidia", 8000))
    first = yard.submit(a_job("first00001", cards=4, env=LONG))
    yard.pass_time()
    yard.set_quota(Quota("vision", "nvidia", 1000))
    second = yard.submit(a_job("second0001", cards=1, env=LONG))
    yard.pass_time(50)
    assert yard.state(first) is State.RUNNING
    assert yard.get(second).reason.code is Code.OVER_QUOTA
    yard.pass_time(60)
    assert yard.state(first) is State.SUCCEEDED
    yard.pass_time()
    assert yard.state(second) is State.RUNNING


def test_a_guarantee_given_to_others_kills_nothing_that_cannot_be_taken_back(yard: Yard) -> None:
    first = yard.submit(a_job("first00001", cards=8, env=LONG))
    yard.pass_time()
    yard.set_quota(Quota("speech", "nvidia", None, guaranteed=8000))
    theirs = yard.submit(a_job("theirs0001", cards=8, group="speech", owner="bob", env=LONG))
    yard.pass_time(50)
    assert (yard.state(first), yard.state(theirs)) == (State.RUNNING, State.QUEUED)
    yard.pass_time(60)
    yard.pass_time()
    assert yard.state(theirs) is State.RUNNING


def test_work_of_a_merged_group_goes_on_and_is_charged_to_the_other(yard: Yard) -> None:
    going = yard.submit(a_job("going00001", cards=8, env=LONG))
    waiting = yard.submit(a_job("waiting001", cards=8, env=LONG))
    yard.pass_time()
    attempt = yard.get(going).attempt
    with yard.database.write() as conn:
        merging.merge(conn, "vision", "speech", now=yard.time, by="root", half_life=1e9)
    yard.pass_time(50)
    assert yard.get(going).group == "speech"
    assert attempt is not None
    now = yard.get(going).attempt
    assert now is not None
    assert (now.number, now.started_at) == (attempt.number, attempt.started_at)
    yard.pass_time(60)
    assert yard.told(going) == RAN_WELL
    yard.pass_time()
    assert yard.state(waiting) is State.RUNNING
    with yard.database.read() as conn:
        past = sharing.past_use(conn)
    assert {group for group, _ in past} == {"speech"}
    assert past["speech", None].amount == pytest.approx(8 * 110, rel=0.01)


def test_the_running_control_hears_that_one_past_became_anothers(yard: Yard) -> None:
    yard.submit(a_job("first00001", cards=8, env=LONG))
    yard.pass_time()
    yard.pass_time(101)
    assert yard.control.picture.past.keys() == {("vision", None), ("vision", "ann")}
    with yard.database.write() as conn:
        merging.merge(conn, "vision", "speech", now=yard.time, by="root", half_life=7 * 86400.0)
    yard.pass_time()
    assert yard.control.picture.past.keys() == {("speech", None), ("speech", "ann")}
    assert not yard.control.picture.audit()


def test_a_policy_changed_live_holds_for_the_next_decision(yard: Yard) -> None:
    running = yard.submit(a_job("running001", cards=1, env=LONG))
    yard.pass_time()
    closed = Policy(pools={"p": Pool(models=("P100",))}, group_pools={"vision": ("p",)})
    set_policy(yard, closed)
    kept = yard.submit(a_job("kept000001", cards=1, env=LONG))
    yard.pass_time()
    assert yard.state(running) is State.RUNNING
    assert yard.get(kept).reason.code is Code.POOL_CLOSED
    set_policy(yard, replace(closed, group_pools={}))
    yard.pass_time()
    assert yard.state(kept) is State.RUNNING
