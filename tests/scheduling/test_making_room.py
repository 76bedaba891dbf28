"""Drawn worlds in which somebody makes room, or must not; and chips that are linked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.draw import a_job, a_node, running

from gpuyard.domain.policy import Policy, Preempting
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Together, Workload
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Rule, Snapshot

BEGUN = 1000.0
POLICY = Policy(preempt=Preempting(min_run=300.0))


def preemptible(job: Workload) -> Workload:
    return replace(job, spec=replace(job.spec, preemptible=True))


def a_world(now: float, saved_at: float | None = None) -> Snapshot:
    victim = running(preemptible(a_job("low0000001", cards=8, at=BEGUN)), ("a", tuple(range(8))))
    assert victim.attempt is not None
    victim = replace(victim, attempt=replace(victim.attempt, saved_at=saved_at))
    urgent = a_job("high000001", cards=8, priority=900, at=now - 1)
    return Snapshot(now, (a_node("a", 8),), (urgent,), (victim,), policy=POLICY)


def test_nobody_makes_room_before_the_shortest_run_and_the_one_that_waits_is_told_from_when_on() -> None:
    outcome = plan(a_world(BEGUN + 299.0))
    assert not outcome.evictions
    reason = outcome.waiting["high000001"]
    assert reason.code is Code.BUSY
    assert reason.facts["ripe_at"] == BEGUN + 300.0


def test_after_the_shortest_run_the_lower_priority_makes_room_and_the_loss_is_known() -> None:
    (eviction,) = plan(a_world(BEGUN + 300.0, saved_at=BEGUN + 240.0)).evictions
    assert (eviction.workload, eviction.by, eviction.rule) == ("low0000001", "high000001", Rule.PRIORITY)
    assert eviction.lost_seconds == 60.0


def test_of_two_the_one_that_saved_last_makes_room() -> None:
    jobs = [
        running(preemptible(a_job(f"low000000{n}", cards=4, at=BEGUN)), ("a", tuple(range(n * 4, n * 4 + 4))))
        for n in (0, 1)
    ]
    saved = [
        replace(w, attempt=replace(w.attempt, saved_at=at))
        for w, at in zip(jobs, (1100.0, 1800.0), strict=True)
        if w.attempt
    ]
    urgent = a_job("high000001", cards=4, priority=900, at=1900.0)
    outcome = plan(Snapshot(2000.0, (a_node("a", 8),), (urgent,), tuple(saved), policy=POLICY))
    assert [(e.workload, e.lost_seconds) for e in outcome.evictions] == [("low0000001", 200.0)]


@pytest.mark.parametrize(("cards", "replicas", "starts"), [(4, 2, False), (8, 2, True), (2, 2, False), (4, 1, True)])
def test_over_several_machines_linked_chips_go_only_as_whole_machines(cards: int, replicas: int, starts: bool) -> None:
    nodes = (a_node("a", 8, device="ascend"), a_node("b", 8, device="ascend"))
    job = a_job(cards=cards, replicas=replicas, device="ascend")
    outcome = plan(Snapshot(1000.0, nodes, (job,)))
    assert bool(outcome.placements) is starts
    assert starts or outcome.waiting[job.id].code is Code.RING


def test_on_one_machine_several_replicas_may_share_the_rings() -> None:
    job = a_job(cards=4, replicas=2, device="ascend")
    job = replace(job, spec=replace(job.spec, together=Together.ONE_NODE))
    (placement,) = plan(Snapshot(1000.0, (a_node("a", 8, device="ascend"),), (job,))).placements
    rings = sorted(tuple(share.index for share in one.cards) for one in placement.allotments.values())
    assert rings == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_half_a_machine_does_not_count_as_a_whole_one_beside_a_smaller_machine() -> None:
    nodes = (a_node("a", 8, device="ascend"), a_node("b", 4, device="ascend"))
    assert not plan(Snapshot(1000.0, nodes, (a_job(cards=4, replicas=2, device="ascend"),))).placements
    both = (*nodes, a_node("c", 4, device="ascend"))
    (placement,) = plan(Snapshot(1000.0, both, (a_job(cards=4, replicas=2, device="ascend"),))).placements
    assert {one.node for one in placement.allotments.values()} == {"b", "c"}


def test_the_cards_that_come_free_first_tell_when_the_one_that_waits_can_start() -> None:
    """Two cards are held for long and two for a moment: six are there after that moment, not after the long time."""
    long, moment = (
        replace(a_job(f"run000000{n}", cards=2, at=BEGUN), spec=replace(a_job(cards=2).spec, max_seconds=seconds))
        for n, seconds in ((0, 10_000.0), (1, 100.0))
    )
    holding = (running(long, ("a", (0, 1))), running(moment, ("a", (2, 3))))
    head = a_job("head000001", cards=6, at=BEGUN)
    hour, minute = (
        replace(job, spec=replace(job.spec, max_seconds=seconds))
        for job, seconds in (
            (a_job("later00001", cards=4, at=1001.0), 3600.0),
            (a_job("later00002", cards=4, at=1002.0), 60.0),
        )
    )
    outcome = plan(Snapshot(BEGUN + 1, (a_node("a", 8),), (head, hour, minute), holding))
    assert [placement.workload for placement in outcome.placements] == ["later00002"]
