"""Who comes by SSH: checked by password or key, written into the trail, and asked again while the connection lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpuyard.access import audit
from gpuyard.access.actors import Actor, Scope, Via
from gpuyard.access.public_keys import fingerprint_of, parse_public_key
from gpuyard.access.rights import Action, Refused
from gpuyard.access.service import Access
from gpuyard.domain.errors import LoginNeeded, NotAllowed
from gpuyard.domain.people import NAME_RULE, User
from gpuyard.domain.reasons import Code, because
from gpuyard.gateway.ssh.names import Address
from gpuyard.gateway.ssh.places import Target, find_target, nothing_there
from gpuyard.store import people, ssh_keys
from gpuyard.store.database import Connection, Database

BEGIN = "session.begin"


@dataclass(frozen=True, slots=True)
class Proof:
    """By what somebody was let in: the login lasts as long as this does."""

    user: str
    password_hash: str = field(default="", repr=False)
    key_id: str = ""

    @property
    def means(self) -> str:
        return "key" if self.key_id else "password"


class Logins:
    """Reads and writes the store: for threads, not for the event loop."""

    def __init__(self, database: Database, access: Access, clock: Callable[[], float]) -> None:
        self._database = database
        self._access = access
        self._clock = clock

    def by_password(self, name: str, password: str, address: str) -> Proof:
        """Raises LoginNeeded, TooMany, or NotAllowed when a one-time password has to be changed first."""
        with self._database.read() as conn:
            kept = people.password_hash(conn, name) if NAME_RULE.match(name) else None
        user = self._access.check_password(name, password, address)
        if user.must_change_password:
            raise NotAllowed(because(Code.PASSWORD_CHANGE_NEEDED))
        if kept is None:  # made or changed in this very moment: the next try will do
            raise LoginNeeded(because(Code.WRONG_PASSWORD))
        return Proof(user.name, password_hash=kept)

    def by_key(self, name: str, blob: bytes) -> Proof | None:
        """Whether this key opens for this person. That the visitor has its other half is still to be shown."""
        if not NAME_RULE.match(name):
            return None
        with self._database.read() as conn:
            key = ssh_keys.by_fingerprint(conn, name, fingerprint_of(blob))
            user = people.get_user(conn, name)
        if key is None or user is None or not user.active or parse_public_key(key.public_key).blob != blob:
            return None
        return Proof(name, key_id=key.id)

    def begin(self, proof: Proof, address: Address, peer: str) -> Actor:
        """They are in: written down before anything else happens."""
        now = self._clock()
        with self._database.write() as conn:
            user = _still(conn, proof)
            if user is None:
                raise LoginNeeded(because(Code.LOGIN_OVER))
            actor = Actor(user, Scope.WRITE, Via.SSH, address=peer)
            facts = {"by": proof.means, "place": address.shown_place} | ({"key": proof.key_id} if proof.key_id else {})
            audit.record(conn, actor, BEGIN, user.name, now, facts=facts)
            if proof.key_id:
                ssh_keys.used(conn, proof.key_id, now)
        return actor

    def still_good(self, proofs: Iterable[Proof]) -> set[Proof]:
        with self._database.read() as conn:
            return {proof for proof in set(proofs) if (user := _still(conn, proof)) and not user.must_change_password}

    def enter(self, proof: Proof, actor: Actor, address: Address, known: str | None) -> Target:
        """Where this visitor goes, decided anew. `known` is the workload whose entry is in the trail already."""
        with self._database.read() as conn:
            user = _still(conn, proof)
            if user is None:
                raise LoginNeeded(because(Code.LOGIN_OVER))
            now_actor = Actor(user, actor.scope, actor.via, address=actor.address)
            try:
                target = find_target(conn, now_actor, address)
                refused = None
            except Refused as error:
                refused = error
        if refused is not None:
            self._access.note_refusal(actor, refused)
            raise nothing_there(address)
        if target.workload != known:
            with self._database.write() as conn:
                audit.record(conn, now_actor, Action.ENTER_WORKLOAD, target.workload, self._clock())
        return target


def _still(conn: Connection, proof: Proof) -> User | None:
    """The person, if what let them in still does."""
    user = people.get_user(conn, proof.user)
    if user is None or not user.active:
        return None
    if proof.key_id:
        key = ssh_keys.get(conn, proof.key_id)
        return user if key is not None and key.user == user.name else None
    return user if people.password_hash(conn, proof.user) == proof.password_hash else None
