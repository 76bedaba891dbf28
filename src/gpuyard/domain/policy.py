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

    FRAGMENTS = "fragments"  # the one where typical requests lose the least; of equals, that with the least to spare
    BEST_FIT = "best_fit"  # the one with the least to spare, so that large free nodes stay large
    IN_ORDER = "in_order"  # the servers in the admin's order, then by name: fill one before the next
    SPREAD = "spread"  # the emptiest one

    @property
    def packs(self) -> bool:
        """Does it look for what fits most tightly?"""
        return self in (Placing.BEST_FIT, Placing.FRAGMENTS)


@dataclass(frozen=True, slots=True)
class Pool:
    """A part of the cluster: cards of these models (empty: all), on these nodes (empty: all) with these labels."""

    models: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


class First(StrEnum):
    """Who comes first where guarantee, people and priority say nothing."""

    SHARE = "share"  # the group, and inside it the person, that used less of late; then age
    SHORTEST = "shortest"  # the least left of the declared maximum duration; who declares none comes after all
    LEAST_SERVED = "least_served"  # the job that had the least card-time itself, in levels; then age


@dataclass(frozen=True, slots=True)
class Ordering:
    """Who is asked first. Guaranteed quota comes before all of this."""

    first: First = First.SHARE
    first_level: float = HOUR  # least_served: the first level is up to this much card-time ...
    next_level: float = 10.0  # ... and each following one so many times larger
    oldest_first: bool = False  # where that is not `share`: whoever has waited longest comes before them all
    levels: int = 8  # there are so many; in the last one it never ends
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
    for_turn: bool = True  # also one that comes first by `order.first` may take a place, where that is not `share`


class Defragmenting(StrEnum):
    """What happens when a waiting job has cards enough free, but not together. No word that YAML reads as yes or no."""

    NEVER = "never"  # nobody looks for moves
    PROPOSE = "propose"  # they are shown, and nothing is moved
    MOVE = "move"  # they are carried out


@dataclass(frozen=True, slots=True)
class Defragment:
    """Which running work may be moved so that a waiting job has its cards together. Only preemptible work ever is."""

    mode: Defragmenting = Defragmenting.PROPOSE
    after: float = 300.0  # for those that have waited this long
    min_run: float = 600.0  # nobody is moved, or moved again, before it has run this long
    max_lost: float = 900.0  # nor anybody that would have lost more than this by then, all attempts counted
    moves: int = 3  # at most, for one job


@dataclass(frozen=True, slots=True)
class Policy:
    priorities: Mapping[str, int] = field(
        default_factory=lambda: {"low": 200, "normal": 500, "high": 700, "urgent": 900}
    )
    ceilings: Mapping[str, int] = field(default_factory=lambda: {"member": 700, "lead": 900, "admin": 1000})
    order: Ordering = Ordering()
    backfill: bool = True  # a short job may pass one that waits, when it is sure to be over before that one can start
    keep_for_first: bool = False  # only the first that waits keeps what it gathers: more may pass those behind it
    preempt: Preempting = Preempting()
    defragment: Defragment = Defragment()
    placing: Placing = Placing.FRAGMENTS
    servers: tuple[str, ...] = ()  # the order of the servers for `in_order`; the others follow by name
    pools: Mapping[str, Pool] = field(default_factory=dict)
    group_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # group -> pools it may use; absent: all
    kind_pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # kind of workload -> pools; absent: all
    # Chips that are linked to each other: a request stays in one ring or takes the whole node. device -> rings
    rings: Mapping[str, tuple[tuple[int, ...], ...]] = field(
        default_factory=lambda: {"ascend": ((0, 1, 2, 3), (4, 5, 6, 7))}
    )
