"""The rules once more, in the plainest words and without a line of the scheduler: what the laws are checked against."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gpuyard.domain.cluster import Allotment, Node, NodeState
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy, Pool
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import RoleSpec, Together, Workload
from gpuyard.scheduling.snapshot import Plan, Snapshot


def allotments(workload: Workload) -> list[Allotment]:
    return [replica.allotment for replica in workload.attempt.replicas] if workload.attempt else []


def amounts(given: Iterable[Allotment]) -> Counter[str]:
    """What they use of each resource that a quota may be about."""
    total: Counter[str] = Counter()
    for one in given:
        total["cpu"] += one.cpu_milli
        total["memory"] += one.memory
        for share in one.cards:
            total[one.device] += share.milli
    return total


# --- one place for one replica ------------------------------------------------------------------------------------


def names_model(asked: str, model: str) -> bool:
    words = re.split(r"[^a-z0-9]+", model.lower())
    return all(word in words for word in re.split(r"[^a-z0-9]+", asked.lower()) if word)


def in_pool(pool: Pool, node: Node, device: str, model: str) -> bool:
    if pool.nodes and node.name not in pool.nodes:
        return False
    if not set(pool.labels) <= set(node.labels):
        return False
    if not pool.models:
        return True
    models = {model} if device else {card.model for card in node.cards}
    return (not device and not node.cards) or any(names_model(known, one) for known in pool.models for one in models)


def is_open(policy: Policy, workload: Workload, node: Node, device: str, model: str) -> bool:
    """By the pools of its group and of its kind."""
    for names in (policy.group_pools.get(workload.group), policy.kind_pools.get(workload.spec.kind.value)):
        pools = [policy.pools[name] for name in names or () if name in policy.pools]
        if names is not None and not any(in_pool(pool, node, device, model) for pool in pools):
            return False
    return True


def fair_amounts(asked: Resources, node: Node) -> tuple[int, int, int]:
    """CPU, memory and shared memory: as named, or the node's share for its cards, or one core's worth of it."""
    if asked.cards is not None:
        part = asked.cards.milli / (1000 * len(node.cards))
    else:
        part = min(asked.cpu_milli if asked.cpu_milli is not None else 1000, node.cpu_milli) / node.cpu_milli
    cpu = asked.cpu_milli if asked.cpu_milli is not None else int(node.cpu_milli * part + 1e-6)
    memory = asked.memory if asked.memory is not None else int(node.memory * part + 1e-6)
    return cpu, memory, asked.shm if asked.shm is not None else memory // 2


def faults_of_place(world: Snapshot, workload: Workload, role: RoleSpec, given: Allotment) -> Iterator[str]:
    node = next(node for node in world.nodes if node.name == given.node)
    asked = role.resources
    if node.state is not NodeState.READY:
        yield "the node is not ready"
    if role.where.nodes and node.name not in role.where.nodes:
        yield "not one of the named nodes"
    if not set(role.where.labels) <= set(node.labels):
        yield "a label is missing"
    cpu, memory, shm = fair_amounts(asked, node)
    if abs(cpu - given.cpu_milli) > 1 or abs(memory - given.memory) > 1024 or abs(shm - given.shm) > 1024:
        yield "other amounts than asked for, or than fair"
    if asked.cards is None:
        if given.cards:
            yield "cards nobody asked for"
        if not is_open(world.policy, workload, node, "", ""):
            yield "outside the pools"
        return
    yield from _faults_of_cards(world, workload, role, given, node)


def _faults_of_cards(
    world: Snapshot, workload: Workload, role: RoleSpec, given: Allotment, node: Node
) -> Iterator[str]:
    asked = role.resources.cards
    assert asked is not None
    cards = {card.index: card for card in node.cards}
    mine = [cards[share.index] for share in given.cards]
    if sum(share.milli for share in given.cards) != asked.milli:
        yield "more or fewer cards than asked for"
    if len(mine) != max(1, asked.milli // 1000) or len({card.index for card in mine}) != len(mine):
        yield "a card twice, or a share over several cards"
    if any(card.device != asked.device for card in mine) or given.device != asked.device:
        yield "another device"
    if any(card.trouble for card in mine):
        yield "a card somebody holds"
    if len({card.model for card in mine}) > 1:
        yield "several models"
    if asked.models and not any(names_model(name, mine[0].model) for name in asked.models):
        yield "a model that was not asked for"
    if not is_open(world.policy, workload, node, asked.device, mine[0].model):
        yield "outside the pools"
    if asked.milli >= 1000:
        yield from _faults_of_rings(world.policy, node, workload, asked.device, {card.index for card in mine})


def _faults_of_rings(policy: Policy, node: Node, workload: Workload, device: str, chips: set[int]) -> Iterator[str]:
    there = {card.index for card in node.cards if card.device == device}
    rings = [set(ring) & there for ring in policy.rings.get(device, ())]
    if not any(rings):
        return
    whole = set().union(*rings)
    replicas = sum(role.replicas for role in workload.spec.roles if role.resources.cards)
    if chips == whole:
        return
    if replicas > 1 and workload.spec.together is not Together.ONE_NODE:
        yield "work on several nodes with less than all chips of a node"
    if not any(chips <= ring for ring in rings):
        yield "chips of several rings"
    if len(chips) & (len(chips) - 1):
        yield "a number of chips that is no power of two"


def faults_of_gang(world: Snapshot, workload: Workload, given: Mapping[tuple[str, int], Allotment]) -> Iterator[str]:
    """Everything that is wrong with where a workload was put; nothing when all is well."""
    wanted = {(role.name, index) for role in workload.spec.roles for index in range(role.replicas)}
    if set(given) != wanted:
        yield "not whole"
        return
    for role in workload.spec.roles:
        for index in range(role.replicas):
            yield from faults_of_place(world, workload, role, given[role.name, index])
    nodes = [one.node for one in given.values()]
    if workload.spec.together is Together.ONE_NODE and len(set(nodes)) > 1:
        yield "not on one node"
    if workload.spec.together is Together.SPREAD and len(set(nodes)) < len(nodes):
        yield "not spread"


# --- the whole ----------------------------------------------------------------------------------------------------


def overgiven(nodes: Iterable[Node], given: Iterable[Allotment]) -> list[str]:
    """Cards, cores and bytes of which more is given out than there is."""
    cards: Counter[tuple[str, int]] = Counter()
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for one in given:
        cpu[one.node] += one.cpu_milli
        memory[one.node] += one.memory
        for share in one.cards:
            cards[one.node, share.index] += share.milli
    there = {node.name: node for node in nodes}
    return [
        *(f"card {card}" for card, milli in cards.items() if milli > 1000),
        *(f"cores of {name}" for name, milli in cpu.items() if milli > there[name].cpu_milli),
        *(f"memory of {name}" for name, size in memory.items() if size > there[name].memory),
    ]


def used(
    world: Snapshot, outcome: Plan | None, resource: str, group: str, user: str | None = None, *, firm: bool = False
) -> int:
    """What a group or a user uses once the plan is carried out. `firm`: only what cannot be taken back."""
    held = [(workload, allotments(workload)) for workload in world.holding]
    by_id = {workload.id: workload for workload in world.queue}
    new = [(by_id[p.workload], list(p.allotments.values())) for p in outcome.placements] if outcome else []
    return sum(
        amounts(given)[resource]
        for workload, given in held + new
        if workload.group == group and user in (None, workload.owner) and not (firm and workload.spec.preemptible)
    )


def guaranteed(groups: Mapping[str, Group], group: str, resource: str) -> int:
    quotas = groups[group].quotas if group in groups else ()
    return sum(q.guaranteed for q in quotas if q.resource == resource and q.user is None)


def promised(groups: Mapping[str, Group]) -> set[str]:
    """The resources of which anything is guaranteed to anybody."""
    return {q.resource for group in groups.values() for q in group.quotas if q.guaranteed and q.user is None}


def common_part(world: Snapshot, resource: str) -> int:
    """What the cluster has beyond all guarantees."""
    there = sum(
        1000
        for node in world.nodes
        if node.state is not NodeState.LOST
        for card in node.cards
        if card.device == resource
    )
    return max(0, there - sum(guaranteed(world.groups, group, resource) for group in world.groups))


def names_of_groups(world: Snapshot) -> set[str]:
    return {workload.group for workload in (*world.queue, *world.holding)} | set(world.groups)
