"""Workloads over HTTP: submit, look, and say what is wanted. The loops make it so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request, Response
from pydantic import AwareDatetime
from starlette.concurrency import run_in_threadpool

from gpuyard.access import audit
from gpuyard.access.rights import Action
from gpuyard.api import leaving, models, submitting, usage_models, views
from gpuyard.api.bringing import Taken, bring
from gpuyard.api.finding import find_workload, glasses, require_attempt, visibility
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.policies import require_ceiling
from gpuyard.dialects import native
from gpuyard.dialects.brought import DIALECTS, NATIVE
from gpuyard.domain.errors import BadInput, Conflict
from gpuyard.domain.policy import Policy
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ENDED, Kind, State, StoryEvent, Wanted, Workload
from gpuyard.store import removal, workplaces
from gpuyard.store import workloads as rows
from gpuyard.store.database import Connection
from gpuyard.store.workloads import WorkloadFilter
from gpuyard.world.outlook import NOTHING

doors = Doors(prefix="/api/v1", tags=["workloads"])

Seeing = Annotated[Caller, needs(Action.SEE_WORKLOAD)]
Submitting = Annotated[Caller, needs(Action.SUBMIT)]
Controlling = Annotated[Caller, needs(Action.CONTROL_WORKLOAD)]
Ref = Annotated[str, Path(description="id, unique beginning of an id, or the name of the newest of one's own")]
# Checked by hand, so that the answer to a wrong one can say which there are.
ATTEMPT_RULE = {"minimum": 1, "maximum": 1_000_000}
AttemptNumber = Annotated[int | None, Query(description="left out: the newest", json_schema_extra=ATTEMPT_RULE)]
IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=128)]
STATE_LIST = r"^({0})(,({0}))*$".format("|".join(state.value for state in State))
QUICK_BYTES = 4096
USAGE_POINTS = 720
USAGE_REPLICAS = 64


@dataclass(frozen=True, slots=True)
class Sent:
    """A job file as it came."""

    body: bytes
    content_type: str
    key: str | None
    workdir: str | None = None  # named in the address, for a file that does not name it
    dialect: str = NATIVE

    @property
    def is_quickly_read(self) -> bool:
        """A little JSON is read in no time; YAML, and much of anything, takes a thread."""
        is_little = len(self.body) <= QUICK_BYTES and self.content_type == "application/json"
        return is_little and self.dialect == NATIVE

    @property
    def digest(self) -> str:
        named = () if self.workdir is None else (self.workdir.encode("utf-8", "replace"),)
        spoken = b"submit" if self.dialect == NATIVE else f"submit {self.dialect[:80]}".encode("utf-8", "replace")
        return submitting.digest_of(spoken, self.body, *named)

    def read(self, caller: Caller, policy: Policy) -> Taken:
        if self.dialect == NATIVE:
            device = caller.parts.default_device
            taken = Taken(submitting.read_job_file(self.body, self.content_type, device, policy))
        else:
            taken = bring(caller, self.dialect, self.body, policy)
        return replace(taken, job=submitting.with_workdir(taken.job, self.workdir))


async def sent_job(request: Request) -> Sent:
    headers, query = request.headers, request.query_params if request.scope["query_string"] else {}
    key, dialect = headers.get("idempotency-key"), query.get("dialect", NATIVE)
    return Sent(await request.body(), headers.get("content-type", ""), key, query.get("workdir"), dialect)


SentJob = Annotated[Sent, Depends(sent_job)]
JOB_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/JobFile"}},
            "application/yaml": {"schema": {"$ref": "#/components/schemas/JobFile"}},
            "text/plain": {"schema": {"type": "string", "description": "a file of another system, with `dialect`"}},
        },
    }
}
KEY_HEADER: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key and the same request again is the same workload, not a second one.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"},
}
WORKDIR_QUERY: dict[str, Any] = {
    "name": "workdir",
    "in": "query",
    "required": False,
    "description": "SHA-256 of the shipped folder to run in, for a file that does not name one itself.",
    "schema": {"type": "string", "pattern": models.DIGEST_PATTERN},
}
DIALECT_QUERY: dict[str, Any] = {
    "name": "dialect",
    "in": "query",
    "required": False,
    "description": "Whose job file this is, when it is not one of ours.",
    "schema": {"type": "string", "enum": list(DIALECTS), "default": NATIVE},
}
TAKEN_BEFORE: dict[int | str, dict[str, Any]] = {
    200: {"model": models.Answered, "description": "This very request had been taken before."}
}


@doors.post(
    "/workloads",
    status_code=201,
    response_model=models.Answered,
    responses=TAKEN_BEFORE,
    openapi_extra=JOB_BODY | {"parameters": [KEY_HEADER, WORKDIR_QUERY, DIALECT_QUERY]},
)
async def submit(caller: Submitting, sent: SentJob) -> Any:
    """Submit a job file. With an Idempotency-Key the same request can be repeated and is one job."""
    policy = caller.policies.remembered(caller.now)
    if policy is None:
        policy = await run_in_threadpool(caller.policies.known, caller.now)
    taken = sent.read(caller, policy) if sent.is_quickly_read else await run_in_threadpool(sent.read, caller, policy)
    if submitting.needs_a_look(caller, taken.job):
        submission = await run_in_threadpool(submitting.check, caller, taken.job, policy, sent.key, sent.digest)
    else:
        submission = submitting.check(caller, taken.job, policy, sent.key, sent.digest)
    return await _write_and_answer(caller, replace(submission, sole_name=taken.sole_name), taken.notes)


@doors.get("/workloads", response_model=models.WorkloadPage)
def list_workloads(
    caller: Seeing,
    state: Annotated[str | None, Query(json_schema_extra={"pattern": STATE_LIST})] = None,
    owner: models.PersonName | None = None,
    group: models.PersonName | None = None,
    name: Annotated[str | None, Query(pattern=models.JOB_NAME_PATTERN)] = None,
    search: Annotated[str | None, Query(max_length=63, description="somewhere in the name, in any case")] = None,
    kind: Kind | None = None,
    mine: bool = False,
    since: Annotated[AwareDatetime | None, Query(description="submitted then or later")] = None,
    until: Annotated[AwareDatetime | None, Query(description="submitted before")] = None,
    removed: Annotated[bool, Query(description="also those that were taken off the lists")] = False,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    cursor: Annotated[str | None, Query(pattern=models.CURSOR_PATTERN)] = None,
) -> Any:
    """What one may see, newest first."""
    filters = WorkloadFilter(
        owner=caller.actor.name if mine else owner,
        groups=(group,) if group else (),
        states=_states(state),
        name=name,
        kind=kind.value if kind else None,
        search=search,
        since=since.timestamp() if since else None,
        until=until.timestamp() if until else None,
        removed=removed,
    )
    with caller.parts.database.read() as conn:
        found, following = rows.page(conn, filters=filters, visible_to=visibility(caller), before=cursor, limit=limit)
        seen = glasses(caller, conn, [workload.reason for workload in found])
    outlook = caller.parts.outlook
    moments = outlook.of(found) if outlook is not None else {}
    items = [views.workload_out(workload, seen, moments.get(workload.id, NOTHING)) for workload in found]
    page = models.WorkloadPage(items=items, next=following)
    # Put into bytes here: the framework would look at every one of hundreds once more.
    return Response(page.model_dump_json(), media_type="application/json")


def _states(text: str | None) -> tuple[State, ...]:
    words = text.split(",") if text is not None else []
    allowed = [state.value for state in State]
    for word in words:
        if word not in allowed:
            facts = {"problem": Problem.ONE_OF.value, "value": word[:80], "allowed": allowed}
            raise BadInput(because(Code.BAD_VALUE, at="state", **facts))
    return tuple(State(word) for word in words)


@doors.get("/workloads/{ref}", response_model=models.WorkloadDetail)
def show(caller: Seeing, ref: Ref) -> Any:
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
        attempts = rows.attempts(conn, workload.id)
        endings = [attempt.ending.reason for attempt in attempts if attempt.ending]
        seen = glasses(caller, conn, [workload.reason, *endings])
    outlook = caller.parts.outlook
    moments = outlook.of([workload]).get(workload.id, NOTHING) if outlook is not None else NOTHING
    return views.workload_detail(workload, attempts, seen, moments)


@doors.get("/workloads/{ref}/events", response_model=models.EventList)
def events(caller: Seeing, ref: Ref) -> Any:
    """Its story, from the first line on."""
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
        story = rows.story(conn, workload.id)
        seen = glasses(caller, conn, [event.reason for event in story])
    return models.EventList(items=[views.event_out(event, seen, workload) for event in story])


@doors.get("/workloads/{ref}/attempts", response_model=models.AttemptList)
def attempts(caller: Seeing, ref: Ref) -> Any:
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
        found = rows.attempts(conn, workload.id)
        seen = glasses(caller, conn, [attempt.ending.reason for attempt in found if attempt.ending])
    return models.AttemptList(items=[views.attempt_out(attempt, seen, workload) for attempt in found])


@doors.get("/workloads/{ref}/file", response_model=dict[str, Any])
def job_file(caller: Seeing, ref: Ref) -> Any:
    """The job file it came from, ready to be submitted again by its owner. To others its variables are only named."""
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
    return submitting.file_shown(caller, workload)


@doors.get("/workloads/{ref}/usage", response_model=usage_models.UsageOut)
def usage(
    caller: Seeing,
    ref: Ref,
    attempt: AttemptNumber = None,
    minutes: Annotated[float, Query(gt=0, le=360)] = 60,
) -> Any:
    """What its replicas used over the last minutes."""
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref)
        require_attempt(workload, attempt)
        wanted = attempt or workload.attempts_made
        chosen = next((a for a in rows.attempts(conn, workload.id) if a.number == wanted), None)
    ids = [replica.id for replica in chosen.replicas[:USAGE_REPLICAS]] if chosen else []
    step = max(5.0, minutes * 60 / USAGE_POINTS)
    series = caller.parts.series.recent(ids, caller.now - minutes * 60, step)
    return usage_models.UsageOut(items=[views.series_out(id, points) for id, points in series.items()])


# --- wishes -------------------------------------------------------------------------------------------------------


@doors.post("/workloads/{ref}/stop", response_model=models.Answered)
def stop(caller: Controlling, ref: Ref) -> Any:
    """End it: signal, grace time, then everything it started."""
    return _wish(caller, ref, "stop", Wanted.STOP)


@doors.post("/workloads/{ref}/pause", response_model=models.Answered)
def pause(caller: Controlling, ref: Ref) -> Any:
    """End the attempt, free the cards, keep the place in the queue."""
    return _wish(caller, ref, "pause", Wanted.PAUSE)


@doors.post("/workloads/{ref}/resume", response_model=models.Answered)
def resume(caller: Controlling, ref: Ref) -> Any:
    """Let a paused one run again."""
    return _wish(caller, ref, "resume", Wanted.RUN)


@doors.delete("/workloads/{ref}", response_model=models.Answered)
def remove(caller: Controlling, ref: Ref) -> Any:
    """End it if it has not ended, and take it off the lists. Its id still leads to its story and its log."""
    with caller.parts.database.write() as conn:
        workload = find_workload(caller, conn, ref, Action.CONTROL_WORKLOAD)
        _require_job(workload)
        if removal.remove(conn, workload, caller.actor.name, caller.now):
            audit.record(conn, caller.actor, "workload.remove", workload.id, caller.now)
        after = rows.get(conn, workload.id) or workload
        seen = glasses(caller, conn, [after.reason])
    return views.answered(after, [], seen)


def _require_job(workload: Workload) -> None:
    if workload.spec.kind is not Kind.JOB:
        facts = {"problem": Problem.NOT_A_JOB.value, "value": workload.spec.name}
        raise BadInput(because(Code.BAD_VALUE, at="", **facts))


@doors.patch("/workloads/{ref}", response_model=models.Answered)
def change(caller: Controlling, ref: Ref, wish: models.WorkloadChange) -> Any:
    """Another priority for what waits, runs or is paused, up to the asker's own ceiling. It keeps its age."""
    policy = caller.policies.known(caller.now)
    priority = native.read_priority(wish.priority, policy.priorities)
    with caller.parts.database.write() as conn:
        workload = find_workload(caller, conn, ref, Action.CONTROL_WORKLOAD)
        require_ceiling(policy, caller.actor.user, workload.group, priority)
        if not _possible(workload, Wanted.RUN):
            raise Conflict(_wrong_state(workload, "priority"))
        if priority != workload.spec.priority:
            _set_priority(caller, conn, workload, priority)
        after = rows.get(conn, workload.id) or workload
        seen = glasses(caller, conn, [after.reason])
    return views.answered(after, [], seen)


def _set_priority(caller: Caller, conn: Connection, workload: Workload, priority: int) -> None:
    facts = {"before": workload.spec.priority, "after": priority}
    by = caller.actor.name
    told = because(Code.PRIORITY_CHANGED, **facts, by=by)
    story = [StoryEvent(caller.now, told, workload.state, workload.attempts_made, by)]
    if not rows.amend(conn, workload, replace(workload.spec, priority=priority), story):
        raise Conflict(because(Code.GENERATION_MOVED, what="workload"))
    audit.record(conn, caller.actor, "workload.priority", workload.id, caller.now, facts=facts)


def _wish(caller: Caller, ref: str, verb: str, wanted: Wanted) -> models.Answered:
    with caller.parts.database.write() as conn:
        workload = find_workload(caller, conn, ref, Action.CONTROL_WORKLOAD)
        if workload.spec.kind is Kind.ENV and wanted is Wanted.STOP:
            wanted = Wanted.PAUSE  # what is installed in it goes only with `yard env rm`
        if not _possible(workload, wanted):
            raise Conflict(_wrong_state(workload, verb))
        has_ended = workload.state in ENDED
        place = workplaces.get(conn, workload.id) if workload.spec.kind is Kind.ENV else None
        if not has_ended and (workload.wanted is not wanted or (place is not None and place.restarting)):
            if wanted is Wanted.RUN:
                leaving.require_seat(conn, workload)
            if workload.spec.kind is Kind.ENV and wanted is Wanted.RUN:
                rows.amend(conn, workload, workload.spec, [], asked_at=caller.now)
            rows.want(conn, workload.id, wanted, caller.actor.name, caller.now)
            audit.record(conn, caller.actor, f"workload.{verb}", workload.id, caller.now)
        after = rows.get(conn, workload.id) or workload
        seen = glasses(caller, conn, [after.reason])
    return views.answered(after, [_wrong_state(workload, verb)] if has_ended else [], seen)


def _possible(workload: Workload, wanted: Wanted) -> bool:
    """Asking for what is so already is fine. What is being stopped, or has ended, is neither paused nor resumed."""
    return wanted is Wanted.STOP or (workload.state not in ENDED and workload.wanted is not Wanted.STOP)


def _wrong_state(workload: Workload, verb: str) -> Reason:
    stopping = workload.state not in ENDED and workload.wanted is Wanted.STOP
    state = State.STOPPING if stopping else workload.state
    return because(Code.WRONG_STATE, action=verb, state=state.value, id=workload.id, name=workload.spec.name)


@doors.post(
    "/workloads/{ref}/rerun",
    status_code=201,
    response_model=models.Answered,
    responses=TAKEN_BEFORE,
)
async def rerun(
    caller: Submitting,
    ref: Ref,
    changes: models.RerunIn | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Any:
    """Submit it again as a new workload of one's own, with some values changed; `instead`: in its place."""
    submission = await run_in_threadpool(_read_rerun, caller, ref, changes or models.RerunIn(), idempotency_key)
    return await _write_and_answer(caller, submission)


def _read_rerun(caller: Caller, ref: str, changes: models.RerunIn, key: str | None) -> submitting.Submission:
    with caller.parts.database.read() as conn:
        workload = find_workload(caller, conn, ref, Action.CONTROL_WORKLOAD)
    _require_job(workload)
    submitting.require_belongings(caller, workload)
    policy = caller.policies.known(caller.now)
    data = submitting.job_file(workload, policy)
    for path, value in changes.set.items():
        data = native.set_value(data, path, value)
    job = native.read_job(data, None, default_device=caller.parts.default_device, priorities=policy.priorities)
    if job.spec.workdir is not None and job.spec.workdir == workload.spec.workdir:
        submitting.take_over_workdir(caller, workload.owner, job.spec.workdir)
    said = [json.dumps(changes.set, sort_keys=True).encode(), *([b"instead"] if changes.instead else [])]
    submission = submitting.check(caller, job, policy, key, submitting.digest_of(b"rerun", workload.id.encode(), *said))
    return submitting.instead_of(caller, submission, workload) if changes.instead else submission


async def _write_and_answer(
    caller: Caller, submission: submitting.Submission, notes: Sequence[Reason] = ()
) -> Response:
    """Put into bytes here: the framework would take a thread for it, on the busiest path there is."""
    devices = caller.simulated.remembered(caller.now)
    if devices is None:
        devices = await run_in_threadpool(caller.simulated.known, caller.now)
    workload, is_new = await submitting.write(caller, submission)
    admin = caller.actor.is_admin
    seen = views.Glasses(caller.say, devices, nameable=lambda id: admin)
    warnings = submitting.warnings_of(caller, workload.spec)
    body = views.answered(workload, warnings, seen, notes).model_dump_json()
    headers = {"Location": f"/api/v1/workloads/{workload.id}"}
    return Response(body, 201 if is_new else 200, headers, media_type="application/json")
