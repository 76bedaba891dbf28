"""The card ledger: what cards are, thousandth by thousandth, and for how long. Integers, so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import NamedTuple

HOUR = 3_600_000  # milliseconds
DAY = 24 * HOUR


class Bucket(StrEnum):
    """Every thousandth of every card is in exactly one of these at any moment."""

    USED = "used"  # given out, and measured busy; or the device does not tell
    IDLE = "idle"  # given out, and measured idle
    FRAGMENTED = "fragmented"  # free; work waits for such cards, and none of it could use what is left here
    QUOTA = "quota"  # free; work that waits for nothing but a quota would use it
    RESERVED = "reserved"  # free; kept for one that waits and will start there
    UNHEALTHY = "unhealthy"  # in trouble, or of a machine that is lost or whose disk is full
    DRAINING = "draining"  # free, on a machine that an admin wants no new work on
    FREE = "free"  # free, and nobody waits for it


BUCKETS = tuple(Bucket)
NOTHING = (0,) * len(BUCKETS)


@dataclass(frozen=True, slots=True)
class Amounts:
    """Thousandths of cards by bucket, or the same times milliseconds."""

    capacity: int = 0  # counted by itself, from the cards there are: the check on the buckets
    buckets: tuple[int, ...] = NOTHING  # in the order of BUCKETS
    untold: int = 0  # of what is used: where nobody measured whether it is busy

    def __add__(self, other: Amounts) -> Amounts:
        buckets = tuple(map(add, self.buckets, other.buckets))
        return Amounts(self.capacity + other.capacity, buckets, self.untold + other.untold)

    def times(self, milliseconds: int) -> Amounts:
        buckets = tuple([amount * milliseconds for amount in self.buckets])
        return Amounts(self.capacity * milliseconds, buckets, self.untold * milliseconds)

    def of(self, bucket: Bucket) -> int:
        return self.buckets[BUCKETS.index(bucket)]

    @property
    def is_whole(self) -> bool:
        """Is every thousandth in exactly one bucket?"""
        told = 0 <= self.untold <= self.of(Bucket.USED)
        return told and min(self.buckets) >= 0 and sum(self.buckets) == self.capacity


class Cards(NamedTuple):
    """Whose cards: those of one model on one machine."""

    node: str
    model: str


class Account(NamedTuple):
    """What is known of them now. Everything before `since` (epoch milliseconds) is accounted for."""

    since: int
    amounts: Amounts


class Span(NamedTuple):
    """A stretch of time for which sums are kept: an hour, or a day of UTC."""

    at: int  # epoch milliseconds
    hours: int

    @property
    def end(self) -> int:
        return self.at + self.hours * HOUR


class Line(NamedTuple):
    """Sums of one span."""

    span: Span
    cards: Cards
    amounts: Amounts


class Page(NamedTuple):
    """What is to be written: sums to add to those that are there, and what is known now (None: gone)."""

    sums: dict[tuple[Span, Cards], Amounts]
    accounts: dict[Cards, Account | None]
    forgotten: frozenset[Span] = frozenset()  # first of all: what is there was told by a clock that was wrong
