"""How often logging in was tried lately, by whatever it is counted by: for all processes that let people in.

Keys are hashes: people type their password where the name should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from gpuyard.store.schema import login_tries


@dataclass(frozen=True, slots=True)
class Tries:
    count: float  # how many weigh
    at: float  # when that was so


def get_many(conn: sa.Connection, keys: Iterable[str]) -> dict[str, Tries]:
    query = sa.select(login_tries).where(login_tries.c.key_hash.in_(list(keys)))
    return {row.key_hash: Tries(row.weight, row.at) for row in conn.execute(query)}


def put(conn: sa.Connection, tries: Mapping[str, Tries]) -> None:
    remove(conn, tries)
    rows = [{"key_hash": key, "weight": each.count, "at": each.at} for key, each in tries.items()]
    if rows:
        conn.execute(sa.insert(login_tries), rows)


def remove(conn: sa.Connection, keys: Iterable[str]) -> None:
    conn.execute(sa.delete(login_tries).where(login_tries.c.key_hash.in_(list(keys))))


def remove_before(conn: sa.Connection, at: float) -> None:
    conn.execute(sa.delete(login_tries).where(login_tries.c.at < at))


def count(conn: sa.Connection) -> int:
    return conn.execute(sa.select(sa.func.count()).select_from(login_tries)).scalar_one()
