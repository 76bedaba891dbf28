"""What a rehearsal is given: who comes when and how long it really runs, and what happens to the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from gpuyard.domain.cluster import Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.workload import Cause, Spec, Workload


@dataclass(frozen=True, slots=True)
class Rest:
    """It is paused from `at` on, whether it waits or runs by then, and wanted again from `until` on."""

    at: float
    until: float
    spec: Spec | None = None  # what it asks for afterwards; None: the same as before


@dataclass(frozen=True, slots=True)
class Arrival:
    """A workload that is submitted at its `submitted_at`, and what nobody knows yet when it is.

    One that holds resources from the beginning (`holding`) has `seconds` left to run from there.
    """

    workload: Workload
    seconds: float  # of work, without waiting, starting and repeating
    fails: Cause | None = None  # every attempt ends so after its seconds; None: it ends well
    patience: float = inf  # its owner takes it back when it has not started so long after it was submitted
    rests: tuple[Rest, ...] = ()  # one after the other


@dataclass(frozen=True, slots=True)
class Change:
    """From `at` on the cluster has these nodes, groups or rules. None: as before."""

    at: float
    nodes: tuple[Node, ...] | None = None
    groups: Mapping[str, Group] | None = None
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class Habits:
    """How machines and work behave."""

    keeps_work: bool = True  # what was done is never lost by an interruption
    save_every: float | None = None  # otherwise work is saved so often; None: never, and all of it is lost
    start_seconds: float = 0.0  # from its place until it runs
    stop_seconds: float = 0.0  # from the signal until it is gone; never longer than its grace

    def kept(self, ran: float) -> float:
        """Seconds of a run that was interrupted that need not be repeated."""
        if self.keeps_work:
            return ran
        return ran // self.save_every * self.save_every if self.save_every else 0.0

    @property
    def saves(self) -> bool:
        return self.keeps_work or bool(self.save_every)
