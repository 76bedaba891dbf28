"""The shape of the card ledger."""

from __future__ import annotations

from pydantic import Field

from gpuyard.api.models import Instant, Out
from gpuyard.domain.ledger import Bucket
from gpuyard.ledger.reporting import By


class LedgerSums(Out):
    """In thousandths of a card times milliseconds, exact: 3,600,000,000 are one card-hour. The buckets sum to the
    capacity."""

    capacity: int
    buckets: dict[Bucket, int] = Field(description="in the order in which capacity is lost on its way to use")
    untold: int = Field(description="of what is used: where nobody measured whether the cards are busy")


class LedgerLine(LedgerSums):
    name: str = Field(description="the day (UTC), the machine or the model")


class LedgerOut(Out):
    since: Instant = Field(description="what is covered: full hours, and full days (UTC) once a week old")
    until: Instant
    asked_since: Instant = Field(description="what was asked for; more may be covered than that")
    asked_until: Instant
    by: By
    total: LedgerSums
    items: list[LedgerLine]
