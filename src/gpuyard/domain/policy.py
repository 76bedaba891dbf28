"""The rules of order, sharing and placement, as data an admin can read, change live and try first.

Durations in seconds, priorities from 1 to 1000. `scheduling` reads it; nothing here decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

HOUR, DAY = 3600.0, 86400.0


class Placing(StrEnum):
    """Which node is asked first."""

    BEST_FIT = "best_fit"  # the one with the least to spare, so that large free nodes stay large
    IN_ORDER = "in_order"  # the servers in the admin's order, then by name: fill one before the next
    SPREAD = "spread"  # the emptiest one

    @property
    def packs(self) -> bool:
        """Does it look for what fits most tightly?"""
        return self is Placing.BEST_FIT


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of the cluster: cards of these models (empty: all), on these nodes (empty: all) with these labels."""

    models: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Ordering:
    """Who is asked first. Guaranteed quota comes before all of this."""

    people: tuple[str, ...] = ()  # these persons come first, in this order
    fair_share: bool = True  # those who used less of late come first
    half_life: float = 7 * DAY  # past use counts half after this long
    ahead: float = HOUR  # what runs now counts as if it had run this much longer
    tolerance: float = 0.1  # use that differs by less than this part counts as equal: then age decides
    cores_per_card: int = 16  # work without cards: this many cores count as one card
    age_every: float = 12 * HOUR  # waiting this long raises the priority ...
    age_points: int = 50  # ... by this much, again and again, so that nobody starves


@dataclass(frozen=True, slots=True)
class Preempting:
    """Whose running work may be put back into the queue, and when. Only preemptible work ever is."""

    enabled: bool = True
    for_priority: bool = True  # a higher priority may take the place of a lower one, not only guaranteed quota
    min_run: float = 300.0  # nobody is preempted before it has run this long


@dataclass(frozen=True, slots=True)
class Policy:
    priorities: Mapping[str, int] = field(
        default_factory=lambda: {"low": 200, "normal": 500, "high": 700, "urgent": 900}
    )
    ceilings: Mapping[str, int] = field(default_factory=lambda: {"member": 700, "lead": 900, "admin": 1000})
    order: Ordering = Ordering()
    backfill: bool = True  # a short job may pass one that waits, when it is sure to be over before that one can start
    preempt: Preempting = Preempting()
    placing: Placing = Placing.BEST_FIT
    servers: tuple[str, ...] = ()  # the order of the servers for `in_order`; the others follow by name
    pools: Mapping[str, Pool] = field(default_factory=dict)
    group_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # group -> pools it may use; absent: all
    kind_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # kind of workload -> pools; absent: all
    # Chips that are linked to each other: a request stays in one ring or takes the whole node. device -> rings
    rings: Mapping[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=lambda: {"ascend": ((0, 1, 2, 3), (4, 5, 6, 7))}
    )
