"""Logins of browsers: an opaque cookie, kept as a hash, and a second secret that proves a request was meant."""

from __future__ import annotations

import secrets

from gpuyard.access.tokens import hash_secret
from gpuyard.store import logins
from gpuyard.store.database import Connection
from gpuyard.store.logins import SessionRow


def begin(conn: Connection, user: str, now: float, seconds: float) -> tuple[SessionRow, str]:
    """A new session with new secrets: whatever cookie came with the login is worth nothing."""
    secret = secrets.token_urlsafe(32)
    row = SessionRow(hash_secret(secret), user, secrets.token_urlsafe(24), now, now + seconds)
    logins.add_session(conn, row)
    return row, secret
