"""Job files of other systems, read on the server: one place understands them, whichever client sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpuyard.access.service import FIRST_GROUP
from gpuyard.api.guard import Caller
from gpuyard.dialects import brought, native
from gpuyard.dialects.dlc.ids import WORKSPACE_RULE, group_of
from gpuyard.dialects.dlc.reading import FOREIGN
from gpuyard.dialects.native.yaml_text import check_size
from gpuyard.dialects.volcano.notes import no_such_queue
from gpuyard.domain.errors import BadInput
from gpuyard.domain.places import is_below
from gpuyard.domain.policy import Policy
from gpuyard.domain.problems import Problem
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import Mount, RoleSpec
from gpuyard.store import people

SOLE_NAMES = frozenset({brought.VOLCANO})  # whose jobs are known by their names, so that nobody has two of one name


@dataclass(frozen=True, slots=True)
class Taken:
    """A job file that was read, and what its sender should know of the reading."""

    job: native.JobFile
    notes: tuple[Reason, ...] = ()
    sole_name: bool = False


def bring(caller: Caller, dialect: str, body: bytes, policy: Policy) -> Taken:
    """A file of another system as ours. Raises BadInput, in that system's words where it is their rule."""
    found = brought.read(dialect, _text(body))
    job = native.read_job(found.job, None, default_device=caller.parts.default_device, priorities=policy.priorities)
    job = _with_usual_group(caller, dialect, job)
    taken = Taken(job, found.notes, dialect in SOLE_NAMES)
    if dialect == brought.DLC and is_workspace(job.group):
        taken = _in_workspace(caller, taken)
    mounts = caller.parts.door_mounts.get(dialect, ())
    return replace(taken, job=_with_mounts(caller, taken.job, mounts))


def is_workspace(group: str | None) -> bool:
    """Whether it is an id as dlc has them; one that stays one is of another platform."""
    return group is not None and bool(WORKSPACE_RULE.match(group))


def _in_workspace(caller: Caller, taken: Taken) -> Taken:
    """In the group whose id that is, as `dlc get workspace` tells it."""
    known = caller.actor.user.groups
    if caller.actor.is_admin:
        with caller.parts.database.read() as conn:
            known = tuple(group.name for group in people.all_groups(conn))
    group = group_of(taken.job.group or "", known)
    if group is None:
        return taken
    notes = tuple(note for note in taken.notes if note.facts.get("what") != FOREIGN)
    return replace(taken, job=replace(taken.job, group=group), notes=notes)


def _text(body: bytes) -> str:
    check_size(body)
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadInput(because(Code.BAD_YAML, line=line, problem=Problem.NOT_UTF8.value)) from error


def _with_usual_group(caller: Caller, dialect: str, job: native.JobFile) -> native.JobFile:
    """Everybody may use the queue `default` of Volcano: who is in no group of that name means their usual one."""
    if dialect != brought.VOLCANO or job.group is None or job.group in caller.actor.user.groups:
        return job
    if job.group == FIRST_GROUP:
        return replace(job, group=None)
    if not caller.actor.is_admin:
        raise no_such_queue(job.group)
    return job


def _with_mounts(caller: Caller, job: native.JobFile, mounts: Sequence[Mount]) -> native.JobFile:
    """With the folders that people coming through this door expect, beside those that the file names."""
    if not mounts or not caller.parts.makes_rooms:
        return job
    names = {"user": caller.actor.name, "group": job.group or next(iter(caller.actor.user.groups), "")}
    shown = [replace(mount, at=_filled(mount.at, names), path=_filled(mount.path, names)) for mount in mounts]
    roles = tuple(_role_with(role, shown) for role in job.spec.roles)
    return replace(job, spec=replace(job.spec, roles=roles))


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return text


def _role_with(role: RoleSpec, shown: Sequence[Mount]) -> RoleSpec:
    taken = [mount.at for mount in role.mounts]
    free = [mount for mount in shown if not any(is_below(mount.at, at) or is_below(at, mount.at) for at in taken)]
    return replace(role, mounts=(*role.mounts, *free))
