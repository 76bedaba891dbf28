"""The audit trail: who did what to what, from where, and how it ended.

Each row carries a digest over itself and the row before, so that a row edited, removed or slipped in later is found.
The number and digest of the last row are kept apart, so that rows missing at the end are found too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from gpuyard.store import codec, facts
from gpuyard.store.schema import PlainText, audit

_HEAD = "audit.head"
_NO_DIGEST = "0" * 64
_AT_ONCE = 1000
_TEXTS = ("who", "action", "object", "address", "outcome")

_insert = sa.insert(audit)
_storable = PlainText()


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at: float
    who: str
    action: str
    object: str
    address: str = ""
    outcome: str = "done"
    facts: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0  # given when it is written


def append(conn: sa.Connection, entry: AuditEntry) -> int:
    """Write one entry, in the transaction of what it tells about. Returns its number."""
    last_id, last_digest = _head(conn)
    row = _row(conn, entry, last_id + 1)
    row["digest"] = _digest(last_digest, row)
    conn.execute(_insert, row)
    facts.put(conn, _HEAD, f"{row['id']} {row['digest']}")
    return int(row["id"])


def page(
    conn: sa.Connection, before: int | None = None, limit: int = 100, *, only: Mapping[str, str] | None = None
) -> list[AuditEntry]:
    """Entries below a number, newest first; `only` those with these values of who, action, object and outcome."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit.c.id < before)
    for name, value in (only or {}).items():
        query = query.where(audit.c[name] == value)
    return [_read(row) for row in conn.execute(query)]


def verify(conn: sa.Connection) -> int | None:
    """The number of the first entry that is not as it was written, or is missing; None when all is well."""
    number, digest = 0, _NO_DIGEST
    while rows := conn.execute(sa.select(audit).where(audit.c.id > number).order_by(audit.c.id).limit(_AT_ONCE)).all():
        for row in rows:
            number += 1
            expected = _digest(digest, row._asdict())
            if row.id != number or row.digest != expected:
                return number
            digest = expected
    return None if _head(conn) == (number, digest) else number + 1


def _head(conn: sa.Connection) -> tuple[int, str]:
    number, _, digest = (facts.get(conn, _HEAD) or f"0 {_NO_DIGEST}").partition(" ")
    return int(number), digest


def _row(conn: sa.Connection, entry: AuditEntry, number: int) -> dict[str, Any]:
    """As the database will give it back: the digest must be over that, not over what it cannot hold."""
    texts = {name: _storable.process_bind_param(getattr(entry, name), conn.dialect) for name in _TEXTS}
    return {"id": number, "at": float(entry.at), "facts": codec.to_text(dict(entry.facts)), **texts}


def _digest(previous: str, row: Mapping[str, Any]) -> str:
    told = [previous, row["id"], row["at"], row["facts"], *(row[name] for name in _TEXTS)]
    return hashlib.sha256(codec.to_text(told).encode()).hexdigest()


def _read(row: Any) -> AuditEntry:
    told = codec.from_text(row.facts)
    return AuditEntry(row.at, row.who, row.action, row.object, row.address, row.outcome, told, row.id)
