"""What a decision may look at, and what it decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.people import Quota
from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import Workload


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The world at one moment. `queue` holds everything queued, `holding` everything that has cards or cores."""

    now: float
    nodes: tuple[Node, ...]
    queue: tuple[Workload, ...]
    holding: tuple[Workload, ...] = ()
    quotas: tuple[Quota, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where every replica of one workload goes. Always whole: a gang has all its places or is not here."""

    workload: str
    allotments: Mapping[tuple[str, int], Allotment]


@dataclass(frozen=True, slots=True)
class Plan:
    """Who starts, and for everyone else the reason."""

    placements: tuple[Placement, ...] = ()
    waiting: Mapping[str, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen if this were submitted now."""

    starts: bool
    reason: Reason | None = None
    nodes: tuple[str, ...] = ()
    position: int = 0  # how many wait before it
    ahead: tuple[str, ...] = ()
