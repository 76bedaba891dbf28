"""What is remembered for telling when work starts: how long ended work ran, and what became of earlier guesses.

Neither is news to the feed: one thread of the server reads and writes them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import sqlalchemy as sa

from gpuyard.domain.workload import Spec
from gpuyard.store import codec
from gpuyard.store.schema import attempts, guesses, workloads

KEPT = 2000  # guesses; the older ones tell little


class Ran(NamedTuple):
    """A workload that is over, and how long its last attempt ran."""

    workload: str
    owner: str
    spec: Spec
    seconds: float
    ended_at: float


class GuessRow(NamedTuple):
    """In seconds from `at`: the middle and the late moment as seen, the late one as told, and how long it waited."""

    workload: str
    at: float
    middle: float
    late: float
    told: float
    waited: float | None


def ended_runs(conn: sa.Connection, since: float, limit: int) -> list[Ran]:
    """Work that ran and was over at this moment or later, the oldest first; when there are more, the newest."""
    query = (
        sa.select(
            workloads.c.id,
            workloads.c.owner,
            workloads.c.spec,
            workloads.c.ended_at,
            (attempts.c.ended_at - attempts.c.started_at).label("seconds"),
        )
        .join(attempts, (attempts.c.workload_id == workloads.c.id) & (attempts.c.number == workloads.c.attempt))
        .where(workloads.c.ended_at >= since, attempts.c.started_at.is_not(None), attempts.c.ended_at.is_not(None))
        .order_by(workloads.c.ended_at.desc(), workloads.c.id.desc())
        .limit(limit)
    )
    found = [
        Ran(row.id, row.owner, codec.spec_from_text(row.spec), row.seconds, row.ended_at) for row in conn.execute(query)
    ]
    return found[::-1]


def all(conn: sa.Connection) -> list[GuessRow]:
    """The oldest first."""
    rows = conn.execute(sa.select(guesses).order_by(guesses.c.at, guesses.c.workload_id))
    return [GuessRow(row.workload_id, row.at, row.middle, row.late, row.told, row.waited) for row in rows]


def add(conn: sa.Connection, made: Collection[GuessRow]) -> None:
    if made:
        rows = [{"workload_id": one.workload, **one._asdict()} for one in made]
        conn.execute(sa.insert(guesses), [{key: row[key] for key in row if key != "workload"} for row in rows])


def settle(conn: sa.Connection, waited: Mapping[str, float | None]) -> None:
    """How long these waited; None: they left the queue without a start, and teach nothing."""
    gone = [id for id, seconds in waited.items() if seconds is None]
    if gone:
        conn.execute(sa.delete(guesses).where(guesses.c.workload_id.in_(gone)))
    known = [{"id": id, "seconds": seconds} for id, seconds in waited.items() if seconds is not None]
    if known:
        one = sa.update(guesses).where(guesses.c.workload_id == sa.bindparam("id"))
        conn.execute(one.values(waited=sa.bindparam("seconds")), known)


def forget_old(conn: sa.Connection) -> None:
    """All but the newest ones."""
    newest = sa.select(guesses.c.workload_id).order_by(guesses.c.at.desc(), guesses.c.workload_id).limit(KEPT)
    conn.execute(sa.delete(guesses).where(guesses.c.workload_id.not_in(newest.scalar_subquery())))
