"""Dev environments: created, listed, started with or without cards, stopped, timed and removed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from gpuyard.access import audit, rights
from gpuyard.access.rights import Action
from gpuyard.api import entering, env_models, leaving, models, previewing, submitting, views
from gpuyard.api.finding import find_workload, glasses, visibility
from gpuyard.api.guard import Caller, Doors, needs
from gpuyard.api.workloads import KEY_HEADER, IdempotencyKey
from gpuyard.dialects import native
from gpuyard.domain.errors import BadInput, Conflict, NotFound
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import NEVER_STARTS, Code, Reason, because
from gpuyard.domain.resources import parse_duration
from gpuyard.domain.workload import ENDED, WORKPLACE_ROLE, Kind, Spec, State, Wanted, Workload
from gpuyard.store import workloads as rows
from gpuyard.store import workplaces
from gpuyard.store.database import Connection
from gpuyard.store.workloads import WorkloadFilter
from gpuyard.store.workplaces import Anew, Workplace

doors = Doors(prefix="/api/v1", tags=["environments"])

Seeing = Annotated[Caller, needs(Action.SEE_WORKLOAD)]
Submitting = Annotated[Caller, needs(Action.SUBMIT)]
Controlling = Annotated[Caller, needs(Action.CONTROL_WORKLOAD)]
Ref = Annotated[str, Path(description="name of one's own, id, or unique beginning of an id")]
LIVE_STATES = tuple(state for state in State if state not in ENDED)
MOST_TIMER_SECONDS = 366 * 86400.0
OFF = "off"
MOST = 500
ENV_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": native.workplace_schema()}},
    },
    "parameters": [KEY_HEADER],
}
DRAFT_BODY: dict[str, Any] = {"requestBody": ENV_BODY["requestBody"]}


@doors.post("/envs", status_code=201, response_model=env_models.EnvAnswered, openapi_extra=ENV_BODY)
async def create(caller: Submitting, request: Request, idempotency_key: IdempotencyKey = None) -> Any:
    """A new environment: it starts when there is room, and says why when there is none."""
    body = await request.body()
    submission = await run_in_threadpool(_read, caller, body, idempotency_key)
    workload, is_new = await submitting.write(caller, submission)
    answer = await run_in_threadpool(_answer, caller, workload)
    headers = {"Location": f"/api/v1/envs/{workload.id}"}
    return Response(answer.model_dump_json(), 201 if is_new else 200, headers, media_type="application/json")


def _read(caller: Caller, body: bytes, key: str | None) -> submitting.Submission:
    data = native.parse_json(body)
    timer = _seconds(data.pop("timer", None))
    policy = caller.policies.known(caller.now)
    device = caller.parts.default_device
    env = native.read_workplace(data, None, default_device=device, priorities=policy.priorities)
    submission = submitting.check(caller, env, policy, key, submitting.digest_of(b"env", body))
    return replace(submission, stop_at=None if timer is None else caller.now + timer)


@doors.post("/envs/preview", response_model=models.PreviewOut, openapi_extra=DRAFT_BODY)
async def preview_new(caller: Submitting, request: Request, remedies: previewing.Offers = False) -> Any:
    """What would happen if this were created now. It may have no name yet."""
    body = await request.body()
    return await run_in_threadpool(_preview_new, caller, body, remedies)


def _preview_new(caller: Caller, body: bytes, remedies: bool) -> models.PreviewOut:
    data = {"name": "new"} | native.parse_json(body)
    _seconds(data.pop("timer", None))
    policy = caller.policies.known(caller.now)
    env = native.read_workplace(data, None, default_device=caller.parts.default_device, priorities=policy.priorities)
    workload = submitting.draft(caller, env, policy)
    problems = submitting.problems_of(caller, env.spec)
    outlook = caller.parts.preview(workload, caller.actor.user.groups if remedies and not problems else None)
    offers = tuple(replace(remedy, changes=_own_keys(remedy.changes)) for remedy in outlook.remedies)
    return previewing.told(caller, env.spec, problems, replace(outlook, remedies=offers))


def _own_keys(changes: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """As one writes them for an environment, which has one role and does not name it."""
    return tuple((key.removeprefix(f"roles.{WORKPLACE_ROLE}."), value) for key, value in changes)


@doors.get("/envs", response_model=env_models.EnvList)
def list_envs(caller: Seeing, everyone: Annotated[bool, Query(alias="all")] = False) -> Any:
    """One's own, or all that one may see; newest first. Removed ones are not among them."""
    owner = None if everyone else caller.actor.name
    filters = WorkloadFilter(owner=owner, states=LIVE_STATES, kind=Kind.ENV)
    with caller.parts.database.read() as conn:
        found, _ = rows.page(conn, filters=filters, visible_to=visibility(caller), before=None, limit=MOST)
        places = workplaces.get_many(conn, [env.id for env in found])
        seen = glasses(caller, conn, [env.reason for env in found])
    return env_models.EnvList(items=[_out(env, places.get(env.id, Workplace()), seen) for env in found])


@doors.get("/envs/{ref}", response_model=env_models.EnvDetail)
def show(caller: Seeing, ref: Ref, request: Request) -> Any:
    with caller.parts.database.read() as conn:
        env = find_env(caller, conn, ref, Action.SEE_WORKLOAD)
        place = workplaces.get(conn, env.id) or Workplace()
        seen = glasses(caller, conn, [env.reason])
    addresses, ssh = entering.addresses_of(caller, request, env), entering.ssh_of(caller, request, env)
    closed = entering.closed_to(caller, env)
    return env_models.EnvDetail(**_fields(env, place, seen), addresses=addresses, closed=closed, ssh=ssh)


@doors.post("/envs/{ref}/preview", response_model=env_models.EnvPreview)
def preview(caller: Controlling, ref: Ref, asked: env_models.StartIn | None = None) -> Any:
    """Whether it could ever start with this: asked before one that runs is stopped for it."""
    asked = asked or env_models.StartIn()
    _seconds(asked.timer)
    with caller.parts.database.read() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
    never = _never(caller, env, asked.set)
    with caller.parts.database.read() as conn:
        seen = glasses(caller, conn, [never] if never else [])
    reason = seen.reason(never) if never else None
    return env_models.EnvPreview(
        never=reason is not None,
        reason=seen.say(reason) if reason else None,
        reason_code=reason.code.value if reason else None,
        reason_facts=dict(reason.facts) if reason else {},
    )


@doors.post("/envs/{ref}/start", response_model=env_models.EnvAnswered)
def start(caller: Controlling, ref: Ref, asked: env_models.StartIn | None = None) -> Any:
    """Start one that is stopped, with other resources if that is asked for. What is installed in it is there again."""
    asked = asked or env_models.StartIn()
    timer = _seconds(asked.timer)
    if asked.set and not asked.force:
        _require_possible(caller, ref, asked.set, State.PAUSED)
    with caller.parts.database.write() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
        place = workplaces.get(conn, env.id) or Workplace()
        if (env.wanted is Wanted.RUN or place.restarting) and not asked.set:
            return _answer_in(conn, caller, env)
        if env.state is not State.PAUSED:
            raise Conflict(because(Code.WRONG_STATE, action="start", state=env.state.value, id=ref, name=env.spec.name))
        leaving.require_seat(conn, env)
        wish = _anew(caller, env, asked.set, timer)
        _start(caller, conn, env, wish)
        audit.record(conn, caller.actor, "env.start", env.id, caller.now, facts={"changes": wish.changes})
        return _answer_in(conn, caller, rows.get(conn, env.id) or env)


@doors.post("/envs/{ref}/restart", response_model=env_models.EnvAnswered)
def restart(caller: Controlling, ref: Ref, asked: env_models.StartIn | None = None) -> Any:
    """Stop it, and start it again as soon as it has stopped, with other resources if that is asked for. Whoever asked
    need not wait for it. One that could never start again is left as it is, unless it is forced."""
    asked = asked or env_models.StartIn()
    timer = _seconds(asked.timer)
    if not asked.force:
        _require_possible(caller, ref, asked.set, *State)
    with caller.parts.database.write() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
        if env.wanted is Wanted.STOP:
            raise Conflict(because(Code.WRONG_STATE, action="restart", state="stopping", id=ref, name=env.spec.name))
        leaving.require_seat(conn, env)
        wish = _anew(caller, env, asked.set, timer)
        if env.state is State.PAUSED:
            _start(caller, conn, env, wish)
        else:
            _keep_for_later(conn, env, wish, caller.now)
        audit.record(conn, caller.actor, "env.restart", env.id, caller.now, facts={"changes": wish.changes})
        return _answer_in(conn, caller, rows.get(conn, env.id) or env)


@doors.post("/envs/{ref}/stop", response_model=env_models.EnvAnswered)
def stop(caller: Controlling, ref: Ref) -> Any:
    """Stop it and free its cards. What is installed in it stays."""
    with caller.parts.database.write() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
        place = workplaces.get(conn, env.id) or Workplace()
        if env.wanted is Wanted.RUN or (place.restarting and env.wanted is Wanted.PAUSE):
            rows.want(conn, env.id, Wanted.PAUSE, caller.actor.name, caller.now)
            audit.record(conn, caller.actor, "env.stop", env.id, caller.now)
        return _answer_in(conn, caller, rows.get(conn, env.id) or env)


@doors.delete("/envs/{ref}", response_model=env_models.EnvAnswered)
def remove(caller: Controlling, ref: Ref) -> Any:
    """Stop it for good, and throw away what is installed in it. Files in the home and in shares stay."""
    with caller.parts.database.write() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
        rows.want(conn, env.id, Wanted.STOP, caller.actor.name, caller.now)
        audit.record(conn, caller.actor, "env.remove", env.id, caller.now)
        return _answer_in(conn, caller, rows.get(conn, env.id) or env)


@doors.put("/envs/{ref}/timer", response_model=env_models.EnvAnswered)
def set_timer(caller: Controlling, ref: Ref, asked: env_models.TimerIn) -> Any:
    """When it is stopped by itself: at a time, or when nobody uses it."""
    with caller.parts.database.write() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
        if asked.timer is not None:
            place = workplaces.get(conn, env.id) or Workplace()
            workplaces.set_timer(conn, env.id, _stop_at(asked.timer, place.stop_at, caller.now))
        if asked.idle is not None:
            idle = native.read_workplace({"name": env.spec.name, "idle": asked.idle}).spec.idle_seconds
            rows.amend(conn, env, replace(env.spec, idle_seconds=idle), [])
        audit.record(conn, caller.actor, "env.timer", env.id, caller.now)
        return _answer_in(conn, caller, rows.get(conn, env.id) or env)


# --- pieces -------------------------------------------------------------------------------------------------------


def find_env(caller: Caller, conn: Connection, ref: str, action: Action) -> Workload:
    """By the name of one's own, or as any workload."""
    own = rows.workplace_named(conn, caller.actor.name, ref)
    env = find_workload(caller, conn, own or ref, action)
    if env.spec.kind is not Kind.ENV or env.state in ENDED:
        raise NotFound(because(Code.NOT_FOUND, what="workplace", name=ref))
    return env


def _require_possible(caller: Caller, ref: str, changes: Mapping[str, Any], *states: State) -> None:
    """A wish that can never come true changes nothing."""
    with caller.parts.database.read() as conn:
        env = find_env(caller, conn, ref, Action.CONTROL_WORKLOAD)
    never = _never(caller, env, changes) if env.state in states else None
    if never is not None:
        raise Conflict(never)


def _never(caller: Caller, env: Workload, changes: Mapping[str, Any]) -> Reason | None:
    """Why it could never start with this. That others have what it needs, or it itself, is no reason: they end."""
    spec = _changed(caller, env, changes)
    anew = Workload(caller.parts.make_id(), env.owner, env.group, spec, submitted_at=caller.now)
    reason = caller.parts.preview(anew).reason
    return reason if reason is not None and reason.code in NEVER_STARTS else None


def _changed(caller: Caller, env: Workload, changes: Mapping[str, Any]) -> Spec:
    """The same environment asking for something else, checked as a new one would be."""
    policy = caller.policies.known(caller.now)
    data = native.write_workplace(env.spec, env.group) | {"priority": env.spec.priority} | dict(changes)
    if not data.get("cards"):  # a move to the CPU needs no word about the type of card
        data = {key: value for key, value in data.items() if key not in ("cards", "device", "models")}
    data = {key: value for key, value in data.items() if value is not None}
    if "idle" not in changes:  # what was right when it was asked for stays
        data.pop("idle", None)
    for key in ("name", "group"):
        if key in changes:
            facts = {"problem": Problem.NOT_CHANGED.value, "value": str(changes[key])[:80]}
            raise BadInput(because(Code.BAD_VALUE, at=key, **facts))
    device = caller.parts.default_device
    changed = native.read_workplace(data, None, default_device=device, priorities=policy.priorities)
    rights.require_change(caller.actor, env.owner, _different(env.spec, changed.spec))
    spec = submitting.check(caller, changed, policy, None, "").workload.spec
    return spec if "idle" in changes else replace(spec, idle_seconds=env.spec.idle_seconds)


def _anew(caller: Caller, env: Workload, asked: Mapping[str, Any], timer: float | None) -> Anew:
    spec = _changed(caller, env, asked)
    after = native.write_workplace(spec)
    changes = ", ".join(f"{key}={_shown(key, after)}" for key in _different(env.spec, spec))
    return Anew(spec, caller.actor.name, changes, timer)


def _different(before: Spec, after: Spec) -> list[str]:
    """The keys of its file that do not say the same."""
    old, new = native.write_workplace(before), native.write_workplace(after)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _start(caller: Caller, conn: Connection, env: Workload, wish: Anew) -> None:
    if not workplaces.start_anew(conn, env, wish, caller.now):
        raise Conflict(because(Code.GENERATION_MOVED, what="workplace"))


def _keep_for_later(conn: Connection, env: Workload, wish: Anew, now: float) -> None:
    """What can change while it still runs is changed at once; the rest when it has stopped."""
    at_once = replace(env.spec, idle_seconds=wish.spec.idle_seconds, priority=wish.spec.priority)
    if at_once != env.spec and not rows.amend(conn, env, at_once, []):
        raise Conflict(because(Code.GENERATION_MOVED, what="workplace"))
    workplaces.stop_to_start_anew(conn, env, wish, now)


def _shown(key: str, data: Mapping[str, Any]) -> str:
    """For its story, which others read, too: of variables no values."""
    value = data.get(key, 0 if key == "cards" else "-")
    value = ", ".join(value) if key == "env" and isinstance(value, Mapping) else value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _seconds(text: Any) -> float | None:
    if text is None or text == OFF:
        return None
    try:
        seconds = parse_duration(str(text))
        if not 0 < seconds <= MOST_TIMER_SECONDS:
            raise ValueError(text)
    except ValueError as error:
        facts = {"problem": Problem.DURATION.value, "value": str(text)[:80], "most": MOST_TIMER_SECONDS}
        raise BadInput(because(Code.BAD_VALUE, at="timer", **facts)) from error
    return seconds


def _stop_at(text: str, so_far: float | None, now: float) -> float | None:
    """`+1h` is an hour later than it would have been; `1h` is an hour from now."""
    seconds = _seconds(text.removeprefix("+"))
    if seconds is None:
        return None
    return (max(now, so_far or now) if text.startswith("+") else now) + seconds


def _answer(caller: Caller, env: Workload) -> env_models.EnvAnswered:
    with caller.parts.database.read() as conn:
        return _answer_in(conn, caller, env)


def _answer_in(conn: Connection, caller: Caller, env: Workload) -> env_models.EnvAnswered:
    place = workplaces.get(conn, env.id) or Workplace()
    seen = glasses(caller, conn, [env.reason])
    warnings = [seen.say(note) for note in submitting.warnings_of(caller, env.spec)]
    return env_models.EnvAnswered(**_fields(env, place, seen), warnings=warnings)


def _out(env: Workload, place: Workplace, seen: views.Glasses) -> env_models.EnvOut:
    return env_models.EnvOut(**_fields(env, place, seen))


def _fields(env: Workload, place: Workplace, seen: views.Glasses) -> dict[str, Any]:
    asked = env.spec.roles[0].resources
    replicas = env.attempt.replicas if env.attempt and env.holds_resources else ()
    return {
        **views.workload_fields(env, seen),
        "cpu": None if asked.cpu_milli is None else views.from_milli(asked.cpu_milli),
        "memory": asked.memory,
        "shm": asked.shm,
        "node": replicas[0].allotment.node if replicas else None,
        "idle_seconds": env.spec.idle_seconds,
        "stop_at": views.instant_or_none(place.stop_at),
        "used_at": views.instant_or_none(place.used_at),
        "restarting": place.restarting,
    }
