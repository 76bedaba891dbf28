"""Worlds that go on by dice: work comes, is placed, saves, ends, is put back; machines, rules and people change.

What control and its picture do with the books is done here without a store, thousands of times a second.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from tests.journal.yard import SMALL, Writing
from tests.scheduling.worlds import (
    GROUPS,
    NODE_NAMES,
    Dice,
    a_machine,
    a_policy,
    a_workload,
    devices_of,
    ending,
    held_by,
    in_images,
    some_groups,
    started,
    with_images,
)

from gpuyard.domain.amending import amended
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import State, Verdict, Workload
from gpuyard.journal.events import Anew, BooksMade, Charged, Decided, GroupsAre, NodesAre, PolicyIs, TypicalIs
from gpuyard.journal.folder import Bounds
from gpuyard.journal.recorder import Recorder
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fragments import typical_from
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.snapshot import Person, Plan, Snapshot

MOST_LIVE = 25
STEPS = (0.0, 0.3, 2.0, 6.0, 50.0, 400.0, 40_000.0)


class Keeper:
    def __init__(self, world: Snapshot, seed: int, notes: Recorder) -> None:
        self.dice = Random(seed)
        self.seed = seed
        self.now = world.now
        self.notes = notes
        self.nodes, self.groups, self.policy = world.nodes, dict(world.groups), world.policy
        self.past, self.run_times, self.typical = dict(world.past), dict(world.run_times), world.typical
        self.live = {w.id: w for w in (*world.holding, *world.queue)}
        self.books: Books | None = None
        self.plans: list[Plan] = []
        self.count = 0
        self.tell_all()

    def tell_all(self) -> None:
        self.books = None
        past, run_times = dict(self.past), dict(self.run_times)
        self.notes.add(
            Anew(self.nodes, self.groups, self.policy, past, run_times, tuple(self.live.values()), self.typical)
        )

    def put(self, workload: Workload) -> None:
        self.notes.add(workload)
        self.live[workload.id] = workload
        if self.books is not None:
            self.books.put(workload)

    def go_on(self) -> None:
        """One cycle, after a few things have happened."""
        self.now += self.dice.choice(STEPS)
        for _ in range(self.dice.randrange(10)):
            self.dice.choice([self.comes] * 4 + [self.moves_on] * 16 + [self.changes])()
        if self.dice.random() < 0.03 or self.notes.wants_all:
            self.tell_all()
        self.decide()
        self.notes.hand_over(self.now)

    def decide(self) -> None:
        if self.books is None or self.dice.random() < 0.02:
            self.books = Books(self.nodes, self.groups, self.policy, self.past, self.run_times, self.typical)
            self.notes.add(BooksMade())
            for workload in self.live.values():
                self.books.put(workload)
        most = self.dice.choice([3.0, 1000.0, float("inf")])
        plan = decide(self.books, self.now, news_only=True, most=most)
        self.notes.add(Decided(self.now, plan, most))
        self.plans.append(plan)
        for id, reason in plan.waiting.items():
            told = amended(self.live[id], reason=reason)
            self.live[id] = told
            self.books.put(told)
        for eviction in plan.evictions:
            self.put(ending(self.live[eviction.workload], eviction.by))
        for placement in plan.placements:
            if self.dice.random() < 0.95:  # else its owner changed it meanwhile
                self.put(held_by(self.live[placement.workload], placement.allotments, self.now))

    # --- what happens ---------------------------------------------------------------------------------------------

    def comes(self) -> None:
        if len(self.live) > MOST_LIVE:
            return
        self.count += 1
        dice, id = Dice(f"{self.seed} {self.count}"), f"new{self.count:07d}"
        self.put(in_images(dice, replace(a_workload(dice, id, devices_of(self.nodes)), submitted_at=self.now)))

    def moves_on(self) -> None:
        if not self.live:
            return
        workload = self.live[self.dice.choice(sorted(self.live))]
        match workload.state:
            case State.PLACED:
                self.put(replace(workload, state=State.STARTING))
            case State.STARTING:
                self.put(started(workload, self.now))
            case State.RUNNING:
                self.dice.choice([self.ends, self.saves, self.stops])(workload)
            case State.STOPPING:
                self.is_gone(workload)
            case State.QUEUED:
                self.dice.choice([self.is_changed, self.rests, self.told_otherwise])(workload)
            case State.PAUSED:
                self.put(replace(workload, state=State.QUEUED, reason=because(Code.RESUMED, by="ann")))
            case _:
                pass

    def ends(self, workload: Workload) -> None:
        assert workload.attempt is not None
        over = replace(workload, state=State.SUCCEEDED, attempt=replace(workload.attempt, ended_at=self.now))
        past: dict[Person, PastUse] = {(workload.group, None): PastUse(self.dice.random() * 1e5, self.now)}
        times = {(workload.owner, workload.spec.name): (self.dice.random() * 1000, 300.0)}
        self.past.update(past)
        self.run_times.update(times)
        self.notes.add(Charged(past, times))
        self.put(over)
        del self.live[workload.id]

    def saves(self, workload: Workload) -> None:
        assert workload.attempt is not None
        self.put(replace(workload, attempt=replace(workload.attempt, saved_at=self.now)))

    def stops(self, workload: Workload) -> None:
        self.put(ending(workload))

    def is_gone(self, workload: Workload) -> None:
        assert workload.attempt is not None
        assert workload.attempt.ending is not None
        attempt = replace(workload.attempt, ended_at=self.now)
        if workload.attempt.ending.verdict is Verdict.PREEMPTED:
            wait = self.dice.choice([0.0, self.now + 30.0])
            self.put(
                replace(
                    workload,
                    state=State.QUEUED,
                    attempt=attempt,
                    not_before=wait,
                    reason=because(Code.REQUEUED, by="x"),
                )
            )
            return
        if self.dice.random() < 0.5:
            self.put(replace(workload, state=State.STOPPED, attempt=attempt))
        else:
            self.notes.add(workload.id)  # its row is gone
            if self.books is not None:
                self.books.remove(workload.id)
        del self.live[workload.id]

    def is_changed(self, workload: Workload) -> None:
        """Its priority, or only what no decision looks at."""
        roles = tuple(replace(role, env=(("A", str(self.count)),)) for role in workload.spec.roles)
        spec = self.dice.choice([replace(workload.spec, priority=900), replace(workload.spec, roles=roles)])
        self.count += 1
        self.put(replace(workload, spec=spec, version=workload.version + 1))

    def rests(self, workload: Workload) -> None:
        self.put(replace(workload, state=State.PAUSED))

    def told_otherwise(self, workload: Workload) -> None:
        """As it stands in the store, which is behind."""
        self.put(replace(workload, reason=because(Code.SUBMITTED, by="ann")))

    def changes(self) -> None:
        dice = Dice(f"{self.seed} {self.now} {self.count}")
        self.count += 1
        kind = self.dice.choice(["images", "images", "machine", "groups", "policy", "past", "typical"])
        if kind == "images":
            self.nodes = tuple(with_images(dice, node) for node in self.nodes)
            if self.books is not None:
                self.books.renew_images(self.nodes)
            self.notes.add(NodesAre(self.nodes, self.books is not None))
        elif kind == "machine":
            known = {node.name: node for node in self.nodes}
            held = {
                r.allotment.node
                for w in self.live.values()
                if w.holds_resources and w.attempt
                for r in w.attempt.replicas
            }
            name = dice.choice(NODE_NAMES)
            if name not in held:
                known[name] = a_machine(dice, name)
            self.nodes = tuple(known[name] for name in sorted(known))
            self.notes.add(NodesAre(self.nodes))
            self.books = None
        elif kind == "groups":
            self.groups = some_groups(dice)
            self.notes.add(GroupsAre(self.groups))
            self.books = None
        elif kind == "policy":
            self.policy = a_policy(dice)
            self.notes.add(PolicyIs(self.policy))
            self.books = None
        elif kind == "typical":
            asked = [role.resources for workload in self.live.values() for role in workload.spec.roles]
            self.typical = typical_from({one: asked.count(one) for one in asked})
            if self.books is not None:
                self.books.learn_typical(self.typical)
            self.notes.add(TypicalIs(self.typical))
        else:
            self.past.clear()
            self.past[dice.choice(GROUPS), None] = PastUse(5e4, self.now)
            self.notes.add(Charged(dict(self.past), dict(self.run_times), whole=True))


def keep(world: Snapshot, seed: int, folder: Path, cycles: int, bounds: Bounds = SMALL) -> Keeper:
    """A world that went on for so many cycles, with its journal in the folder."""
    writing = Writing(folder, bounds)
    keeper = Keeper(world, seed, writing.recorder)
    for _ in range(cycles):
        keeper.go_on()
        writing.catch_up()
    writing.end()
    return keeper
