"""What became of everyone, and how full the cluster was meanwhile."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpuyard.domain.cluster import Node, NodeState
from gpuyard.domain.resources import WHOLE_CARD
from gpuyard.domain.workload import ENDED, Spec, State
from gpuyard.rehearsal.given import Arrival


@dataclass(slots=True)
class Outcome:
    """One workload's way. Times as the arrivals count them; what never happened is None."""

    id: str
    name: str
    owner: str
    group: str
    submitted: float
    cards: float
    seconds: float  # that it had to run
    starts: list[float] = field(default_factory=list)  # of each attempt
    ended: float | None = None
    state: State = State.QUEUED
    preemptions: int = 0
    lost: float = 0.0  # seconds of work that had to be done again
    rested: float = 0.0  # seconds before its first start in which it was not to start: it was paused

    @property
    def wait(self) -> float | None:
        """From its submission to its first start, but for the time in which it was paused."""
        return self.starts[0] - self.submitted - self.rested if self.starts else None

    @property
    def completion(self) -> float | None:
        """From its submission to its end."""
        return self.ended - self.submitted if self.ended is not None else None

    @property
    def is_over(self) -> bool:
        return self.state in ENDED or self.state is State.PAUSED


class Job:
    """What is known of a workload beside its state."""

    __slots__ = ("arrival", "left", "milli", "outcome", "resting", "rests")

    def __init__(self, arrival: Arrival) -> None:
        workload = arrival.workload
        self.arrival = arrival
        self.left = arrival.seconds
        self.milli = cards_milli(workload.spec)
        self.resting = False  # it is to be paused just now
        self.rests = len(arrival.rests)  # that are not over yet
        self.outcome = Outcome(
            id=workload.id,
            name=workload.spec.name,
            owner=workload.owner,
            group=workload.group,
            submitted=workload.submitted_at,
            cards=self.milli / WHOLE_CARD,
            seconds=arrival.seconds,
        )


def cards_milli(spec: Spec) -> int:
    """The cards of all of its replicas, in thousandths."""
    asked = ((role.replicas, role.resources.cards) for role in spec.roles)
    return sum(replicas * cards.milli for replicas, cards in asked if cards is not None)


def capacity_milli(nodes: Iterable[Node]) -> int:
    """The cards there are, in thousandths; those of lost machines are not."""
    return sum(len(node.cards) for node in nodes if node.state is not NodeState.LOST) * WHOLE_CARD


class Timeline:
    """Cards in use, cards there are (both in thousandths) and workloads that wait, from moment to moment."""

    def __init__(self) -> None:
        self.at = array("d")
        self.used = array("q")
        self.capacity = array("q")
        self.waiting = array("l")

    def __len__(self) -> int:
        return len(self.at)

    def note(self, at: float, used: int, capacity: int, waiting: int) -> None:
        if self.at and self.at[-1] == at:
            self.used[-1], self.capacity[-1], self.waiting[-1] = used, capacity, waiting
            return
        self.at.append(at)
        self.used.append(used)
        self.capacity.append(capacity)
        self.waiting.append(waiting)

    def spans(self) -> Iterator[tuple[float, float, int, int, int]]:
        """(from, until, used, capacity, waiting) of each stretch in which nothing changed."""
        for place in range(len(self.at) - 1):
            yield self.at[place], self.at[place + 1], self.used[place], self.capacity[place], self.waiting[place]

    def utilisation(self, since: float | None = None, until: float | None = None) -> float:
        """The part of all card-seconds that was in use."""
        used = there = 0.0
        for begun, over, busy, capacity, _ in self.spans():
            seconds = min(over, over if until is None else until) - max(begun, begun if since is None else since)
            if seconds > 0:
                used += busy * seconds
                there += capacity * seconds
        return used / there if there else 0.0


@dataclass(slots=True)
class Result:
    outcomes: list[Outcome]  # in the order in which they came; those that held something from the beginning first
    timeline: Timeline
    cycles: int  # in which somebody waited, so that something was decided
    began: float
    ended: float

    def of(self, id: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.id == id)
