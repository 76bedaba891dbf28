"""Where the cards' time went: the card ledger, for everyone who may see the machines."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from gpuyard.access.rights import Action
from gpuyard.api import views
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.ledger_models import LedgerLine, LedgerOut, LedgerSums
from gpuyard.api.moments import When, moment_of
from gpuyard.domain.errors import BadInput
from gpuyard.domain.ledger import DAY, HOUR, Amounts
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because
from gpuyard.ledger.reporting import STEPS, By, Report, open_lines, period, report
from gpuyard.store import ledger as rows

doors = Doors(prefix="/api/v1", tags=["cluster"])
Seeing = Annotated[Caller, needs(Action.SEE_CLUSTER)]
USUALLY = 7 * DAY


@doors.get("/ledger", response_model=LedgerOut)
def ledger(
    caller: Seeing,
    since: Annotated[When | None, Query(description="from the hour of this on; left out: a week ago")] = None,
    until: Annotated[When | None, Query(description="to the hour of this; left out: now")] = None,
    by: Annotated[By, Query(description="what the lines are told apart by")] = By.DAY,
) -> Any:
    """Every card-millisecond in exactly one bucket."""
    now = int(caller.now * 1000)
    begun, over = _instant("since", since, now - USUALLY), _instant("until", until, now)
    if begun - begun % HOUR > now:  # full hours are told; and clocks that differ a little are no reason to refuse
        raise BadInput(because(Code.BAD_VALUE, at="since", value=since, problem=Problem.IN_FUTURE))
    told = _report(caller, begun, min(now, over), now, by)
    return LedgerOut(
        since=views.instant(told.since / 1000),
        until=views.instant(told.until / 1000),
        asked_since=views.instant(begun / 1000),
        asked_until=views.instant(over / 1000),
        by=by,
        total=LedgerSums(**_sums(told.total)),
        items=[LedgerLine(name=name, **_sums(amounts)) for name, amounts in told.lines.items()],
    )


def _instant(at: str, told: str | None, otherwise: int) -> int:
    moment = moment_of(at, told)
    return otherwise if moment is None else int(moment * 1000)


def _report(caller: Caller, since: int, until: int, now: int, by: By) -> Report:
    asked = period(since, until)
    with caller.parts.database.read() as conn:
        stored = rows.lines(conn, *asked, by_day=by is By.DAY, by="" if by is By.DAY else by.value)
        accounts = rows.accounts(conn)
    return report([*stored, *open_lines(accounts, asked, now)], by, now)


def _sums(amounts: Amounts) -> dict[str, Any]:
    buckets = {bucket: amounts.of(bucket) for bucket in STEPS}
    return {"capacity": amounts.capacity, "buckets": buckets, "untold": amounts.untold}
