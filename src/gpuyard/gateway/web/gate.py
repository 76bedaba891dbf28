"""May they? Asked for every request and every handshake, and again and again for what stays open.

The one answer comes from the store and the access room. It is remembered for a moment, so that a page with a hundred
pictures costs one look; and while the store cannot be asked, what was just allowed goes on: nobody can be logged out
then either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from gpuyard.access import gates, rights
from gpuyard.access.actors import Actor
from gpuyard.access.rights import Action, Refused, Work
from gpuyard.access.service import Access, Credentials
from gpuyard.domain.doorways import Visit
from gpuyard.domain.errors import Conflict, LoginNeeded, NotFound, Unavailable, YardError
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Life, Replica, State, Workload
from gpuyard.store import workloads
from gpuyard.store.database import Database

REMEMBER_SECONDS = 1.5
WITHOUT_STORE_SECONDS = 120.0
MOST = 10_000
_ENTERED = (State.STARTING, State.RUNNING, State.STOPPING)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Proof:
    """How someone shows who they are: hashes of cookies, or a token of the platform.

    Several cookies of one name can come along: a page on a neighbouring host may have set one for the whole domain.
    """

    cookies: tuple[str, ...] = ()
    bearer: str = field(default="", repr=False)
    address: str = ""


@dataclass(slots=True)
class Permit:
    """Who may enter what, as of a moment ago."""

    actor: Actor
    workload: Workload
    proof: Proof
    visit: Visit
    asked_at: float = 0.0
    target: Target | None = None  # what it leads to, once somebody has asked


@dataclass(frozen=True, slots=True)
class Target:
    """One door of one replica, for one person: connections are never shared between people."""

    replica: str
    user: str
    port: int | None = None
    service: str | None = None

    @property
    def socket_name(self) -> str | None:
        return f"{self.service}.sock" if self.service else None


class Gate:
    """`remembered` waits for nothing; `authorise` may look into the store, in a thread."""

    def __init__(self, database: Database, access: Access, clock: Callable[[], float]) -> None:
        self._database = database
        self._access = access
        self._clock = clock
        self._known: dict[tuple[Proof, Visit], Permit] = {}
        self._asking: dict[tuple[Proof, Visit], asyncio.Task[Permit]] = {}

    def remembered(self, proof: Proof, visit: Visit) -> Permit | None:
        known = self._known.get((proof, visit))
        return known if known is not None and self.is_fresh(known) else None

    def is_fresh(self, permit: Permit) -> bool:
        return 0 <= self._clock() - permit.asked_at < REMEMBER_SECONDS

    async def authorise(self, proof: Proof, visit: Visit) -> Permit:
        """Raises LoginNeeded, NotFound, NotAllowed or Conflict (it does not run)."""
        permit = self.remembered(proof, visit)
        return permit or await self.ask_anew(proof, visit)

    async def ask_anew(self, proof: Proof, visit: Visit) -> Permit:
        """Many who ask the same at once are answered by one look."""
        key = (proof, visit)
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(proof, visit))
            self._asking[key] = asking
            asking.add_done_callback(lambda task: self._asked(key, task))
        return await asyncio.shield(asking)

    def _asked(self, key: tuple[Proof, Visit], task: asyncio.Task[Permit]) -> None:
        self._asking.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may be waiting any more

    async def _ask(self, proof: Proof, visit: Visit) -> Permit:
        key, asked_at = (proof, visit), self._clock()
        try:
            permit = await asyncio.to_thread(self.look, proof, visit)
        except Exception as error:
            if isinstance(error, YardError) and not isinstance(error, Unavailable):
                self._known.pop(key, None)
                raise
            known = self._known.get(key)
            if known is None or self._clock() - known.asked_at > WITHOUT_STORE_SECONDS:
                raise
            _log.warning("the store cannot be asked, so what was allowed goes on: %s", error)
            return known
        self._make_room()
        permit.asked_at = asked_at
        self._known[key] = permit
        return permit

    def _make_room(self) -> None:
        if len(self._known) < MOST:
            return
        self._known = {key: known for key, known in self._known.items() if self.is_fresh(known)}

    def look(self, proof: Proof, visit: Visit) -> Permit:
        """The one place where it is decided. Not for the event loop: it reads the store."""
        now = self._clock()
        actor = self._by_token(proof) if proof.bearer else None
        with self._database.read() as conn:
            for cookie in proof.cookies:
                actor = actor or gates.actor_at(conn, cookie, visit, now, proof.address)
            if actor is None:
                raise LoginNeeded(because(Code.LOGIN_NEEDED))
            workload = workloads.get(conn, visit.workload)
        return Permit(actor, self.may_enter(actor, workload, visit.workload), proof, visit)

    def may_enter(self, actor: Actor, workload: Workload | None, id: str) -> Workload:
        """For someone known: it is theirs to enter, and runs."""
        if workload is None:
            raise NotFound(because(Code.NOT_FOUND, what="workload", name=id))
        target = Work(workload.id, workload.owner, workload.group)
        try:
            rights.require(actor, Action.ENTER_WORKLOAD, target)
        except Refused as refused:
            self._access.note_refusal(actor, refused)
            raise
        if workload.state not in _ENTERED or not running_replicas(workload):
            facts = {"name": workload.spec.name, "state": workload.state.value}
            raise Conflict(because(Code.NOT_RUNNING, what=workload.spec.kind.value, **facts))
        return workload

    def _by_token(self, proof: Proof) -> Actor:
        return self._access.authenticate(Credentials(proof.bearer, None, proof.address))


def running_replicas(workload: Workload) -> list[Replica]:
    replicas = workload.attempt.replicas if workload.attempt else ()
    return [replica for replica in replicas if replica.seen.life is Life.RUNNING]


def replica_named(workload: Workload, short: str) -> Replica:
    """`worker-3`; without a name the first one that runs."""
    there = running_replicas(workload)
    found = [replica for replica in there if short in ("", replica.id.short)]
    if not found:
        raise NotFound(because(Code.NOT_FOUND, what="replica", name=short[:40]))
    return found[0]
