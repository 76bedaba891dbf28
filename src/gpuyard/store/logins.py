"""Tokens and sessions: proofs of who somebody is. Only hashes are kept; the secrets themselves are shown once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from gpuyard.domain.errors import Conflict, NotFound
from gpuyard.domain.reasons import Code, because
from gpuyard.store.schema import sessions, tokens, users


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token as it is kept. `scope` is the most its holder may do with it."""

    id: str
    secret_hash: str
    user: str
    name: str
    scope: str
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None
    parent: str | None = None  # the token it was made with


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A browser's login as it is kept: what the cookie and what the key hash to."""

    secret_hash: str
    user: str
    key_hash: str
    created_at: float
    expires_at: float


def add_token(conn: sa.Connection, token: TokenRow) -> None:
    _must_be_user(conn, token.user)
    row = {name: getattr(token, name) for name in TokenRow.__slots__ if name != "user"}
    try:
        conn.execute(sa.insert(tokens), {**row, "user_name": token.user})
    except IntegrityError as error:
        raise Conflict(because(Code.ALREADY_THERE, what="token", name=token.id)) from error


def token_by_hash(conn: sa.Connection, secret_hash: str) -> TokenRow | None:
    """The token with this hash, whether or not it is still good: the caller knows what time it is."""
    row = conn.execute(sa.select(tokens).where(tokens.c.secret_hash == secret_hash)).first()
    return _read_token(row) if row else None


def get_token(conn: sa.Connection, id: str) -> TokenRow | None:
    row = conn.execute(sa.select(tokens).where(tokens.c.id == id)).first()
    return _read_token(row) if row else None


def tokens_of(conn: sa.Connection, user: str | None = None) -> list[TokenRow]:
    """One user's tokens, or everybody's; oldest first."""
    query = sa.select(tokens).order_by(tokens.c.created_at, tokens.c.id)
    if user is not None:
        query = query.where(tokens.c.user_name == user)
    return [_read_token(row) for row in conn.execute(query)]


def made_with(conn: sa.Connection, id: str) -> list[str]:
    """The ids of the tokens that were made with this one."""
    return list(conn.execute(sa.select(tokens.c.id).where(tokens.c.parent == id)).scalars())


def token_used(conn: sa.Connection, id: str, now: float) -> None:
    conn.execute(sa.update(tokens).where(tokens.c.id == id).values(last_used_at=now))


def revoke_token(conn: sa.Connection, id: str, now: float) -> bool:
    """False when there is no such token, or it was revoked before."""
    still_good = (tokens.c.id == id, tokens.c.revoked_at.is_(None))
    return conn.execute(sa.update(tokens).where(*still_good).values(revoked_at=now)).rowcount > 0


def add_session(conn: sa.Connection, session: SessionRow) -> None:
    _must_be_user(conn, session.user)
    row = {name: getattr(session, name) for name in SessionRow.__slots__ if name != "user"}
    conn.execute(sa.insert(sessions), {**row, "user_name": session.user})


def session_by_hash(conn: sa.Connection, secret_hash: str) -> SessionRow | None:
    row = conn.execute(sa.select(sessions).where(sessions.c.secret_hash == secret_hash)).first()
    return SessionRow(row.secret_hash, row.user_name, row.key_hash, row.created_at, row.expires_at) if row else None


def extend_session(conn: sa.Connection, secret_hash: str, expires_at: float) -> None:
    conn.execute(sa.update(sessions).where(sessions.c.secret_hash == secret_hash).values(expires_at=expires_at))


def remove_session(conn: sa.Connection, secret_hash: str) -> bool:
    return conn.execute(sa.delete(sessions).where(sessions.c.secret_hash == secret_hash)).rowcount > 0


def remove_sessions_of(conn: sa.Connection, user: str, *, but: str | None = None) -> int:
    """End a user's logins, all or all but one: after a new password only the browser that set it stays."""
    query = sa.delete(sessions).where(sessions.c.user_name == user)
    if but is not None:
        query = query.where(sessions.c.secret_hash != but)
    return conn.execute(query).rowcount


def remove_expired_sessions(conn: sa.Connection, now: float) -> int:
    return conn.execute(sa.delete(sessions).where(sessions.c.expires_at <= now)).rowcount


def _read_token(row: Any) -> TokenRow:
    return TokenRow(
        row.id,
        row.secret_hash,
        row.user_name,
        row.name,
        row.scope,
        row.created_at,
        row.expires_at,
        row.last_used_at,
        row.revoked_at,
        row.parent,
    )


def _must_be_user(conn: sa.Connection, name: str) -> None:
    if conn.execute(sa.select(users.c.name).where(users.c.name == name)).first() is None:
        raise NotFound(because(Code.NOT_FOUND, what="user", name=name))
