"""One group becomes part of another: members, quotas, past use and all its work, in one transaction.

Running work goes on: it is only written under another group's name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.errors import BadInput, NotFound
from gpuyard.domain.people import Group, Quota, Role
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.usage import PastUse
from gpuyard.domain.workload import ENDED, HOLDS_RESOURCES, Mount, Spec, State, StoryEvent
from gpuyard.store import codec, people, sharing
from gpuyard.store import schema as tables
from gpuyard.store import workloads as workload_rows
from gpuyard.store.feed import note_change, note_changes
from gpuyard.store.schema import LIVE, story, workloads
from gpuyard.store.workload_rows import story_row

PAST_KIND = "past"  # as the change feed names it
SHARE = "share"
_AT_ONCE = 500

Limits = Mapping[tuple[str | None, str], Quota]  # (user or None, resource) -> quota


@dataclass(frozen=True, slots=True)
class Merge:
    """What merging two groups does."""

    source: Group
    target: Group
    joining: tuple[str, ...]  # members of the source that were not in the target
    leads_no_more: tuple[str, ...]  # leads of the source that are plain members of the target
    quotas: tuple[Quota, ...]  # of the target, afterwards
    live: int
    running: int  # of the live: those that hold resources
    ended: int


def look(conn: sa.Connection, source: str, target: str) -> Merge:
    """What would happen. Raises NotFound or BadInput when it cannot."""
    if source == target:
        raise BadInput(because(Code.BAD_VALUE, at="into", value=target, problem=Problem.SAME_GROUP.value))
    from_group, into_group = _find(conn, source), _find(conn, target)
    theirs, ours = dict(people.members(conn, source)), dict(people.members(conn, target))
    counts = _counts(conn, source)
    ended = sum(count for state, count in counts.items() if state in ENDED)
    return Merge(
        source=from_group,
        target=into_group,
        joining=tuple(user for user in theirs if user not in ours),
        leads_no_more=tuple(u for u, role in theirs.items() if role is Role.LEAD and ours.get(u) is not Role.LEAD),
        quotas=tuple(_added(from_group, into_group, both=frozenset(theirs) & frozenset(ours))),
        live=sum(counts.values()) - ended,
        running=sum(count for state, count in counts.items() if state in HOLDS_RESOURCES),
        ended=ended,
    )


def merge(conn: sa.Connection, source: str, target: str, *, now: float, by: str, half_life: float) -> Merge:
    """Do it. The source is gone afterwards."""
    plan = look(conn, source, target)
    for user in plan.joining:
        people.set_member(conn, target, user, Role.MEMBER)
    _set_quotas(conn, plan)
    _add_past(conn, source, target, now, half_life)
    _relabel(conn, source, target, now, by)
    for user, _ in people.members(conn, source):
        people.remove_member(conn, source, user)
    people.remove_group(conn, source)
    note_change(conn, people.GROUP_KIND, target)
    return plan


def _find(conn: sa.Connection, name: str) -> Group:
    group = people.get_group(conn, name)
    if group is None:
        raise NotFound(because(Code.NOT_FOUND, what="group", name=name[:80]))
    return group


def _counts(conn: sa.Connection, group: str) -> dict[State, int]:
    query = sa.select(workloads.c.state, sa.func.count()).where(workloads.c.group_name == group)
    return {State(state): count for state, count in conn.execute(query.group_by(workloads.c.state))}


# --- quotas -------------------------------------------------------------------------------------------------------


def _added(source: Group, target: Group, both: frozenset[str]) -> list[Quota]:
    """Groups' limits and guarantees are added up, and no limit stays no limit. A user keeps the larger limit."""
    theirs, ours = _by_key(source), _by_key(target)
    merged = []
    for user, resource in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get((user, resource)), theirs.get((user, resource))
        if user is None:
            quota = _sum(target.name, resource, one, other)
        elif one and other:
            quota = Quota(target.name, resource, _larger(one.limit, other.limit), user)
        else:  # in both groups and limited in one of them only: without a limit is the larger
            alone = one or other
            limit = None if user in both or alone is None else alone.limit
            quota = Quota(target.name, resource, limit, user)
        if quota.limit is not None or quota.guaranteed:
            merged.append(quota)
    return merged


def _by_key(group: Group) -> Limits:
    return {(quota.user, quota.resource): quota for quota in group.quotas}


def _sum(group: str, resource: str, one: Quota | None, other: Quota | None) -> Quota:
    limits = [quota.limit if quota else None for quota in (one, other)]
    guaranteed = sum(quota.guaranteed for quota in (one, other) if quota)
    known = [limit for limit in limits if limit is not None]
    return Quota(group, resource, sum(known) if len(known) == len(limits) else None, guaranteed=guaranteed)


def _larger(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def _set_quotas(conn: sa.Connection, plan: Merge) -> None:
    wanted = {(quota.user, quota.resource) for quota in plan.quotas}
    for quota in plan.target.quotas:
        if (quota.user, quota.resource) not in wanted:
            people.remove_quota(conn, plan.target.name, quota.resource, quota.user)
    for quota in plan.quotas:
        people.set_quota(conn, quota)


# --- past use -----------------------------------------------------------------------------------------------------


def _add_past(conn: sa.Connection, source: str, target: str, now: float, half_life: float) -> None:
    """Both pasts as they are worth now, added up."""
    known = sharing.past_use(conn)
    theirs = {user: use for (group, user), use in known.items() if group == source}
    if not theirs:
        return
    added = {}
    for user, use in theirs.items():
        own = known.get((target, user))
        worth = _worth(use, now, half_life) + (_worth(own, now, half_life) if own else 0.0)
        added[(target, user)] = PastUse(worth, now)
    sharing.charge(conn, added)
    conn.execute(sa.delete(tables.past_use).where(tables.past_use.c.group_name == source))
    note_change(conn, PAST_KIND, target)


def _worth(use: PastUse, now: float, half_life: float) -> float:
    return float(use.amount * 0.5 ** (max(0.0, now - use.at) / half_life))


# --- work ---------------------------------------------------------------------------------------------------------


def _relabel(conn: sa.Connection, source: str, target: str, now: float, by: str) -> None:
    """All work of the source under the target's name. What is live gets a new version and a line in its story, so that
    whoever has it in mind looks again."""
    _move_mounts(conn, source)
    its = workloads.c.group_name == source
    live = conn.execute(
        sa.select(workloads.c.id, workloads.c.state, workloads.c.attempt).where(its, sa.text(LIVE))
    ).all()
    conn.execute(
        sa.update(workloads).where(its, sa.text(LIVE)).values(group_name=target, version=workloads.c.version + 1)
    )
    conn.execute(sa.update(workloads).where(its).values(group_name=target))
    reason = because(Code.GROUP_MERGED, source=source, target=target, by=by)
    lines = [story_row(row.id, StoryEvent(now, reason, State(row.state), row.attempt, by)) for row in live]
    for part in _parts(lines):
        conn.execute(sa.insert(story), part)
    note_changes(conn, workload_rows.KIND, [row.id for row in live])


def _move_mounts(conn: sa.Connection, source: str) -> None:
    """What work mounts of the share now lies in a folder of the target's share: its next start must find it there."""
    named = workloads.c.spec.contains('"volume":"share"')
    found = conn.execute(sa.select(workloads.c.id, workloads.c.spec).where(workloads.c.group_name == source, named))
    changed = [{"its_id": row.id, "new_spec": codec.spec_to_text(_in_folder(row.spec, source))} for row in found]
    statement = sa.update(workloads).where(workloads.c.id == sa.bindparam("its_id"))
    for part in _parts(changed):
        conn.execute(statement.values(spec=sa.bindparam("new_spec")), part)


def _in_folder(text: str, folder: str) -> Spec:
    spec = codec.spec_from_text(text)
    roles = [replace(role, mounts=tuple(_moved(mount, folder) for mount in role.mounts)) for role in spec.roles]
    return replace(spec, roles=tuple(roles))


def _moved(mount: Mount, folder: str) -> Mount:
    if mount.volume != SHARE:
        return mount
    return replace(mount, path=f"{folder}/{mount.path}" if mount.path else folder)


def _parts(rows: Sequence[Any]) -> list[Sequence[Any]]:
    return [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]
