"""Opaque tokens: shown once, kept as a hash, with a scope and an end. They can be taken back at any moment."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.domain.errors import LoginNeeded
from gpuyard.domain.reasons import Code, because
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
    conn: Connection,
    user: str,
    name: str,
    scope: Scope,
    expires_at: float | None,
    now: float,
    *,
    parent: str | None = None,
) -> tuple[TokenRow, str]:
    """A new token of this user and its secret, which is not kept anywhere. `parent` is the token it is made with."""
    if parent is not None:
        _require_still_good(conn, parent, now)
    secret = make_secret()
    id = "t" + secrets.token_hex(6)
    row = TokenRow(id, hash_secret(secret), user, name, scope.value, now, expires_at, parent=parent)
    logins.add_token(conn, row)
    return row, secret


def is_good(token: TokenRow, now: float) -> bool:
    return token.revoked_at is None and (token.expires_at is None or now < token.expires_at)


def revoke(conn: Connection, ids: Iterable[str], now: float, *, but: str = "") -> int:
    """Take back these, and whatever was made with them, step by step: who stole one may have made others with it.

    `but` stays. Returns how many stopped working.
    """
    count, seen, waiting = 0, {but}, list(ids)
    while waiting:
        id = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        count += logins.revoke_token(conn, id, now)
        waiting += logins.made_with(conn, id)
    return count


def revoke_all(conn: Connection, user: str, now: float, *, but: str = "") -> int:
    """All of this user, but one."""
    good = [token.id for token in logins.tokens_of(conn, user) if token.revoked_at is None]
    return revoke(conn, good, now, but=but)


def _require_still_good(conn: Connection, id: str, now: float) -> None:
    """Asked in the transaction that writes: a token taken back a moment ago makes no other."""
    token = logins.get_token(conn, id)
    if token is None or not is_good(token, now):
        raise LoginNeeded(because(Code.LOGIN_NEEDED))
