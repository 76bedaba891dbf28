"""What the ledger tells about a stretch of time: sums that were written, and what is known since, up to now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from gpuyard.domain.ledger import DAY, HOUR, Account, Amounts, Bucket, Cards, Line, Span
from gpuyard.ledger.accounts import pieces

# What is lost on the way from the cards there are to the cards that work, in the order in which it is told.
STEPS = (
    *(Bucket.UNHEALTHY, Bucket.DRAINING, Bucket.FREE, Bucket.QUOTA, Bucket.RESERVED, Bucket.FRAGMENTED),
    *(Bucket.IDLE, Bucket.USED),
)


class By(StrEnum):
    """What the sums are told apart by."""

    DAY = "day"
    NODE = "node"
    MODEL = "model"


class Period(NamedTuple):
    """From, and up to but not including; full hours, epoch milliseconds."""

    since: int
    until: int

    def touches(self, span: Span) -> bool:
        return span.at < self.until and span.end > self.since


def period(since: int, until: int) -> Period:
    """The full hours that hold this stretch."""
    return Period(since - since % HOUR, until + -until % HOUR)


class Report(NamedTuple):
    since: int  # what is covered indeed: nothing is known of earlier, and days are told whole once their hours are gone
    until: int
    total: Amounts
    lines: dict[str, Amounts]  # by the day, machine or model, in order


def open_lines(accounts: Mapping[Cards, Account], asked: Period, now: int) -> Iterable[Line]:
    """What is known since it was last written, as if it were written now."""
    for cards, account in accounts.items():
        for span, milliseconds in pieces(account.since, now):
            if asked.touches(span):
                yield Line(span, cards, account.amounts.times(milliseconds))


def report(lines: Iterable[Line], by: By, now: int) -> Report:
    found: dict[str, Amounts] = {}
    total = Amounts()
    since, until = now, 0
    for line in lines:
        label = _label(line, by)
        found[label] = found.get(label, Amounts()) + line.amounts
        total = total + line.amounts
        since, until = min(since, line.span.at), max(until, min(now, line.span.end))
    return Report(since, max(since, until), total, {label: found[label] for label in sorted(found)})


def _label(line: Line, by: By) -> str:
    if by is By.DAY:
        return datetime.fromtimestamp((line.span.at - line.span.at % DAY) / 1000, UTC).date().isoformat()
    return line.cards.node if by is By.NODE else line.cards.model
