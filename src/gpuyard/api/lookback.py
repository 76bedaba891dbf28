"""The journal of decisions over HTTP, for admins: it holds everybody's work.

A replay takes long: it is started by one request, goes on in a process of its own, and is asked after by others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import Query

from gpuyard.access import audit
from gpuyard.access.rights import Action
from gpuyard.api import lookback_models as models
from gpuyard.api import policies
from gpuyard.api.finding import find_workload
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.moments import When, moment_of
from gpuyard.api.policy import DOCUMENT, Document, Sent, differing, meant
from gpuyard.api.views import instant, instant_or_none
from gpuyard.domain.errors import NotFound
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ID_RULE
from gpuyard.journal.folder import segments
from gpuyard.journal.plain import to_plain
from gpuyard.journal.running import Run

doors = Doors(prefix="/api/v1/journal", tags=["journal"])
Looking = Annotated[Caller, needs(Action.LOOK_BACK)]
Asked = Annotated[When | None, Query()]
OBJECT = "journal"


@doors.get("", response_model=models.JournalOut)
def journal(caller: Looking) -> Any:
    """How much is kept, and whether it is written."""
    lookback = caller.parts.lookback
    found = segments(lookback.folder) if lookback.folder is not None else []
    return models.JournalOut(
        kept=lookback.folder is not None,
        segments=len(found),
        bytes=sum(segment.size for segment in found),
        since=instant(found[0].begun) if found else None,
        problem=lookback.problem(),
        damaged=[name for name in lookback.runs.damaged() if name in {segment.path.name for segment in found}],
    )


@doors.post("/replay", response_model=models.RunOut, status_code=202)
def replay(caller: Looking, wish: models.ReplayIn) -> Any:
    """Decide once more what was decided, and compare to the last bit. Ask for the answer with the id."""
    request = {
        "since": moment_of("since", wish.since),
        "until": moment_of("until", wish.until),
        "last": wish.last,
        "job": _job(caller, wish.job),
    }
    return _started(caller, "replay", request)


@doors.post("/what-if", response_model=models.RunOut, status_code=202, openapi_extra=DOCUMENT)
def what_if(caller: Looking, sent: Sent, since: Asked = None, until: Asked = None) -> Any:
    """The platform's own history under the policy in force and under the one that is sent, or `{"set": {...}}`."""
    document = Document(*sent)
    with caller.parts.database.read() as conn:
        present, other = policies.in_force(conn), meant(conn, document)
    request = {
        "since": moment_of("since", since),
        "until": min(caller.now, moment_of("until", until) or caller.now),
        "present": to_plain(present),
        "other": to_plain(other),
        "changed": [one.model_dump() for one in differing(present, other)],
    }
    return _started(caller, "what_if", request)


@doors.get("/runs/{id}", response_model=models.RunOut)
def show_run(caller: Looking, id: str) -> Any:
    """How far it is, and when it is done what was found."""
    return _told(caller, caller.parts.lookback.runs.get(id))


@doors.delete("/runs/{id}", status_code=204)
def cancel_run(caller: Looking, id: str) -> None:
    caller.parts.lookback.runs.cancel(id)


def _started(caller: Caller, what: str, request: dict[str, Any]) -> models.RunOut:
    run = caller.parts.lookback.runs.start(caller.actor.name, what, {"folder": str(_folder(caller)), **request})
    with caller.parts.database.write() as conn:
        audit.record(conn, caller.actor, Action.LOOK_BACK, OBJECT, caller.now)
    return _told(caller, run)


def _folder(caller: Caller) -> Path:
    folder = caller.parts.lookback.folder
    if folder is None:
        raise NotFound(because(Code.NO_JOURNAL))
    return folder


def _job(caller: Caller, ref: str | None) -> str | None:
    """By id also when it is no longer kept: the journal may still know it."""
    if ref is None:
        return None
    try:
        with caller.parts.database.read() as conn:
            return find_workload(caller, conn, ref).id
    except NotFound:
        if ID_RULE.fullmatch(ref):
            return ref
        raise


# --- what was found -------------------------------------------------------------------------------------------------


def _told(caller: Caller, run: Run) -> models.RunOut:
    over, result = run.over, run.result
    told = models.RunOut(
        id=run.id,
        what="replay" if run.what == "replay" else "what_if",
        state="running" if not over else "failed" if run.problem else "done",
        done=run.done,
        of=run.of,
        problem=run.problem,
    )
    if over and result is not None:
        if run.what == "replay":
            told.replay = _replay(caller, result)
        else:
            told.what_if = _what_if(result)
    return told


def _replay(caller: Caller, found: dict[str, Any]) -> models.ReplayOut:
    times = {"first": instant_or_none(found["first"]), "last": instant_or_none(found["last"])}
    differences = [{**one, "at": instant(one["at"])} for one in found["differences"]]
    moments = [_moment_out(caller, one) for one in found["moments"]]
    return models.ReplayOut.model_validate({**found, **times, "differences": differences, "moments": moments})


def _moment_out(caller: Caller, one: dict[str, Any]) -> models.MomentOut:
    what, facts = one["what"], one["facts"]
    text = caller.say(_reason(what, facts))
    return models.MomentOut(at=instant(one["at"]), what=what, facts=facts, text=text)


def _reason(what: str, facts: dict[str, Any]) -> Reason:
    if what == "waits":
        return Reason.from_json(facts)
    if what == "placed":
        return because(Code.PLACED, nodes=facts["nodes"])
    if what == "evicted":
        lost = round(facts.get("lost_seconds", 0.0), 1)
        if facts["rule"] == "defragment":
            nodes = [place["node"] for _, place in facts.get("to") or ()]
            return because(Code.MOVES, by=facts["by"], lost_seconds=lost, nodes=nodes)
        return because(Code.PREEMPTED, by=facts["by"], rule=facts["rule"], lost_seconds=lost)
    return because(Code.MOVING if facts["rule"] == "defragment" else Code.CLEARING, jobs=[facts["workload"]])


def _what_if(found: dict[str, Any]) -> models.WhatIfOut:
    times = {"begin": instant(found["begin"]), "until": instant(found["until"])}
    return models.WhatIfOut.model_validate({**found, **times})
