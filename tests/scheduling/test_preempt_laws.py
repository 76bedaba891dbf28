"""Whose work may be interrupted, by whom, at which price: the rule once more, and the cheapest set by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, permutations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling import rules
from tests.scheduling.worlds import NOW, Rough, worlds

from gpuyard.domain.policy import Preempting
from gpuyard.domain.workload import State, Workload
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Eviction, Plan, Rule, Snapshot


def crowded() -> st.SearchStrategy[Snapshot]:
    """Worlds in which much runs that can be taken back, and what waits is worth it."""
    rough = st.builds(
        Rough,
        st.integers(0, 2**32),
        st.integers(1, 4),
        st.integers(1, 8),
        st.integers(4, 12),
        st.sampled_from([False, False, True]),
        st.just(False),
    )
    return rough.map(Rough.world).map(_with_preemption)


def _with_preemption(world: Snapshot) -> Snapshot:
    old = tuple(
        replace(w, attempt=replace(w.attempt, started_at=w.attempt.started_at - 400))
        if w.attempt is not None and w.attempt.started_at is not None
        else w
        for w in world.holding
    )
    preempt = world.policy.preempt if world.policy.preempt.enabled else Preempting()
    return replace(world, holding=old, policy=replace(world.policy, preempt=preempt))


def workload(world: Snapshot, id: str) -> Workload:
    return next(w for w in (*world.queue, *world.holding) if w.id == id)


def by_claimant(outcome: Plan) -> dict[str, list[Eviction]]:
    found: dict[str, list[Eviction]] = {}
    for eviction in outcome.evictions:
        found.setdefault(eviction.by, []).append(eviction)
    return found


# --- the rule, once more ------------------------------------------------------------------------------------------


class Ledger:
    """What groups use while victims leave one after the other."""

    def __init__(self, world: Snapshot) -> None:
        self.world = world
        self.used: Counter[tuple[str, str]] = Counter()
        for one in world.holding:
            if one.state is not State.STOPPING:
                self.add(one, 1)

    def add(self, one: Workload, sign: int) -> None:
        for resource, amount in rules.amounts(rules.allotments(one)).items():
            self.used[one.group, resource] += sign * amount

    def is_beyond(self, group: str, resources: Iterable[str]) -> bool:
        groups = self.world.groups
        return any(self.used[group, one] > rules.guaranteed(groups, group, one) for one in resources)

    def asks_within(self, one: Workload, others: Iterable[Workload]) -> set[str]:
        """The promised resources it asks for, when its group stays within all its guarantees; else none."""
        groups, asked = self.world.groups, least(one)
        mine = {resource for resource, amount in asked.items() if amount and resource in rules.promised(groups)}
        held: Counter[str] = Counter()
        for other in (*self.world.holding, *others):
            if other.group == one.group:
                held += rules.amounts(rules.allotments(other)) if other.attempt else least(other)
        within = all(held[one_] + asked[one_] <= rules.guaranteed(groups, one.group, one_) for one_ in mine)
        return mine if within else set()


def least(one: Workload) -> Counter[str]:
    """What it names, and its cards."""
    total: Counter[str] = Counter()
    for role in one.spec.roles:
        asked = role.resources
        total["cpu"] += (asked.cpu_milli or 0) * role.replicas
        total["memory"] += (asked.memory or 0) * role.replicas
        if asked.cards is not None:
            total[asked.cards.device] += asked.cards.milli * role.replicas
    return total


def right(ledger: Ledger, claimant: Workload, taken_back: set[str], victim: Workload) -> Rule | None:
    """By which right the one may push out the other as things stand in the ledger."""
    holds = rules.amounts(rules.allotments(victim))
    if claimant.group != victim.group:
        shared = {resource for resource in taken_back if holds[resource]}
        if ledger.is_beyond(victim.group, shared):
            return Rule.GUARANTEE
    if not ledger.world.policy.preempt.for_priority or claimant.spec.priority <= victim.spec.priority:
        return None
    promised = [resource for resource in rules.promised(ledger.world.groups) if holds[resource]]
    beyond = ledger.is_beyond(victim.group, promised)
    if claimant.group != victim.group and promised and not beyond:
        return None
    mine, its = place(ledger.world, claimant), place(ledger.world, victim)
    if claimant.group != victim.group:
        return Rule.PRIORITY if (not taken_back, *mine) < (not promised or beyond, *its) else None
    group = ledger.world.groups.get(victim.group)
    if group is not None and group.fifo:
        return None
    return Rule.PRIORITY if (*mine, not taken_back) < (*its, not promised or beyond) else None


def place(world: Snapshot, one: Workload) -> tuple[int, int]:
    """Where it stands in the queue, or would if it were put back: the admin's people, then priority and age."""
    rule = world.policy.order
    person = rule.people.index(one.owner) if one.owner in rule.people else len(rule.people)
    waited = int((world.now - one.submitted_at) // rule.age_every) * rule.age_points
    return person, -min(1000, one.spec.priority + waited)


def entitled_in_some_order(ledger: Ledger, claimant: Workload, taken_back: set[str], victims: list[Workload]) -> bool:
    for order in permutations(victims):
        gone = []
        for victim in order:
            if right(ledger, claimant, taken_back, victim) is None:
                break
            ledger.add(victim, -1)
            gone.append(victim)
        for victim in gone:
            ledger.add(victim, 1)
        if len(gone) == len(victims):
            return True
    return False


# --- laws ---------------------------------------------------------------------------------------------------------


@given(crowded())
@settings(max_examples=250, deadline=None)
def test_only_preemptible_work_that_ran_long_enough_is_interrupted_and_each_only_once(world: Snapshot) -> None:
    outcome = plan(world)
    assert len({eviction.workload for eviction in outcome.evictions}) == len(outcome.evictions)
    assert world.policy.preempt.enabled or not outcome.evictions
    for eviction in outcome.evictions:
        victim = workload(world, eviction.workload)
        assert victim.spec.preemptible
        assert victim.state in (State.RUNNING, State.STARTING)
        assert victim.attempt is not None
        begun = victim.attempt.started_at if victim.attempt.started_at is not None else NOW
        assert NOW - begun >= world.policy.preempt.min_run
        assert eviction.lost_seconds == NOW - max(begun, victim.attempt.saved_at or begun)
        assert eviction.by in outcome.waiting


@given(crowded())
@settings(max_examples=300, deadline=None)
def test_nobody_is_interrupted_for_the_unentitled(world: Snapshot) -> None:
    outcome = plan(world)
    ledger = Ledger(world)
    starts = {p.workload: workload(world, p.workload) for p in outcome.placements}
    for p in outcome.placements:  # what starts in this very plan is used before anybody claims
        one = starts[p.workload]
        for resource, amount in rules.amounts(p.allotments.values()).items():
            ledger.used[one.group, resource] += amount
    earlier: list[Workload] = []
    for claimant, evictions in by_claimant(outcome).items():
        victims = [workload(world, eviction.workload) for eviction in evictions]
        asks = workload(world, claimant)
        taken_back = ledger.asks_within(asks, earlier)
        for eviction, victim in zip(evictions, victims, strict=True):
            assert right(ledger, asks, taken_back, victim) in (eviction.rule, Rule.GUARANTEE)
        if len(victims) <= 5:
            assert entitled_in_some_order(ledger, asks, taken_back, victims)
        for victim in victims:
            ledger.add(victim, -1)
        earlier.append(asks)


def without(world: Snapshot, gone: Iterable[str], claimant: str) -> Plan:
    """What would happen to the claimant, alone in the queue, if these were gone."""
    left = tuple(w for w in world.holding if w.id not in set(gone) and w.state is not State.STOPPING)
    none_else = replace(world.policy, preempt=Preempting(enabled=False))
    queue = tuple(w for w in world.queue if w.id == claimant)
    return plan(replace(world, queue=queue, holding=left, policy=none_else))


@given(crowded())
@settings(max_examples=200, deadline=None)
def test_the_work_that_is_interrupted_makes_room_enough_and_none_of_it_in_vain(world: Snapshot) -> None:
    """For each claimant as if it were alone in the queue: then nothing else changes the count."""
    for one in world.queue:
        alone = replace(world, queue=(one,))
        victims = [eviction.workload for eviction in plan(alone).evictions]
        if not victims:
            continue
        assert without(world, victims, one.id).placements
        for kept in victims:
            assert not without(world, [id for id in victims if id != kept], one.id).placements


@given(crowded())
@settings(max_examples=150, deadline=None)
def test_a_single_replica_starts_at_the_lowest_price_there_is(world: Snapshot) -> None:
    """By brute force over all sets of victims to whom there is a right."""
    for one in world.queue:
        if sum(role.replicas for role in one.spec.roles) != 1:
            continue
        outcome = plan(replace(world, queue=(one,)))
        ledger = Ledger(world)
        taken_back = ledger.asks_within(one, ())
        candidates = [v for v in world.holding if is_ripe(world, v) and right(ledger, one, taken_back, v)]
        if not candidates or len(candidates) > 7 or one.id not in outcome.waiting or is_cleared_for(world, one):
            continue
        if without(world, (), one.id).placements:  # what stops anyway is enough
            assert not outcome.evictions
            continue
        prices = [
            sum(price(v) for v in victims)
            for count in range(1, len(candidates) + 1)
            for victims in combinations(candidates, count)
            if entitled_in_some_order(ledger, one, taken_back, list(victims))
            and without(world, [v.id for v in victims], one.id).placements
        ]
        victims = [workload(world, eviction.workload) for eviction in outcome.evictions]
        assert bool(victims) == bool(prices)
        if prices:
            assert abs(sum(price(v) for v in victims) - min(prices)) < 1e-6


def is_cleared_for(world: Snapshot, one: Workload) -> bool:
    """Somebody is already on the way out for it: nobody else is asked meanwhile."""
    endings = [w.attempt.ending for w in world.holding if w.attempt is not None and w.attempt.ending is not None]
    return any(ending.reason.facts["by"] == one.id for ending in endings)


def is_ripe(world: Snapshot, victim: Workload) -> bool:
    if not victim.spec.preemptible or victim.attempt is None or victim.state not in (State.RUNNING, State.STARTING):
        return False
    begun = victim.attempt.started_at if victim.attempt.started_at is not None else NOW
    return NOW - begun >= world.policy.preempt.min_run


def price(victim: Workload) -> float:
    """Card-seconds lost; sixteen cores count as a card where that is more."""
    assert victim.attempt is not None
    begun = victim.attempt.started_at if victim.attempt.started_at is not None else NOW
    lost = NOW - max(begun, victim.attempt.saved_at or begun)
    return lost * sum(max(one.cards_milli, one.cpu_milli / 16) for one in rules.allotments(victim)) / 1000


@given(worlds(plain_policy=False))
@settings(max_examples=100, deadline=None)
def test_nobody_is_interrupted_where_the_policy_forbids_it(world: Snapshot) -> None:
    forbidding = replace(world, policy=replace(world.policy, preempt=Preempting(enabled=False)))
    assert not plan(forbidding).evictions
    only_guarantees = replace(world, policy=replace(world.policy, preempt=Preempting(for_priority=False)))
    assert all(eviction.rule is Rule.GUARANTEE for eviction in plan(only_guarantees).evictions)
