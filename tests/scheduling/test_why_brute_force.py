"""On small random clusters the class of every reason is what an exhaustive search says, and every change offered starts
the job."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import pytest
from tests.draw import a_job

from gpuyard.dialects import native
from gpuyard.domain.cluster import Allotment, Card, Node, NodeState
from gpuyard.domain.lifecycle import Launched, Observed, Placed, advance
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import Policy, Pool
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources, is_model
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Life, RoleSpec, Seen, Spec, Together, Where, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.inquiry import Inquiry
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import Person, Placement, Remedy, Snapshot, Sort
from gpuyard.scheduling.why import asked

NOW = 100_000.0
IN_EVERY_RUN, IN_THE_SOAK = 300, 5000
FOUND_IN_THE_SOAK = (1035,)  # a place that others are leaving uses up a guarantee: those asked before had another turn
GROUPS = ("vision", "speech", "audio")
RINGS = ((0, 1, 2, 3), (4, 5, 6, 7))


# --- random worlds ------------------------------------------------------------------------------------------------


class World:
    """A small cluster with work on it and a queue, drawn from one number. Half of them have everything odd there is,
    the other half plain requests for cards of one kind, so that more is about room and order."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.plain = seed % 4 >= 2
        self.names_cpu = self.rng.random() < 0.3  # then quotas of cores make sense
        nodes = tuple(self.node(f"n{i}") for i in range(self.rng.randint(1, 3)))
        policy = self.policy()
        groups = {name: self.group(name) for name in GROUPS}
        past: dict[Person, PastUse] = {(group, None): PastUse(self.rng.choice([0, 4e4, 4e5]), NOW) for group in GROUPS}
        well = tuple(replace(node, state=NodeState.READY) for node in nodes)
        first = tuple(self.job(f"h{i:09d}") for i in range(self.rng.randint(0, 6)))
        begun = plan(Snapshot(NOW - 5000, well, first, groups=groups, policy=policy))
        holding = tuple(running(job, begun.placements) for job in first if job.id in placed(begun.placements))
        queue = tuple(self.waiting(f"q{i:09d}") for i in range(self.rng.randint(1, 8)))
        self.snapshot = Snapshot(NOW, nodes, queue, holding, groups, policy, past)
        if seed % 2:  # half of them as they are once everything that can start has started
            self.snapshot = settled(self.snapshot)

    def node(self, name: str) -> Node:
        rng = self.rng
        if self.plain:
            cards = tuple(
                Card(i, "nvidia", "A100", trouble="held by pid 7" if rng.random() < 0.03 else "")
                for i in range(rng.choice([3, 4, 4]))
            )
            return Node(name, rng.choice([8, 16]) * 1000, rng.choice([32, 64]) * GIB, cards)
        device = rng.choice(["nvidia"] * 6 + ["ascend"]) if name != "n0" else "nvidia"
        count = 8 if device == "ascend" else rng.choice([2, 3, 4, 4] if name == "n0" else [0, 2, 3, 4, 4])
        models = (
            [rng.choice(["A100", "P100"])] * count if rng.random() < 0.8 else ["A100", "P100", "P100", "A100"][:count]
        )
        held = rng.randrange(8) if rng.random() < 0.2 else -1
        cards = tuple(
            Card(i, device, "910B" if device == "ascend" else models[i], trouble="held by pid 7" if i == held else "")
            for i in range(count)
        )
        state = rng.choice([NodeState.READY] * 16 + [NodeState.LOST, NodeState.CORDONED])
        labels = (("zone", rng.choice("ab")),) if rng.random() < 0.5 else ()
        return Node(name, rng.choice([8, 16]) * 1000, rng.choice([32, 64]) * GIB, cards, state, labels)

    def policy(self) -> Policy:
        if self.plain or self.rng.random() < 0.8:
            return Policy(backfill=self.rng.random() < 0.7)
        pools = {"old": Pool(models=("P100", "910B"))}
        return Policy(pools=pools, group_pools={self.rng.choice(GROUPS): ("old",)})

    def group(self, name: str) -> Group:
        rng, quotas = self.rng, []
        if rng.random() < 0.5:
            limit = rng.choice([None, 1000, 2000, 4000])
            quotas.append(Quota(name, "nvidia", limit, guaranteed=rng.choice([0, 0, 1000, 2000])))
        if rng.random() < 0.2:
            quotas.append(Quota(name, "nvidia", rng.choice([1000, 3000]), user="ann"))
        if self.names_cpu and rng.random() < 0.5:
            quotas.append(Quota(name, "cpu", rng.choice([2000, 8000])))
        return Group(name, tuple(quotas), weight=rng.choice([1.0, 1.0, 2.0]), fifo=rng.random() < 0.15)

    def job(self, id: str) -> Workload:
        rng = self.rng
        roles = [self.role("worker")]
        if rng.random() < 0.15:
            roles.append(self.role("ps"))
        spec = Spec(
            id,
            tuple(roles),
            priority=rng.choice([500, 500, 500, 700]),
            preemptible=rng.random() < 0.3,
            max_seconds=rng.choice([None, None, None, 600.0, 7200.0]),
            together=rng.choice([Together.ANY] * 8 + [Together.ONE_NODE, Together.SPREAD]),
        )
        at = NOW - rng.choice([10.0, 100.0, 1000.0, 90_000.0]) - rng.random()
        return replace(a_job(id, owner=rng.choice(["ann", "bob"]), group=rng.choice(GROUPS), at=at), spec=spec)

    def waiting(self, id: str) -> Workload:
        job = self.job(id)
        return replace(job, not_before=NOW + 60) if self.rng.random() < 0.05 else job

    def role(self, name: str) -> RoleSpec:
        rng = self.rng
        cards = None
        if self.plain:
            cards = Cards("nvidia", rng.choice([250, 500, 1000, 1000, 2000, 2000, 3000]))
        elif rng.random() < 0.85:
            device = rng.choice(["nvidia"] * 12 + ["ascend"])
            milli = rng.choice([250, 500, 1000, 1000, 1000, 2000, 2000, 2000, 3000, 4000])
            models = rng.choice([(), (), (), (), (), (), ("a100",), ("P100", "V100")]) if device == "nvidia" else ()
            cards = Cards(device, milli, models)
        cpu = rng.choice([500, 1000, 1000, 3000]) if self.names_cpu or rng.random() < 0.3 else None
        memory = rng.choice([None, None, None, 1, 2, 10])
        where = (
            Where()
            if self.plain
            else rng.choice([Where()] * 14 + [Where(nodes=("n0",)), Where(labels=(("zone", "a"),))])
        )
        asked = Resources(cpu, None if memory is None else memory * GIB, None, cards)
        return RoleSpec(name, ("true",), rng.choice([1, 1, 1, 1, 1, 2, 3]), asked, where=where)


def settled(world: Snapshot) -> Snapshot:
    begun = plan(world).placements
    started = tuple(running(job, begun, at=NOW) for job in world.queue if job.id in placed(begun))
    left = tuple(job for job in world.queue if job.id not in placed(begun))
    return replace(world, queue=left, holding=(*world.holding, *started))


def placed(placements: Iterable[Placement]) -> dict[str, Placement]:
    return {placement.workload: placement for placement in placements}


def running(job: Workload, placements: Iterable[Placement], at: float = NOW - 4000) -> Workload:
    begun = advance(job, Placed(placed(placements)[job.id].allotments), at).workload
    assert begun.attempt is not None
    ids = [replica.id for replica in begun.attempt.replicas]
    begun = advance(begun, Launched(dict.fromkeys(ids, "h")), at).workload
    return advance(begun, Observed(dict.fromkeys(ids, Seen(Life.RUNNING, started_at=at))), at).workload


# --- the exhaustive search ----------------------------------------------------------------------------------------


@dataclass
class Free:
    """What one node has left."""

    node: Node
    cpu: int
    memory: int
    left: dict[int, int]


def free_nodes(world: Snapshot, given: Iterable[Allotment], *, empty: bool, healed: bool) -> dict[str, Free]:
    found = {}
    for node in world.nodes:
        if node.state is NodeState.READY or healed:
            left = {c.index: 0 if c.trouble and not (empty or healed) else WHOLE_CARD for c in node.cards}
            found[node.name] = Free(node, node.cpu_milli, node.memory, left)
    for allotment in () if empty else given:
        free = found.get(allotment.node)
        if free is not None:
            free.cpu -= allotment.cpu_milli
            free.memory -= allotment.memory
            for share in allotment.cards:
                free.left[share.index] -= share.milli
    return found


def can_start(job: Workload, policy: Policy, cluster: dict[str, Free]) -> bool:
    """Is there any way at all to give every replica its place?"""
    replicas = [role for role in job.spec.roles for _ in range(role.replicas)]
    together = job.spec.together if len(replicas) > 1 else Together.ANY
    with_cards = sum(1 for role in replicas if role.resources.cards)

    def settle(position: int, used: tuple[str, ...]) -> bool:
        if position == len(replicas):
            return True
        role = replicas[position]
        for name, free in cluster.items():
            if (together is Together.ONE_NODE and used and name != used[0]) or (
                together is Together.SPREAD and name in used
            ):
                continue
            whole_only = with_cards > 1 and together is not Together.ONE_NODE
            for cpu, memory, cards in ways(role, job.group, policy, free, whole_only):
                take(free, cpu, memory, cards)
                done = settle(position + 1, (*used, name))
                take(free, -cpu, -memory, {index: -milli for index, milli in cards.items()})
                if done:
                    return True
        return False

    return settle(0, ())


def take(free: Free, cpu: int, memory: int, cards: Mapping[int, int]) -> None:
    free.cpu -= cpu
    free.memory -= memory
    for index, milli in cards.items():
        free.left[index] -= milli


def ways(
    role: RoleSpec, group: str, policy: Policy, free: Free, whole_only: bool
) -> Iterator[tuple[int, int, dict[int, int]]]:
    """Every way to put one replica here that differs in what it leaves."""
    node, asked = free.node, role.resources
    if role.where.nodes and node.name not in role.where.nodes:
        return
    if any(label not in node.labels for label in role.where.labels):
        return
    part, whole = (
        (asked.cards.milli, len(node.cards) * 1000)
        if asked.cards and node.cards
        else (
            min(asked.cpu_milli or 1000, node.cpu_milli),
            node.cpu_milli,
        )
    )
    cpu = asked.cpu_milli if asked.cpu_milli is not None else node.cpu_milli * part // whole
    memory = asked.memory if asked.memory is not None else node.memory * part // whole
    if cpu > free.cpu or memory > free.memory:
        return
    pool = policy.pools["old"].models if group in policy.group_pools else ()
    if asked.cards is None:
        if not pool or not node.cards or any(is_model(m, c.model) for m in pool for c in node.cards):
            yield cpu, memory, {}
        return
    for model in sorted({c.model for c in node.cards if c.device == asked.cards.device}):
        if asked.cards.models and not any(is_model(m, model) for m in asked.cards.models):
            continue
        if pool and not any(is_model(m, model) for m in pool):
            continue
        for cards in card_sets(asked.cards, [c.index for c in node.cards if c.model == model], free.left, whole_only):
            yield cpu, memory, cards


def card_sets(asked: Cards, indices: list[int], left: dict[int, int], whole_only: bool) -> Iterator[dict[int, int]]:
    if asked.is_share:
        for index in indices:
            if left[index] >= asked.milli:
                yield {index: asked.milli}
        return
    whole = [index for index in indices if left[index] == WHOLE_CARD]
    for chosen in combinations(whole, asked.whole):
        if asked.device == "ascend" and not ring_allows(chosen, indices, whole_only):
            continue
        yield dict.fromkeys(chosen, WHOLE_CARD)
        if asked.device != "ascend":
            return  # whole cards of one model are all alike


def ring_allows(chosen: tuple[int, ...], indices: list[int], whole_only: bool) -> bool:
    if len(chosen) == len(indices):
        return True
    return not whole_only and len(chosen) in (1, 2, 4) and any(set(chosen) <= set(ring) for ring in RINGS)


def breaks_the_rings(job: Workload, world: Snapshot) -> bool:
    """A number of chips that no machine could ever give, whether it is there or not."""
    if not any(card.device == "ascend" for node in world.nodes for card in node.cards):
        return False
    roles = [role for role in job.spec.roles if role.resources.cards]
    apart = sum(role.replicas for role in roles) > 1 and job.spec.together is not Together.ONE_NODE
    chips = [r.resources.cards for r in roles if r.resources.cards and r.resources.cards.device == "ascend"]
    return any(not c.is_share and c.whole not in ((8,) if apart else (1, 2, 4, 8)) for c in chips)


# --- quotas, added up by hand -------------------------------------------------------------------------------------


def least(job: Workload) -> Counter[str]:
    total: Counter[str] = Counter()
    for role in job.spec.roles:
        total["cpu"] += (role.resources.cpu_milli or 0) * role.replicas
        if role.resources.cards:
            total[role.resources.cards.device] += role.resources.cards.milli * role.replicas
    return total


def use_of(runs: Iterable[tuple[Workload, Iterable[Allotment]]]) -> Iterator[tuple[Workload, str, int]]:
    for workload, allotments in runs:
        for allotment in allotments:
            yield workload, "cpu", allotment.cpu_milli
            if allotment.cards:
                yield workload, allotment.device, allotment.cards_milli


def limits_of(job: Workload, world: Snapshot) -> Iterator[tuple[Quota, int]]:
    for quota in world.groups[job.group].quotas:
        if quota.limit is not None and quota.user in (None, job.owner):
            yield quota, quota.limit


def below_the_ask(job: Workload, world: Snapshot) -> bool:
    return any(least(job)[quota.resource] > limit for quota, limit in limits_of(job, world))


def refused(job: Workload, world: Snapshot, uses: list[tuple[Workload, str, int]]) -> bool:
    wanted = least(job)
    for quota, limit in limits_of(job, world):
        used = sum(
            n for w, r, n in uses if w.group == job.group and r == quota.resource and quota.user in (None, w.owner)
        )
        if wanted[quota.resource] and used + wanted[quota.resource] > limit:
            return True
    return not job.spec.preemptible and any(borrows_too_much(job, world, uses, r) for r in wanted if wanted[r])


def borrows_for_ever(job: Workload, world: Snapshot) -> bool:
    """If nothing ran, and every machine were there, it would still be too much."""
    whole = replace(world, nodes=tuple(replace(node, state=NodeState.READY) for node in world.nodes))
    wanted = least(job)
    return not job.spec.preemptible and any(borrows_too_much(job, whole, [], one) for one in wanted if wanted[one])


def borrows_too_much(job: Workload, world: Snapshot, uses: list[tuple[Workload, str, int]], resource: str) -> bool:
    promised = {
        group.name: sum(q.guaranteed for q in group.quotas if q.resource == resource and q.user is None)
        for group in world.groups.values()
    }
    if not any(promised.values()):
        return False
    cards = [c for n in world.nodes if n.state is not NodeState.LOST for c in n.cards if c.device == resource]
    common = max(0, len(cards) * WHOLE_CARD - sum(promised.values()))
    firm = Counter[str]()
    for workload, name, amount in uses:
        if name == resource and not workload.spec.preemptible:
            firm[workload.group] += amount
    after = firm[job.group] + least(job)[resource]
    beyond = sum(max(0, firm[g] - promised.get(g, 0)) for g in firm if g != job.group)
    mine = max(0, after - promised.get(job.group, 0))
    return mine > 0 and beyond + mine > common


# --- the class by definition --------------------------------------------------------------------------------------


def by_brute_force(job: Workload, world: Snapshot, placements: Iterable[Placement]) -> Sort:
    if job.not_before > world.now:
        return Sort.TROUBLE
    if not can_start(job, world.policy, free_nodes(world, (), empty=True, healed=False)):
        none_there = all(node.state is not NodeState.READY for node in world.nodes)
        back = can_start(job, world.policy, free_nodes(world, (), empty=True, healed=True))
        return Sort.TROUBLE if back or (none_there and not breaks_the_rings(job, world)) else Sort.NEVER
    if below_the_ask(job, world) or borrows_for_ever(job, world):
        return Sort.NEVER
    runs = [(w, [r.allotment for r in w.attempt.replicas]) for w in world.holding if w.attempt]
    by_id = {w.id: w for w in world.queue}
    runs += [(by_id[p.workload], list(p.allotments.values())) for p in placements]
    if refused(job, world, list(use_of(runs))):
        return Sort.QUOTA
    given = [allotment for _, allotments in runs for allotment in allotments]
    if can_start(job, world.policy, free_nodes(world, given, empty=False, healed=False)):
        return Sort.ORDER
    healed = can_start(job, world.policy, free_nodes(world, given, empty=False, healed=True))
    return Sort.TROUBLE if healed else Sort.BUSY


def changed(job: Workload, remedy: Remedy) -> Workload:
    """The job with the change as `yard rerun --set` makes it."""
    data = native.write_job(job.spec, job.group)
    for key, value in remedy.changes:
        data = native.set_value(data, key, value)
    read = native.read_job(data, None, default_device="nvidia")
    assert read.group is not None
    return replace(job, spec=read.spec, group=read.group)


def check(seed: int) -> Counter[str]:
    world = World(seed).snapshot
    outcome = plan(world)
    inquiry = Inquiry(Books.of(world), world.now)
    told: Counter[str] = Counter()
    for job in world.queue:
        proof = asked(inquiry, job.id, groups=GROUPS)
        if proof is None:
            assert job.id not in outcome.waiting, f"seed {seed}: {job.id} waits and nobody says why"
            continue
        expected = by_brute_force(job, world, outcome.placements)
        assert proof.sort is expected, f"seed {seed}: {job.id} is {expected}, told {proof.sort} ({proof.reason})"
        told[proof.sort] += 1
        for remedy in proof.remedies:
            told[f"remedy {remedy.kind}"] += 1
            other = changed(job, remedy)
            queue = tuple(other if one.id == job.id else one for one in world.queue)
            starts = placed(plan(replace(world, queue=queue)).placements)
            assert job.id in starts, f"seed {seed}: {job.id} does not start with {remedy}"
    inquiry.close()
    assert plan(world) == outcome
    return told


def test_on_small_random_clusters_the_class_is_right_and_every_change_offered_starts_the_job() -> None:
    told = sum((check(seed) for seed in (*range(IN_EVERY_RUN), *FOUND_IN_THE_SOAK)), Counter[str]())
    assert all(told[sort] for sort in Sort), told


@pytest.mark.soak
def test_on_thousands_of_random_clusters_the_class_is_right_and_every_change_offered_starts_the_job() -> None:
    told = sum((check(seed) for seed in range(IN_EVERY_RUN, IN_EVERY_RUN + IN_THE_SOAK)), Counter[str]())
    assert all(told[sort] for sort in Sort), told
