"""What sharing remembers: how much was used in the past, how long jobs of a name ran, and the admin's policy.

Past use and run times are written often and read once, at the start, by the one control; so they are no news to the
feed. The policy is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from gpuyard.domain.usage import PastUse
from gpuyard.store import facts
from gpuyard.store import schema as tables
from gpuyard.store.bulk import execute_many
from gpuyard.store.feed import note_change

POLICY_KIND = "policy"  # as the change feed names it
MOST_RUN_TIMES = 20  # of one name: enough to learn from, and the old ones tell little
_POLICY = "policy"
_AT_ONCE = 400  # named in one query; when there are more, all are read


def _upserts(table: sa.Table, *columns: str) -> Mapping[str, sa.Insert]:
    """By dialect: write a row, or these columns of it when it is there. One statement for any number of rows."""
    key = list(table.primary_key.columns)

    def upsert(statement: Any) -> sa.Insert:
        new = {name: statement.excluded[name] for name in columns}
        result: sa.Insert = statement.on_conflict_do_update(index_elements=key, set_=new)
        return result

    return {"sqlite": upsert(sqlite.insert(table)), "postgresql": upsert(postgresql.insert(table))}


_charge = _upserts(tables.past_use, "amount", "at")
_add_run_times = _upserts(tables.run_times, "seconds")


# --- past use -----------------------------------------------------------------------------------------------------


def past_use(conn: sa.Connection, groups: Collection[str] | None = None) -> dict[tuple[str, str | None], PastUse]:
    """By (group, user); (group, None) is the group as a whole. Of all groups, or of these."""
    query = sa.select(tables.past_use)
    if groups is not None and len(groups) <= _AT_ONCE:
        query = query.where(tables.past_use.c.group_name.in_(groups))
    return {(row.group_name, row.user_name or None): PastUse(row.amount, row.at) for row in conn.execute(query)}


def charge(conn: sa.Connection, uses: Mapping[tuple[str, str | None], PastUse]) -> None:
    """Write what these have used by now, in place of what was written of them before."""
    rows = [
        {"group_name": group, "user_name": user or "", "amount": use.amount, "at": use.at}
        for (group, user), use in uses.items()
    ]
    execute_many(conn, _charge[conn.dialect.name], rows)


# --- learned run times --------------------------------------------------------------------------------------------


def run_times(
    conn: sa.Connection, names: Collection[tuple[str, str]] | None = None
) -> dict[tuple[str, str], tuple[float, ...]]:
    """By (owner, name of the job): how many seconds it ran when it ended well, newest first. Of all, or of these."""
    query = sa.select(tables.run_times)
    if names is not None and len(names) <= _AT_ONCE:
        known = tables.run_times.c
        owners, jobs = {owner for owner, _ in names}, {name for _, name in names}
        query = query.where(known.owner.in_(owners), known.name.in_(jobs))
    return {(row.owner, row.name): tuple(json.loads(row.seconds)) for row in conn.execute(query)}


def add_run_times(conn: sa.Connection, times: Mapping[tuple[str, str], tuple[float, ...]]) -> None:
    """Write the run times of these names, newest first, in place of what was written of them before."""
    rows = [
        {"owner": owner, "name": name, "seconds": json.dumps(seconds[:MOST_RUN_TIMES])}
        for (owner, name), seconds in times.items()
    ]
    execute_many(conn, _add_run_times[conn.dialect.name], rows)


def forget_run_times(conn: sa.Connection) -> int:
    """Drop the run times of names that no stored workload has any more. Returns how many."""
    learned, known = tables.run_times, tables.workloads
    named = sa.exists().where(known.c.name == learned.c.name, known.c.owner == learned.c.owner)
    return conn.execute(sa.delete(learned).where(~named)).rowcount


# --- the policy ---------------------------------------------------------------------------------------------------


def policy_text(conn: sa.Connection) -> str | None:
    """As the admin set it; None when nobody has: then the default holds."""
    return facts.get(conn, _POLICY)


def set_policy_text(conn: sa.Connection, text: str) -> None:
    facts.put(conn, _POLICY, text)
    note_change(conn, POLICY_KIND, _POLICY)
