"""Workloads taken off the lists by their owners, and which names are in use by those that live."""

from __future__ import annotations

import sqlalchemy as sa

from gpuyard.store.schema import LIVE, workloads


def live_named(conn: sa.Connection, owner: str, name: str) -> str | None:
    """The id of the newest of this owner's workloads of that name that have neither ended nor been removed."""
    query = sa.select(workloads.c.id).where(sa.text(LIVE), workloads.c.owner == owner, workloads.c.name == name)
    return conn.execute(query.order_by(workloads.c.submitted_at.desc())).scalars().first()
