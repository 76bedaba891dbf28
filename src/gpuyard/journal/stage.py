"""The books as they were: made and kept from what a journal tells, and asked once more."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpuyard.domain.amending import amended
from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import ENDED, State, Workload
from gpuyard.journal.events import (
    BooksMade,
    Charged,
    Decided,
    Event,
    GroupsAre,
    NodesAre,
    PolicyIs,
    TypicalIs,
)
from gpuyard.scheduling.books import Books
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.plan import decide
from gpuyard.scheduling.snapshot import JobName, Person, Plan


@dataclass
class Stage:
    """Does with each event what the picture did. With a policy of its own it decides by that one instead."""

    other_policy: Policy | None = None
    nodes: tuple[Node, ...] = ()
    groups: dict[str, Group] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    typical: tuple[Typical, ...] = ()
    past: dict[Person, PastUse] = field(default_factory=dict)
    run_times: dict[JobName, tuple[float, ...]] = field(default_factory=dict)
    live: dict[str, Workload] = field(default_factory=dict)
    books: Books | None = None

    def take(self, event: Event) -> Plan | None:
        """Returns what is decided now, where something was decided then."""
        match event:
            case Workload():
                self._put(event)
            case str():
                self.live.pop(event, None)
                if self.books is not None:
                    self.books.remove(event)
            case Decided():
                return self._decide(event)
            case _:
                self._learn(event)
        return None

    def _learn(self, event: Event) -> None:
        match event:
            case Charged(past, run_times, whole):
                if whole:
                    self.past.clear()
                    self.run_times.clear()
                self.past.update(past)
                self.run_times.update(run_times)
            case NodesAre(nodes, renewed):
                self.nodes = nodes
                if renewed and self.books is not None:
                    self.books.renew_images(nodes)
            case GroupsAre(groups):
                self.groups = dict(groups)
            case PolicyIs(policy):
                self.policy = self.other_policy or policy
            case TypicalIs(typical):
                self.typical = typical
                if self.books is not None:
                    self.books.learn_typical(typical)
            case BooksMade():
                self._make_books()

    def _make_books(self) -> None:
        self.books = Books(self.nodes, self.groups, self.policy, self.past, self.run_times, self.typical)
        for workload in self.live.values():
            self.books.put(workload)

    def _put(self, workload: Workload) -> None:
        if workload.state in ENDED:
            self.live.pop(workload.id, None)
        else:
            self.live[workload.id] = workload
        if self.books is not None:
            self.books.put(workload)

    def _decide(self, then: Decided) -> Plan:
        assert self.books is not None
        plan = decide(self.books, then.now, news_only=then.news_only, most=then.most)
        # What was told then holds; where it is the same now, in the very words of now, as the books know them.
        for id, reason in then.plan.waiting.items():
            workload = self.live.get(id)
            if workload is not None and workload.state is State.QUEUED:
                now = plan.waiting.get(id)
                self._put(amended(workload, reason=now if now == reason else reason))
        return plan
