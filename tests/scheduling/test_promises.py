"""Work that is moved is never worse off than it was promised: driven over many passes, while everything happens.

Stops finish in any order, work arrives and ends, owners stop and pause, nodes fail and come back. After each pass what
was decided is done by the real lifecycle, and the books that are kept answer as books made afresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job, a_node, running
from tests.scheduling import rules
from tests.scheduling.worlds import NOW, RUN_TERMS, Dice, Rough, a_workload, devices_of

from gpuyard.domain.cluster import Allotment, NodeState
from gpuyard.domain.lifecycle import (
    Launched,
    Observed,
    PauseAsked,
    Placed,
    Preempted,
    ResumeAsked,
    StopAsked,
    advance,
    can,
)
from gpuyard.domain.policy import Defragment, Defragmenting, Policy, Preempting
from gpuyard.domain.promises import Promise, promise_of
from gpuyard.domain.reasons import Code
from gpuyard.domain.workload import ENDED, Life, Seen, State, Workload
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.plan import decide, plan
from gpuyard.scheduling.snapshot import Plan, Rule, Snapshot

MIN_RUN = 40.0
Cards = set[tuple[str, int]]
Given = Mapping[str, Mapping[tuple[str, int], Allotment]]


class Drive:
    """A world in motion. Time passes in small steps, so that min_run and waiting matter."""

    def __init__(self, world: Snapshot, seed: int) -> None:
        self.dice = Dice(f"drive {seed}")
        self.now = world.now
        self.world = world
        self.all: dict[str, Workload] = {w.id: w for w in (*world.queue, *world.holding)}
        self.books = self._fresh()
        self.moved = 0
        self.failed: set[str] = set()  # nodes that failed at any time

    # --- the world ------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        queue = tuple(w for w in self.all.values() if w.state is State.QUEUED)
        holding = tuple(w for w in self.all.values() if w.holds_resources)
        return replace(self.world, now=self.now, queue=queue, holding=holding)

    def _fresh(self) -> Books:
        return Books.of(self.snapshot())

    def put(self, workload: Workload) -> None:
        self.all[workload.id] = workload
        self.books.put(workload)

    def do(self, id: str, event: object) -> None:
        workload = self.all[id]
        if can(workload, type(event)):  # type: ignore[arg-type]
            self.put(advance(workload, event, self.now).workload)  # type: ignore[arg-type]

    # --- what happens ---------------------------------------------------------------------------------------------

    def happen(self) -> None:
        self.now += self.dice.choice([1.0, 5.0, 20.0])
        for workload in list(self.all.values()):
            self._go_on(workload)
        if self.dice.often(30):
            self._arrive()
        if self.dice.often(10):
            self._turn_a_node()

    def _go_on(self, workload: Workload) -> None:
        replicas = [replica.id for replica in workload.attempt.replicas] if workload.attempt else []
        if workload.state is State.PLACED:
            self.do(workload.id, Launched(dict.fromkeys(replicas, "h")))
            self.do(workload.id, Observed(dict.fromkeys(replicas, Seen(Life.RUNNING, started_at=self.now))))
        elif workload.state is State.STARTING:
            self.do(workload.id, Observed(dict.fromkeys(replicas, Seen(Life.RUNNING, started_at=self.now))))
        elif workload.state is State.STOPPING and self.dice.often(40):
            self.do(workload.id, Observed(dict.fromkeys(replicas, Seen(Life.ENDED, ended_at=self.now))))
        elif workload.state is State.RUNNING and self.dice.often(4):
            self.do(workload.id, Observed(dict.fromkeys(replicas, Seen(Life.ENDED, 0, ended_at=self.now))))
        elif self.dice.often(2):
            self.do(workload.id, self.dice.choice([StopAsked("ann"), PauseAsked("ann")]))
        elif workload.state is State.PAUSED:
            self.do(workload.id, ResumeAsked("ann"))

    def _arrive(self) -> None:
        id = f"new{len(self.all):07d}"
        new = a_workload(Dice(f"{self.dice.random()}"), id, devices_of(self.world.nodes) or [""], RUN_TERMS)
        self.put(replace(new, submitted_at=self.now, not_before=0.0))

    def _turn_a_node(self) -> None:
        """It fails, with all that runs on it, or comes back."""
        node = self.dice.choice(self.world.nodes)
        back = node.state is not NodeState.READY
        turned = replace(node, state=NodeState.READY if back else NodeState.LOST)
        self.world = replace(self.world, nodes=tuple(turned if one is node else one for one in self.world.nodes))
        self.failed.add(node.name)
        for workload in list(self.all.values()) if not back else ():
            if workload.holds_resources and node.name in {one.node for one in rules.allotments(workload)}:
                ids = [replica.id for replica in workload.attempt.replicas] if workload.attempt else []
                self.do(workload.id, Observed(dict.fromkeys(ids, Seen(Life.ENDED, 1, ended_at=self.now))))
                if self.all[workload.id].holds_resources:
                    self.do(workload.id, StopAsked("ann"))
                    self.do(workload.id, Observed(dict.fromkeys(ids, Seen(Life.ENDED, 1, ended_at=self.now))))
        self.books = self._fresh()

    # --- a pass ---------------------------------------------------------------------------------------------------

    def step(self) -> Plan:
        """Decide, hold it to the promises, and do it."""
        before = self.promises()
        outcome = decide(self.books, self.now)
        assert outcome == plan(self.snapshot())
        self._check(outcome, before)
        for eviction in outcome.evictions:
            event = Preempted(eviction.by, rule=eviction.rule.value, to=eviction.to)
            self.do(eviction.workload, event)
        for placement in outcome.placements:
            self.do(placement.workload, Placed(placement.allotments))
        self._nothing_twice()
        return outcome

    def promises(self) -> dict[str, Promise]:
        found = ((id, promise_of(w)) for id, w in self.all.items())
        return {id: promise for id, promise in found if promise is not None}

    def _check(self, outcome: Plan, before: Mapping[str, Promise]) -> None:
        placed = {p.workload: p.allotments for p in outcome.placements}
        self._places_are_kept(placed, before)
        self._those_that_stopped_go_on(placed, before)
        self._moves_are_lawful(outcome)
        assert not placed.keys() & outcome.waiting.keys()
        for id, places in placed.items():
            assert not list(rules.faults_of_gang(self.snapshot(), self.all[id], places))
        waiting = {w.id for w in self.all.values() if w.state is State.QUEUED}
        assert waiting == placed.keys() | outcome.waiting.keys()

    def _places_are_kept(self, placed: Given, before: Mapping[str, Promise]) -> None:
        """While it stops, nobody is given a card that was promised to it whole."""
        for id, promise in before.items():
            if self.all[id].state is not State.STOPPING:
                continue
            mine = whole_cards(promise.places.values())
            for other, places in placed.items():
                assert not mine & whole_cards(places.values()), f"{other} was given what is kept for {id}"

    def _those_that_stopped_go_on(self, placed: Given, before: Mapping[str, Promise]) -> None:
        """As soon as it has stopped it has its very place, unless a node failed that it was to go to."""
        for id, promise in before.items():
            if self.all[id].state is not State.QUEUED:
                continue
            nodes = {one.node for one in promise.places.values()}
            if not nodes & self.failed:
                assert placed.get(id) == promise.places, f"{id} did not get what it was promised"
            else:
                alone = plan(replace(self.snapshot(), queue=(self.all[id],)))
                others = [other for other in before if other != id]
                assert id in placed or others or not alone.placements, f"{id} waits though there is room"

    def _moves_are_lawful(self, outcome: Plan) -> None:
        rule, counts = self.world.policy.defragment, dict[str, int]()
        for eviction in outcome.evictions:
            victim, by = self.all[eviction.workload], self.all[eviction.by]
            if eviction.rule is not Rule.DEFRAGMENT:
                assert not eviction.to
                continue
            self.moved += 1
            counts[by.id] = counts.get(by.id, 0) + 1
            assert victim.spec.preemptible
            assert victim.state is State.RUNNING
            assert victim.attempt is not None
            assert victim.attempt.started_at is not None
            assert self.now - victim.attempt.started_at >= rule.min_run
            assert victim.spec.priority <= by.spec.priority
            assert eviction.lost_seconds <= rule.max_lost
            assert not list(rules.faults_of_gang(self.snapshot(), victim, eviction.to))
            assert outcome.waiting[by.id].code is Code.MOVING
        assert all(count <= rule.moves for count in counts.values())

    def _nothing_twice(self) -> None:
        """What is held, and what is promised to those that are still stopping, fits beside each other."""
        there = [one for w in self.all.values() if w.holds_resources for one in rules.allotments(w)]
        ready = {node.name for node in self.world.nodes if node.state is NodeState.READY}
        held = [one for one in there if one.node in ready]
        assert not rules.overgiven(self.world.nodes, held)
        for id, promise in self.promises().items():
            own = rules.allotments(self.all[id]) if self.all[id].holds_resources else []
            if all(one.node in ready for one in promise.places.values()) and self.all[id].state is State.STOPPING:
                others = [one for one in held if one not in own]
                assert not rules.overgiven(self.world.nodes, [*others, *promise.places.values()])


def whole_cards(given: Iterable[Allotment]) -> Cards:
    return {(one.node, share.index) for one in given for share in one.cards if share.milli == 1000}


# --- worlds in which much can move ---------------------------------------------------------------------------------

RULE = Defragment(Defragmenting.MOVE, after=0.0, min_run=MIN_RUN, max_lost=1e9, moves=3)


def scattered(seed: int) -> Snapshot:
    """Small work all over a few nodes, and large work that waits."""
    dice = Random(seed)
    nodes = [a_node(f"n{n}", dice.choice([4, 4, 8])) for n in range(dice.randint(2, 5))]
    holding: list[Workload] = []
    for node in nodes:
        for card in range(len(node.cards)):
            if dice.random() < 0.4:
                job = a_job(f"run{len(holding):07d}", cards=dice.choice([1, 1, 0.5]), cpu=1, memory_gib=1, at=NOW - 500)
                job = replace(job, spec=replace(job.spec, preemptible=dice.random() < 0.85))
                holding.append(running(job, (node.name, (card,))))
    queue = [
        a_job(f"job{n:07d}", cards=dice.choice([2, 4, 4, 8]), cpu=1, memory_gib=1, at=NOW - 50 + n, replicas=r)
        for n, r in enumerate(dice.choices([1, 1, 1, 2], k=dice.randint(1, 4)))
    ]
    rules_of_it = Policy(defragment=RULE, preempt=Preempting(enabled=dice.random() < 0.5, min_run=10.0))
    return Snapshot(NOW, tuple(nodes), tuple(queue), tuple(holding), policy=rules_of_it)


def of_any_kind(seed: int) -> Snapshot:
    world = Rough(seed, 1 + seed % 5, 6, 8).world()
    mild = replace(world, holding=tuple(w for w in world.holding if w.state is not State.STOPPING))
    return replace(mild, policy=replace(mild.policy, defragment=RULE))


def driven(world: Snapshot, seed: int, steps: int = 25) -> Drive:
    drive = Drive(world, seed)
    for _ in range(steps):
        drive.step()
        drive.happen()
    return drive


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_whoever_is_moved_goes_on_where_it_was_promised_whatever_happens_meanwhile(seed: int) -> None:
    driven(scattered(seed), seed)


@given(st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_the_same_in_worlds_with_quotas_pools_rings_and_gangs(seed: int) -> None:
    driven(of_any_kind(seed), seed)


def test_much_is_moved_in_these_worlds() -> None:
    assert sum(driven(scattered(seed), seed, 12).moved > 0 for seed in range(40)) > 12


# --- one story, step by step ---------------------------------------------------------------------------------------


def test_the_one_that_waits_starts_in_the_pass_in_which_the_last_has_left_and_not_behind_one_that_came_later() -> None:
    small = [running(a_job(f"run000000{n}", cards=1, cpu=1, at=NOW - 500), (name, (0,))) for n, name in enumerate("ab")]
    small = [replace(w, spec=replace(w.spec, preemptible=True)) for w in small]
    large = a_job("job0000001", cards=4, cpu=1, at=NOW - 50)
    policy = Policy(defragment=RULE, preempt=Preempting(enabled=False))
    drive = Drive(Snapshot(NOW, (a_node("a", 4), a_node("b", 4)), (large,), tuple(small), policy=policy), 1)
    (eviction,) = drive.step().evictions
    mover = drive.all[eviction.workload]
    assert mover.state is State.STOPPING
    assert mover.reason.code is Code.MOVES
    # One that came later, with a higher priority, would take all that is free of the other node.
    drive.put(a_job("new0000001", cards=3, cpu=1, priority=900, at=drive.now))
    outcome = drive.step()
    assert not outcome.placements
    assert outcome.waiting["job0000001"].code is Code.MOVING
    ids = [replica.id for replica in mover.attempt.replicas] if mover.attempt else []
    drive.do(mover.id, Observed(dict.fromkeys(ids, Seen(Life.ENDED, ended_at=drive.now))))
    outcome = drive.step()
    assert {p.workload for p in outcome.placements} == {mover.id, "job0000001"}
    assert dict(next(p for p in outcome.placements if p.workload == mover.id).allotments) == dict(eviction.to)
    assert drive.all["new0000001"].state is State.QUEUED


def test_one_whose_place_is_lost_goes_back_to_where_it_was() -> None:
    small = running(a_job("run0000001", cards=1, cpu=1, at=NOW - 500), ("a", (0,)))
    small = replace(small, spec=replace(small.spec, preemptible=True))
    firm = running(a_job("run0000002", cards=1, cpu=1, at=NOW - 500), ("b", (0,)))
    large = a_job("job0000001", cards=4, cpu=1, at=NOW - 50)
    policy = Policy(defragment=RULE, preempt=Preempting(enabled=False))
    drive = Drive(Snapshot(NOW, (a_node("a", 4), a_node("b", 4)), (large,), (small, firm), policy=policy), 1)
    (eviction,) = drive.step().evictions
    drive.world = replace(drive.world, nodes=(a_node("a", 4), a_node("b", 4, state=NodeState.LOST)))
    drive.failed.add("b")
    drive.books = Books.of(drive.snapshot())
    attempt = drive.all[eviction.workload].attempt
    ids = [replica.id for replica in attempt.replicas] if attempt else []
    drive.do(eviction.workload, Observed(dict.fromkeys(ids, Seen(Life.ENDED, ended_at=drive.now))))
    (placement,) = drive.step().placements
    assert placement.workload == "run0000001"
    assert {one.node for one in placement.allotments.values()} == {"a"}


def test_whoever_is_paused_meanwhile_has_no_claim_any_more() -> None:
    small = running(a_job("run0000001", cards=1, cpu=1, at=NOW - 500), ("a", (0,)))
    small = replace(small, spec=replace(small.spec, preemptible=True))
    moving = advance(small, Preempted("job0000001", to={("worker", 0): Allotment("b", 1000, 0, 0)}), NOW).workload
    assert promise_of(moving) is not None
    ids = [replica.id for replica in moving.attempt.replicas] if moving.attempt else []
    queued = advance(moving, Observed(dict.fromkeys(ids, Seen(Life.ENDED, ended_at=NOW))), NOW).workload
    assert promise_of(queued) == promise_of(moving)
    paused = advance(queued, PauseAsked("ann"), NOW).workload
    assert promise_of(advance(paused, ResumeAsked("ann"), NOW).workload) is None
    assert paused.state not in ENDED
