"""Public keys for SSH: added by their owner, listed, taken away. Admins may see and remove those of others."""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import Path

from gpuyard.access import audit
from gpuyard.access.public_keys import parse_public_key
from gpuyard.access.rights import Action, KeyOf
from gpuyard.api import models
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.users import find_user
from gpuyard.api.views import instant, instant_or_none
from gpuyard.domain.errors import Conflict, NotFound
from gpuyard.domain.reasons import Code, because
from gpuyard.store import ssh_keys
from gpuyard.store.ssh_keys import KeyRow

doors = Doors(prefix="/api/v1", tags=["keys"])
MOST_KEYS = 50  # of one person: every login looks through them


@doors.get("/keys", response_model=models.KeyList)
def list_keys(caller: Annotated[Caller, needs(Action.SEE_KEYS)], user: models.PersonName | None = None) -> Any:
    """One's own; an admin may ask for those of another user."""
    asked = user or caller.actor.name
    caller.require(Action.SEE_KEYS, KeyOf(asked, asked))
    with caller.parts.database.read() as conn:
        find_user(conn, asked)
        found = ssh_keys.of_user(conn, asked)
    return models.KeyList(items=[_out(key) for key in found])


@doors.post("/keys", status_code=201, response_model=models.KeyOut)
def add_key(caller: Annotated[Caller, needs(Action.ADD_KEY)], wish: models.KeyIn) -> Any:
    """For oneself. From then on whoever holds the private key enters one's environments by SSH."""
    now, user = caller.now, caller.actor.name
    caller.require(Action.ADD_KEY, KeyOf(user, user))
    key = parse_public_key(wish.public_key)
    name = wish.name or key.comment or key.kind
    row = KeyRow("k" + secrets.token_hex(6), user, name, key.text, key.fingerprint, now)
    with caller.parts.database.write() as conn:
        if len(ssh_keys.of_user(conn, user)) >= MOST_KEYS:
            raise Conflict(because(Code.TOO_MANY_AT_ONCE, what="key", limit=MOST_KEYS))
        ssh_keys.add(conn, row)
        facts = {"name": name, "fingerprint": row.fingerprint}
        audit.record(conn, caller.actor, Action.ADD_KEY, row.id, now, facts=facts)
    return _out(row)


@doors.delete("/keys/{id}", response_model=models.Done)
def remove_key(
    caller: Annotated[Caller, needs(Action.REMOVE_KEY)], id: Annotated[str, Path(description="the key's id")]
) -> Any:
    """Nobody enters with it any more, and whoever is inside by it is sent out within seconds."""
    with caller.parts.database.write() as conn:
        key = ssh_keys.get(conn, id)
        if key is None:
            raise NotFound(because(Code.NOT_FOUND, what="key", name=id[:80]))
        caller.require(Action.REMOVE_KEY, KeyOf(key.id, key.user))
        ssh_keys.remove(conn, id)
        facts = {"user": key.user, "fingerprint": key.fingerprint}
        audit.record(conn, caller.actor, Action.REMOVE_KEY, id, caller.now, facts=facts)
    return models.Done()


def _out(key: KeyRow) -> models.KeyOut:
    return models.KeyOut(
        id=key.id,
        name=key.name,
        user=key.user,
        kind=key.kind,
        fingerprint=key.fingerprint,
        created_at=instant(key.created_at),
        last_used_at=instant_or_none(key.last_used_at),
    )
