"""Who did what, from where, and how it went. Written in the same transaction as the change itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuyard.access.actors import Actor
from gpuyard.access.rights import Action
from gpuyard.store import audit as rows
from gpuyard.store.database import Connection

DONE, REFUSED, FAILED = "done", "refused", "failed"


def record(
    conn: Connection,
    actor: Actor,
    action: Action | str,
    object: str,
    now: float,
    *,
    outcome: str = DONE,
    facts: Mapping[str, Any] | None = None,
) -> None:
    """Facts are for people who read the trail: never a password, a token or a body."""
    by = {"via": actor.via.value} | ({"token": actor.token_id} if actor.token_id else {})
    entry = rows.AuditEntry(now, actor.name, str(action), object, actor.address, outcome, {**by, **(facts or {})})
    rows.append(conn, entry)


def record_stranger(
    conn: Connection,
    name: str,
    action: str,
    address: str,
    now: float,
    *,
    outcome: str,
) -> None:
    """Something done by someone who is not known, or not yet."""
    rows.append(conn, rows.AuditEntry(now, name, action, name, address, outcome, {}))
