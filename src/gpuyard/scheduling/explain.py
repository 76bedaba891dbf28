"""The reason of a workload that the cluster cannot take now: never, not on one machine, or not yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import WHOLE_CARD, Cards, Resources, is_model
from gpuyard.domain.workload import Together, Where
from gpuyard.scheduling.fit import Ask, RoleAsk, give_back, how_many, place_gang
from gpuyard.scheduling.rings import rings_of, sizes_instead
from gpuyard.scheduling.room import Room, Rooms, fair_share

NAMED_AT_MOST = 5


def never(ask: Ask, nodes: Sequence[Node], empty: Rooms, policy: Policy, group: str) -> Reason | None:
    """Why it could not start even if nothing else ran; None when it could. `empty` is the cluster without any work."""
    ring = _ring_rule(ask, nodes, policy)
    if ring is not None:
        return ring
    if fits(ask, empty):
        return None
    away = [node for node in nodes if node.state is not NodeState.READY]
    all_ready = Rooms([replace(node, state=NodeState.READY) for node in nodes], policy, empty_and_well=True)
    if away and fits(ask, all_ready):
        return because(Code.NO_NODES, nodes=[f"{n.name} ({n.state.value})" for n in away[:NAMED_AT_MOST]])
    ready = [node for node in nodes if node.state is NodeState.READY]
    if not ready:
        return because(Code.NO_NODES, nodes=[])
    for role in ask.roles:
        reason = (
            _not_allowed(role, ready)
            or _pool_closed(ask, role, ready, group)
            or _role_never_fits(role, _open_to(role, ready))
        )
        if reason is not None:
            return reason
    return _gang_too_large(ask, ready)


def fits(ask: Ask, rooms: Rooms) -> bool:
    taken = place_gang(ask, rooms)
    if taken is None:
        return False
    give_back(taken, rooms)
    return True


def _ring_rule(ask: Ask, nodes: Sequence[Node], policy: Policy) -> Reason | None:
    several = sum(role.replicas for role in ask.roles if role.resources.cards) > 1
    apart = several and ask.together is not Together.ONE_NODE
    for role in ask.roles:
        cards = role.resources.cards
        if cards is None or cards.device not in policy.rings:
            continue
        chips = [[c.index for c in node.cards if c.device == cards.device] for node in nodes]
        allowed = sizes_instead(cards, apart, [rings_of(policy, cards.device, mine) for mine in chips])
        if allowed:
            facts = {"asked": cards.whole, "replicas": role.replicas, "allowed": list(allowed), "whole": allowed[-1]}
            return because(Code.RING, device=cards.device, **facts)
    return None


def _open_to(role: RoleAsk, nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if any(role.sieve.lets(node, model) for model in _models(role, node))]


def _models(role: RoleAsk, node: Node) -> list[str]:
    """The models of the asked device on a node; one without a name for work without cards."""
    device = role.sieve.device
    return sorted({card.model for card in node.cards if card.device == device}) if device else [""]


def _not_allowed(role: RoleAsk, nodes: Sequence[Node]) -> Reason | None:
    """Which of device, model and pins leaves no node at all?"""
    sieve = role.sieve
    with_device = [node for node in nodes if _models(role, node)]
    if not with_device:
        known = sorted({card.device for node in nodes for card in node.cards})
        return because(Code.NO_SUCH_DEVICE, device=sieve.device, known=known)
    if not any(sieve.pinned_to(node) for node in nodes):
        labels = [f"{key}={value}" for key, value in sieve.where.labels]
        return because(Code.NO_SUCH_NODE, nodes=list(sieve.where.nodes), labels=labels)
    pinned = [node for node in with_device if sieve.pinned_to(node)]
    known = sorted({model for node in pinned for model in _models(role, node)})
    if sieve.models and not any(is_model(asked, model) for asked in sieve.models for model in known):
        return because(Code.NO_SUCH_MODEL, device=sieve.device, models=list(sieve.models), known=known)
    return None if pinned else because(Code.NO_SUCH_NODE, nodes=list(sieve.where.nodes), labels=[])


def _pool_closed(ask: Ask, role: RoleAsk, nodes: Sequence[Node], group: str) -> Reason | None:
    """The pools open to the group and to this kind of workload leave no node."""
    if _open_to(role, nodes):
        return None
    anything = replace(role.sieve, models=(), where=Where())
    there = {
        card.model
        for node in nodes
        for card in node.cards
        if replace(anything, device=card.device).lets(node, card.model)
    }
    return because(Code.POOL_CLOSED, group=group, kind=ask.kind, pools=list(ask.pools), open=sorted(there))


def _role_never_fits(role: RoleAsk, nodes: Sequence[Node]) -> Reason | None:
    """One replica alone: which resource does no single node have enough of?"""
    asked = role.resources
    if asked.cards is not None:
        cards = asked.cards
        largest = max(nodes, key=lambda node: _most_alike(role, node))
        if _most_alike(role, largest) < max(1, cards.whole):
            return _too_many_cards(role, cards, largest, nodes)
        nodes = [node for node in nodes if _most_alike(role, node) >= max(1, cards.whole)]
    for resource, wanted, has in _cpu_and_memory(asked):
        biggest = max(nodes, key=has)
        if wanted(biggest) > has(biggest):
            amounts = {"asked": wanted(biggest), "largest": has(biggest), "node": biggest.name}
            return because(Code.NEVER_FITS, resource=resource, **amounts)
    return None


def _most_alike(role: RoleAsk, node: Node) -> int:
    """How many cards of one model that will do a node has."""
    models = [m for m in _models(role, node) if role.sieve.lets(node, m)]
    return max(
        (sum(1 for c in node.cards if c.device == role.sieve.device and c.model == m) for m in models), default=0
    )


def _cpu_and_memory(asked: Resources) -> Iterator[tuple[str, Callable[[Node], int], Callable[[Node], int]]]:
    yield "cpu", lambda node: fair_share(asked, node)[0], lambda node: node.cpu_milli
    yield "memory", lambda node: fair_share(asked, node)[1], lambda node: node.memory


def _too_many_cards(role: RoleAsk, cards: Cards, largest: Node, nodes: Sequence[Node]) -> Reason:
    """More cards than any machine has. If several machines together have them, say how to split it."""
    asked, has = cards.whole, _most_alike(role, largest)
    for each in range(has, 0, -1):
        if asked % each == 0 and sum(_most_alike(role, n) // each for n in nodes) >= asked // each * role.replicas:
            split = {"replicas": asked // each * role.replicas, "each": each}
            facts = {"asked": asked, "largest": has, "device": cards.device, "nodes": len(nodes)}
            return because(Code.NEEDS_REPLICAS, **facts, **split)
    total = sum(node.cards_of(cards.device) for node in nodes)
    facts = {"asked": asked * WHOLE_CARD, "largest": has * WHOLE_CARD, "node": largest.name}
    return because(Code.NEVER_FITS, resource=cards.device, total=total * WHOLE_CARD, **facts)


def _gang_too_large(ask: Ask, ready: Sequence[Node]) -> Reason:
    """Each replica fits somewhere, all of them together do not."""
    role = max(ask.roles, key=lambda r: (r.resources.cards.milli if r.resources.cards else 0) * r.replicas)
    nodes = _open_to(role, ready)
    if ask.together is Together.SPREAD and ask.replicas > len(nodes):
        return because(Code.NEVER_FITS, resource="nodes", asked=ask.replicas, largest=len(nodes), node="")
    most = max if ask.together is Together.ONE_NODE else sum
    told = [(resource, asked, most(has)) for resource, asked, has in _of_all_replicas(ask, role, nodes)]
    resource, asked, largest = next((one for one in told if one[1] > one[2]), told[0])
    facts = {"asked": asked, "largest": largest, "replicas": ask.replicas, **_scope(ask)}
    return because(Code.NEVER_FITS, resource=resource, node="", **facts)


def _of_all_replicas(ask: Ask, first: RoleAsk, nodes: Sequence[Node]) -> Iterator[tuple[str, int, list[int]]]:
    """What all replicas together ask for, and what each node has of it: cards before cores before memory."""
    if (cards := first.resources.cards) is not None:
        alike = [(r.resources.cards, r.replicas) for r in ask.roles if r.resources.cards is not None]
        asked = sum(c.milli * count for c, count in alike if c is not None and c.device == cards.device)
        yield cards.device, asked, [node.cards_of(cards.device) * WHOLE_CARD for node in nodes]
    shares = [(fair_share(role.resources, nodes[0]), role.replicas) for role in ask.roles]
    yield "cpu", sum(share[0] * count for share, count in shares), [node.cpu_milli for node in nodes]
    yield "memory", sum(share[1] * count for share, count in shares), [node.memory for node in nodes]


def _scope(ask: Ask) -> dict[str, object]:
    """Which part of the cluster is spoken of, when it is not all of it."""
    together = {"together": ask.together.value} if ask.together is Together.ONE_NODE else {}
    return {**together, **({"pools": list(ask.pools)} if ask.pools else {})}


def not_yet(ask: Ask, rooms: Rooms, troubled: Sequence[Room], *on_node: Mapping[str, Mapping[str, None]]) -> Reason:
    """It would fit if some of the running work ended, or if a held card came free. `on_node`: who is on which, and who
    was just placed there."""
    role = ask.roles[0]
    held = _held_card(role, troubled)
    if held is not None:
        return held
    closest = _closest(role, rooms)
    if closest is None:  # every node that would do is away
        return because(Code.NO_NODES, nodes=[])
    resource, wanted, free = shortage(role.resources, closest)
    jobs = sorted(id for there in on_node for id in there.get(closest.node.name, ()))[:NAMED_AT_MOST]
    facts = {"resource": resource, "asked": wanted, "free": free, "node": closest.node.name, "jobs": jobs}
    return because(Code.BUSY, replicas=ask.replicas, **facts, **_partly(ask, rooms, closest), **_scope(ask))


def _partly(ask: Ask, rooms: Rooms, closest: Room) -> dict[str, object]:
    """When one replica alone lacks nothing: how many of all have room, or that the free chips are not in a ring."""
    role = ask.roles[0]
    stacks = [s for s in closest.stacks if s.device == role.sieve.device and role.sieve.lets(closest.node, s.model)]
    if any(stack.offer(role.resources) is not None for stack in stacks):
        everywhere = stacks if ask.together is Together.ONE_NODE else rooms.shelf(role.sieve)
        most = 1 if ask.together is Together.SPREAD else role.replicas
        return {"fitting": min(role.replicas, sum(how_many(stack, role.resources, most) for stack in everywhere))}
    return {"ring": True} if any(s.rings and how_many(s, role.resources, 1) for s in stacks) else {}


def _held_card(role: RoleAsk, troubled: Sequence[Room]) -> Reason | None:
    """Named only when the held cards are what is missing on some node."""
    cards = role.resources.cards
    for room in troubled if cards is not None else ():
        assert cards is not None
        stacks = [s for s in room.stacks if s.device == cards.device and role.sieve.lets(room.node, s.model)]
        mine = {index for stack in stacks for index in stack.indices}
        idle = [c for c in room.node.cards if c.index in mine and c.trouble and room.cards[c.index] >= 0]
        free = sum(stack.whole for stack in stacks)
        if idle and free < max(1, cards.whole) <= free + len(idle):
            card = idle[0]
            facts = {"card": card.index, "pid": card.holder_pid, "holder": card.trouble}
            return because(Code.CARD_HELD, node=room.node.name, **facts)
    return None


def _closest(role: RoleAsk, rooms: Rooms) -> Room | None:
    """The node with the most of what is asked for still free."""
    first = next(rooms.shelf(role.sieve).loosest_first(), None)
    return first.room if first is not None else None


def shortage(asked: Resources, room: Room) -> tuple[str, int, int]:
    """What is missing in a room: the resource, how much is asked, how much is free."""
    if asked.cards is not None:
        device = asked.cards.device
        free = room.free_milli(device) if asked.cards.is_share else room.free_whole(device) * WHOLE_CARD
        if free < asked.cards.milli:
            return device, asked.cards.milli, free
    cpu, memory, _ = room.fair_share(asked)
    if memory > room.memory:
        return "memory", memory, max(0, room.memory)
    return "cpu", cpu, max(0, room.cpu)
