"""Moves of running work for a job whose cards are free, but not together: the fewest, the cheapest, by the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, groups_with, running
from tests.scheduling.worlds import ending

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Quota
from gpuyard.domain.policy import Defragment, Defragmenting, Policy, Preempting
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import Kind, Together, Workload
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Eviction, Rule, Snapshot
from gpuyard.scheduling.which_moves import sets_of

NOW = 100_000.0
MOVE = Defragment(Defragmenting.MOVE)


def policy(rule: Defragment = MOVE) -> Policy:
    return Policy(defragment=rule, preempt=Preempting(enabled=False))


def preemptible(job: Workload) -> Workload:
    return replace(job, spec=replace(job.spec, preemptible=True))


def saved(job: Workload, ago: float = 60.0) -> Workload:
    assert job.attempt is not None
    return replace(job, attempt=replace(job.attempt, saved_at=NOW - ago))


def small(id: str, cards: float, node: str, *held: int, ago: float = 60.0) -> Workload:
    """Preemptible work that has run for long and saved so long ago."""
    return saved(running(preemptible(a_job(id, cards=cards, cpu=1, memory_gib=1, at=100.0)), (node, held)), ago)


def waiting(cards: float, replicas: int = 1, priority: int = 500) -> Workload:
    at = NOW - 1000.0
    return a_job("waits00001", cards=cards, cpu=1, memory_gib=1, at=at, replicas=replicas, priority=priority)


NODES = (a_node("a", 4), a_node("b", 4))


def moves(
    *holding: Workload, nodes: Sequence[Node] = NODES, rule: Defragment = MOVE, cards: float = 4, replicas: int = 1
) -> list[Eviction]:
    outcome = plan(Snapshot(NOW, tuple(nodes), (waiting(cards, replicas),), holding, policy=policy(rule)))
    return list(outcome.evictions)


def goes(eviction: Eviction) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.node, tuple(share.index for share in one.cards)) for one in eviction.to.values()]


# --- which moves --------------------------------------------------------------------------------------------------


def test_the_work_that_loses_less_moves_to_a_place_that_is_free_and_the_one_that_waits_is_told() -> None:
    one, two = small("small00001", 1, "a", 0), small("small00002", 1, "b", 2, ago=5.0)
    outcome = plan(Snapshot(NOW, NODES, (waiting(4),), (one, two), policy=policy()))
    (eviction,) = outcome.evictions
    assert (eviction.workload, eviction.by, eviction.rule) == ("small00002", "waits00001", Rule.DEFRAGMENT)
    assert eviction.lost_seconds == 5.0
    assert goes(eviction) == [("a", (1,))]
    assert outcome.waiting["waits00001"].code is Code.MOVING
    assert outcome.waiting["waits00001"].facts["jobs"] == ["small00002"]


@pytest.mark.parametrize("mode", [Defragmenting.PROPOSE, Defragmenting.NEVER])
def test_nothing_moves_unless_the_policy_says_so(mode: Defragmenting) -> None:
    assert not moves(small("small00001", 1, "a", 0), small("small00002", 1, "b", 2), rule=Defragment(mode))


def test_fewer_moves_come_before_a_lower_price() -> None:
    cheap = [small(f"cheap0000{n}", 1, "a", n, ago=1.0) for n in (0, 1)]
    dear = small("dear000001", 2, "b", 0, 1, ago=800.0)
    assert [one.workload for one in moves(*cheap, dear)] == ["dear000001"]


def test_several_move_where_one_is_not_enough_but_no_more_than_allowed() -> None:
    here = [small(f"here00000{n}", 1, "a", n) for n in (0, 1)]
    firm = [running(a_job(f"firm00000{n}", cards=1, at=100.0), ("b", (n,))) for n in (0, 1)]
    assert {one.workload for one in moves(*here, *firm)} == {"here000000", "here000001"}
    assert not moves(*here, *firm, rule=replace(MOVE, moves=1))


def test_nobody_moves_where_cards_are_not_enough_or_nothing_would_fit_afterwards() -> None:
    assert not moves(small("small00001", 2, "a", 0, 1), small("small00002", 3, "b", 0, 1, 2))  # 3 free, 4 asked for
    assert not moves(small("small00001", 3, "a", 0, 1, 2), small("small00002", 2, "b", 0, 1))  # the 2 find only 1
    apart = [a_node("a", 4), a_node("b", 3)]
    assert moves(small("small00001", 2, "a", 0, 1), small("small00002", 1, "b", 0), nodes=apart)


def test_a_place_that_another_must_leave_first_is_no_place() -> None:
    """`one` could go where `two` is, if that went elsewhere: chains are not made."""
    one, two = small("small00001", 3, "a", 0, 1, 2), small("small00002", 1, "b", 0)
    nodes = [a_node("a", 4), a_node("b", 3), a_node("c", 1)]
    assert not moves(one, two, nodes=nodes)
    assert [move.workload for move in moves(one, nodes=nodes)] == ["small00001"]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda w: replace(w, spec=replace(w.spec, preemptible=False)), MOVE),
        (lambda w: replace(w, spec=replace(w.spec, priority=501)), MOVE),
        (lambda w: replace(w, spec=replace(w.spec, kind=Kind.ENV)), MOVE),
        (lambda w: w, replace(MOVE, min_run=NOW)),
        (lambda w: w, replace(MOVE, max_lost=59.0)),
        (lambda w: w, replace(MOVE, after=1001.0)),
    ],
    ids=["firm", "higher priority", "environment", "has not run long enough", "loses too much", "has not waited"],
)
def test_nobody_moves_against_the_rules(change: Callable[[Workload], Workload], rule: Defragment) -> None:
    firm = running(a_job("firm000001", cards=1, at=100.0), ("b", (0,)))
    one = small("small00001", 1, "a", 0)
    assert moves(one, firm)
    assert not moves(change(one), firm, rule=rule)


def test_shares_come_together_on_one_card_of_the_same_node() -> None:
    halves = [small(f"half00000{n}", 0.5, "a", n) for n in (0, 1)]
    (eviction,) = moves(*halves, nodes=[a_node("a", 2)], cards=1)
    assert goes(eviction) in ([("a", (0,))], [("a", (1,))])


def test_linked_chips_are_freed_as_a_ring() -> None:
    chips = [
        saved(running(preemptible(a_job(f"chip00000{n}", cards=1, device="ascend", cpu=1, at=100.0)), ("a", (n * 4,))))
        for n in (0, 1)
    ]
    job = replace(waiting(4), spec=a_job(cards=4, device="ascend", cpu=1).spec)
    outcome = plan(Snapshot(NOW, (a_node("a", 8, device="ascend"),), (job,), tuple(chips), policy=policy()))
    (eviction,) = outcome.evictions
    ring = 1 if eviction.workload == "chip000000" else 0
    assert goes(eviction)[0][1][0] // 4 == ring


def test_gangs_wait_for_the_moves_on_all_their_nodes() -> None:
    nodes = [a_node(name, 4) for name in "abc"] + [a_node("d", 2)]
    here = [small(f"here00000{n}", 1, name, 0) for n, name in enumerate("ab")]
    firm = running(a_job("firm000001", cards=1, at=100.0), ("c", (0,)))
    found = moves(*here, firm, nodes=nodes, replicas=2)
    assert {move.workload for move in found} == {"here000000", "here000001"}


def test_a_gang_moves_as_a_whole() -> None:
    nodes = [a_node("a", 4), a_node("b", 2), a_node("c", 3)]
    gang = running(preemptible(a_job("gang000001", cards=1, replicas=2, cpu=1, at=100.0)), ("a", (0,)), ("c", (0,)))
    (move,) = moves(saved(gang), nodes=nodes)
    assert len(move.to) == 2
    assert "a" not in {node for node, _ in goes(move)}


def test_work_over_many_nodes_is_found_though_not_every_set_is_tried() -> None:
    nodes = [a_node(f"n{n}", 4) for n in range(40)] + [a_node("spare", 2)]
    here = [small(f"here0000{n:02d}", 1, f"n{n}", 0, ago=60.0 + n) for n in range(40)]
    found = moves(*here, nodes=nodes, replicas=2)
    assert [move.workload for move in found] == ["here000000", "here000001"]


def test_a_limit_that_the_new_place_would_break_is_kept() -> None:
    """On the larger node its share of what it leaves open would be more than its group may use."""
    nodes = (a_node("a", 4, cpu=8), a_node("b", 4, cpu=64))
    one = saved(running(preemptible(a_job("small00001", cards=1, at=100.0, group="speech")), ("a", (0,))))
    firm = running(a_job("firm000001", cards=1, at=100.0), ("b", (0,)))
    world = Snapshot(NOW, nodes, (waiting(4),), (one, firm), policy=policy())
    assert plan(world).evictions
    assert not plan(replace(world, groups=groups_with([Quota("speech", "cpu", 8000)]))).evictions


def test_preemption_by_right_comes_first() -> None:
    one, two = small("small00001", 1, "a", 0), small("small00002", 1, "b", 2)
    world = Snapshot(NOW, NODES, (waiting(4, priority=900),), (one, two), policy=Policy(defragment=MOVE))
    assert [eviction.rule for eviction in plan(world).evictions] == [Rule.PRIORITY]


def test_where_work_stops_anyway_nobody_moves() -> None:
    one, two = small("small00001", 1, "a", 0), small("small00002", 1, "b", 2)
    assert not moves(ending(one), two)


# --- by brute force -----------------------------------------------------------------------------------------------


def drawn(seed: int) -> Snapshot:
    """Whole cards, one replica each: what counts is how many are where."""
    dice = Random(seed)
    nodes = [a_node(name, dice.choice([2, 3, 4, 6, 6])) for name in "abcd"[: dice.randint(2, 4)]]
    holding: list[Workload] = []
    for node in nodes:
        free = list(range(len(node.cards)))
        while free and dice.random() < 0.65:
            mine = [free.pop() for _ in range(min(len(free), dice.choice([1, 1, 1, 1, 2, 3])))]
            id = f"run{len(holding):07d}"
            job = small(id, len(mine), node.name, *mine, ago=dice.choice([1.0, 7.0, 50.0, 300.0, 300.0]))
            holding.append(job if dice.random() < 0.8 else replace(job, spec=replace(job.spec, preemptible=False)))
    asks = waiting(dice.choice([2, 3, 4, 4, 6, 6]), priority=dice.choice([400, 500, 500]))
    rule = replace(MOVE, moves=dice.choice([1, 2, 3, 4]))
    return Snapshot(NOW, tuple(nodes), (asks,), tuple(holding), policy=policy(rule))


def cards_of(work: Workload) -> int:
    cards = work.spec.roles[0].resources.cards
    assert cards is not None
    return cards.whole


def node_of(work: Workload) -> str:
    assert work.attempt is not None
    return work.attempt.replicas[0].allotment.node


def possible(world: Snapshot) -> Iterator[tuple[int, float]]:
    """Every set of moves that would do: how many, and the price."""
    free = {node.name: len(node.cards) for node in world.nodes}
    for work in world.holding:
        free[node_of(work)] -= cards_of(work)
    (job,) = world.queue
    movable = [w for w in world.holding if w.spec.preemptible and w.spec.priority <= job.spec.priority]
    for node in world.nodes:
        here = [work for work in movable if node_of(work) == node.name]
        others = [name for name in free if name != node.name]
        for count in range(1, world.policy.defragment.moves + 1):
            for chosen in combinations(here, count):
                if len(node.cards) < cards_of(job) or free[node.name] + sum(map(cards_of, chosen)) < cards_of(job):
                    continue
                for targets in product(others, repeat=count):
                    used = dict.fromkeys(others, 0)
                    for work, name in zip(chosen, targets, strict=True):
                        used[name] += cards_of(work)
                    if all(used[name] <= free[name] for name in others):
                        yield count, sum(map(price, chosen))
                        break


def price(work: Workload) -> float:
    assert work.attempt is not None
    assert work.attempt.saved_at is not None
    return (NOW - work.attempt.saved_at) * cards_of(work)


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_the_fewest_moves_at_the_lowest_price_are_found_whenever_there_are_any(seed: int) -> None:
    world = drawn(seed)
    outcome = plan(world)
    if outcome.placements:
        return
    best = min(possible(world), default=None)
    chosen = [next(w for w in world.holding if w.id == eviction.workload) for eviction in outcome.evictions]
    assert ((len(chosen), sum(map(price, chosen))) if chosen else None) == best


def test_the_worlds_drawn_here_need_none_one_and_several_moves() -> None:
    counts = {len(plan(drawn(seed)).evictions) for seed in range(400)}
    assert counts >= {0, 1, 2, 3}


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), max_size=9), st.integers(1, 4), st.integers(-1, 20))
def test_sets_that_hold_enough_are_found_in_order_and_none_is_missed(sizes: list[int], count: int, least: int) -> None:
    every = combinations(range(len(sizes)), count)
    enough = [chosen for chosen in every if sum(sizes[place] for place in chosen) >= least]
    assert list(sets_of(sizes, count, least, lambda: True)) == enough


def test_thousands_of_small_ones_are_not_put_together_one_by_one() -> None:
    sizes, looks = [1] * 500 + [1000] + [1] * 500 + [1000, 1000], [0]

    def may_look() -> bool:
        looks[0] += 1
        return looks[0] < 100_000

    assert list(sets_of(sizes, 3, 3000, may_look)) == [(500, 1001, 1002)]
    assert looks[0] < 3 * len(sizes)


def test_who_may_not_look_any_more_finds_no_more() -> None:
    assert list(sets_of([1] * 9, 2, 2, iter([True, True, True] + [False] * 99).__next__)) == [(0, 1), (0, 2)]


def test_a_job_on_one_node_takes_all_replicas_into_account() -> None:
    firm = running(a_job("firm000001", cards=1, at=100.0), ("b", (0,)))
    job = waiting(2, replicas=2)
    job = replace(job, spec=replace(job.spec, together=Together.ONE_NODE))
    world = Snapshot(NOW, NODES, (job,), (small("small00001", 1, "a", 0), firm), policy=policy())
    assert [eviction.workload for eviction in plan(world).evictions] == ["small00001"]
