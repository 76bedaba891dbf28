"""Drawn worlds: one decision, one assertion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.draw import a_job, a_node, groups_with, running

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.people import Quota
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.plan import plan, preview
from gpuyard.scheduling.snapshot import Plan, Snapshot


def a_world(
    *nodes: Node,
    queue: Sequence[Workload] = (),
    holding: Sequence[Workload] = (),
    quotas: Sequence[Quota] = (),
) -> Snapshot:
    return Snapshot(1000.0, nodes, tuple(queue), tuple(holding), groups_with(quotas))


def places(outcome: Plan) -> dict[str, list[str]]:
    return {p.workload: sorted(a.node for a in p.allotments.values()) for p in outcome.placements}


def test_a_small_job_takes_the_node_with_seven_free_cards_before_the_one_with_eight() -> None:
    one_card_used = running(a_job("used000001", cards=1), ("b", (0,)))
    outcome = plan(a_world(a_node("a", 8), a_node("b", 8), queue=[a_job(cards=1)], holding=[one_card_used]))
    assert places(outcome) == {"job0000001": ["b"]}


def test_a_gang_starts_whole_or_not_at_all() -> None:
    outcome = plan(a_world(a_node("a", 8), a_node("b", 4), queue=[a_job(cards=8, replicas=2)]))
    assert not outcome.placements
    assert outcome.waiting["job0000001"].code is Code.NEVER_FITS


def test_a_gang_spreads_over_nodes() -> None:
    outcome = plan(a_world(a_node("a", 8), a_node("b", 8), queue=[a_job(cards=8, replicas=2)]))
    assert places(outcome) == {"job0000001": ["a", "b"]}


def test_larger_priority_goes_first_then_the_older() -> None:
    late_but_urgent = a_job("urgent0001", cards=8, priority=900, at=300)
    old, young = a_job("old0000001", cards=8, at=100), a_job("young00001", cards=8, at=200)
    outcome = plan(a_world(a_node("a", 8), a_node("b", 8), queue=[young, old, late_but_urgent]))
    assert set(places(outcome)) == {"urgent0001", "old0000001"}
    assert outcome.waiting["young00001"].code is Code.BUSY


def test_a_later_job_never_takes_the_cards_an_earlier_one_waits_for() -> None:
    busy = running(a_job("busy000001", cards=4), ("a", (0, 1, 2, 3)))
    head, later = a_job("head000001", cards=8, at=100), a_job("later00001", cards=2, at=200)
    outcome = plan(a_world(a_node("a", 8), queue=[later, head], holding=[busy]))
    assert not outcome.placements
    assert outcome.waiting["later00001"].code is Code.ORDER
    assert outcome.waiting["later00001"].facts["ahead"] == "head000001"


def test_a_later_job_may_use_a_node_the_earlier_one_cannot_use() -> None:
    busy = running(a_job("busy000001", cards=4), ("big", (0, 1, 2, 3)))
    head, later = a_job("head000001", cards=8, at=100), a_job("later00001", cards=2, at=200)
    outcome = plan(a_world(a_node("big", 8), a_node("small", 2), queue=[head, later], holding=[busy]))
    assert places(outcome) == {"later00001": ["small"]}


def test_a_busy_cluster_names_the_node_and_the_jobs_on_it() -> None:
    busy = running(a_job("busy000001", cards=8), ("a", tuple(range(8))))
    reason = plan(a_world(a_node("a", 8), queue=[a_job(cards=2)], holding=[busy])).waiting["job0000001"]
    assert (reason.code, reason.facts["node"], reason.facts["jobs"]) == (Code.BUSY, "a", ["busy000001"])


def test_when_one_machine_is_too_small_it_says_to_ask_for_replicas() -> None:
    outcome = plan(a_world(a_node("a", 8), a_node("b", 8), queue=[a_job(cards=16)]))
    reason = outcome.waiting["job0000001"]
    assert reason.code is Code.NEEDS_REPLICAS
    assert (reason.facts["replicas"], reason.facts["each"]) == (2, 8)


@pytest.mark.parametrize(
    ("job", "resource", "asked", "there"),
    [
        (a_job(cpu=1), "cpu", 3000, 2000),
        (a_job(cpu=0.1, memory_gib=3), "memory", 9 << 30, 8 << 30),
        (a_job(cards=1, cpu=0.1, memory_gib=1), "nvidia", 3000, 2000),
    ],
)
def test_what_all_roles_ask_for_together_is_told(job: Workload, resource: str, asked: int, there: int) -> None:
    worker = job.spec.roles[0]
    roles = (replace(worker, name="master"), replace(worker, replicas=2))
    job = replace(job, spec=replace(job.spec, roles=roles))
    reason = plan(a_world(a_node("a", 2, cpu=2, memory_gib=8), queue=[job])).waiting[job.id]
    told = tuple(reason.facts[name] for name in ("resource", "asked", "largest", "replicas"))
    assert (reason.code, *told) == (Code.NEVER_FITS, resource, asked, there, 3)


@pytest.mark.parametrize(
    ("job", "code"),
    [
        (a_job(cards=1, device="ascend"), Code.NO_SUCH_DEVICE),
        (a_job(cards=100), Code.NEVER_FITS),
        (a_job(cpu=1000), Code.NEVER_FITS),
        (a_job(memory_gib=5000), Code.NEVER_FITS),
    ],
)
def test_what_can_never_fit_is_told_at_once(job: Workload, code: Code) -> None:
    assert plan(a_world(a_node("a", 8), queue=[job])).waiting[job.id].code is code


def test_a_job_that_never_fits_blocks_nobody() -> None:
    outcome = plan(a_world(a_node("a", 8), queue=[a_job("never00001", cards=100, at=1), a_job(cards=8, at=2)]))
    assert places(outcome) == {"job0000001": ["a"]}


def test_a_cordoned_or_lost_node_is_named_when_it_is_what_is_missing() -> None:
    nodes = [a_node("a", 8, state=NodeState.CORDONED), a_node("b", 2)]
    reason = plan(a_world(*nodes, queue=[a_job(cards=8)])).waiting["job0000001"]
    assert reason.code is Code.NO_NODES
    assert reason.facts["nodes"] == ["a (cordoned)"]


def test_a_card_that_is_still_held_is_not_given_out_and_its_holder_is_named() -> None:
    reason = plan(a_world(a_node("a", 2, held=(1,)), queue=[a_job(cards=2)])).waiting["job0000001"]
    assert (reason.code, reason.facts["card"], reason.facts["pid"]) == (Code.CARD_HELD, 1, 7)


def test_a_group_quota_holds_and_is_named() -> None:
    used = running(a_job("used000001", cards=6), ("a", tuple(range(6))))
    quota = Quota("vision", "nvidia", 8000)
    outcome = plan(a_world(a_node("a", 16), queue=[a_job(cards=4)], holding=[used], quotas=[quota]))
    reason = outcome.waiting["job0000001"]
    assert reason.code is Code.OVER_QUOTA
    assert reason.facts == {
        "scope": "group", "who": "vision", "group": "vision", "resource": "nvidia",
        "asked": 4000, "used": 6000, "limit": 8000,
    }  # fmt: skip


def test_a_user_quota_holds_inside_the_group() -> None:
    quotas = [Quota("vision", "nvidia", 8000), Quota("vision", "nvidia", 2000, user="ann")]
    outcome = plan(a_world(a_node("a", 16), queue=[a_job(cards=2), a_job("job0000002", cards=1)], quotas=quotas))
    assert places(outcome) == {"job0000001": ["a"]}
    assert outcome.waiting["job0000002"].facts["who"] == "ann"


def test_more_than_the_quota_can_ever_give_is_told_apart() -> None:
    outcome = plan(a_world(a_node("a", 16), queue=[a_job(cards=9)], quotas=[Quota("vision", "nvidia", 8000)]))
    assert outcome.waiting["job0000001"].code is Code.QUOTA_NEVER


def test_a_job_its_quota_can_never_hold_blocks_nobody() -> None:
    head, later = a_job("head000001", cards=9, at=1), a_job("later00001", cards=2, at=2)
    outcome = plan(a_world(a_node("a", 16), queue=[head, later], quotas=[Quota("vision", "nvidia", 8000)]))
    assert places(outcome) == {"later00001": ["a"]}


def test_a_job_waiting_for_its_quota_is_not_overtaken_within_that_quota_but_blocks_no_other_group() -> None:
    used = running(a_job("used000001", cards=6), ("a", tuple(range(6))))
    head, later = a_job("head000001", cards=4, at=1), a_job("later00001", cards=2, at=2)
    stranger = a_job("stranger01", cards=2, at=3, group="speech", owner="bob")
    world = a_world(
        a_node("a", 16), queue=[head, later, stranger], holding=[used], quotas=[Quota("vision", "nvidia", 8000)]
    )
    outcome = plan(world)
    assert places(outcome) == {"stranger01": ["a"]}
    assert outcome.waiting["later00001"].code is Code.ORDER


def test_cpu_quota_counts_the_share_that_was_left_open() -> None:
    outcome = plan(a_world(a_node("a", 8, cpu=64), queue=[a_job(cards=4)], quotas=[Quota("vision", "cpu", 16_000)]))
    assert outcome.waiting["job0000001"].facts["asked"] == 32_000


def test_shares_of_a_card_fill_one_card_before_breaking_another() -> None:
    half = running(a_job("half000001", cards=0.5), ("a", (3,)))
    outcome = plan(a_world(a_node("a", 8), queue=[a_job(cards=0.5)], holding=[half]))
    (placement,) = outcome.placements
    assert [s.index for a in placement.allotments.values() for s in a.cards] == [3]


def test_back_off_is_waited_for() -> None:
    job = replace(a_job(cards=1), not_before=2000.0)
    assert plan(a_world(a_node("a", 8), queue=[job])).waiting[job.id].code is Code.BACK_OFF


def test_what_is_left_open_is_the_fair_share_per_card() -> None:
    (placement,) = plan(a_world(a_node("a", 8, cpu=64, memory_gib=512), queue=[a_job(cards=2)])).placements
    (given,) = placement.allotments.values()
    assert (given.cpu_milli, given.memory >> 30, given.shm >> 30) == (16_000, 128, 64)


def test_work_without_cards_goes_to_nodes_without_free_cards() -> None:
    outcome = plan(a_world(a_node("cards", 8), a_node("plain"), queue=[a_job()]))
    assert places(outcome) == {"job0000001": ["plain"]}


def test_preview_says_what_would_happen_and_who_is_ahead() -> None:
    busy = running(a_job("busy000001", cards=8), ("a", tuple(range(8))))
    waiting = a_job("first00001", cards=4, at=1)
    world = a_world(a_node("a", 8), queue=[waiting], holding=[busy])
    answer = preview(world, a_job("mine000001", cards=1, at=2))
    assert (answer.starts, answer.position, answer.ahead) == (False, 1, ("first00001",))
    assert preview(a_world(a_node("a", 8)), a_job(cards=1)).nodes == ("a",)
