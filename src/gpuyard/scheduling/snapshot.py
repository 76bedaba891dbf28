"""What a decision may look at, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.people import Group
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Reason
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import Workload
from gpuyard.scheduling.fragments import Typical

Person = tuple[str, str | None]  # (group, user), or the group as a whole: (group, None)
JobName = tuple[str, str]  # (owner, name of the job)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The world at one moment. `queue` holds everything queued, `holding` everything that has cards or cores."""

    now: float
    nodes: tuple[Node, ...]
    queue: tuple[Workload, ...]
    holding: tuple[Workload, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    policy: Policy = Policy()
    past: Mapping[Person, PastUse] = field(default_factory=dict)
    run_times: Mapping[JobName, tuple[float, ...]] = field(default_factory=dict)  # seconds of good ends, newest first
    typical: tuple[Typical, ...] = ()  # what is asked for of late, for `placing: fragments`


@dataclass(frozen=True, slots=True)
class Turn:
    """The numbers that gave a workload its place in the order, as they were when it was asked."""

    guaranteed: bool  # its group stays within what is guaranteed to it
    priority: int  # with what waiting added
    group_use: float  # card-hours, worn down by time, by the group's weight
    user_use: float
    left: float | None = None  # `shortest`: seconds of its declared maximum; infinity when it declares none
    served: float | None = None  # `least_served`: card-hours that it had so far


@dataclass(frozen=True, slots=True)
class Placement:
    """Where every replica of one workload goes. Always whole: a gang has all its places or is not here."""

    workload: str
    allotments: Mapping[tuple[str, int], Allotment]
    turn: Turn | None = None
    passed: tuple[str, ...] = ()  # some of those that were asked before it and still wait
    gap: tuple[float, float] | None = None  # it uses what another keeps: over by, and before that one can start
    images: tuple[str, ...] = ()  # of those it runs in, the ones that its nodes hold and some other nodes do not


class Rule(StrEnum):
    """By which right running work is put back into the queue."""

    GUARANTEE = "guarantee"  # the group takes back what is guaranteed to it
    PRIORITY = "priority"  # a higher priority
    TURN = "turn"  # less left to run, or less served so far, where the policy goes by that
    DEFRAGMENT = "defragment"  # it only moves, to a place that is kept for it, so that another has its cards together


@dataclass(frozen=True, slots=True)
class Eviction:
    """Preemptible work that makes room for another workload, and what it loses by that."""

    workload: str
    by: str
    rule: Rule
    lost_seconds: float  # since its work was last saved
    to: Mapping[tuple[str, int], Allotment] = field(default_factory=dict, hash=False)  # where it goes on, if it moves


@dataclass(frozen=True, slots=True)
class Plan:
    """Who starts, who makes room, and for everyone else the reason."""

    placements: tuple[Placement, ...] = ()
    waiting: Mapping[str, Reason] = field(default_factory=dict)  # in the order in which they were asked
    evictions: tuple[Eviction, ...] = ()
    uses: Mapping[str, float] = field(default_factory=dict)  # card-hours of `group` and `group/user` of some who wait


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen if this were submitted now."""

    starts: bool
    reason: Reason | None = None
    nodes: tuple[str, ...] = ()
    position: int = 0  # how many wait before it
    ahead: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()  # what its owner should know, such as cards it would strand
    remedies: tuple[Remedy, ...] = ()  # when asked for: changes that would start it


class Sort(StrEnum):
    """The class of a reason: what kind of thing stands in the way."""

    NEVER = "never"  # no waiting will help: change the request
    QUOTA = "quota"  # a limit, or quota that is guaranteed to others
    BUSY = "busy"  # running work must end first
    ORDER = "order"  # it would start now, were nobody before it
    TROUBLE = "trouble"  # something is broken: a lost node, a held card, a retry that waits


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that would start it now: the planner has tried it. `changes` as `yard rerun --set` takes them."""

    kind: str  # cards, share, model, device, replicas, cpu, memory, group, preemptible, max_time, where, together
    changes: tuple[tuple[str, str], ...]
    nodes: tuple[str, ...]  # where it would start


@dataclass(frozen=True, slots=True)
class Ahead:
    """One that is asked before it, and the rule that puts it there (rule.* with both numbers)."""

    workload: str
    rule: Reason


@dataclass(frozen=True, slots=True)
class Why:
    """The proof that a workload waits, and what would start it now."""

    sort: Sort
    reason: Reason
    facts: tuple[Reason, ...]  # fact.*: the smallest set that shows it
    position: int  # how many that can start some day are asked before it
    ahead: tuple[Ahead, ...]  # the next one first, at most 20
    remedies: tuple[Remedy, ...]
