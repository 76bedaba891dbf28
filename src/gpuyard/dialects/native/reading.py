"""Plain data to a `Spec`: every problem found in one go, each with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.dialects.native.fields import JOB_FIELDS, MAX_ROLES, ROLE_FIELDS, priority
from gpuyard.dialects.native.marks import Findings, Found, Marks, Wrong
from gpuyard.dialects.native.parts import Reader, read_keys
from gpuyard.dialects.native.values import key_name
from gpuyard.domain.errors import BadInput
from gpuyard.domain.policy import Policy
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import DEVICE_TYPES, Cards, Resources
from gpuyard.domain.workload import (
    DEFAULT_GRACE_SECONDS,
    DEFAULT_PRIORITY,
    DEFAULT_RETRIES,
    MAX_REPLICAS,
    ROLE_NAME_RULE,
    RoleSpec,
    Spec,
    Together,
    Where,
)

ONLY_ROLE = "worker"
FALLBACK_NAME = "job"
SHELL = ("sh", "-c")

_JOB_READERS = {key: field.read for key, field in JOB_FIELDS.items()}
_ROLE_READERS = {key: field.read for key, field in ROLE_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class JobFile:
    """What a job file says: the work, and the group it names, if it names one."""

    spec: Spec
    group: str | None = None


def read_job(
    data: Any,
    marks: Marks | None = None,
    *,
    default_device: str = DEVICE_TYPES[0],
    priorities: Mapping[str, int] | None = None,
) -> JobFile:
    """Read a job file. `priorities` are the classes there are, by name. Raises BadInput with every problem found."""
    found = Found(data, (), Findings(marks))
    if not isinstance(data, Mapping):
        raise BadInput(found.wrong(Problem.TOP_NOT_MAPPING, show=False).reason)
    device = default_device or DEVICE_TYPES[0]
    classes = Policy().priorities if priorities is None else priorities
    about_the_job = {**_JOB_READERS, "priority": priority(classes), "roles": _read_roles}
    read = _with_roles if "roles" in data else _with_one_role
    roles, job = read(found, device, about_the_job)
    found.findings.raise_if_any()
    return JobFile(_spec(roles, {"priority": classes.get("normal", DEFAULT_PRIORITY), **job}), job.get("group"))


def read_priority(value: Any, classes: Mapping[str, int]) -> int:
    """A priority on its own: a number, or the name of one of these classes."""
    try:
        return int(priority(classes)(Found(value, ("priority",), Findings(None))))
    except Wrong as wrong:
        raise BadInput(wrong.reason) from wrong


def _spec(roles: tuple[RoleSpec, ...], job: Mapping[str, Any]) -> Spec:
    return Spec(
        name=job.get("name") or default_name(roles[0].command),
        roles=roles,
        priority=job["priority"],
        preemptible=job.get("preemptible", False),
        retries=job.get("retries", dict(DEFAULT_RETRIES)),
        max_seconds=job.get("max_time"),
        grace_seconds=job.get("grace", DEFAULT_GRACE_SECONDS),
        workdir=job.get("workdir"),
        together=Together(job.get("together", Together.ANY)),
        checkpoint=job.get("checkpoint"),
        origin=job.get("origin"),
    )


def _with_one_role(
    found: Found, device: str, about_the_job: Mapping[str, Reader]
) -> tuple[tuple[RoleSpec, ...], Mapping[str, Any]]:
    keys = _role_keys(found, {**about_the_job, **_ROLE_READERS})
    return _roles({ONLY_ROLE: keys}, device), keys


def _with_roles(
    found: Found, device: str, about_the_job: Mapping[str, Reader]
) -> tuple[tuple[RoleSpec, ...], Mapping[str, Any]]:
    keys = read_keys(found, {**about_the_job, **dict.fromkeys(_ROLE_READERS, _belongs_inside)})
    return _roles(keys.get("roles", {}), device), keys


def _belongs_inside(found: Found) -> None:
    raise found.wrong(Problem.WITH_ROLES, show=False)


def _read_roles(found: Found) -> dict[str, dict[str, Any]]:
    if not isinstance(found.value, Mapping):
        raise found.wrong(Problem.MAPPING)
    if not found.value:
        raise found.wrong(Problem.BLANK)
    if len(found.value) > MAX_ROLES:
        raise found.wrong(Problem.TOO_MANY, {"limit": MAX_ROLES})
    roles = {}
    for name in found.value:
        inner = found.inside(name)
        found.findings.attempt(_role_name, inner)
        roles[str(name)] = found.findings.attempt(_inner_role, inner) or {}
    if sum(role.get("replicas", 1) for role in roles.values()) > MAX_REPLICAS:
        raise found.wrong(Problem.TOTAL_REPLICAS, {"most": MAX_REPLICAS})
    return roles


_role_name = key_name(ROLE_NAME_RULE, Problem.ROLE_NAME)


def _inner_role(found: Found) -> dict[str, Any]:
    return _role_keys(found, {**dict.fromkeys(_JOB_READERS, _belongs_to_the_job), **_ROLE_READERS})


def _role_keys(found: Found, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """`cards: 0` beside models is a wish; no `cards` at all is cards forgotten."""
    keys = read_keys(found, readers, required=("command",))
    if keys.get("models") and "cards" not in found.value:
        found.findings.note(found.inside("models").wrong(Problem.MODELS_WITHOUT_CARDS).reason)
    return keys


def _belongs_to_the_job(found: Found) -> None:
    raise found.wrong(Problem.ABOUT_THE_JOB, show=False)


def _roles(roles: Mapping[str, Mapping[str, Any]], device: str) -> tuple[RoleSpec, ...]:
    return tuple(role_of(name, keys, device) for name, keys in roles.items())


def role_of(name: str, keys: Mapping[str, Any], default_device: str) -> RoleSpec:
    milli = keys.get("cards", 0)
    cards = Cards(keys.get("device", default_device), milli, keys.get("models", ())) if milli else None
    return RoleSpec(
        name=name,
        command=keys.get("command", ()),
        replicas=keys.get("replicas", 1),
        resources=Resources(keys.get("cpu"), keys.get("memory"), keys.get("shm"), cards),
        image=keys.get("image"),
        env=keys.get("env", ()),
        mounts=keys.get("mounts", ()),
        ports=keys.get("ports", ()),
        where=keys.get("where", Where()),
        completes=keys.get("completes", False),
    )


_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def default_name(command: tuple[str, ...]) -> str:
    """The program that is run: `CUDA_LAUNCH_BLOCKING=1 /usr/bin/python3 train.py` is called `python3`."""
    words = command[2].split() if command[:2] == SHELL and len(command) > 2 else list(command)
    program = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    name = _NOT_IN_NAMES.sub("-", program.rsplit("/", 1)[-1]).strip("-._")[:63]
    return name or FALLBACK_NAME
