"""Requests that strand cards: they ask for so much CPU or memory that the cards beside them are of no use to anybody.

A card counts as stranded when it is left without a core of its own (on a machine with fewer cores than cards, without
its fair share of them), or with less than an eighth of its fair share of the machine's memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import RoleSpec, Spec
from gpuyard.scheduling.room import fair_share

LEAST_CPU_MILLI = 1000
LEAST_PART_OF_MEMORY = 8
Kind = tuple[int, int, tuple[str, ...]]  # cores, memory, the device type of each card


def kinds(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """One node of every kind there is: those alike are alike in what they strand."""
    found: dict[Kind, Node] = {}
    for node in nodes:
        if node.state is NodeState.READY and node.cards:
            found.setdefault((node.cpu_milli, node.memory, tuple(card.device for card in node.cards)), node)
    return tuple(found.values())


def strands(spec: Spec, nodes: Sequence[Node]) -> list[Reason]:
    """A note for every role that strands cards wherever among these nodes it goes."""
    notes = (_note(role, nodes) for role in spec.roles)
    return [note for note in notes if note is not None]


def _note(role: RoleSpec, nodes: Sequence[Node]) -> Reason | None:
    asked = role.resources
    if asked.cards is None or (asked.cpu_milli is None and asked.memory is None):
        return None
    found = [(_stranded(role, node), node) for node in nodes if _takes(role, node)]
    if not found:
        return None
    (cards, resource), node = min(found, key=lambda one: one[0][0])
    if not cards:
        return None
    cpu, memory, _ = fair_share(asked, node)
    part, whole = asked.cards.milli, len(node.cards) * 1000
    fair = {"cpu": node.cpu_milli * part // whole, "memory": node.memory * part // whole}
    wanted = {"cpu": cpu, "memory": memory}
    amounts = {"asked": wanted[resource], "share": fair[resource], "cards": cards}
    return because(Code.STRANDS, resource=resource, node=node.name, **amounts)


def _takes(role: RoleSpec, node: Node) -> bool:
    cards = role.resources.cards
    assert cards is not None
    cpu, memory, _ = fair_share(role.resources, node)
    return node.cards_of(cards.device) >= max(1, cards.whole) and cpu <= node.cpu_milli and memory <= node.memory


def _stranded(role: RoleSpec, node: Node) -> tuple[int, str]:
    """How many cards are left without enough once as many of its replicas are here as fit, and for want of what."""
    cpu, memory, _ = fair_share(role.resources, node)
    cards = role.resources.cards
    assert cards is not None
    each = cards.milli / 1000
    together = min(
        role.replicas,
        int(node.cards_of(cards.device) / each),
        node.cpu_milli // cpu if cpu else role.replicas,
        node.memory // memory if memory else role.replicas,
    )
    left = len(node.cards) - -(-cards.milli * together // 1000)  # a card given out in part is in use
    least_cpu = max(1, min(LEAST_CPU_MILLI, node.cpu_milli // len(node.cards)))
    fair_memory = max(1, node.memory // len(node.cards) // LEAST_PART_OF_MEMORY)
    served = {
        "cpu": (node.cpu_milli - together * cpu) // least_cpu,
        "memory": (node.memory - together * memory) // fair_memory,
    }
    resource = min(served, key=lambda name: served[name])
    return max(0, left - served[resource]), resource
