"""The reason of a workload that the cluster cannot take now: never, not on one machine, or not yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.resources import WHOLE_CARD, Resources
from gpuyard.domain.workload import RoleSpec, Spec, Workload
from gpuyard.scheduling.fit import place_gang
from gpuyard.scheduling.room import Room, Rooms, fair_share, rooms_if_empty

NAMED_AT_MOST = 5


def never(spec: Spec, nodes: Sequence[Node]) -> Reason | None:
    """Why it could not start even if nothing else ran; None when it could."""
    ready = [node for node in nodes if node.state is NodeState.READY]
    if place_gang(spec, rooms_if_empty(ready)) is not None:
        return None
    away = [node for node in nodes if node.state is not NodeState.READY]
    if away and place_gang(spec, rooms_if_empty([_as_ready(node) for node in nodes])) is not None:
        return because(Code.NO_NODES, nodes=[f"{n.name} ({n.state.value})" for n in away[:NAMED_AT_MOST]])
    if not ready:
        return because(Code.NO_NODES, nodes=[])
    for role in spec.roles:
        reason = _role_never_fits(role, ready)
        if reason is not None:
            return reason
    return _gang_too_large(spec, ready)


def _as_ready(node: Node) -> Node:
    return Node(node.name, node.cpu_milli, node.memory, node.cards)


def _role_never_fits(role: RoleSpec, nodes: Sequence[Node]) -> Reason | None:
    """One replica alone: which resource does no single node have enough of?"""
    asked = role.resources
    if asked.cards is not None:
        device = asked.cards.device
        largest = max(nodes, key=lambda node: node.cards_of(device))
        if largest.cards_of(device) == 0:
            known = sorted({card.device for node in nodes for card in node.cards})
            return because(Code.NO_SUCH_DEVICE, device=device, known=known)
        if largest.cards_of(device) < max(1, asked.cards.whole):
            return _too_many_cards(role, device, largest, nodes)
        nodes = [node for node in nodes if node.cards_of(device) >= max(1, asked.cards.whole)]
    for resource, wanted, has in _cpu_and_memory(asked):
        biggest = max(nodes, key=has)
        if wanted(biggest) > has(biggest):
            amounts = {"asked": wanted(biggest), "largest": has(biggest), "node": biggest.name}
            return because(Code.NEVER_FITS, resource=resource, **amounts)
    return None


def _cpu_and_memory(asked: Resources) -> Iterator[tuple[str, Callable[[Node], int], Callable[[Node], int]]]:
    yield "cpu", lambda node: fair_share(asked, node)[0], lambda node: node.cpu_milli
    yield "memory", lambda node: fair_share(asked, node)[1], lambda node: node.memory


def _too_many_cards(role: RoleSpec, device: str, largest: Node, nodes: Sequence[Node]) -> Reason:
    """More cards than any machine has. If several machines together have them, say how to split it."""
    assert role.resources.cards is not None
    asked = role.resources.cards.whole
    has = largest.cards_of(device)
    for each in range(has, 0, -1):
        if asked % each == 0 and sum(node.cards_of(device) // each for node in nodes) >= asked // each * role.replicas:
            split = {"replicas": asked // each * role.replicas, "each": each}
            return because(Code.NEEDS_REPLICAS, asked=asked, largest=has, device=device, nodes=len(nodes), **split)
    total = sum(node.cards_of(device) for node in nodes)
    facts = {"asked": asked * WHOLE_CARD, "largest": has * WHOLE_CARD, "node": largest.name}
    return because(Code.NEVER_FITS, resource=device, total=total * WHOLE_CARD, **facts)


def _gang_too_large(spec: Spec, nodes: Sequence[Node]) -> Reason:
    """Each replica fits somewhere, all of them together do not."""
    role = max(spec.roles, key=lambda r: (r.resources.cards.milli if r.resources.cards else 0) * r.replicas)
    device = role.resources.cards.device if role.resources.cards else "cpu"
    if role.resources.cards is not None:
        asked = role.resources.cards.milli * role.replicas
        total = sum(node.cards_of(device) for node in nodes) * WHOLE_CARD
    else:
        asked = sum(fair_share(role.resources, nodes[0])[0] for _ in range(role.replicas))
        total = sum(node.cpu_milli for node in nodes)
    facts = {"asked": asked, "largest": total, "replicas": role.replicas}
    return because(Code.NEVER_FITS, resource=device, node="", **facts)


def not_yet(workload: Workload, rooms: Rooms, holding: Sequence[Workload]) -> Reason:
    """It would fit if some of the running work ended, or if a held card came free."""
    role = max(workload.spec.roles, key=lambda r: r.resources.cards.milli if r.resources.cards else 0)
    asked = role.resources
    held = _held_card(asked, rooms)
    if held is not None:
        return held
    closest = max(rooms, key=lambda room: _closeness(asked, room))
    resource, wanted, free = _shortage(asked, closest)
    jobs = [w.id for w in holding if _is_on(w, closest.node.name)][:NAMED_AT_MOST]
    facts = {"resource": resource, "asked": wanted, "free": free, "node": closest.node.name, "jobs": jobs}
    return because(Code.BUSY, replicas=sum(r.replicas for r in workload.spec.roles), **facts)


def _held_card(asked: Resources, rooms: Rooms) -> Reason | None:
    """Named only when the held cards are what is missing on some node."""
    if asked.cards is None:
        return None
    for room in rooms:
        troubled = [c for c in room.node.cards if c.device == asked.cards.device and c.trouble]
        idle = [c for c in troubled if room.cards[c.index] >= 0]
        if idle and room.free_whole(asked.cards.device) + len(idle) >= max(1, asked.cards.whole):
            card = idle[0]
            return because(
                Code.CARD_HELD, node=room.node.name, card=card.index, pid=card.holder_pid, holder=card.trouble
            )
    return None


def _closeness(asked: Resources, room: Room) -> tuple[int, int, str]:
    if asked.cards is None:
        return (room.cpu, room.memory, room.node.name)
    return (room.free_whole(asked.cards.device), room.free_milli(asked.cards.device), room.node.name)


def _shortage(asked: Resources, room: Room) -> tuple[str, int, int]:
    if asked.cards is not None:
        device = asked.cards.device
        free = room.free_milli(device) if asked.cards.is_share else room.free_whole(device) * WHOLE_CARD
        if free < asked.cards.milli:
            return device, asked.cards.milli, free
    cpu, memory, _ = fair_share(asked, room.node)
    if memory > room.memory:
        return "memory", memory, max(0, room.memory)
    return "cpu", cpu, max(0, room.cpu)


def _is_on(workload: Workload, node: str) -> bool:
    return workload.attempt is not None and any(r.allotment.node == node for r in workload.attempt.replicas)
