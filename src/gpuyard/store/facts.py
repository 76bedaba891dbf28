"""Single values the store keeps for itself: how far the feed was pruned, the control's epoch, the audit's head."""

from __future__ import annotations

import sqlalchemy as sa

from gpuyard.store.schema import facts

_get = sa.select(facts.c.value).where(facts.c.name == sa.bindparam("wanted"))
_update = sa.update(facts).where(facts.c.name == sa.bindparam("wanted")).values(value=sa.bindparam("new_value"))


def get(conn: sa.Connection, name: str) -> str | None:
    return conn.execute(_get, {"wanted": name}).scalar()


def put(conn: sa.Connection, name: str, value: str) -> None:
    """There is one writer, so updating and then inserting what was not there leaves no gap."""
    if conn.execute(_update, {"wanted": name, "new_value": value}).rowcount == 0:
        conn.execute(sa.insert(facts), {"name": name, "value": value})
