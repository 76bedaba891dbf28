"""The card ledger as it is remembered: sums by hour, later by day, and what is known of all cards now.

Written by control only, and read when somebody asks: no news to the feed. What is known and the sums up to its instant
are written in one transaction, so whoever goes on from there counts nothing twice and leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from gpuyard.domain.ledger import BUCKETS, DAY, HOUR, Account, Amounts, Cards, Line, Page, Span
from gpuyard.store.bulk import execute_many
from gpuyard.store.schema import LEDGER_AMOUNTS, ledger, ledger_now

HOURS_KEPT = 7 * DAY
DAYS_KEPT = 400 * DAY
_NAMES = tuple(bucket.value for bucket in BUCKETS)
_DIALECTS: Mapping[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def _adding(statement: Any) -> sa.Insert:
    """Add to the row that is there."""
    key = list(ledger.primary_key.columns)
    sums = {name: ledger.c[name] + statement.excluded[name] for name in LEDGER_AMOUNTS}
    result: sa.Insert = statement.on_conflict_do_update(index_elements=key, set_=sums)
    return result


def _replacing(statement: Any) -> sa.Insert:
    key = list(ledger_now.primary_key.columns)
    new = {name: statement.excluded[name] for name in ("since", *LEDGER_AMOUNTS)}
    result: sa.Insert = statement.on_conflict_do_update(index_elements=key, set_=new)
    return result


_add = {name: _adding(insert(ledger)) for name, insert in _DIALECTS.items()}
_replace = {name: _replacing(insert(ledger_now)) for name, insert in _DIALECTS.items()}
_forget = sa.delete(ledger_now).where(
    ledger_now.c.node == sa.bindparam("its_node"), ledger_now.c.model == sa.bindparam("its_model")
)
_forget_span = sa.delete(ledger).where(
    ledger.c.at == sa.bindparam("its_at"), ledger.c.hours == sa.bindparam("its_hours")
)


def write(conn: sa.Connection, page: Page) -> None:
    if page.forgotten:
        conn.execute(_forget_span, [{"its_at": span.at, "its_hours": span.hours} for span in page.forgotten])
    sums = [
        {"at": span.at, "hours": span.hours, "node": cards.node, "model": cards.model, **_columns(amounts)}
        for (span, cards), amounts in page.sums.items()
    ]
    execute_many(conn, _add[conn.dialect.name], sums)
    known = [
        {"node": cards.node, "model": cards.model, "since": account.since, **_columns(account.amounts)}
        for cards, account in page.accounts.items()
        if account is not None
    ]
    execute_many(conn, _replace[conn.dialect.name], known)
    gone = [{"its_node": c.node, "its_model": c.model} for c, account in page.accounts.items() if account is None]
    if gone:
        conn.execute(_forget, gone)


def accounts(conn: sa.Connection) -> dict[Cards, Account]:
    rows = conn.execute(sa.select(ledger_now))
    return {Cards(row.node, row.model): Account(row.since, _amounts(row)) for row in rows}


def lines(conn: sa.Connection, since: int, until: int, *, by_day: bool, by: str) -> list[Line]:
    """The sums of all spans that touch this time, added up by day if asked, and by `node`, `model` or nothing."""
    at = ledger.c.at - ledger.c.at % DAY if by_day else sa.func.min(ledger.c.at)
    end = sa.func.max(ledger.c.at + ledger.c.hours * HOUR)
    keys = [ledger.c[by]] if by else []
    sums = [sa.func.sum(ledger.c[name]).label(name) for name in LEDGER_AMOUNTS]
    query = (
        sa.select(sa.func.min(ledger.c.at).label("at"), end.label("end"), *keys, *sums)
        .where(ledger.c.at > since - DAY, ledger.c.at < until, ledger.c.at + ledger.c.hours * HOUR > since)
        .group_by(*keys, *([at] if by_day else []))
    )
    if not keys and not by_day:
        query = query.having(sa.func.count() > 0)
    return [_line(row, by) for row in conn.execute(query)]


def _line(row: Any, by: str) -> Line:
    cards = Cards(row.node if by == "node" else "", row.model if by == "model" else "")
    return Line(Span(int(row.at), (int(row.end) - int(row.at)) // HOUR), cards, _amounts(row))


def roll_up(conn: sa.Connection, now: float) -> None:
    """Hours become days after a week, and days are forgotten after a bit more than a year."""
    at = int(now * 1000)
    before = at - at % DAY - HOURS_KEPT
    old = sa.and_(ledger.c.hours == 1, ledger.c.at < before)
    day = (ledger.c.at - ledger.c.at % DAY).label("day")
    sums = [sa.func.sum(ledger.c[name]) for name in LEDGER_AMOUNTS]
    days = sa.select(day, sa.literal(24), ledger.c.node, ledger.c.model, *sums).where(old)
    days = days.group_by(day, ledger.c.node, ledger.c.model)
    insert = _DIALECTS[conn.dialect.name](ledger)
    conn.execute(_adding(insert.from_select(["at", "hours", "node", "model", *LEDGER_AMOUNTS], days)))
    conn.execute(sa.delete(ledger).where(old))
    conn.execute(sa.delete(ledger).where(ledger.c.at < at - DAYS_KEPT))


def _columns(amounts: Amounts) -> dict[str, int]:
    return {"capacity": amounts.capacity, "untold": amounts.untold, **dict(zip(_NAMES, amounts.buckets, strict=True))}


def _amounts(row: Any) -> Amounts:
    """PostgreSQL adds up in another type of number."""
    buckets = tuple(int(getattr(row, name)) for name in _NAMES)
    return Amounts(int(row.capacity), buckets, int(row.untold))
