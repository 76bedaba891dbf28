"""What no plan may ever do, whatever the world looks like."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, groups_with

from gpuyard.domain.cluster import Allotment, Node, NodeState
from gpuyard.domain.lifecycle import Placed, advance
from gpuyard.domain.people import Quota
from gpuyard.domain.policy import Ordering, Policy
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.plan import plan, preview
from gpuyard.scheduling.quota import amounts_of
from gpuyard.scheduling.snapshot import Placement, Plan, Snapshot

# Without fair share and rings: the order is priority, then age, and any number of chips will do.
BY_AGE = Policy(order=Ordering(fair_share=False), rings={})
DEVICES = st.sampled_from(["nvidia", "ascend"])


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    count = draw(st.integers(1, 4))
    return tuple(
        a_node(
            f"n{i}",
            draw(st.integers(0, 8)),
            cpu=draw(st.integers(1, 16)),
            memory_gib=draw(st.integers(1, 64)),
            device=draw(DEVICES),
            state=draw(st.sampled_from([NodeState.READY] * 4 + [NodeState.LOST, NodeState.CORDONED])),
            held=tuple(draw(st.sets(st.integers(0, 7), max_size=1))),
        )
        for i in range(count)
    )


@st.composite
def jobs(draw: st.DrawFn, prefix: str, most: int) -> tuple[Workload, ...]:
    return tuple(
        a_job(
            f"{prefix}{i:07d}",
            cards=draw(st.sampled_from([0, 0.25, 0.5, 1, 1, 2, 4, 8, 16])),
            device=draw(DEVICES),
            cpu=draw(st.one_of(st.none(), st.integers(1, 8))),
            memory_gib=draw(st.one_of(st.none(), st.integers(1, 16))),
            replicas=draw(st.integers(1, 3)),
            priority=draw(st.sampled_from([1, 500, 500, 1000])),
            at=float(draw(st.integers(0, 5))),
            owner=draw(st.sampled_from(["ann", "bob"])),
            group=draw(st.sampled_from(["vision", "speech"])),
        )
        for i in range(draw(st.integers(0, most)))
    )


QUOTAS = st.lists(
    st.builds(
        Quota,
        st.sampled_from(["vision", "speech"]),
        st.sampled_from(["nvidia", "ascend", "cpu"]),
        st.integers(0, 12).map(lambda n: n * 1000),
        st.sampled_from([None, "ann", "bob"]),
    ),
    max_size=3,
    unique_by=lambda q: (q.group, q.resource, q.user),
)


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    """A queue, and running work that an earlier plan really placed."""
    machines = draw(nodes())
    earlier = plan(Snapshot(0.0, machines, draw(jobs("run", 5)), policy=BY_AGE))
    holding = tuple(_holding(placement) for placement in earlier.placements)
    return Snapshot(10.0, machines, draw(jobs("job", 6)), holding, groups_with(draw(QUOTAS)), BY_AGE)


def _holding(placement: Placement) -> Workload:
    job = a_job(placement.workload, replicas=len(placement.allotments))
    return advance(job, Placed(placement.allotments), 0.0).workload


def given_out(world: Snapshot, outcome: Plan) -> list[Allotment]:
    held = [r.allotment for w in world.holding if w.attempt for r in w.attempt.replicas]
    return held + [a for p in outcome.placements for a in p.allotments.values()]


@given(worlds())
@settings(max_examples=300, deadline=None)
def test_no_card_core_or_byte_is_given_twice(world: Snapshot) -> None:
    outcome = plan(world)
    cards: Counter[tuple[str, int]] = Counter()
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for allotment in given_out(world, outcome):
        cpu[allotment.node] += allotment.cpu_milli
        memory[allotment.node] += allotment.memory
        for share in allotment.cards:
            cards[allotment.node, share.index] += share.milli
    capacity = {node.name: node for node in world.nodes}
    assert all(amount <= 1000 for amount in cards.values())
    assert all(amount <= capacity[name].cpu_milli for name, amount in cpu.items())
    assert all(amount <= capacity[name].memory for name, amount in memory.items())


@given(worlds())
@settings(max_examples=300, deadline=None)
def test_everyone_is_placed_whole_on_ready_nodes_and_well_cards_or_has_a_reason(world: Snapshot) -> None:
    outcome = plan(world)
    placed = {p.workload: p for p in outcome.placements}
    assert placed.keys() | outcome.waiting.keys() == {w.id for w in world.queue}
    assert not placed.keys() & outcome.waiting.keys()
    machines = {node.name: node for node in world.nodes}
    for workload in world.queue:
        if workload.id not in placed:
            continue
        allotments = placed[workload.id].allotments
        role = workload.spec.roles[0]
        assert len(allotments) == role.replicas
        for allotment in allotments.values():
            node = machines[allotment.node]
            assert node.state is NodeState.READY
            wanted = role.resources.cards
            assert allotment.cards_milli == (wanted.milli if wanted else 0)
            for share in allotment.cards:
                card = node.cards[share.index]
                assert not card.trouble
                assert wanted is not None
                assert card.device == wanted.device


@given(worlds())
@settings(max_examples=300, deadline=None)
def test_no_quota_is_exceeded_by_what_the_plan_adds(world: Snapshot) -> None:
    outcome = plan(world)
    by_id = {w.id: w for w in world.queue}
    for quota in (quota for group in world.groups.values() for quota in group.quotas):
        before = after = 0
        for workload in world.holding:
            if workload.group == quota.group and quota.user in (None, workload.owner) and workload.attempt:
                before += amounts_of(r.allotment for r in workload.attempt.replicas).get(quota.resource, 0)
        for placement in outcome.placements:
            workload = by_id[placement.workload]
            if workload.group == quota.group and quota.user in (None, workload.owner):
                after += amounts_of(placement.allotments.values()).get(quota.resource, 0)
        assert not after or quota.limit is None or before + after <= quota.limit


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_the_same_world_gives_the_same_plan_in_whatever_order_it_is_listed(world: Snapshot) -> None:
    turned = replace(world, queue=world.queue[::-1], holding=world.holding[::-1])
    first, second = plan(world), plan(turned)
    assert {p.workload: p.allotments for p in first.placements} == {p.workload: p.allotments for p in second.placements}
    assert {id: r.code for id, r in first.waiting.items()} == {id: r.code for id, r in second.waiting.items()}


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_later_work_never_delays_an_earlier_waiter(world: Snapshot) -> None:
    """Whoever is placed in the full world while an earlier one waits would leave that one waiting all the same."""
    outcome = plan(world)
    queue = sorted(world.queue, key=lambda w: (-w.spec.priority, w.submitted_at, w.id))
    for position, workload in enumerate(queue):
        without_later = plan(replace(world, queue=tuple(queue[: position + 1])))
        assert (workload.id in outcome.waiting) == (workload.id in without_later.waiting)


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_a_second_pass_over_the_outcome_places_nobody_else(world: Snapshot) -> None:
    outcome = plan(world)
    placed = {p.workload: p.allotments for p in outcome.placements}
    by_id = {w.id: w for w in world.queue}
    started = tuple(advance(by_id[id], Placed(allotments), 10.0).workload for id, allotments in placed.items())
    after = replace(world, queue=tuple(w for w in world.queue if w.id not in placed), holding=world.holding + started)
    assert not plan(after).placements


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_what_never_fits_does_not_fit_an_empty_cluster_either(world: Snapshot) -> None:
    outcome = plan(world)
    never = {Code.NEVER_FITS, Code.NEEDS_REPLICAS, Code.NO_SUCH_DEVICE, Code.NO_NODES}
    well = tuple(replace(n, cards=tuple(replace(c, trouble="", holder_pid=0) for c in n.cards)) for n in world.nodes)
    for workload in world.queue:
        alone = plan(Snapshot(10.0, well, (workload,), policy=BY_AGE))
        reason = outcome.waiting.get(workload.id)
        if reason is not None and reason.code in never:
            assert not alone.placements
        elif reason is not None and reason.code in {Code.BUSY, Code.ORDER, Code.CARD_HELD}:
            assert alone.placements


@given(worlds())
@settings(max_examples=200, deadline=None)
def test_needs_replicas_really_starts_on_an_empty_cluster_when_asked_that_way(world: Snapshot) -> None:
    for workload in world.queue:
        reason = plan(Snapshot(10.0, world.nodes, (workload,), policy=BY_AGE)).waiting.get(workload.id)
        if reason is None or reason.code is not Code.NEEDS_REPLICAS:
            continue
        asked = workload.spec.roles[0].resources.cards
        assert asked is not None
        split = a_job(cards=reason.facts["each"], device=asked.device, replicas=reason.facts["replicas"])
        well = tuple(replace(n, cards=tuple(replace(c, trouble="") for c in n.cards)) for n in world.nodes)
        assert plan(Snapshot(10.0, well, (split,), policy=BY_AGE)).placements


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_a_preview_is_what_submitting_it_does(world: Snapshot) -> None:
    job = a_job("zpreview01", cards=1, at=9.0)
    answer = preview(world, job)
    outcome = plan(replace(world, queue=(*world.queue, job)))
    assert answer.starts == ("zpreview01" not in outcome.waiting)
