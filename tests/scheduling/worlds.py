"""Small worlds of every kind, thrown with dice: machines, rules, a queue, and work that really runs.

A world is made from one number by plain code, which is far faster than drawing each detail. How many machines and
workloads there are, and which rules hold, is drawn, so that a failing world shrinks to few of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from hypothesis import strategies as st

from gpuyard.domain.cluster import Allotment, Card, Node, NodeState
from gpuyard.domain.people import Group, Quota
from gpuyard.domain.policy import DAY, HOUR, Ordering, Placing, Policy, Pool, Preempting
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import GIB, WHOLE_CARD, Cards, Resources
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import (
    Attempt,
    Ending,
    Replica,
    ReplicaId,
    RoleSpec,
    Spec,
    State,
    Together,
    Verdict,
    Where,
    Workload,
)
from gpuyard.scheduling.fragments import Typical, typical_from
from gpuyard.scheduling.plan import plan
from gpuyard.scheduling.snapshot import JobName, Person, Placement, Snapshot

NOW = 1_000_000.0
GROUPS = ("vision", "speech", "audio")
USERS = ("ann", "bob", "eve")
A100, V100, P100, CHIP = "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-32GB", "Tesla P100", "Ascend 910B"


class Dice(Random):
    """Chance with a memory of nothing: each piece of a world has dice of its own."""

    def often(self, percent: int) -> bool:
        return self.randrange(100) < percent


# --- machines -----------------------------------------------------------------------------------------------------

Cardset = tuple[tuple[str, str], ...]
NVIDIA: tuple[Cardset, ...] = (
    *((("nvidia", A100),) * count for count in (1, 2, 3, 4, 4, 8)),
    *((("nvidia", V100),) * count for count in (2, 4)),
    (("nvidia", P100),) * 2,
    (("nvidia", A100),) * 2 + (("nvidia", V100),) * 2,
)
ASCEND: tuple[Cardset, ...] = (
    *((("ascend", CHIP),) * count for count in (8, 8, 4)),
    (("ascend", CHIP),) * 4 + (("nvidia", V100),) * 2,
)
NODE_NAMES = ("n1", "n2", "n9", "n10", "n11")
SIZES = ((2, 8), (8, 32), (16, 64), (33, 100), (64, 512))
LABELS = ((), (), (("zone", "a"),), (("disk", "fast"), ("zone", "b")))


def a_machine(dice: Dice, name: str) -> Node:
    sets = dice.choice([NVIDIA, NVIDIA, NVIDIA, ASCEND, ((),)])
    held = dice.choice([0, 1, 3]) if dice.often(15) else -1
    cards = tuple(
        Card(index, device, model, trouble="held by pid 7" * (index == held), holder_pid=7 * (index == held))
        for index, (device, model) in enumerate(dice.choice(sets))
    )
    cpu, memory = dice.choice(SIZES)
    state = dice.choice([NodeState.LOST, NodeState.CORDONED]) if dice.often(10) else NodeState.READY
    return Node(name, cpu * 1000, memory * GIB, cards, state, dice.choice(LABELS))


IMAGES = ("docker.io/library/python:3.12", "docker.io/pytorch/pytorch:2.4", "localhost/ours:latest")
NAMES = ("python:3.12", "pytorch/pytorch:2.4", "ours", "docker.io/library/python:3.12", "elsewhere:1", None)


def with_images(dice: Dice, node: Node) -> Node:
    return replace(node, images=tuple(image for image in IMAGES if dice.often(40)))


# --- rules --------------------------------------------------------------------------------------------------------

POOLS = {
    "old": Pool(models=("P100", "V100")),
    "new": Pool(models=("a100", "910b")),
    "zone-a": Pool(labels=(("zone", "a"),)),
    "few": Pool(nodes=("n1", "n10")),
}
SOME_POOLS = (("old",), ("new",), ("zone-a", "few"), ("new", "few"), ("gone",))


def a_policy(dice: Dice) -> Policy:
    pooled = dice.often(30)
    return Policy(
        order=an_ordering(dice),
        backfill=dice.often(70),
        preempt=dice.choice(
            [
                *[Preempting()] * 3,
                *[Preempting(min_run=0.0)] * 2,
                Preempting(for_priority=False),
                Preempting(enabled=False),
            ]
        ),
        placing=dice.choice([Placing.BEST_FIT, Placing.FRAGMENTS, Placing.FRAGMENTS, Placing.IN_ORDER, Placing.SPREAD]),
        servers=dice.choice([(), (), ("n9", "n1"), ("n10", "elsewhere")]),
        pools=POOLS,
        group_pools={group: dice.choice(SOME_POOLS) for group in GROUPS if pooled and dice.often(40)},
        kind_pools={"job": dice.choice([("old", "new"), ("few",)])} if pooled and dice.often(20) else {},
    )


def an_ordering(dice: Dice) -> Ordering:
    age_every, age_points = dice.choice([(12 * HOUR, 50), (60.0, 100), (HOUR, 0)])
    return Ordering(
        people=dice.choice([(), (), (), ("eve",), ("bob", "ann")]),
        fair_share=dice.often(60),
        half_life=dice.choice([HOUR, 7 * DAY]),
        ahead=dice.choice([0.0, HOUR]),
        tolerance=dice.choice([0.1, 0.01, 1.0]),
        age_every=age_every,
        age_points=age_points,
    )


def some_groups(dice: Dice) -> dict[str, Group]:
    """Some have limits, some guarantees, some are strictly first in, first out. One may be unknown."""
    guarantees, limits = dice.often(60), dice.often(60)
    return {
        name: Group(
            name,
            tuple(_quotas(dice, name, guarantees, limits)),
            weight=dice.choice([1.0, 1.0, 2.0, 0.5]),
            fifo=dice.often(20),
        )
        for name in GROUPS[: dice.choice([2, 3, 3])]
    }


def _quotas(dice: Dice, group: str, guarantees: bool, limits: bool) -> list[Quota]:
    made = []
    for resource in ("nvidia", "ascend"):
        limit = dice.choice([0, 1000, 2500, 4000, 8000]) if limits and dice.often(40) else None
        promised = dice.choice([1000, 2000, 4000]) if guarantees and dice.often(50) else 0
        if limit is not None or promised:
            made.append(Quota(group, resource, limit, guaranteed=promised))
    if limits and dice.often(20):
        made.append(Quota(group, "nvidia", dice.choice([1000, 3000]), "ann"))
    if limits and dice.often(15):
        made.append(Quota(group, "cpu", dice.choice([4000, 9000]), dice.choice([None, "bob"])))
    return made


# --- work ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """One role, as it is asked for."""

    cards: float = 0
    device: str = "nvidia"
    models: tuple[str, ...] = ()
    cpu: float | None = None
    memory: float | None = None
    replicas: int = 1

    def role(self, name: str = "worker", where: Where = Where()) -> RoleSpec:  # noqa: B008
        return RoleSpec(name, ("true",), self.replicas, self.resources, where=where)

    @property
    def resources(self) -> Resources:
        return Resources(
            cpu_milli=None if self.cpu is None else round(self.cpu * 1000),
            memory=None if self.memory is None else round(self.memory * GIB),
            cards=Cards(self.device, round(self.cards * WHOLE_CARD), self.models) if self.cards else None,
        )


OF_NVIDIA = (
    *(Shape(cards) for cards in (1, 1, 1, 2, 2, 3, 4, 8, 0.5, 0.5, 0.3)),
    *(Shape(cards, cpu=cpu) for cards, cpu in ((1, 1), (2, 8), (1, 30), (0.5, 0.5))),
    *(Shape(1, memory=memory) for memory in (1, 40)),
    *(Shape(cards, models=("a100",)) for cards in (1, 2)),
    *(Shape(cards, models=("V100", "P100")) for cards in (1, 2)),
)
OF_ASCEND = tuple(Shape(cards, "ascend") for cards in (1, 1, 2, 2, 4, 8, 3))
OF_NEITHER = (
    *(Shape(cpu=cpu) for cpu in (None, 1, 4, 7.5)),
    *(Shape(cpu=cpu, memory=memory) for cpu, memory in ((1, 30), (2, 1))),
)
GANGS_OF_NVIDIA = (
    *(Shape(cards, replicas=count) for cards, count in ((1, 2), (1, 3), (2, 2), (4, 2), (0.5, 3), (8, 2))),
    Shape(2, models=("a100",), replicas=2),
)
GANGS_OF_ASCEND = tuple(Shape(cards, "ascend", replicas=count) for cards, count in ((8, 2), (4, 2), (1, 2), (8, 2)))
GANGS_OF_NEITHER = (Shape(cpu=3, replicas=3), Shape(cpu=1, memory=4, replicas=2))
SECOND_ROLES = (Shape(cpu=1), Shape(cpu=4, memory=8), Shape(0.5), Shape(1, replicas=2), Shape(2, cpu=1))
PINS = (Where(nodes=("n1", "n9")), Where(labels=(("zone", "a"),)), Where(nodes=("n2",), labels=(("zone", "b"),)))
# Priority, preemptible, longest run, grace.
TERMS: tuple[tuple[int, bool, float | None, float], ...] = (
    (500, False, None, 10.0),
    (500, True, None, 10.0),
    (500, True, 3600.0, 30.0),
    (500, False, 600.0, 10.0),
    (500, False, 60.0, 0.0),
    (100, True, None, 10.0),
    (900, False, None, 10.0),
    (900, True, 600.0, 10.0),
    (700, False, 20_000.0, 10.0),
)
# What runs can be taken back more often than what waits.
RUN_TERMS = (
    *TERMS,
    (500, True, None, 10.0),
    (100, True, 3600.0, 10.0),
    (500, True, None, 60.0),
    (300, True, None, 0.0),
)
AGES = (5.0, 5.0, 6.0, 70.0, 400.0, 50_000.0, 200_000.0)


def some_roles(dice: Dice, devices: Sequence[str]) -> tuple[tuple[RoleSpec, ...], Together]:
    device = dice.choice(devices) if dice.often(97) else dice.choice(["nvidia", "ascend"])
    kind = dice.choice(["one"] * 6 + ["gang"] * 3 + ["roles"])
    where = dice.choice(PINS) if dice.often(8) else Where()
    if kind == "one":
        shapes = {"nvidia": OF_NVIDIA, "ascend": OF_ASCEND, "": OF_NEITHER}[device]
        return (dice.choice(shapes).role(where=where),), Together.ANY
    together = dice.choice([Together.ANY, Together.ANY, Together.ONE_NODE, Together.SPREAD])
    if kind == "gang":
        shapes = {"nvidia": GANGS_OF_NVIDIA, "ascend": GANGS_OF_ASCEND, "": GANGS_OF_NEITHER}[device]
        return (dice.choice(shapes).role(where=where),), together
    first = dice.choice(OF_NVIDIA if device == "nvidia" else OF_NEITHER)
    return (first.role(where=where), dice.choice(SECOND_ROLES).role("ps")), together


def a_workload(
    dice: Dice, id: str, devices: Sequence[str], terms: Sequence[tuple[int, bool, float | None, float]] = TERMS
) -> Workload:
    asked, together = some_roles(dice, devices)
    priority, preemptible, longest, grace = dice.choice(terms)
    spec = Spec(
        dice.choice(["train", "eval", id]),
        asked,
        priority=priority,
        preemptible=preemptible,
        max_seconds=longest,
        grace_seconds=grace,
        together=together,
    )
    waits = replace(
        Workload(id, dice.choice(USERS), dice.choice(GROUPS), spec, NOW - dice.choice(AGES)),
        reason=because(Code.SUBMITTED, by="ann"),
    )
    if dice.often(3):
        cause = {"code": "ended.exit_code", "facts": {}}
        return replace(waits, not_before=NOW + dice.choice([-5, 100]), reason=because(Code.RETRY, cause=cause))
    return waits


def in_images(dice: Dice, workload: Workload) -> Workload:
    roles = tuple(replace(role, image=dice.choice(NAMES)) for role in workload.spec.roles)
    return replace(workload, spec=replace(workload.spec, roles=roles))


def devices_of(nodes: Sequence[Node]) -> list[str]:
    """What work may ask for here, that which there is more of more often."""
    return [card.device for node in nodes if node.state is NodeState.READY for card in node.cards] + [""] * 2


# --- work that runs -----------------------------------------------------------------------------------------------


def held_by(workload: Workload, allotments: Mapping[tuple[str, int], Allotment], at: float) -> Workload:
    """The workload with a new attempt that has just been placed."""
    number = workload.attempts_made + 1
    replicas = tuple(
        Replica(ReplicaId(workload.id, number, role.name, index), allotments[role.name, index])
        for role in workload.spec.roles
        for index in range(role.replicas)
    )
    return replace(workload, state=State.PLACED, attempt=Attempt(number, at, replicas), not_before=0.0)


def started(workload: Workload, at: float, saved_at: float | None = None) -> Workload:
    assert workload.attempt is not None
    attempt = replace(workload.attempt, started_at=at, saved_at=saved_at)
    return replace(workload, state=State.RUNNING, attempt=attempt, started_at=at)


def ending(workload: Workload, by: str | None = None) -> Workload:
    """It makes room for another, or its owner stopped it."""
    assert workload.attempt is not None
    verdict = Verdict.PREEMPTED if by else Verdict.STOPPED
    reason = because(Code.PREEMPTED, by=by) if by else because(Code.STOP_ASKED, by=workload.owner)
    attempt = replace(workload.attempt, ending=Ending(verdict, reason))
    return replace(workload, state=State.STOPPING, attempt=attempt)


RUNS = (0.0, 20.0, 299.0, 300.0, 500.0, 4000.0, 90_000.0)  # how long it has run
SAVED = (None, None, 0.0, 100.0, 3000.0)  # how long ago it was saved
WAYS = ("running",) * 12 + ("placed", "starting", "stopping", "yielding")


def running_work(dice: Dice, world: Snapshot, earlier: Sequence[Workload]) -> tuple[Workload, ...]:
    """Work that an earlier plan placed: under the same rules, or under none (quotas change while work runs)."""
    lenient = replace(world.policy, pools={}, group_pools={}, kind_pools={})
    rules: tuple[Mapping[str, Group], Policy] = (world.groups, world.policy) if dice.often(50) else ({}, lenient)
    outcome = plan(Snapshot(NOW, world.nodes, tuple(earlier), (), *rules))
    by_id = {workload.id: workload for workload in earlier}
    waiting = [workload.id for workload in world.queue]
    return tuple(in_some_state(dice, by_id[p.workload], p, waiting) for p in outcome.placements)


def in_some_state(dice: Dice, workload: Workload, placement: Placement, waiting: Sequence[str]) -> Workload:
    run, way, saved = dice.choice(RUNS), dice.choice(WAYS), dice.choice(SAVED)
    longest = workload.spec.max_seconds
    begun = NOW - (run if longest is None else min(run, longest))
    workload = replace(workload, submitted_at=min(workload.submitted_at, begun))
    placed = held_by(workload, placement.allotments, begun)
    if way == "placed":
        return placed
    if way == "starting":
        return replace(placed, state=State.STARTING)
    runs = started(placed, begun, None if saved is None or saved > NOW - begun else NOW - saved)
    if way == "stopping":
        return ending(runs)
    if way == "yielding" and waiting and workload.spec.preemptible:
        return ending(runs, dice.choice(waiting))
    return runs


# --- worlds -------------------------------------------------------------------------------------------------------


def some_past(dice: Dice) -> dict[Person, PastUse]:
    people: list[Person] = [(group, user) for group in GROUPS for user in (None, *USERS)]
    return {
        dice.choice(people): PastUse(dice.choice([100.0, 36_000.0, 1e7]), NOW - dice.choice([1.0, 7 * DAY]))
        for _ in range(dice.randrange(4))
    }


def some_run_times(dice: Dice) -> dict[JobName, tuple[float, ...]]:
    if dice.often(50):
        return {}
    return {(user, "train"): (100.0, 200.0, 900.0) for user in USERS} | {("ann", "eval"): (4000.0, 5000.0)}


def some_typical(dice: Dice) -> tuple[Typical, ...]:
    """What was asked for of late, which need not be what is asked for now."""
    shapes = (*OF_NVIDIA, *OF_ASCEND, *OF_NEITHER)
    return typical_from({dice.choice(shapes).resources: dice.choice([1, 2, 10, 200]) for _ in range(dice.randrange(9))})


@dataclass(frozen=True)
class Rough:
    """What is drawn of a world; the rest follows from the seed."""

    seed: int
    nodes: int
    queue: int
    runs: int
    plain_groups: bool = False
    plain_policy: bool = False
    no_past: bool = False

    def dice(self, piece: str) -> Dice:
        return Dice(f"{self.seed} {piece}")

    def world(self) -> Snapshot:
        nodes = tuple(
            with_images(self.dice(f"images of {name}"), a_machine(self.dice(name), name))
            for name in NODE_NAMES[: self.nodes]
        )
        devices = devices_of(nodes)
        names = (f"job{n:07d}" for n in range(self.queue))
        earlier = (f"run{n:07d}" for n in range(self.runs))
        world = Snapshot(
            NOW,
            nodes,
            tuple(
                in_images(self.dice(f"images of {name}"), a_workload(self.dice(name), name, devices)) for name in names
            ),
            (),
            {name: Group(name) for name in GROUPS} if self.plain_groups else some_groups(self.dice("groups")),
            Policy() if self.plain_policy else a_policy(self.dice("policy")),
            {} if self.no_past else some_past(self.dice("past")),
            {} if self.no_past else some_run_times(self.dice("run times")),
            () if self.no_past else some_typical(self.dice("typical")),
        )
        runs = [a_workload(self.dice(name), name, devices, RUN_TERMS) for name in earlier]
        return replace(world, holding=running_work(self.dice("runs"), world, runs))


def worlds(
    *, nodes: int = 5, queue: int = 9, runs: int = 9, plain_policy: bool | None = None
) -> st.SearchStrategy[Snapshot]:
    """A cluster, its rules, a queue, and running work."""
    rough = st.builds(
        Rough,
        st.integers(0, 2**32),
        st.integers(1, nodes),
        st.integers(0, queue),
        st.integers(0, runs),
        _seldom(),
        _seldom() if plain_policy is None else st.just(plain_policy),
        _seldom(),
    )
    return rough.map(Rough.world)


def _seldom() -> st.SearchStrategy[bool]:
    """True one time in five; shrinks to True: the plain world is the simpler one."""
    return st.sampled_from([True, False, False, False, False])
