"""Who is asked first, and where it goes: one rule, one drawn world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given, settings
from tests.draw import a_job, a_node, groups_with, running
from tests.scheduling.worlds import NOW, worlds

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import DAY, HOUR, Ordering, Placing, Policy
from gpuyard.domain.reasons import Code
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Person, Plan, Snapshot

Past = dict[Person, PastUse]


def asked(
    queue: Sequence[Workload],
    *,
    groups: Mapping[str, Group] | None = None,
    policy: Policy = Policy(),  # noqa: B008
    past: Past | None = None,
    holding: Sequence[Workload] = (),
    nodes: Sequence[Node] = (a_node("a", 1),),
    now: float = 1000.0,
) -> Plan:
    return plan(Snapshot(now, tuple(nodes), tuple(queue), tuple(holding), groups or {}, policy, past or {}))


def first(outcome: Plan) -> str:
    return outcome.placements[0].workload


# --- among groups -------------------------------------------------------------------------------------------------


def test_the_group_that_used_less_of_late_comes_first_though_it_asked_later() -> None:
    past: Past = {("vision", None): PastUse(10 * HOUR, 1000.0)}
    jobs = [a_job("heavy00001", cards=1, at=100), a_job("light00001", cards=1, at=200, group="speech", owner="bob")]
    assert first(asked(jobs, past=past)) == "light00001"
    assert first(asked(jobs, past=past, policy=Policy(order=Ordering(fair_share=False)))) == "heavy00001"


def test_use_counts_by_the_weight_of_the_group() -> None:
    past: Past = {("vision", None): PastUse(10 * HOUR, 1000.0), ("speech", None): PastUse(8 * HOUR, 1000.0)}
    jobs = [a_job("heavy00001", cards=1, at=200), a_job("light00001", cards=1, at=100, group="speech", owner="bob")]
    assert first(asked(jobs, past=past)) == "light00001"
    assert first(asked(jobs, past=past, groups={"vision": Group("vision", weight=2.0)})) == "heavy00001"


def test_use_long_ago_counts_less_than_use_today() -> None:
    past: Past = {("vision", None): PastUse(20 * HOUR, 0.0), ("speech", None): PastUse(8 * HOUR, 14 * DAY)}
    jobs = [
        a_job("longago001", cards=1, at=14 * DAY - 100),
        a_job("today00001", cards=1, at=14 * DAY - 200, group="speech", owner="bob"),
    ]
    assert first(asked(jobs, past=past, now=14 * DAY)) == "longago001"


def test_what_runs_now_counts_before_it_is_past() -> None:
    busy = running(a_job("busy000001", cards=4), ("b", (0, 1, 2, 3)))
    jobs = [a_job("mine000001", cards=1, at=100), a_job("other00001", cards=1, at=200, group="speech", owner="bob")]
    nodes = [a_node("a", 1), a_node("b", 4)]
    assert first(asked(jobs, holding=[busy], nodes=nodes)) == "other00001"


def test_use_that_differs_little_counts_as_equal_and_the_older_comes_first() -> None:
    past: Past = {("vision", None): PastUse(101 * HOUR, 1000.0), ("speech", None): PastUse(100.5 * HOUR, 1000.0)}
    jobs = [a_job("older00001", cards=1, at=100), a_job("younger001", cards=1, at=200, group="speech", owner="bob")]
    assert first(asked(jobs, past=past)) == "older00001"


def test_at_the_top_where_waiting_raises_no_further_only_age_counts() -> None:
    """Among groups and inside one: whoever has waited that long is passed by nobody who came later."""
    hour = Policy(order=Ordering(age_every=HOUR, age_points=100))
    past: Past = {("vision", None): PastUse(10 * HOUR, 6 * HOUR), ("vision", "ann"): PastUse(10 * HOUR, 6 * HOUR)}
    heavy = a_job("heavy00001", cards=1, at=1000)
    for other in (
        a_job("light00001", cards=1, at=2000, group="speech"),
        a_job("light00001", cards=1, at=2000, owner="bob"),
    ):
        assert first(asked([heavy, other], past=past, policy=hour, now=5 * HOUR)) == "light00001"
        assert first(asked([heavy, other], past=past, policy=hour, now=6 * HOUR)) == "heavy00001"


def test_a_higher_priority_comes_before_less_use() -> None:
    past: Past = {("vision", None): PastUse(100 * HOUR, 1000.0)}
    jobs = [
        a_job("urgent0001", cards=1, at=200, priority=900),
        a_job("light00001", cards=1, at=100, group="speech", owner="bob"),
    ]
    assert first(asked(jobs, past=past)) == "urgent0001"


def test_waiting_raises_the_priority_again_and_again() -> None:
    policy = Policy(order=Ordering(age_every=HOUR, age_points=100))
    old = a_job("old0000001", cards=1, at=0, priority=300)
    new = a_job("new0000001", cards=1, at=4 * HOUR, priority=700)
    assert first(asked([old, replace(new, submitted_at=3.9 * HOUR)], policy=policy, now=3.9 * HOUR)) == "new0000001"
    assert first(asked([old, replace(new, submitted_at=5 * HOUR)], policy=policy, now=5 * HOUR)) == "old0000001"


def test_what_stays_within_a_guarantee_comes_before_everybody_who_borrows() -> None:
    groups = groups_with([Quota("speech", "nvidia", guaranteed=1000)])
    jobs = [
        a_job("urgent0001", cards=1, at=100, priority=1000),
        a_job("within0001", cards=1, at=200, priority=1, group="speech", owner="bob"),
    ]
    outcome = asked(jobs, groups=groups)
    assert first(outcome) == "within0001"
    assert outcome.placements[0].turn is not None
    assert outcome.placements[0].turn.guaranteed


def test_without_any_guarantee_nobody_is_said_to_be_within_one() -> None:
    outcome = asked([a_job(cards=1)])
    assert outcome.placements[0].turn is not None
    assert not outcome.placements[0].turn.guaranteed


def test_work_without_cards_is_not_before_others_because_cards_are_guaranteed() -> None:
    groups = groups_with([Quota("speech", "nvidia", guaranteed=1000)])
    nodes = [a_node("a", 2, cpu=4)]
    jobs = [a_job("cards00001", cards=1, cpu=3, at=100), a_job("cores00001", cpu=3, at=200, owner="bob")]
    assert first(asked(jobs, groups=groups, nodes=nodes)) == "cards00001"


def test_the_admins_people_come_first_in_their_order() -> None:
    policy = Policy(order=Ordering(people=("eve", "bob")))
    jobs = [
        a_job("urgent0001", cards=1, at=100, priority=900, owner="ann"),
        a_job("second0001", cards=1, at=100, priority=500, owner="bob", group="speech"),
        a_job("first00001", cards=1, at=300, priority=100, owner="eve"),
    ]
    outcome = asked(jobs, policy=policy, nodes=[a_node("a", 2)])
    assert [p.workload for p in outcome.placements] == ["first00001", "second0001"]


# --- inside a group -----------------------------------------------------------------------------------------------


def test_inside_a_group_the_person_who_used_less_comes_first() -> None:
    past: Past = {("vision", "ann"): PastUse(10 * HOUR, 1000.0)}
    jobs = [a_job("heavy00001", cards=1, at=100), a_job("light00001", cards=1, at=200, owner="bob")]
    assert first(asked(jobs, past=past)) == "light00001"


def test_people_take_turns_within_one_pass() -> None:
    jobs = [a_job(f"ann000000{n}", cards=1, at=100.0 + n) for n in range(4)]
    jobs += [a_job(f"bob000000{n}", cards=1, at=200.0 + n, owner="bob") for n in range(4)]
    outcome = asked(jobs, nodes=[a_node("a", 4)])
    assert sum(p.workload.startswith("bob") for p in outcome.placements) == 2


def test_a_strict_group_knows_only_who_came_first() -> None:
    past: Past = {("vision", "ann"): PastUse(1000 * HOUR, 1000.0)}
    groups = {"vision": Group("vision", fifo=True)}
    jobs = [
        a_job("old0000001", cards=1, at=100, priority=1),
        a_job("new0000001", cards=1, at=200, priority=1000, owner="bob"),
    ]
    assert first(asked(jobs, past=past, groups=groups)) == "old0000001"


def test_in_a_strict_group_nobody_starts_while_the_first_waits_but_other_groups_go_on() -> None:
    groups = {"vision": Group("vision", fifo=True)}
    jobs = [
        a_job("large00001", cards=8, at=100),
        a_job("small00001", cards=1, at=200),
        a_job("other00001", cards=1, at=300, group="speech", owner="bob"),
    ]
    busy = running(a_job("busy000001", cards=4, group="audio"), ("big", (0, 1, 2, 3)))
    outcome = asked(jobs, groups=groups, nodes=[a_node("big", 8), a_node("small", 2)], holding=[busy])
    assert [p.workload for p in outcome.placements] == ["other00001"]
    assert outcome.waiting["small00001"].code is Code.FIFO
    assert outcome.waiting["small00001"].facts["ahead"] == "large00001"


# --- where it goes ------------------------------------------------------------------------------------------------


def places(outcome: Plan) -> list[tuple[str, int]]:
    return [
        (allotment.node, share.index)
        for placement in outcome.placements
        for allotment in placement.allotments.values()
        for share in allotment.cards
    ]


def test_in_order_fills_server_by_server_and_card_by_card() -> None:
    policy = Policy(placing=Placing.IN_ORDER, servers=("n10", "n2"))
    nodes = [a_node(name, 2) for name in ("n1", "n2", "n9", "n10")]
    jobs = [a_job(f"job000000{n}", cards=1, at=float(n)) for n in range(7)]
    filled = [("n10", 0), ("n10", 1), ("n2", 0), ("n2", 1), ("n1", 0), ("n1", 1), ("n9", 0)]
    assert places(asked(jobs, policy=policy, nodes=nodes)) == filled


def test_best_fit_takes_the_node_with_seven_free_cards_before_the_one_with_eight() -> None:
    used = running(a_job("used000001", cards=1), ("b", (0,)))
    nodes = [a_node("a", 8), a_node("b", 8)]
    assert places(asked([a_job(cards=1)], nodes=nodes, holding=[used])) == [("b", 1)]


def test_spread_takes_the_emptiest_node() -> None:
    used = running(a_job("used000001", cards=1), ("a", (0,)))
    nodes = [a_node("a", 8), a_node("b", 8), a_node("c", 4)]
    outcome = asked([a_job(cards=1)], nodes=nodes, holding=[used], policy=Policy(placing=Placing.SPREAD))
    assert places(outcome) == [("b", 0)]


def test_chips_are_taken_so_that_whole_rings_and_pairs_survive() -> None:
    node = a_node("a", 8, device="ascend")
    one = running(a_job("one0000001", cards=1, device="ascend"), ("a", (5,)))
    assert places(asked([a_job(cards=1, device="ascend")], nodes=[node], holding=[one])) == [("a", 4)]
    pair = asked([a_job(cards=2, device="ascend")], nodes=[node], holding=[one])
    assert {index for _, index in places(pair)} <= {0, 1, 2, 3}


# --- the numbers told with a placement ----------------------------------------------------------------------------


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_the_numbers_told_with_a_placement_are_those_of_the_rule(world: Snapshot) -> None:
    order = world.policy.order
    by_id = {workload.id: workload for workload in world.queue}
    for placement in plan(world).placements:
        workload, turn = by_id[placement.workload], placement.turn
        assert turn is not None
        waited = NOW - workload.submitted_at
        points = int(waited / order.age_every) * order.age_points
        assert turn.priority == min(1000, workload.spec.priority + points)
        assert turn.group_use >= 0
        assert turn.user_use >= 0
        assert set(placement.passed) <= by_id.keys()
