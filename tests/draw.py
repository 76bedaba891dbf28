"""Draw a small world: `a_node("a", cards=8)`, `a_job(cards=2)`. For tests only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpuyard.domain.cluster import Allotment, Card, CardShare, Node, NodeState
from gpuyard.domain.lifecycle import Launched, Observed, Placed, advance
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.workload import Life, RoleSpec, Seen, Spec, Workload


def a_node(
    name: str,
    cards: int = 0,
    *,
    cpu: int = 64,
    memory_gib: int = 512,
    device: str = "nvidia",
    state: NodeState = NodeState.READY,
    held: tuple[int, ...] = (),
) -> Node:
    all_cards = tuple(
        Card(
            i,
            device,
            "A100",
            80 * GIB,
            trouble="held by pid 7 (python)" if i in held else "",
            holder_pid=7 * (i in held),
        )
        for i in range(cards)
    )
    return Node(name, cpu * 1000, memory_gib * GIB, all_cards, state)


def a_job(
    id: str = "job0000001",
    *,
    cards: float = 0,
    device: str = "nvidia",
    cpu: float | None = None,
    memory_gib: float | None = None,
    replicas: int = 1,
    priority: int = 500,
    at: float = 100.0,
    owner: str = "ann",
    group: str = "vision",
    name: str | None = None,
    command: tuple[str, ...] = ("true",),
    env: tuple[tuple[str, str], ...] = (),
) -> Workload:
    asked = Resources(
        cpu_milli=None if cpu is None else round(cpu * 1000),
        memory=None if memory_gib is None else round(memory_gib * GIB),
        cards=Cards(device, round(cards * WHOLE_CARD)) if cards else None,
    )
    role = RoleSpec("worker", command, replicas, asked, env=env)
    return Workload(id, owner, group, Spec(name or id, (role,), priority=priority), submitted_at=at)


def running(job: Workload, *places: tuple[str, tuple[int, ...]], cpu_milli: int = 100, memory: int = GIB) -> Workload:
    """The job as it runs on the given nodes and cards, one place per replica."""
    role = job.spec.roles[0]
    asked = role.resources.cards
    share = asked.milli if asked and asked.is_share else WHOLE_CARD
    device = asked.device if asked else ""
    allotments = {
        (role.name, index): Allotment(
            node, cpu_milli, memory, memory // 2, device, tuple(CardShare(card, share) for card in cards)
        )
        for index, (node, cards) in enumerate(places)
    }
    placed = advance(job, Placed(allotments), job.submitted_at).workload
    assert placed.attempt is not None
    ids = [replica.id for replica in placed.attempt.replicas]
    started = advance(placed, Launched(dict.fromkeys(ids, "h")), job.submitted_at).workload
    look = Seen(Life.RUNNING, started_at=job.submitted_at)
    return advance(started, Observed(dict.fromkeys(ids, look)), job.submitted_at).workload


def groups_with(quotas: Iterable[Quota]) -> dict[str, Group]:
    """The groups that these quotas are of."""
    groups: dict[str, Group] = {}
    for quota in quotas:
        group = groups.get(quota.group, Group(quota.group))
        groups[quota.group] = replace(group, quotas=(*group.quotas, quota))
    return groups


def renamed(job: Workload, name: str) -> Workload:
    return replace(job, spec=replace(job.spec, name=name))
