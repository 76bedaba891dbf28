"""What is remembered of dev environments besides the workload: timers, and when each was last used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.workload import ENDED
from gpuyard.store.schema import workloads, workplaces


@dataclass(frozen=True, slots=True)
class Workplace:
    stop_at: float | None = None  # the timer its owner set
    used_at: float | None = None  # when somebody last worked in it, through browser or SSH
    warned_at: float | None = None  # when its owner was told that it will be stopped soon


def add(conn: sa.Connection, id: str, stop_at: float | None = None) -> None:
    conn.execute(sa.insert(workplaces), {"workload_id": id, "stop_at": stop_at})


def get_many(conn: sa.Connection, ids: Iterable[str]) -> dict[str, Workplace]:
    query = sa.select(workplaces).where(workplaces.c.workload_id.in_(list(ids)))
    return {row.workload_id: Workplace(row.stop_at, row.used_at, row.warned_at) for row in conn.execute(query)}


def get(conn: sa.Connection, id: str) -> Workplace | None:
    return get_many(conn, [id]).get(id)


def set_timer(conn: sa.Connection, id: str, stop_at: float | None) -> None:
    """A new time is also a new warning."""
    _update(conn, id, stop_at=stop_at, warned_at=None)


def touch(conn: sa.Connection, id: str, now: float) -> None:
    """Somebody works in it."""
    _update(conn, id, used_at=now, warned_at=None)


def warned(conn: sa.Connection, id: str, now: float) -> None:
    _update(conn, id, warned_at=now)


def gone(conn: sa.Connection) -> list[str]:
    """Those that were removed, and whose belongings are still to be thrown away."""
    ended = [state.value for state in ENDED]
    query = (
        sa.select(workplaces.c.workload_id)
        .join(workloads, workloads.c.id == workplaces.c.workload_id)
        .where(workloads.c.state.in_(ended))
    )
    return list(conn.execute(query).scalars())


def forget(conn: sa.Connection, id: str) -> None:
    conn.execute(sa.delete(workplaces).where(workplaces.c.workload_id == id))


def _update(conn: sa.Connection, id: str, **values: Any) -> None:
    conn.execute(sa.update(workplaces).where(workplaces.c.workload_id == id).values(values))
