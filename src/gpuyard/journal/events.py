"""What a picture tells of itself as it changes: all that decisions are made from, in the order in which it came.

A workload that was put is told as itself, one that was removed by its id. Values are immutable, or copies: another
thread writes them down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.fragments import Typical
from gpuyard.scheduling.snapshot import JobName, Person, Plan


@dataclass(frozen=True, slots=True)
class Anew:
    """Everything, as it is now. There are no books yet."""

    nodes: tuple[Node, ...]
    groups: Mapping[str, Group]
    policy: Policy
    past: Mapping[Person, PastUse]
    run_times: Mapping[JobName, tuple[float, ...]]
    workloads: tuple[Workload, ...]
    typical: tuple[Typical, ...] = ()


@dataclass(frozen=True, slots=True)
class Charged:
    """Past use and run times that took the place of what was known; with `whole` of all that was known."""

    past: Mapping[Person, PastUse]
    run_times: Mapping[JobName, tuple[float, ...]]
    whole: bool = False


@dataclass(frozen=True, slots=True)
class NodesAre:
    """With `renewed` only the images they hold are others, and the books were told."""

    nodes: tuple[Node, ...]
    renewed: bool = False


@dataclass(frozen=True, slots=True)
class GroupsAre:
    groups: Mapping[str, Group]


@dataclass(frozen=True, slots=True)
class PolicyIs:
    policy: Policy


@dataclass(frozen=True, slots=True)
class TypicalIs:
    typical: tuple[Typical, ...]


@dataclass(frozen=True, slots=True)
class BooksMade:
    """New books, from all that was told so far."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What `decide` was asked, beside the books, and what it answered. Those who wait are told that at once."""

    now: float
    plan: Plan
    most: float
    news_only: bool = True


Event = Workload | str | Anew | Charged | NodesAre | GroupsAre | PolicyIs | TypicalIs | BooksMade | Decided


class Notes(Protocol):
    """Who is told."""

    @property
    def wants_all(self) -> bool:
        """A new beginning is asked for: the next event should be `Anew`."""
        ...

    def add(self, event: Event) -> None: ...

    def hand_over(self, now: float) -> None:
        """A cycle is over: what was added since the last one belongs together."""
        ...


@dataclass(frozen=True, slots=True)
class NoNotes:
    """Nobody is told."""

    wants_all: bool = field(default=False, init=False)

    def add(self, event: Event) -> None:
        """Nobody listens."""

    def hand_over(self, now: float) -> None:
        """Nobody listens."""
