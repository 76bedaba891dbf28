"""From a job file to a queued workload: read, checked against what the asker may do, written once.

This is the busiest path of the platform, so it takes one transaction and no step it does not need.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpuyard.access import audit, rights
from gpuyard.access.rights import Action, Work
from gpuyard.access.service import FIRST_GROUP
from gpuyard.api.guard import Caller
from gpuyard.api.policies import require_ceiling
from gpuyard.dialects import native
from gpuyard.dialects.inside import told
from gpuyard.dialects.policy import NORMAL
from gpuyard.domain.errors import BadInput, Conflict, EngineError, NotAllowed
from gpuyard.domain.people import User
from gpuyard.domain.policy import Policy
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import Kind, ReplicaId, Spec, State, StoryEvent, Wanted, Workload
from gpuyard.engines.seam import KeepsImages
from gpuyard.scheduling.strands import strands
from gpuyard.store import people, workplaces
from gpuyard.store import workloads as rows
from gpuyard.store.database import Connection
from gpuyard.store.removal import live_named

KEY_RULE = re.compile(r"[!-~]{1,128}")
DIGEST_RULE = re.compile(r"[0-9a-f]{64}")
ENV_NOUN = "workplace"  # as `words` knows it
TRIES = 5  # to find an id that is not taken
COPY_BYTES = 1 << 20
HIDDEN = "(hidden)"  # the value of a variable, for who sees only that there is one
YAML_KINDS = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"})


def read_text(body: bytes, content_type: str) -> tuple[dict[str, Any], native.Marks | None]:
    """YAML or JSON as plain data, with the places of its values where it has lines."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in YAML_KINDS:
        return native.parse_yaml(body)
    if kind not in ("", "application/json"):
        allowed = ["application/json", "application/yaml"]
        facts = {"problem": Problem.ONE_OF.value, "value": kind[:80], "allowed": allowed}
        raise BadInput(because(Code.BAD_VALUE, at="Content-Type", **facts))
    return native.parse_json(body), None


def read_job_file(body: bytes, content_type: str, default_device: str, policy: Policy) -> native.JobFile:
    data, marks = read_text(body, content_type)
    return native.read_job(data, marks, default_device=default_device, priorities=policy.priorities)


def file_shown(caller: Caller, workload: Workload) -> dict[str, Any]:
    """The file it came from, for whoever may see the workload: not always what its variables hold."""
    data = job_file(workload, caller.policies.known(caller.now))
    return data if rights.sees_values(caller.actor, workload.owner) else _without_values(data)


def _without_values(data: Mapping[str, Any]) -> dict[str, Any]:
    """`env` stands beside `command` and in every role."""
    shown = dict(data)
    if isinstance(shown.get("env"), Mapping):
        shown["env"] = dict.fromkeys(shown["env"], HIDDEN)
    if isinstance(shown.get("roles"), Mapping):
        shown["roles"] = {name: _without_values(role) for name, role in shown["roles"].items()}
    return shown


def require_belongings(caller: Caller, workload: Workload) -> None:
    """What is run again takes its variables and its folder along, so they have to be the asker's to read."""
    spec = workload.spec
    if (spec.workdir or any(role.env for role in spec.roles)) and not rights.sees_values(caller.actor, workload.owner):
        raise NotAllowed(because(Code.OWNERS_BELONGINGS, owner=workload.owner))


def job_file(workload: Workload, policy: Policy) -> dict[str, Any]:
    """The file it came from. The priority is left out only where leaving it out means the same today."""
    if workload.spec.kind is Kind.ENV:
        return native.write_workplace(workload.spec, workload.group)
    return written(workload.spec, workload.group, policy)


def written(spec: Spec, group: str | None, policy: Policy) -> dict[str, Any]:
    data = native.write_job(spec, group)
    data.pop("priority", None)
    is_usual = spec.priority == policy.priorities[NORMAL]
    return data if is_usual else data | {"priority": spec.priority}


def with_workdir(job: native.JobFile, workdir: str | None) -> native.JobFile:
    """The job in a folder named beside the file, for files that do not name one themselves."""
    if workdir is None or workdir == job.spec.workdir:
        return job
    if not DIGEST_RULE.fullmatch(workdir):
        raise BadInput(because(Code.BAD_VALUE, at="workdir", problem=Problem.DIGEST.value, value=workdir[:80]))
    if job.spec.workdir is not None:
        problem = "the job file names another folder"
        raise BadInput(because(Code.BAD_VALUE, at="workdir", problem=problem, value=workdir))
    return replace(job, spec=replace(job.spec, workdir=workdir))


def draft(caller: Caller, job: native.JobFile, policy: Policy) -> Workload:
    """The workload as it would be submitted, once it is clear that the asker may."""
    owner = caller.actor.user
    group = job.group or _usual_group(owner)
    name = job.spec.name
    caller.require(Action.SUBMIT, Work(name, owner.name, group))
    if caller.actor.is_admin and group not in owner.groups:
        _require_group(caller, group)
    require_ceiling(policy, owner, group, job.spec.priority)
    spec = with_image(caller, job.spec)
    return Workload(caller.parts.make_id(), owner.name, group, spec, submitted_at=caller.now)


def _usual_group(owner: User) -> str:
    """Where work goes that names no group. With several there is no telling, and a guess may show it to a stranger."""
    if len(owner.groups) == 1:
        return owner.groups[0]
    if owner.admin and FIRST_GROUP in owner.groups:
        return FIRST_GROUP
    if not owner.groups:
        raise BadInput(because(Code.MISSING_KEY, at="", key="group"))
    facts = {"problem": Problem.SEVERAL_GROUPS.value, "value": "", "allowed": list(owner.groups)}
    raise BadInput(because(Code.BAD_VALUE, at="group", **facts))


def _require_group(caller: Caller, group: str) -> None:
    """An admin may submit into any group; it has to exist."""
    with caller.parts.database.read() as conn:
        if people.get_group(conn, group) is None:
            raise BadInput(because(Code.NOT_FOUND, what="group", name=group))


def with_image(caller: Caller, spec: Spec) -> Spec:
    """Where work runs in images, that which names none gets the usual one."""
    policy = caller.parts.images
    if not policy.uses_images or all(role.image for role in spec.roles):
        return spec
    if not policy.default:
        raise BadInput(because(Code.MISSING_KEY, at="", key="image"))
    return replace(spec, roles=tuple(replace(role, image=role.image or policy.default) for role in spec.roles))


def problems_of(caller: Caller, spec: Spec) -> list[Reason]:
    """What stands in the way on the server's side although the file itself is well."""
    problems = []
    image = image_of(spec)
    needs_it = caller.parts.images.refuses or spec.kind is Kind.ENV  # what is installed in an image is why it is named
    if image and not caller.parts.images.uses_images and needs_it:
        problems.append(because(Code.IMAGE_REFUSED, image=image, engine=caller.parts.images.engine))
    problems += _images_out_of_reach(caller, spec)
    problems += _files_that_cannot_be_shown(caller, spec)
    if spec.workdir is not None and not caller.parts.workdirs.has(caller.actor.name, spec.workdir):
        problems.append(because(Code.NOT_FOUND, what="workdir", name=spec.workdir))
    return problems


def _files_that_cannot_be_shown(caller: Caller, spec: Spec) -> list[Reason]:
    """What its own system would give it, and this machine cannot: told before it is queued."""
    if spec.origin is None:
        return []
    trial = Workload("a000000000", caller.actor.name, "", spec, caller.now)
    firsts = [told(trial, ReplicaId(trial.id, 1, role.name, 0)) for role in spec.roles]
    paths = dict.fromkeys(file.path for one in firsts for file in one.files)
    return [refusal for refusal in map(caller.parts.file_refusal, paths) if refusal is not None]


def _images_out_of_reach(caller: Caller, spec: Spec) -> list[Reason]:
    """Those that are not here, of registries that may not be asked. When nobody knows what is here, the start tells."""
    held = caller.parts.images.held
    if held is None:
        return []
    try:
        return [refusal for image, refusal in _refusals(held, spec) if not held.has_image(image)]
    except EngineError:
        return []


def _refusals(held: KeepsImages, spec: Spec) -> list[tuple[str, Reason]]:
    images = dict.fromkeys(role.image for role in spec.roles if role.image)
    found = [(image, held.fetch_refusal(image)) for image in images]
    return [(image, refusal) for image, refusal in found if refusal is not None]


def image_of(spec: Spec) -> str | None:
    return next((role.image for role in spec.roles if role.image), None)


def warnings_of(caller: Caller, spec: Spec) -> list[Reason]:
    """What stands in nobody's way, but is not as the asker may think."""
    return [*image_notes(caller, spec), *strands(spec, caller.simulated.kinds)]


def image_notes(caller: Caller, spec: Spec) -> list[Reason]:
    image, policy = image_of(spec), caller.parts.images
    if image and not policy.uses_images:
        return [because(Code.IMAGE_NOT_USED, image=image, engine=policy.engine)]
    return []


def needs_a_look(caller: Caller, job: native.JobFile) -> bool:
    """Whether `check` will ask the disk, the store or the engine, and so may have to wait."""
    held = caller.parts.images.held
    if held is not None and _refusals(held, job.spec):
        return True
    foreign_group = job.group is not None and job.group not in caller.actor.user.groups
    return job.spec.workdir is not None or (foreign_group and caller.actor.is_admin)


@dataclass(frozen=True, slots=True)
class Submission:
    """A checked workload, and how its request is known again."""

    workload: Workload
    key: str | None
    digest: str
    instead_of: Workload | None = None  # a waiting one that it takes the place of
    stop_at: float | None = None  # of a dev environment: its timer
    sole_name: bool = False  # its owner must have no other that lives under its name


def check(caller: Caller, job: native.JobFile, policy: Policy, key: str | None, digest: str) -> Submission:
    """Everything that can be refused before it is written. Waits for nothing unless it `needs_a_look`."""
    if key is not None and not KEY_RULE.fullmatch(key):
        problem = "expected 1 to 128 printable ASCII characters"
        raise BadInput(because(Code.BAD_VALUE, at="Idempotency-Key", problem=problem, value=""))
    workload = draft(caller, job, policy)
    problems = problems_of(caller, job.spec)
    if problems:
        raise BadInput(*problems)
    return Submission(workload, key, digest)


async def write(caller: Caller, submission: Submission) -> tuple[Workload, bool]:
    """Write it down. True when it is new; False when this very request had been taken before."""
    workload = submission.workload
    for _ in range(TRIES):
        try:
            return await caller.together.write(_writer(caller, replace(submission, workload=workload)))
        except Conflict as error:
            if error.reason.code is not Code.ALREADY_THERE or error.reason.facts.get("what") == ENV_NOUN:
                raise
            workload = replace(workload, id=caller.parts.make_id())  # the id was taken
    raise Conflict(because(Code.ALREADY_THERE, what="workload", name=workload.id))


def _writer(caller: Caller, submission: Submission) -> Callable[[Connection], tuple[Workload, bool]]:
    workload, key, digest = submission.workload, submission.key, submission.digest
    story = _first_lines(caller, submission)
    actor, now = caller.actor, caller.now
    facts = {"name": workload.spec.name, "group": workload.group}

    def write_down(conn: Connection) -> tuple[Workload, bool]:
        known = rows.find_by_key(conn, workload.owner, key) if key is not None else None
        if known is not None:
            return _taken_before(conn, known, key, digest), False
        waiting = submission.instead_of
        if waiting is not None:
            _require_waiting(conn, waiting.id)
        caller.crowd.let_in(conn, workload.owner, now)
        if waiting is not None:
            _make_way(caller, conn, waiting.id, workload.id)
        if workload.spec.kind is Kind.ENV:
            _require_new_name(conn, workload)
        if submission.sole_name:
            _require_sole_name(conn, workload)
        rows.insert(conn, workload, story, idempotency_key=key, request_digest=digest)
        if workload.spec.kind is Kind.ENV:
            workplaces.add(conn, workload.id, submission.stop_at)
        audit.record(conn, actor, Action.SUBMIT, workload.id, now, facts=facts)
        return workload, True

    return write_down


def _require_new_name(conn: Connection, env: Workload) -> None:
    """Environments are called by their names, so nobody has two of one name."""
    if rows.workplace_named(conn, env.owner, env.spec.name) is not None:
        raise Conflict(because(Code.ALREADY_THERE, what=ENV_NOUN, name=env.spec.name))


def _require_sole_name(conn: Connection, job: Workload) -> None:
    other = live_named(conn, job.owner, job.spec.name)
    if other is not None:
        raise Conflict(because(Code.NAME_TAKEN, name=job.spec.name, id=other))


def instead_of(caller: Caller, submission: Submission, waiting: Workload) -> Submission:
    """The same in place of one that waits. Its owner keeps the place in the queue: a change costs no second wait. Only
    one of higher priority begins to wait anew, so that nobody lays up places for later."""
    new = submission.workload
    keeps = waiting.owner == new.owner and new.spec.priority <= waiting.spec.priority
    kept = waiting.submitted_at if keeps else new.submitted_at
    return replace(submission, workload=replace(new, submitted_at=kept), instead_of=waiting)


def _require_waiting(conn: Connection, id: str) -> None:
    waiting = rows.get(conn, id)
    if waiting is None or waiting.state is not State.QUEUED or waiting.wanted is Wanted.STOP:
        state = waiting.state.value if waiting else "stopped"
        raise Conflict(because(Code.WRONG_STATE, action="instead", state=state, id=id))


def _make_way(caller: Caller, conn: Connection, id: str, successor: str) -> None:
    """The one that waits is stopped in the same transaction, once nothing can be refused any more: there is never none
    and never both."""
    by, waiting = caller.actor.name, rows.get(conn, id)
    if waiting is not None:
        told = because(Code.REPLACED, job=successor, by=by)
        rows.save(conn, waiting, waiting, [StoryEvent(caller.now, told, waiting.state, waiting.attempts_made, by)])
    rows.want(conn, id, Wanted.STOP, caller.actor.name, caller.now)
    audit.record(conn, caller.actor, "workload.stop", id, caller.now)


def _taken_before(conn: Connection, known: tuple[str, str], key: str | None, digest: str) -> Workload:
    id, sent_then = known
    workload = rows.get(conn, id)
    if sent_then != digest or workload is None:
        raise Conflict(because(Code.SAME_KEY_OTHER_JOB, key=key))
    return workload


def _first_lines(caller: Caller, submission: Submission) -> list[StoryEvent]:
    by, workload = caller.actor.name, submission.workload
    at = caller.now if submission.instead_of else workload.submitted_at
    replaced = submission.instead_of
    place = [because(Code.TAKES_PLACE, job=replaced.id)] if replaced is not None else []
    reasons = [because(Code.SUBMITTED, by=by), *place, *warnings_of(caller, workload.spec)]
    return [StoryEvent(at, reason, State.QUEUED, by=by) for reason in reasons]


def digest_of(*parts: bytes) -> str:
    """What a request said, in short. Parts are told apart by their lengths."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "big") + part)
    return sha.hexdigest()


def take_over_workdir(caller: Caller, owner: str, digest: str) -> None:
    """Someone reruns what they may see of somebody else: the folder it needs becomes theirs too."""
    workdirs = caller.parts.workdirs
    if workdirs.has(caller.actor.name, digest) or not workdirs.has(owner, digest):
        return
    workdirs.receive(caller.actor.name, digest, _pieces(workdirs.path(owner, digest)))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(COPY_BYTES):
            yield piece
