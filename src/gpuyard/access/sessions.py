"""Logins of browsers: a cookie and a key, and only both together are a login. Of each the store has a hash.

A cookie knows no ports: the browser sends it to every server of the same host, also to one that a job runs there. The
key is told once, to the page that logs in; the browser keeps it for that page's origin, which the port is part of.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from gpuyard.access.tokens import hash_secret
from gpuyard.store import logins
from gpuyard.store.database import Connection
from gpuyard.store.logins import SessionRow


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a browser gets of a new session."""

    cookie: str = field(repr=False)
    key: str = field(repr=False)


def begin(conn: Connection, user: str, now: float, seconds: float) -> tuple[SessionRow, Secrets]:
    """A new session with new secrets: whatever cookie came with the login is worth nothing."""
    both = Secrets(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
    row = SessionRow(hash_secret(both.cookie), user, hash_secret(both.key), now, now + seconds)
    logins.add_session(conn, row)
    return row, both


def find(conn: Connection, both: Secrets, now: float) -> SessionRow | None:
    """The session that these two belong to, while it lasts."""
    row = logins.session_by_hash(conn, hash_secret(both.cookie))
    if row is None or now >= row.expires_at:
        return None
    return row if hmac.compare_digest(row.key_hash, hash_secret(both.key)) else None
