"""Workloads taken off the lists by their owners, and which names are in use by those that live."""

from __future__ import annotations

import sqlalchemy as sa

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import StoryEvent, Wanted, Workload
from gpuyard.store import workloads as rows
from gpuyard.store.feed import note_change
from gpuyard.store.schema import LIVE, story, workloads
from gpuyard.store.workload_rows import story_row


def live_named(conn: sa.Connection, owner: str, name: str) -> str | None:
    """The id of the newest of this owner's workloads of that name that have neither ended nor been removed."""
    its = (workloads.c.owner == owner, workloads.c.name == name, workloads.c.removed_at.is_(None))
    query = sa.select(workloads.c.id).where(sa.text(LIVE), *its).order_by(workloads.c.submitted_at.desc())
    return conn.execute(query).scalars().first()


def remove(conn: sa.Connection, workload: Workload, by: str, now: float) -> bool:
    """Stop it if it lives, and show it in no list from now on. Its story, logs and use stay as long as those of
    others. False when it was removed before."""
    is_it = (workloads.c.id == workload.id, workloads.c.removed_at.is_(None))
    if not conn.execute(sa.update(workloads).where(*is_it).values(removed_at=now)).rowcount:
        return False
    rows.want(conn, workload.id, Wanted.STOP, by, now)
    line = StoryEvent(now, because(Code.REMOVED, by=by), workload.state, workload.attempts_made, by)
    conn.execute(sa.insert(story), story_row(workload.id, line))
    note_change(conn, rows.KIND, workload.id)
    return True
