"""Which running replica somebody means, and whether it is theirs. Asked anew for every session and every connection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuyard.access import rights
from gpuyard.access.actors import Actor
from gpuyard.access.rights import Action, Refused, Work
from gpuyard.domain.errors import BadInput, Conflict, NotFound
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Kind, Life, Replica, State, Workload
from gpuyard.gateway.ssh.names import Address, read_place
from gpuyard.store import workloads
from gpuyard.store.database import Connection
from gpuyard.store.workload_pages import Visibility, WorkloadFilter

_LIVE = tuple(state for state in State if state not in (State.SUCCEEDED, State.FAILED, State.STOPPED))
_ENTERED = (State.STARTING, State.RUNNING, State.STOPPING)
MOST_ENVIRONMENTS = 100


@dataclass(frozen=True, slots=True)
class Target:
    """Where to go inside."""

    workload: str
    replica: str


def find_target(conn: Connection, actor: Actor, address: Address) -> Target:
    """Only what is one's own: an admin sees others' work, but enters it by no one's door. What belongs to somebody
    else is answered like nothing at all."""
    workload, replica = _meant(conn, actor, address)
    work = Work(address.shown_place or workload.spec.name, workload.owner, workload.group)
    if workload.owner != actor.name:
        raise Refused(Action.ENTER_WORKLOAD, work)
    rights.require(actor, Action.ENTER_WORKLOAD, work)
    return Target(workload.id, str(_running(workload, replica).id))


def _meant(conn: Connection, actor: Actor, address: Address) -> tuple[Workload, str | None]:
    if address.place is None:
        rights.require(actor, Action.ENTER_WORKLOAD)
        return _only_one(environments(conn, actor.name), actor.name), None
    place = read_place(address.place)
    found = environments(conn, actor.name, place.environment) if place.environment else []
    if found:
        return found[0], None
    by_id = workloads.get(conn, place.workload) if place.workload else None
    if by_id is None:
        raise nothing_there(address)
    return by_id, place.replica


def nothing_there(address: Address) -> NotFound:
    """Said of what does not exist, and in the same words of what is somebody else's."""
    return NotFound(because(Code.NOT_FOUND, what="environment", name=address.shown_place))


def environments(conn: Connection, owner: str, name: str | None = None) -> list[Workload]:
    """Those of this person that are not removed, newest first."""
    wanted = WorkloadFilter(owner=owner, states=_LIVE, name=name, kind=Kind.ENV)
    return workloads.page(conn, filters=wanted, visible_to=Visibility(owner=owner), limit=MOST_ENVIRONMENTS)[0]


def _only_one(found: Sequence[Workload], user: str) -> Workload:
    running = [workload for workload in found if running_replicas(workload)]
    if len(running) == 1:
        return running[0]
    if running:
        names = sorted(workload.spec.name for workload in running)
        raise BadInput(because(Code.WHICH_ENVIRONMENT, user=user, names=names))
    raise Conflict(because(Code.NO_ENVIRONMENT, names=sorted(workload.spec.name for workload in found)))


def running_replicas(workload: Workload) -> list[Replica]:
    if workload.state not in _ENTERED or workload.attempt is None:
        return []
    return [replica for replica in workload.attempt.replicas if replica.seen.life is Life.RUNNING]


def _running(workload: Workload, short: str | None) -> Replica:
    there = workload.attempt.replicas if workload.attempt is not None else ()
    if short is not None and short not in {replica.id.short for replica in there}:
        names = [replica.id.short for replica in there[:20]]
        raise NotFound(because(Code.NOT_FOUND, what="replica", name=short, there=names))
    for replica in running_replicas(workload):
        if short in (None, replica.id.short):
            return replica
    name = workload.spec.name if workload.spec.kind is Kind.ENV else workload.id
    raise Conflict(because(Code.NOT_RUNNING, what=workload.spec.kind.value, name=name, state=workload.state.value))
