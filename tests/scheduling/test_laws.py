"""What no plan may ever do, whatever the world looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling import rules
from tests.scheduling.worlds import NOW, ending, held_by, worlds

from gpuyard.domain.reasons import NEVER_STARTS, Code
from gpuyard.domain.workload import State, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide, plan, preview
from gpuyard.scheduling.snapshot import Plan, Snapshot

Law = Callable[[Snapshot], None]
EXAMPLES = 150


def everywhere(examples: int = EXAMPLES) -> Callable[[Law], Law]:
    """The law holds in all worlds."""

    def dress(law: Law) -> Law:
        return settings(max_examples=examples, deadline=None)(given(worlds())(law))

    return dress


def placed(outcome: Plan) -> dict[str, Mapping[tuple[str, int], object]]:
    return {p.workload: dict(p.allotments) for p in outcome.placements}


def by_id(world: Snapshot) -> dict[str, Workload]:
    return {workload.id: workload for workload in (*world.queue, *world.holding)}


# --- what is given out --------------------------------------------------------------------------------------------


@everywhere(250)
def test_no_card_core_or_byte_is_given_twice(world: Snapshot) -> None:
    before = [one for workload in world.holding for one in rules.allotments(workload)]
    new = [one for p in plan(world).placements for one in p.allotments.values()]
    assert not rules.overgiven(world.nodes, before + new)


@everywhere(250)
def test_everyone_gets_what_was_asked_where_it_may_be_and_whole(world: Snapshot) -> None:
    """Models, pins, labels, pools, rings, shares, one node or spread, fair amounts, ready nodes, well cards."""
    known = by_id(world)
    for placement in plan(world).placements:
        assert not list(rules.faults_of_gang(world, known[placement.workload], placement.allotments))


@everywhere()
def test_everyone_in_the_queue_starts_or_has_a_reason(world: Snapshot) -> None:
    outcome = plan(world)
    starts = [p.workload for p in outcome.placements]
    assert sorted([*starts, *outcome.waiting]) == sorted(workload.id for workload in world.queue)


@everywhere(250)
def test_no_limit_is_passed_by_what_a_plan_adds(world: Snapshot) -> None:
    outcome = plan(world)
    for quota in (quota for group in world.groups.values() for quota in group.quotas):
        before = rules.used(world, None, quota.resource, quota.group, quota.user)
        after = rules.used(world, outcome, quota.resource, quota.group, quota.user)
        assert after == before or quota.limit is None or after <= quota.limit


@everywhere(250)
def test_work_that_cannot_be_taken_back_never_eats_into_what_is_guaranteed_to_others(world: Snapshot) -> None:
    outcome = plan(world)
    for resource in rules.promised(world.groups):

        def beyond(group: str, after: Plan | None, resource: str = resource) -> int:
            firm = rules.used(world, after, resource, group, firm=True)
            return max(0, firm - rules.guaranteed(world.groups, group, resource))

        names = rules.names_of_groups(world)
        if any(beyond(group, outcome) > beyond(group, None) for group in names):
            assert sum(beyond(group, outcome) for group in names) <= rules.common_part(world, resource)


# --- the same answer ----------------------------------------------------------------------------------------------


@everywhere()
def test_the_same_world_gives_the_same_plan_in_whatever_order_it_is_listed(world: Snapshot) -> None:
    turned = replace(
        world,
        nodes=world.nodes[::-1],
        queue=world.queue[::-1],
        holding=world.holding[::-1],
        groups=dict(reversed(list(world.groups.items()))),
    )
    first, second = plan(world), plan(turned)
    assert placed(first) == placed(second)
    assert set(first.evictions) == set(second.evictions)
    assert dict(first.waiting) == dict(second.waiting)


@given(worlds(), st.integers(0, 2**32))
@settings(max_examples=EXAMPLES, deadline=None)
def test_books_kept_through_any_changes_decide_the_same_as_new_ones(world: Snapshot, seed: int) -> None:
    """Work comes, goes, starts, stops and comes back before it stands as it does now; images come and go; passes are
    made in between."""
    chance = Random(seed)
    books = Books(world.nodes, world.groups, world.policy, world.past, world.run_times, ())
    everything = [*world.queue, *world.holding]
    for _ in range(3 * len(everything)):
        workload = chance.choice(everything)
        match chance.randrange(6):
            case 0:
                books.remove(workload.id)
            case 5:
                books.renew_images([replace(node, images=chance.choice(world.nodes).images) for node in world.nodes])
            case 1:
                books.put(replace(workload, state=State.PAUSED))
            case 2:
                books.put(replace(workload, state=State.QUEUED, submitted_at=workload.submitted_at - 1))
            case 3:
                decide(books, NOW - 50, news_only=chance.random() < 0.5)
            case _:
                books.put(workload)
    chance.shuffle(everything)
    for workload in everything:
        books.put(workload)
    books.renew_images(world.nodes)
    books.renew_typical(world.typical)
    kept, new = decide(books, NOW), plan(world)
    assert placed(kept) == placed(new)
    assert {p.workload: p.turn for p in kept.placements} == {p.workload: p.turn for p in new.placements}
    assert set(kept.evictions) == set(new.evictions)
    assert dict(kept.waiting) == dict(new.waiting)


@everywhere()
def test_a_decision_leaves_the_books_as_they_were(world: Snapshot) -> None:
    books = Books.of(world)
    books.line.wake(NOW)
    before = state_of(books)
    first = decide(books, NOW)
    assert state_of(books) == before
    assert decide(books, NOW) == first


def state_of(books: Books) -> dict[str, object]:
    """Everything a later decision could depend on."""
    purse, line = books.purse, books.line
    return {
        "rooms": {
            room.node.name: (
                room.cpu,
                room.memory,
                dict(room.cards),
                list(room.keeps),
                [(stack.whole, stack.milli) for stack in room.stacks],
            )
            for room in books.rooms
        },
        "empty": {room.node.name: (room.cpu, room.memory, dict(room.cards)) for room in books.empty},
        "used": {key: amount for key, amount in purse._used.items() if amount},
        "firm": {key: amount for key, amount in purse._firm.items() if amount},
        "beyond": dict(purse._firm_beyond),
        "kept": dict(purse._kept),
        "line": {(batch.group, batch.owner, batch.priority, tuple(batch.jobs)) for batch in line.batches()},
        "parked": {tuple(batch.jobs) for batch in line.parked.values()},
        "resting": set(line.resting),
        "held": dict(books.held),
        "on node": {node: set(ids) for node, ids in books.on_node.items() if ids},
        "stopping": set(books.stopping),
        "preemptible": set(books.preemptible),
    }


@everywhere()
def test_a_second_pass_over_the_outcome_starts_and_stops_nobody_else(world: Snapshot) -> None:
    """Where the order does not move by what the first pass gave out, and nothing is learned from its having started."""
    world = replace(with_a_sure_end(by_priority_and_age(world)), run_times={})
    outcome = plan(world)
    again = plan(carried_out(world, outcome))
    assert not again.evictions
    assert outcome.evictions or not again.placements  # when somebody stops, it is known when others can start


def carried_out(world: Snapshot, outcome: Plan) -> Snapshot:
    known, starts = by_id(world), placed(outcome)
    victims = {eviction.workload: eviction.by for eviction in outcome.evictions}
    new = tuple(held_by(known[p.workload], p.allotments, NOW) for p in outcome.placements)
    old = tuple(ending(w, victims[w.id]) if w.id in victims else w for w in world.holding)
    return replace(world, queue=tuple(w for w in world.queue if w.id not in starts), holding=old + new)


# --- the order ----------------------------------------------------------------------------------------------------


def by_priority_and_age(world: Snapshot) -> Snapshot:
    """The same world with an order that stands before anybody is asked."""
    order = replace(world.policy.order, fair_share=False, people=(), age_points=0)
    groups = {
        name: replace(group, fifo=False, quotas=tuple(replace(q, guaranteed=0) for q in group.quotas))
        for name, group in world.groups.items()
    }
    queue = sorted(world.queue, key=lambda w: (-w.spec.priority, w.submitted_at, w.id))
    return replace(world, policy=replace(world.policy, order=order), groups=groups, queue=tuple(queue))


def with_a_sure_end(world: Snapshot) -> Snapshot:
    """Whether anybody waits whose end is sure is known to all: let one that never starts always wait so."""
    if not world.queue:
        return world
    endless = replace(world.queue[0].spec.roles[0], replicas=10**6)
    sure = replace(world.queue[0].spec, roles=(endless,), max_seconds=1.0)
    return replace(world, queue=(replace(world.queue[0], id="asure00000", spec=sure), *world.queue))


@everywhere()
def test_what_becomes_of_one_never_depends_on_those_asked_after_it(world: Snapshot) -> None:
    """So later work never delays an earlier one that waits: it starts, or waits for the same reason, without them."""
    world = with_a_sure_end(by_priority_and_age(world))
    outcome = plan(world)
    for position in range(len(world.queue)):
        without_later = plan(replace(world, queue=world.queue[: position + 1]))
        id = world.queue[position].id
        assert placed(without_later).get(id) == placed(outcome).get(id)
        assert without_later.waiting.get(id) == outcome.waiting.get(id)


@everywhere(80)
def test_a_preview_is_what_submitting_it_does(world: Snapshot) -> None:
    for workload in world.queue[:3]:
        others = replace(world, queue=tuple(w for w in world.queue if w.id != workload.id))
        answer, outcome = preview(others, workload), plan(world)
        assert answer.starts == (workload.id not in outcome.waiting)
        assert answer.reason == outcome.waiting.get(workload.id)
        if answer.starts:
            nodes = {one.node for p in outcome.placements if p.workload == workload.id for one in p.allotments.values()}
            assert set(answer.nodes) == nodes


# --- never --------------------------------------------------------------------------------------------------------


def alone_on_an_empty_cluster(world: Snapshot, workload: Workload) -> Plan:
    well = tuple(replace(n, cards=tuple(replace(c, trouble="", holder_pid=0) for c in n.cards)) for n in world.nodes)
    return plan(replace(world, nodes=well, queue=(replace(workload, not_before=0.0),), holding=()))


@everywhere(100)
def test_what_never_starts_does_not_start_on_an_empty_cluster_either_and_what_waits_does(world: Snapshot) -> None:
    for id, reason in plan(world).waiting.items():
        alone = alone_on_an_empty_cluster(world, by_id(world)[id])
        if reason.code in NEVER_STARTS:
            assert not alone.placements
        elif reason.code in {Code.BUSY, Code.ORDER, Code.CARD_HELD, Code.FIFO, Code.OVER_QUOTA, Code.CLEARING}:
            assert alone.placements or alone.waiting[id].code is Code.BORROW


@everywhere(100)
def test_needs_replicas_really_starts_on_an_empty_cluster_when_asked_that_way(world: Snapshot) -> None:
    world = replace(world, groups={}, policy=replace(world.policy, rings={}))
    for workload in world.queue:
        reason = plan(replace(world, queue=(workload,), holding=())).waiting.get(workload.id)
        if reason is None or reason.code is not Code.NEEDS_REPLICAS or len(workload.spec.roles) > 1:
            continue
        (role,) = workload.spec.roles
        assert role.resources.cards is not None
        each = replace(role.resources, cards=replace(role.resources.cards, milli=reason.facts["each"] * 1000))
        open_amounts = replace(each, cpu_milli=None, memory=None)
        split = replace(role, replicas=reason.facts["replicas"], resources=open_amounts)
        spec = replace(workload.spec, roles=(split,))
        assert alone_on_an_empty_cluster(world, replace(workload, spec=spec)).placements
