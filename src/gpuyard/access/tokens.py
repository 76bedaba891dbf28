"""Opaque tokens: shown once, kept as a hash, with a scope and an end. They can be taken back at any moment."""

from __future__ import annotations

import hashlib
import secrets

from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.store import logins
from gpuyard.store.database import Connection
from gpuyard.store.logins import TokenRow

PREFIX = "yard_"
DEFAULT_SECONDS = 90 * 86400.0


def make_secret() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def hash_secret(secret: str) -> str:
    """A plain hash is enough: a secret of 256 random bits cannot be guessed, slowly or fast."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def default_expiry(actor: Actor, now: float) -> float:
    """Three months, or as long as the token it is made with."""
    until = now + DEFAULT_SECONDS
    if actor.via is Via.TOKEN and actor.expires_at is not None:
        until = min(until, actor.expires_at)
    return until


def make_token(
    conn: Connection, user: str, name: str, scope: Scope, expires_at: float | None, now: float
) -> tuple[TokenRow, str]:
    """A new token of this user and its secret, which is not kept anywhere."""
    secret = make_secret()
    row = TokenRow("t" + secrets.token_hex(6), hash_secret(secret), user, name, scope.value, now, expires_at)
    logins.add_token(conn, row)
    return row, secret


def is_good(token: TokenRow, now: float) -> bool:
    return token.revoked_at is None and (token.expires_at is None or now < token.expires_at)


def revoke_all(conn: Connection, user: str, now: float) -> None:
    for token in logins.tokens_of(conn, user):
        logins.revoke_token(conn, token.id, now)
