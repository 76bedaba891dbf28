"""Ways in to running work: one-time codes, and the browser sessions they are exchanged for. Only hashes are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from gpuyard.store.schema import gate_codes, gate_sessions


@dataclass(frozen=True, slots=True)
class GateCode:
    """Good for one exchange, shortly after it was made."""

    code_hash: str
    user: str
    workload: str  # empty: the gateway's own pages
    what: str
    parent: str  # `session:HASH`, `token:ID` or `owner`: the login it was made with, and ends with
    made_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class GateSession:
    """A browser that may enter one place of one workload."""

    secret_hash: str
    user: str
    workload: str
    what: str
    parent: str
    created_at: float
    expires_at: float


def add_code(conn: sa.Connection, code: GateCode) -> None:
    conn.execute(sa.insert(gate_codes), _row(code))


def take_code(conn: sa.Connection, code_hash: str, now: float) -> GateCode | None:
    """The code, which is gone with this. None when there is none, or it is too old."""
    row = conn.execute(sa.select(gate_codes).where(gate_codes.c.code_hash == code_hash)).first()
    if row is None:
        return None
    conn.execute(sa.delete(gate_codes).where(gate_codes.c.code_hash == code_hash))
    times = (row.made_at, row.expires_at)
    code = GateCode(row.code_hash, row.user_name, row.workload_id, row.what, row.parent, *times)
    return code if now < code.expires_at else None


def add_session(conn: sa.Connection, session: GateSession) -> None:
    conn.execute(sa.insert(gate_sessions), _row(session))


def session_by_hash(conn: sa.Connection, secret_hash: str) -> GateSession | None:
    """The session with this hash, whether or not it is still good: the caller knows what time it is."""
    row = conn.execute(sa.select(gate_sessions).where(gate_sessions.c.secret_hash == secret_hash)).first()
    if row is None:
        return None
    times = (row.created_at, row.expires_at)
    return GateSession(row.secret_hash, row.user_name, row.workload_id, row.what, row.parent, *times)


def remove_session(conn: sa.Connection, secret_hash: str) -> None:
    conn.execute(sa.delete(gate_sessions).where(gate_sessions.c.secret_hash == secret_hash))


def remove_expired(conn: sa.Connection, now: float) -> None:
    for table in (gate_codes, gate_sessions):
        conn.execute(sa.delete(table).where(table.c.expires_at <= now))


def _row(entry: GateCode | GateSession) -> dict[str, Any]:
    row = {name: getattr(entry, name) for name in entry.__slots__ if name not in ("user", "workload")}
    return {**row, "user_name": entry.user, "workload_id": entry.workload}
