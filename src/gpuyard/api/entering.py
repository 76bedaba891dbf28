"""The way in to running work by browser: an address with a one-time code, for those who may enter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Request

from gpuyard.access import audit, gates
from gpuyard.access.rights import Action
from gpuyard.api import models
from gpuyard.api.finding import find_workload
from gpuyard.api.gateway_info import NOTE
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.workloads import Ref
from gpuyard.domain.doorways import Doorway, Visit, read_what, safe_path
from gpuyard.domain.errors import BadInput, Conflict, Unavailable
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, State, Workload

doors = Doors(prefix="/api/v1", tags=["workloads"])


@doors.post("/workloads/{ref}/open", response_model=models.OpenOut)
def open_in_browser(
    caller: Annotated[Caller, needs(Action.ENTER_WORKLOAD)],
    ref: Ref,
    request: Request,
    wish: models.OpenIn | None = None,
) -> Any:
    """An address that leads inside, good for one visit within a minute; the browser then has a cookie of its own."""
    wish = wish or models.OpenIn()
    what = read_what(wish.what)
    if what is None:
        facts = {"allowed": ["lab", "ide", "terminal", "p8080"], "value": wish.what[:80]}
        raise BadInput(because(Code.BAD_VALUE, at="what", problem=Problem.ONE_OF.value, **facts))
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref, Action.ENTER_WORKLOAD)
    _require_live(workload)
    if caller.parts.data is None:  # there is no gateway, now or later
        raise Conflict(because(Code.ENGINE_CANNOT, engine=caller.parts.images.engine, what="enter"))
    doorway, visit = _doorway(caller.parts.data), Visit(workload.id, what)
    with caller.parts.database.write() as conn:
        code = gates.make_code(conn, caller.actor, visit, caller.now)
        audit.record(conn, caller.actor, Action.ENTER_WORKLOAD, workload.id, caller.now, facts={"what": what})
    host = request.url.hostname or doorway.domain
    base = doorway.base_for(f"[{host}]" if ":" in host else host)
    known = urlencode({"code": code} | ({"next": safe_path(wish.path)} if wish.path else {}))
    return models.OpenOut(url=f"{doorway.root(visit, base)}/.yard/enter?{known}")


def _require_live(workload: Workload) -> None:
    """What is about to start may be opened: the page waits for it."""
    if workload.state in ENDED or workload.state is State.PAUSED:
        facts = {"what": workload.spec.kind.value, "name": workload.spec.name, "state": workload.state.value}
        raise Conflict(because(Code.NOT_RUNNING, **facts))


def _doorway(data: Path) -> Doorway:
    """As the gateway wrote it down. It may be away for a moment, while it is started again."""
    try:
        told = json.loads((data / NOTE).read_text(encoding="utf-8"))
        return Doorway(told["scheme"], told["domain"], told["port"], told["paths"])
    except (OSError, ValueError, KeyError, TypeError):
        raise Unavailable(because(Code.GATEWAY_AWAY)) from None
