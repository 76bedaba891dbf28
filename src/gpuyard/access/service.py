"""Finding out who asks, and letting people in and out. The one object every door holds on to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gpuyard.access import audit, sessions, tokens
from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.access.limits import LoginLimits, Ration
from gpuyard.access.memory import RecentActors
from gpuyard.access.owner import OwnerSecret
from gpuyard.access.passwords import MOST_LENGTH, Passwords, check_strength, make_one_time_password
from gpuyard.access.rights import Action, Refused
from gpuyard.access.sessions import Secrets
from gpuyard.domain.errors import BadInput, LoginNeeded
from gpuyard.domain.people import NAME_RULE, Group, Membership, Role, User
from gpuyard.domain.reasons import Code, because
from gpuyard.store import logins, people
from gpuyard.store.database import Connection, Database

FIRST_ADMIN, FIRST_GROUP = "admin", "default"
SYSTEM = "system"
SWEEP_SECONDS = 600.0
MOST_REFUSALS = 60  # of one person in an hour that the trail tells of one by one


@dataclass(frozen=True, slots=True)
class AccessRules:
    session_seconds: float = 7 * 86400.0
    remember_seconds: float = 1.0
    """How long a revoked token can go on working in another server process; in this one it ends at once."""
    first_uid: int = 0
    """Users and groups get blocks of system numbers from here on; 0: their work runs as whoever runs the server."""
    single_user: bool = False
    """Not as root all work runs as one system user, so there can be only one."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What came with a request to say who asks."""

    bearer: str | None = field(repr=False)
    cookie: str | None = field(repr=False)
    address: str
    session_key: str = field(default="", repr=False)  # goes with the cookie, which alone is worth nothing


@dataclass(frozen=True, slots=True)
class FirstAdmin:
    name: str
    password: str = field(repr=False)


class Access:
    """Safe to use from any thread."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        owner: OwnerSecret | None = None,
        rules: AccessRules | None = None,
        passwords: Passwords | None = None,
    ) -> None:
        self.rules = rules or AccessRules()
        self._database = database
        self._clock = clock
        self._owner = owner
        self._passwords = passwords or Passwords()
        self._recent = RecentActors(self.rules.remember_seconds)
        self._tries = LoginLimits(database)
        self._refusals = Ration()
        self._used_tokens: dict[str, float] = {}
        self._used_lock = threading.Lock()
        self._sweep_at = 0.0

    # --- the first start ------------------------------------------------------------------------------------------

    def first_start(self) -> FirstAdmin | None:
        """On an empty store: the admin, with a one-time password that is told here and never again."""
        with self._database.read() as conn:
            if people.count_users(conn):
                return None
        password = make_one_time_password()
        hashed = self._passwords.hash(password)
        now = self._clock()
        with self._database.write() as conn:
            if people.count_users(conn):
                return None
            people.create_group(conn, Group(FIRST_GROUP, gid=self.next_number(conn)), now)
            seat = Membership(FIRST_GROUP, Role.LEAD)
            uid = self.next_number(conn)
            admin = User(FIRST_ADMIN, admin=True, memberships=(seat,), uid=uid, must_change_password=True)
            people.create_user(conn, admin, hashed, now)
            audit.record_stranger(conn, SYSTEM, "store.first_start", "", now, outcome=audit.DONE)
        return FirstAdmin(FIRST_ADMIN, password)

    def next_number(self, conn: Connection) -> int:
        """A system user or group number for someone new, the first of their block."""
        return people.next_uid(conn, self.rules.first_uid) if self.rules.first_uid else 0

    # --- who asks -------------------------------------------------------------------------------------------------

    def remembered(self, credentials: Credentials) -> Actor | None:
        """Without waiting for anything. None: ask `authenticate`."""
        key = _key(credentials)
        actor = self._recent.find(key, self._clock()) if key else None
        return self._at(actor, credentials) if actor else None

    def authenticate(self, credentials: Credentials) -> Actor:
        if credentials.bearer is None and credentials.cookie and not credentials.session_key:
            raise LoginNeeded(because(Code.COOKIE_ALONE))
        key, now, generation = _key(credentials), self._clock(), self._recent.generation
        actor = self._recognise(credentials, now) if key else None
        if actor is None or not actor.user.active:
            raise LoginNeeded(because(Code.LOGIN_NEEDED))
        self._recent.remember(key, actor, now, generation)
        return self._at(actor, credentials)

    def forget(self) -> None:
        """Somebody's rights have changed: everyone is looked up anew."""
        self._recent.forget()

    def _at(self, actor: Actor, credentials: Credentials) -> Actor:
        if actor.token_id:
            with self._used_lock:
                self._used_tokens[actor.token_id] = self._clock()
        return actor if actor.address == credentials.address else replace(actor, address=credentials.address)

    def _recognise(self, credentials: Credentials, now: float) -> Actor | None:
        with self._database.read() as conn:
            if credentials.bearer is None:
                return self._by_session(conn, Secrets(credentials.cookie or "", credentials.session_key), now)
            if self._owner is not None and self._owner.is_it(credentials.bearer):
                return self._as_owner(conn)
            return self._by_token(conn, credentials.bearer, now)

    def _as_owner(self, conn: Connection) -> Actor | None:
        """Whoever owns the data folder acts as the first admin."""
        admins = [user for user in people.all_users(conn) if user.admin and user.active]
        admins.sort(key=lambda user: (user.name != FIRST_ADMIN, user.name))
        return Actor(admins[0], Scope.ADMIN, Via.OWNER) if admins else None

    def _by_token(self, conn: Connection, secret: str, now: float) -> Actor | None:
        token = logins.token_by_hash(conn, tokens.hash_secret(secret))
        if token is None or not tokens.is_good(token, now):
            return None
        user = people.get_user(conn, token.user)
        if user is None:
            return None
        return Actor(user, Scope(token.scope), Via.TOKEN, token_id=token.id, expires_at=token.expires_at)

    def _by_session(self, conn: Connection, both: Secrets, now: float) -> Actor | None:
        session = sessions.find(conn, both, now)
        user = people.get_user(conn, session.user) if session is not None else None
        if session is None or user is None:
            return None
        known = session.secret_hash
        return Actor(user, Scope.ADMIN, Via.SESSION, expires_at=session.expires_at, session_hash=known)

    # --- in and out -----------------------------------------------------------------------------------------------

    def log_in(self, name: str, password: str, address: str) -> tuple[Actor, Secrets]:
        """The actor, and the new cookie with its key."""
        return self._begin_session(self.check_password(name, password, address), address, self._clock())

    def check_password(self, name: str, password: str, address: str) -> User:
        """Who this is. Counted before anything is hashed, and nothing is counted for those who would not be checked;
        who does not exist costs the same."""
        now = self._clock()
        with self._database.read() as conn:
            user = people.get_user(conn, name) if NAME_RULE.fullmatch(name) else None
            kept = people.password_hash(conn, name) if user is not None and user.active else None
        right = self._passwords.matches(kept, password, before=lambda: self._count_try(name, address, now))
        if not right or user is None:
            self._note_failed_login(name, address, now)
            raise LoginNeeded(because(Code.WRONG_PASSWORD))
        self._tries.went_well(name[:MOST_LENGTH], address)
        return user

    def log_out(self, actor: Actor) -> None:
        with self._database.write() as conn:
            if actor.session_hash:
                logins.remove_session(conn, actor.session_hash)
            audit.record(conn, actor, Action.LOG_OUT, actor.name, self._clock())
        self.forget()

    def change_password(self, actor: Actor, old: str | None, new: str, *, keep_tokens: bool = False) -> None:
        """One's own. Every other login of the same person ends, and every other token unless told to keep them."""
        now = self._clock()
        if old is not None or actor.via is not Via.OWNER:  # who owns the data folder could write it there
            self._check_old_password(actor, old or "", now)
        if new == old:  # else whoever gave a one-time password would go on knowing it
            raise BadInput(because(Code.SAME_PASSWORD))
        hashed = self.hash_new_password(new, actor.name)
        with self._database.write() as conn:
            people.set_password(conn, actor.name, hashed, must_change=False)
            logins.remove_sessions_of(conn, actor.name, but=actor.session_hash or None)
            count = 0 if keep_tokens else tokens.revoke_all(conn, actor.name, now, but=actor.token_id)
            audit.record(conn, actor, Action.CHANGE_OWN_PASSWORD, actor.name, now, facts={"tokens": count})
        self.forget()

    def _check_old_password(self, actor: Actor, old: str, now: float) -> None:
        with self._database.read() as conn:
            kept = people.password_hash(conn, actor.name)
        if not self._passwords.matches(kept, old, before=lambda: self._count_try(actor.name, actor.address, now)):
            self._note_failed_login(actor.name, actor.address, now)
            raise LoginNeeded(because(Code.WRONG_PASSWORD))
        self._take_back_try(actor.name, actor.address)

    def hash_new_password(self, password: str, name: str) -> str:
        check_strength(password, name)
        return self._passwords.hash(password)

    def _begin_session(self, user: User, address: str, now: float) -> tuple[Actor, Secrets]:
        with self._database.write() as conn:
            session, both = sessions.begin(conn, user.name, now, self.rules.session_seconds)
            actor = Actor(
                user,
                Scope.ADMIN,
                Via.SESSION,
                address=address,
                expires_at=session.expires_at,
                session_hash=session.secret_hash,
            )
            audit.record(conn, actor, "session.begin", user.name, now)
        return actor, both

    def _count_try(self, name: str, address: str, now: float) -> None:
        self._tries.count(name[:MOST_LENGTH], address, now)

    def _take_back_try(self, name: str, address: str) -> None:
        self._tries.take_back(name[:MOST_LENGTH], address)

    def _note_failed_login(self, name: str, address: str, now: float) -> None:
        """What is no possible name is left out: people type their password there."""
        shown = name if NAME_RULE.fullmatch(name) else "?"
        with self._database.write() as conn:
            audit.record_stranger(conn, shown, "session.begin", address, now, outcome=audit.FAILED)

    # --- keeping the books ----------------------------------------------------------------------------------------

    def note_refusal(self, actor: Actor, refused: Refused) -> None:
        """Somebody reached for what is not theirs. A flood of that is told in one line, lest it bury the rest."""
        now = self._clock()
        number, until = self._refusals.take(actor.name, now)
        if number > MOST_REFUSALS + 1:
            return
        with self._database.write() as conn:
            if number <= MOST_REFUSALS:
                audit.record(conn, actor, refused.action, refused.target.name, now, outcome=audit.REFUSED)
            else:
                facts = {"told": MOST_REFUSALS, "until": until}
                audit.record(conn, actor, "audit.left_out", actor.name, now, outcome=audit.REFUSED, facts=facts)

    def tidy(self) -> None:
        """Now and then: write down which tokens were used, forget sessions that have run out."""
        with self._used_lock:
            used, self._used_tokens = self._used_tokens, {}
        now = self._clock()
        if not used and now < self._sweep_at:
            return
        self._sweep_at = now + SWEEP_SECONDS
        with self._database.write() as conn:
            for id, at in used.items():
                logins.token_used(conn, id, at)
            logins.remove_expired_sessions(conn, now)


def _key(credentials: Credentials) -> str:
    if credentials.bearer is not None:
        return "bearer " + tokens.hash_secret(credentials.bearer) if credentials.bearer else ""
    if not credentials.cookie or not credentials.session_key:
        return ""
    return f"session {tokens.hash_secret(credentials.cookie)} {tokens.hash_secret(credentials.session_key)}"
