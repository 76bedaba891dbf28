"""What a name in a request stands for, and how the asker sees it."""

from __future__ import annotations

from collections.abc import Iterable

from gpuyard.access.rights import Action, Refused, Work, view_of
from gpuyard.api.guard import Caller
from gpuyard.api.views import Glasses, work_named
from gpuyard.domain.errors import BadInput, NotFound
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ID_RULE, Workload
from gpuyard.store import workloads as rows
from gpuyard.store.database import Connection
from gpuyard.store.workload_pages import SHORTEST_PREFIX
from gpuyard.store.workloads import Visibility, WorkloadFilter

LONGEST_REF = 80
MOST_OF_OTHERS = 5
TOO_SHORT = "write at least two characters of the id, or the whole name"


def visibility(caller: Caller) -> Visibility:
    view = view_of(caller.actor)
    return Visibility(view.everything, view.owner, view.groups)


def find_workload(caller: Caller, conn: Connection, ref: str, action: Action = Action.SEE_WORKLOAD) -> Workload:
    """By id, unique beginning of an id, or name. Somebody else's is answered exactly like none at all."""
    ref = ref[:LONGEST_REF]
    ids = rows.resolve(conn, ref, caller.actor.name, visibility(caller))
    if len(ids) > 1:
        raise BadInput(because(Code.AMBIGUOUS, name=ref, matches=ids))
    found = rows.get(conn, ids[0] if ids else ref) if ids or ID_RULE.fullmatch(ref) else None
    if found is None and (theirs := _of_others(caller, conn, ref)):
        raise NotFound(because(Code.NOT_FOUND, what="workload", name=ref, there=theirs))
    if found is None and len(ref) < SHORTEST_PREFIX:
        raise BadInput(because(Code.BAD_VALUE, at="", value=ref, problem=TOO_SHORT))
    if found is None:
        raise NotFound(because(Code.NOT_FOUND, what="workload", name=ref))
    target = Work(found.id, found.owner, found.group)
    if not ids:
        raise Refused(action, target)
    caller.require(action, target)
    return found


def _of_others(caller: Caller, conn: Connection, name: str) -> list[str]:
    """A name alone means one's own. Others' by that name are told if the asker may see them, the newest first."""
    named, _ = rows.page(conn, filters=WorkloadFilter(name=name), visible_to=visibility(caller), limit=MOST_OF_OTHERS)
    return [f"{one.id} ({one.owner})" for one in named]


def require_attempt(workload: Workload, number: int | None) -> None:
    """None asks for the newest, whether there is one or not."""
    if number is not None and not 1 <= number <= workload.attempts_made:
        facts = {"name": str(number)[:20], "there": workload.attempts_made}
        raise NotFound(because(Code.NOT_FOUND, what="attempt", **facts))


def glasses(caller: Caller, conn: Connection, reasons: Iterable[Reason] = ()) -> Glasses:
    """How the asker sees these reasons. Other workloads that they name are looked up in one go."""
    devices = caller.simulated.known(caller.now, conn)
    if caller.actor.is_admin:
        return Glasses(caller.say, devices)
    named = {id for reason in reasons for id in work_named(reason)}
    return Glasses(caller.say, devices, visible(caller, conn, named).__contains__)


def visible(caller: Caller, conn: Connection, ids: Iterable[str]) -> dict[str, Workload]:
    """Those of these workloads that the asker may see."""
    wanted = sorted(set(ids))
    found = rows.get_many(conn, wanted) if wanted else []
    return {w.id: w for w in found if caller.may(Action.SEE_WORKLOAD, Work(w.id, w.owner, w.group))}
