"""Tokens for programs: made, listed, taken back. The secret is in the answer that makes one, and nowhere else."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path

from gpuyard.access import audit, tokens
from gpuyard.access.actors import Scope
from gpuyard.access.rights import Action, TokenOf
from gpuyard.api import models
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.users import find_user
from gpuyard.api.views import instant, instant_or_none
from gpuyard.domain.errors import NotFound
from gpuyard.domain.reasons import Code, because
from gpuyard.store import logins
from gpuyard.store.logins import TokenRow

doors = Doors(prefix="/api/v1", tags=["tokens"])
DAY = 86400.0


@doors.get("/tokens", response_model=models.TokenList)
def list_tokens(caller: Annotated[Caller, needs(Action.SEE_TOKENS)], user: models.PersonName | None = None) -> Any:
    """One's own; an admin may ask for those of another user. Those that no longer work are left out."""
    asked = user or caller.actor.name
    caller.require(Action.SEE_TOKENS, TokenOf(asked, asked))
    with caller.parts.database.read() as conn:
        find_user(conn, asked)
        found = logins.tokens_of(conn, asked)
    good = [token for token in found if tokens.is_good(token, caller.now)]
    return models.TokenList(items=[models.TokenOut(**_fields(token)) for token in good])


@doors.post("/tokens", status_code=201, response_model=models.TokenMade)
def make_token(caller: Annotated[Caller, needs(Action.MAKE_TOKEN)], wish: models.TokenIn) -> Any:
    """Never wider and never longer than what one came with."""
    now, user = caller.now, wish.user or caller.actor.name
    expires_at = now + wish.days * DAY if wish.days is not None else tokens.default_expiry(caller.actor, now)
    caller.require(Action.MAKE_TOKEN, TokenOf(wish.name, user, wish.scope, expires_at))
    with caller.parts.database.write() as conn:
        row, secret = tokens.make_token(
            conn, user, wish.name, wish.scope, expires_at, now, parent=caller.actor.token_id or None
        )
        facts = {"user": user, "name": wish.name, "scope": wish.scope.value}
        audit.record(conn, caller.actor, Action.MAKE_TOKEN, row.id, now, facts=facts)
    return models.TokenMade(**_fields(row), token=secret)


@doors.delete("/tokens/{id}", response_model=models.Done)
def revoke_token(
    caller: Annotated[Caller, needs(Action.REVOKE_TOKEN)], id: Annotated[str, Path(description="the token's id")]
) -> Any:
    """It stops working at once, and so does every token that was made with it."""
    with caller.parts.database.write() as conn:
        token = logins.get_token(conn, id)
        if token is None or not tokens.is_good(token, caller.now):
            raise NotFound(because(Code.NOT_FOUND, what="token", name=id[:80]))
        caller.require(Action.REVOKE_TOKEN, TokenOf(token.id, token.user))
        count = tokens.revoke(conn, [id], caller.now)
        facts = {"user": token.user, "tokens": count}
        audit.record(conn, caller.actor, Action.REVOKE_TOKEN, id, caller.now, facts=facts)
    caller.parts.access.forget()
    return models.Done()


def _fields(token: TokenRow) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "user": token.user,
        "scope": Scope(token.scope),
        "created_at": instant(token.created_at),
        "expires_at": instant_or_none(token.expires_at),
        "last_used_at": instant_or_none(token.last_used_at),
    }
