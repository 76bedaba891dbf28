"""Ways in to running work: codes and cookies that stand for a login, reach one place only, and end with that login."""

from __future__ import annotations

import secrets

from gpuyard.access import tokens
from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.domain.doorways import Visit
from gpuyard.domain.people import User
from gpuyard.store import gates, logins, people
from gpuyard.store.database import Connection
from gpuyard.store.gates import GateCode, GateSession

CODE_SECONDS = 60.0
GATE_SECONDS = 7 * 86400.0
OWN_PAGES = Visit("", "")
_SESSION, _TOKEN, _OWNER = "session:", "token:", "owner"


def parent_of(actor: Actor) -> str:
    """The login that everything made with it ends with."""
    if actor.via is Via.SESSION:
        return _SESSION + actor.session_hash
    return _OWNER if actor.via is Via.OWNER else _TOKEN + actor.token_id


def make_code(conn: Connection, actor: Actor, visit: Visit, now: float) -> str:
    """Good for one exchange within a minute, so that nothing lasting ever stands in an address."""
    secret = secrets.token_urlsafe(32)
    hashed, until = tokens.hash_secret(secret), now + CODE_SECONDS
    gates.add_code(conn, GateCode(hashed, actor.name, visit.workload, visit.what, parent_of(actor), now, until))
    return secret


def exchange_code(conn: Connection, code: str, visit: Visit, now: float) -> tuple[GateSession, str] | None:
    """A session for this place, and its cookie. None when the code is used, too old, or for another place."""
    taken = gates.take_code(conn, tokens.hash_secret(code), now)
    if taken is None or (taken.workload, taken.what) != (visit.workload, visit.what):
        return None
    return begin(conn, taken.user, taken.parent, visit, now)


def begin(conn: Connection, user: str, parent: str, visit: Visit, now: float) -> tuple[GateSession, str]:
    secret = secrets.token_urlsafe(32)
    hashed, until = tokens.hash_secret(secret), now + GATE_SECONDS
    session = GateSession(hashed, user, visit.workload, visit.what, parent, now, until)
    gates.add_session(conn, session)
    return session, secret


def actor_at(conn: Connection, secret_hash: str, visit: Visit, now: float, address: str = "") -> Actor | None:
    """Who comes with this cookie to this place; None when it is not, or no longer, good for it."""
    session = gates.session_by_hash(conn, secret_hash)
    if session is None or now >= session.expires_at or (session.workload, session.what) != (visit.workload, visit.what):
        return None
    user = people.get_user(conn, session.user)
    if user is None or not user.active:
        return None
    return _through(conn, user, session.parent, now, address)


def _through(conn: Connection, user: User, parent: str, now: float, address: str) -> Actor | None:
    """The same person as far as the login still reaches."""
    kind, name = parent.partition(":")[::2]
    if parent == _OWNER:
        return Actor(user, Scope.ADMIN, Via.OWNER, address=address) if user.admin else None
    if kind == "session":
        login = logins.session_by_hash(conn, name)
        if login is None or now >= login.expires_at or login.user != user.name:
            return None
        return Actor(
            user, Scope.ADMIN, Via.SESSION, address=address, expires_at=login.expires_at, session_hash=login.secret_hash
        )
    token = logins.get_token(conn, name) if kind == "token" else None
    if token is None or not tokens.is_good(token, now) or token.user != user.name:
        return None
    reach = Scope(token.scope)
    return Actor(user, reach, Via.TOKEN, token_id=token.id, address=address, expires_at=token.expires_at)
