"""Lists of workloads: what a person may see, filtered, newest first, page by page; and what a person means by a name.

Each way of seeing (everything in a state, one owner's, one group's) has an index in the order of the list. A list that
mixes ways takes the first rows of each and merges them, so a page costs the same however long the history is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import JOB_NAME_RULE, State, Workload
from gpuyard.store.schema import workloads
from gpuyard.store.workload_rows import WORKLOAD_COLUMNS, newest_attempts, read_attempts, read_workloads

MOST_ON_A_PAGE = 500
SHORTEST_PREFIX = 2
_MATCHES_TOLD = 10

_by_ids = workloads.c.id.in_(sa.bindparam("ids", expanding=True))
_ids_attempts = newest_attempts(_by_ids)


@dataclass(frozen=True, slots=True)
class Visibility:
    """What may be seen: everything, or one's own and that of some groups."""

    everything: bool = False
    owner: str | None = None
    groups: tuple[str, ...] = ()


EVERYTHING = Visibility(everything=True)


@dataclass(frozen=True, slots=True)
class WorkloadFilter:
    """What is looked for. Empty means: any."""

    owner: str | None = None
    groups: tuple[str, ...] = ()
    states: tuple[State, ...] = ()
    name: str | None = None
    kind: str | None = None
    search: str | None = None  # somewhere in the name, in any case
    since: float | None = None  # submitted then or later
    until: float | None = None  # submitted before
    removed: bool = False  # also those that were taken off the lists


def page(
    conn: sa.Connection,
    *,
    filters: WorkloadFilter,
    visible_to: Visibility,
    before: str | None = None,
    limit: int = 100,
) -> tuple[list[Workload], str | None]:
    """One page, newest first, and the cursor of the next one; None when this was the last."""
    limit = max(1, min(limit, MOST_ON_A_PAGE))
    branches = [_branch(way, filters, before, limit + 1) for way in _ways(filters, visible_to)]
    if not branches:
        return [], None
    keys = sa.union(*branches).subquery() if len(branches) > 1 else branches[0].subquery()
    wanted = sa.select(keys.c.id).order_by(keys.c.submitted_at.desc(), keys.c.id.desc()).limit(limit + 1)
    ids = list(conn.execute(wanted).scalars())
    found = _read(conn, ids[:limit])
    return found, _cursor(found[-1]) if len(ids) > limit and found else None


def resolve(conn: sa.Connection, text: str, asker: str, visibility: Visibility) -> list[str]:
    """The ids a person may mean: an exact id; else the newest of one's own by that name; else ids that begin so.

    One's own name goes before a beginning: ids are random, and a script that stops `t1` by name must not one day stop
    a stranger whose id happens to begin with it. Several ids mean that the text is ambiguous.
    """
    if not JOB_NAME_RULE.match(text):
        return []
    seen = _visible(visibility)
    exact = conn.execute(sa.select(workloads.c.id).where(workloads.c.id == text, seen)).scalar()
    if exact is not None:
        return [exact]
    ended = workloads.c.ended_at
    named = (
        sa.select(workloads.c.id)
        .where(workloads.c.owner == asker, workloads.c.name == text, workloads.c.removed_at.is_(None))
        # One that took the place of another has its time of submission too: the one that lives, or lived longer, is
        # meant.
        .order_by(workloads.c.submitted_at.desc(), ended.is_(None).desc(), ended.desc(), workloads.c.id.desc())
        .limit(1)
    )
    newest = conn.execute(named).scalar()
    if newest is not None:
        return [newest]
    return _beginning_with(conn, text, seen)


def _beginning_with(conn: sa.Connection, text: str, seen: sa.ColumnElement[bool]) -> list[str]:
    if len(text) < SHORTEST_PREFIX:
        return []
    query = (
        sa.select(workloads.c.id)
        .where(workloads.c.id >= text, workloads.c.id < text + "\x7f", seen)
        .order_by(workloads.c.id)
        .limit(_MATCHES_TOLD)
    )
    return list(conn.execute(query).scalars())


def _visible(visibility: Visibility) -> sa.ColumnElement[bool]:
    if visibility.everything:
        return sa.true()
    return sa.or_(
        workloads.c.owner == visibility.owner if visibility.owner is not None else sa.false(),
        workloads.c.group_name.in_(visibility.groups) if visibility.groups else sa.false(),
    )


def _ways(filters: WorkloadFilter, visible: Visibility) -> list[list[sa.ColumnElement[bool]]]:
    """The fewest indexed ways that together show exactly what is asked for and may be seen."""
    owner, group = workloads.c.owner, workloads.c.group_name
    if filters.owner is not None:
        allowed = _groups_for(filters, visible, of_owner=filters.owner)
        if allowed is None:
            return [[owner == filters.owner]]
        return [[owner == filters.owner, group.in_(allowed)]] if allowed else []
    if filters.groups:
        return [
            [group == name] if visible.everything or name in visible.groups else [group == name, owner == visible.owner]
            for name in dict.fromkeys(filters.groups)
        ]
    if visible.everything:
        return [[workloads.c.state == state.value] for state in dict.fromkeys(filters.states)] or [[]]
    own = [[owner == visible.owner]] if visible.owner is not None else []
    return own + [[group == name] for name in dict.fromkeys(visible.groups)]


def _groups_for(filters: WorkloadFilter, visible: Visibility, of_owner: str) -> Collection[str] | None:
    """Which groups' workloads of this owner are asked for and may be seen; None means: of any group."""
    if visible.everything or of_owner == visible.owner:
        return filters.groups or None
    if not filters.groups:
        return visible.groups
    return [name for name in filters.groups if name in visible.groups]


def _branch(
    way: Sequence[sa.ColumnElement[bool]], filters: WorkloadFilter, before: str | None, limit: int
) -> sa.Select[Any]:
    query = sa.select(workloads.c.id, workloads.c.submitted_at).where(*way)
    if filters.states:
        query = query.where(workloads.c.state.in_([state.value for state in filters.states]))
    if filters.name is not None:
        query = query.where(workloads.c.name == filters.name)
    if filters.kind is not None:
        query = query.where(workloads.c.kind == filters.kind)
    if filters.search:
        query = query.where(workloads.c.name.icontains(filters.search, autoescape=True))
    if filters.since is not None:
        query = query.where(workloads.c.submitted_at >= filters.since)
    if filters.until is not None:
        query = query.where(workloads.c.submitted_at < filters.until)
    if not filters.removed:
        query = query.where(workloads.c.removed_at.is_(None))
    if before is not None:
        moment, id = _read_cursor(before)
        query = query.where(sa.tuple_(workloads.c.submitted_at, workloads.c.id) < sa.tuple_(moment, id))
    first = query.order_by(workloads.c.submitted_at.desc(), workloads.c.id.desc()).limit(limit).subquery()
    return sa.select(first.c.id, first.c.submitted_at)  # wrapped: a UNION takes no ordered parts on SQLite


def _read(conn: sa.Connection, ids: Sequence[str]) -> list[Workload]:
    if not ids:
        return []
    rows = {row.id: row for row in conn.execute(sa.select(*WORKLOAD_COLUMNS).where(_by_ids), {"ids": ids})}
    newest = read_attempts(conn, *_ids_attempts, {"ids": ids})
    return read_workloads((rows[id] for id in ids), newest)


def _cursor(last: Workload) -> str:
    return f"{last.submitted_at!r}_{last.id}"


def _read_cursor(text: str) -> tuple[float, str]:
    moment, _, id = text.partition("_")
    try:
        return float(moment), id
    except ValueError:
        raise BadInput(because(Code.BAD_VALUE, at="cursor", problem="not a cursor of a list", value=text)) from None
