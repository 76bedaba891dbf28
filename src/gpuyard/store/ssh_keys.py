"""The public keys with which people come by SSH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from gpuyard.domain.errors import Conflict
from gpuyard.domain.reasons import Code, because
from gpuyard.store.schema import ssh_keys


@dataclass(frozen=True, slots=True)
class KeyRow:
    id: str
    user: str
    name: str
    public_key: str  # `ssh-ed25519 AAAA...`, without a comment
    fingerprint: str  # `SHA256:...`, one of a kind within a user
    created_at: float
    last_used_at: float | None = None

    @property
    def kind(self) -> str:
        return self.public_key.partition(" ")[0]


def add(conn: sa.Connection, key: KeyRow) -> None:
    row = {name: getattr(key, name) for name in KeyRow.__slots__ if name != "user"}
    try:
        conn.execute(sa.insert(ssh_keys), {**row, "user_name": key.user})
    except IntegrityError as error:
        raise Conflict(because(Code.ALREADY_THERE, what="key", name=key.fingerprint)) from error


def get(conn: sa.Connection, id: str) -> KeyRow | None:
    row = conn.execute(sa.select(ssh_keys).where(ssh_keys.c.id == id)).first()
    return _read(row) if row else None


def of_user(conn: sa.Connection, user: str) -> list[KeyRow]:
    """Oldest first."""
    query = sa.select(ssh_keys).where(ssh_keys.c.user_name == user).order_by(ssh_keys.c.created_at, ssh_keys.c.id)
    return [_read(row) for row in conn.execute(query)]


def by_fingerprint(conn: sa.Connection, user: str, fingerprint: str) -> KeyRow | None:
    query = sa.select(ssh_keys).where(ssh_keys.c.user_name == user, ssh_keys.c.fingerprint == fingerprint)
    row = conn.execute(query).first()
    return _read(row) if row else None


def remove(conn: sa.Connection, id: str) -> bool:
    return conn.execute(sa.delete(ssh_keys).where(ssh_keys.c.id == id)).rowcount > 0


def used(conn: sa.Connection, id: str, now: float) -> None:
    conn.execute(sa.update(ssh_keys).where(ssh_keys.c.id == id).values(last_used_at=now))


def _read(row: Any) -> KeyRow:
    return KeyRow(row.id, row.user_name, row.name, row.public_key, row.fingerprint, row.created_at, row.last_used_at)
