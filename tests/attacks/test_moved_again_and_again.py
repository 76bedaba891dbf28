"""Somebody asks for whole machines and leaves again, over and over, so that others' work is moved and never ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf

from tests.draw import a_job, a_node

from gpuyard.domain.people import Group
from gpuyard.domain.policy import Defragment, Defragmenting, Ordering, Policy, Preempting
from gpuyard.domain.workload import State, Where
from gpuyard.rehearsal import Arrival, Habits, rehearse

CLUSTER = (a_node("a", cards=2), a_node("b", cards=2))
GROUPS = {"vision": Group("vision")}
MOVE = Policy(order=Ordering(fair_share=False, age_points=0), defragment=Defragment(Defragmenting.MOVE))
UNSAVED = Habits(keeps_work=False, save_every=None)


def teasing(hours: int) -> Iterator[Arrival]:
    """A job for all of one machine, then one for all of the other, every half minute: each leaves when it has run for a
    second, or had to wait for longer than moves take to begin."""
    for number in range(hours * 120):
        job = a_job(f"tease{number:05d}", cards=2, cpu=1, memory_gib=1, at=1.0 + number * 30, owner="mallory")
        (role,) = job.spec.roles
        pinned = replace(role, where=Where(nodes=("ab"[number % 2],)))
        yield Arrival(replace(job, spec=replace(job.spec, roles=(pinned,))), 1.0, patience=400.0)


def victim(seconds: float) -> Arrival:
    job = a_job("victim0001", cards=1, cpu=1, memory_gib=1, at=0.0, owner="zelda")
    return Arrival(replace(job, spec=replace(job.spec, preemptible=True)), seconds)


def test_work_that_saves_nothing_ends_all_the_same_and_loses_no_more_than_the_policy_allows() -> None:
    result = rehearse(CLUSTER, GROUPS, MOVE, [victim(3600.0), *teasing(3)], habits=UNSAVED, tick=inf)

    zelda = result.of("victim0001")
    assert zelda.state is State.SUCCEEDED
    assert zelda.ended is not None
    assert zelda.preemptions == 1  # it was moved: the attack is one
    assert zelda.ended <= 3600.0 + MOVE.defragment.max_lost


def test_a_move_is_seen_in_time_where_nobody_may_be_preempted() -> None:
    """One job waits and nothing else happens: from when on others may move for it is a moment of its own."""
    firm = replace(MOVE, preempt=Preempting(enabled=False), defragment=Defragment(Defragmenting.MOVE, after=10.0))
    large = a_job("large00001", cards=2, cpu=1, memory_gib=1, at=1.0)
    (role,) = large.spec.roles
    there = replace(role, where=Where(nodes=("a",)))
    large = replace(large, spec=replace(large.spec, roles=(there,)))

    result = rehearse(CLUSTER, GROUPS, firm, [victim(5000.0), Arrival(large, 1.0)], habits=UNSAVED, tick=inf)

    assert result.of("large00001").starts == [firm.defragment.min_run]
