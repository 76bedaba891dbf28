"""A dev environment, as it is asked for: much like a job file, with a name instead of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuyard.dialects.native import values
from gpuyard.dialects.native.fields import JOB_FIELDS, ROLE_FIELDS, Field, priority
from gpuyard.dialects.native.marks import Findings, Found, Marks
from gpuyard.dialects.native.parts import read_keys
from gpuyard.dialects.native.reading import JobFile, role_of
from gpuyard.dialects.native.writing import exact_duration, write_job
from gpuyard.domain.errors import BadInput
from gpuyard.domain.policy import Policy
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import DEVICE_TYPES
from gpuyard.domain.workload import DEFAULT_PRIORITY, WORKPLACE_NAME_RULE, WORKPLACE_ROLE, Kind, Spec

NEVER = "off"
LEAST_IDLE_SECONDS = 60.0  # less, and it would be stopped before anybody has entered it
_ABOUT_THE_ROLE = ("image", "cards", "device", "models", "cpu", "memory", "shm", "env", "mounts", "ports", "where")
_ABOUT_ALL = ("group", "priority", "preemptible", "max_time")


def _idle(found: Found) -> float:
    """Seconds; 0 for never, so that what was set can be taken away again."""
    if found.value in (NEVER, False):
        return 0.0
    seconds = _duration(found)
    if seconds < LEAST_IDLE_SECONDS:
        raise found.wrong(Problem.IDLE_TOO_SHORT, {"least": LEAST_IDLE_SECONDS})
    return seconds


_duration = values.duration()

WORKPLACE_FIELDS: Mapping[str, Field] = {
    "name": Field(
        values.name(WORKPLACE_NAME_RULE, Problem.WORKPLACE_NAME),
        {"type": "string", "pattern": "^[A-Za-z0-9_]{1,27}$"},
        "Its name: letters, digits and underscores, at most 27.",
        is_text=True,
    ),
    **{key: ROLE_FIELDS[key] for key in _ABOUT_THE_ROLE},
    **{key: JOB_FIELDS[key] for key in _ABOUT_ALL},
    "idle": Field(
        _idle,
        {"type": ["string", "number", "boolean"]},
        "It is stopped when nobody has used it for so long: 30m, 2h, or off; at least 1m.",
        is_text=True,
    ),
}


def read_workplace(
    data: Any,
    marks: Marks | None = None,
    *,
    default_device: str = DEVICE_TYPES[0],
    priorities: Mapping[str, int] | None = None,
) -> JobFile:
    """Read what an environment should be. Raises BadInput with every problem found."""
    found = Found(data, (), Findings(marks))
    if not isinstance(data, Mapping):
        raise BadInput(found.wrong(Problem.TOP_NOT_MAPPING, show=False).reason)
    classes = Policy().priorities if priorities is None else priorities
    readers = {key: field.read for key, field in WORKPLACE_FIELDS.items()} | {"priority": priority(classes)}
    keys = read_keys(found, readers, required=("name",))
    if keys.get("models") and "cards" not in data:
        found.findings.note(found.inside("models").wrong(Problem.MODELS_WITHOUT_CARDS).reason)
    found.findings.raise_if_any()
    spec = Spec(
        name=keys["name"],
        roles=(role_of(WORKPLACE_ROLE, keys, default_device or DEVICE_TYPES[0]),),
        kind=Kind.ENV,
        priority=keys.get("priority", classes.get("normal", DEFAULT_PRIORITY)),
        preemptible=keys.get("preemptible", False),
        max_seconds=keys.get("max_time"),
        idle_seconds=keys.get("idle") or None,
    )
    return JobFile(spec, keys.get("group"))


def write_workplace(spec: Spec, group: str | None = None) -> dict[str, Any]:
    """The shortest data that reads back the same."""
    as_a_job = replace(spec, roles=(replace(spec.roles[0], name="worker", command=("-",)),))
    data = {key: value for key, value in write_job(as_a_job, group).items() if key != "command"}
    return data | ({} if spec.idle_seconds is None else {"idle": exact_duration(spec.idle_seconds)})


def workplace_schema() -> dict[str, Any]:
    """What may be sent to create one. `timer` is read at the door: it is about one start of it."""
    timer = {"type": "string", "description": "It is stopped so long after it was created: 8h."}
    return {
        "type": "object",
        "properties": {**_properties(), "timer": timer},
        "required": ["name"],
        "additionalProperties": False,
    }


def _properties() -> dict[str, Any]:
    return {key: {"description": field.about, **field.schema} for key, field in WORKPLACE_FIELDS.items()}
