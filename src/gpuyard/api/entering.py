"""The way in to running work by browser: an address with a one-time code, for those who may enter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Request

from gpuyard.access import audit, gates
from gpuyard.access.rights import Action, Work
from gpuyard.api import models
from gpuyard.api.finding import find_workload
from gpuyard.api.gateway_info import NOTE, read_note
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.workloads import Ref
from gpuyard.domain.doorways import IDE, LAB, TERMINAL, Doorway, Visit, read_what, safe_path
from gpuyard.domain.errors import BadInput, Conflict, NotFound, Unavailable, YardError
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ENDED, Kind, State, Workload

doors = Doors(prefix="/api/v1", tags=["workloads"])
TOOLS = (LAB, IDE, TERMINAL)


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
        facts = {"allowed": [*TOOLS, "p8080"], "value": wish.what[:80]}
        raise BadInput(because(Code.BAD_VALUE, at="what", problem=Problem.ONE_OF.value, **facts))
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref, Action.ENTER_WORKLOAD)
    doorway, visit = _doorway(require_openable(caller, workload, what)), Visit(workload.id, what)
    with caller.parts.database.write() as conn:
        code = gates.make_code(conn, caller.actor, visit, caller.now)
        audit.record(conn, caller.actor, Action.ENTER_WORKLOAD, workload.id, caller.now, facts={"what": what})
    known = {"code": code, "words": caller.language} | ({"next": safe_path(wish.path)} if wish.path else {})
    return models.OpenOut(url=f"{doorway.root(visit, _base(doorway, request))}/.yard/enter?{urlencode(known)}")


def require_openable(caller: Caller, workload: Workload, what: str) -> Path:
    """That it can be entered by browser now; the folder in which the gateway says where."""
    if caller.parts.data is None:  # there is no gateway, now or later
        raise Conflict(because(Code.ENGINE_CANNOT, engine=caller.parts.images.engine, what="enter"))
    _require_live(workload)
    _require_tool(caller.parts.data, workload, what)
    return caller.parts.data


def _base(doorway: Doorway, request: Request) -> str:
    host = request.url.hostname or doorway.domain
    return doorway.base_for(f"[{host}]" if ":" in host else host)


def _is_live(workload: Workload) -> bool:
    """What is about to start may be opened: the page waits for it."""
    return workload.state not in ENDED and workload.state is not State.PAUSED


def _require_live(workload: Workload) -> None:
    if not _is_live(workload):
        facts = {"what": workload.spec.kind.value, "name": workload.spec.name, "state": workload.state.value}
        raise Conflict(because(Code.NOT_RUNNING, **facts))


def _require_tool(data: Path, workload: Workload, what: str) -> None:
    if what in (LAB, IDE) and workload.spec.kind is not Kind.ENV:  # a job shows its ports and a terminal
        raise NotFound(because(Code.NOT_FOUND, what=what, name=workload.spec.name))
    if what in TOOLS and what not in tools_there(data):
        raise Conflict(because(Code.NO_TOOLBOX, what=what, name=workload.spec.name))


def tools_there(data: Path) -> frozenset[str]:
    """Which of the programs for the browser there are: a terminal always, the others as the toolbox has them."""
    current = data / "toolbox" / "current"
    if not current.is_dir():
        return frozenset({TERMINAL})
    try:
        parts = json.loads((current / "toolbox.json").read_text(encoding="utf-8"))["parts"]
        return frozenset({TERMINAL, *frozenset(TOOLS).intersection(parts)})
    except (OSError, ValueError, KeyError, TypeError):  # one that says nothing of itself: the page will tell
        return frozenset(TOOLS)


def _doorway(data: Path) -> Doorway:
    """As the gateway wrote it down. It may be away for a moment, while it is started again."""
    told = read_note(data / NOTE)
    try:
        return Doorway(told["scheme"], told["domain"], told["port"], told["paths"])
    except KeyError:
        raise Unavailable(because(Code.GATEWAY_AWAY)) from None


# --- told with an environment ---------------------------------------------------------------------------------------


def addresses_of(caller: Caller, request: Request, env: Workload) -> dict[str, str]:
    """Where it is opened in the browser, after a login there; empty for those who may not enter it."""
    data = caller.parts.data
    if data is None or not _is_live(env) or not _may_enter(caller, env):
        return {}
    try:
        doorway = _doorway(data)
    except Unavailable:
        return {}
    there = tools_there(data)
    ports = [f"p{port.number}" for role in env.spec.roles for port in role.ports]
    visits = [Visit(env.id, what) for what in (*(tool for tool in TOOLS if tool in there), *ports)]
    return {visit.what: f"{doorway.root(visit, _base(doorway, request))}/" for visit in visits}


def closed_to(caller: Caller, env: Workload) -> dict[str, str]:
    """The programs for the browser that cannot be opened, each with the reason in words."""
    found = {}
    for what in TOOLS:
        try:
            require_openable(caller, env, what)
        except YardError as refusal:
            found[what] = caller.say(refusal.reason)
    return found


def ssh_of(caller: Caller, request: Request, env: Workload) -> str | None:
    """The command that enters it. Others than the owner have no name there."""
    data = caller.parts.data
    if data is None or env.state not in (State.STARTING, State.RUNNING) or caller.actor.name != env.owner:
        return None
    told = read_note(data / NOTE)
    port, host = told.get("ssh_port"), told.get("ssh_host") or request.url.hostname or "localhost"
    return f"ssh -p {port} {env.owner}+{env.spec.name}@{host}" if isinstance(port, int) else None


def _may_enter(caller: Caller, env: Workload) -> bool:
    return caller.may(Action.ENTER_WORKLOAD, Work(env.id, env.owner, env.group))
