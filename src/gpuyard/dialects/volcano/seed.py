"""The customised tool's file: `jobname` and `tasks`, each with an amount, a command, an image and what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuyard.dialects.volcano import names, resources
from gpuyard.dialects.volcano.commands import Known
from gpuyard.dialects.volcano.gathering import Gathered, TaskRead, gather
from gpuyard.dialects.volcano.notes import Notes, Path
from gpuyard.dialects.volcano.pods import Pod, read_command, read_env, read_image, read_port

USUAL_TASK = "task"
_JOB_KEYS = ("jobname", "tasks", "queue")
_TASK_KEYS = ("amount", "name", "workingDir", "command", "args", "image", "resources", "ports", "env")
_ASKS_FOR = ("cpu", "memory", "gpu")


def read_seed(data: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    notes.leave_out_rest(data, (), _JOB_KEYS, "door.unused.unknown")
    found = Gathered(kind="jobname", queue=notes.text(data.get("queue"), ("queue",)))
    found.tasks = [
        _task(notes.mapping(item, ("tasks", index)), index, notes)
        for index, item in enumerate(notes.items(data.get("tasks"), ("tasks",)))
    ]
    return gather(notes.text(data.get("jobname"), ("jobname",)), ("jobname",), found, notes)


def _task(data: Mapping[str, Any], index: int, notes: Notes) -> TaskRead:
    path: Path = ("tasks", index)
    notes.leave_out_rest(data, path, _TASK_KEYS, "door.unused.unknown")
    amount = notes.whole(data.get("amount"), (*path, "amount"))
    name = names.job_name(notes.text(data.get("name"), (*path, "name")))
    folder = notes.text(data.get("workingDir"), (*path, "workingDir")).strip()
    env = _env(data.get("env"), (*path, "env"), notes)
    role: dict[str, Any] = {
        "image": read_image(data.get("image"), path, notes),
        "command": read_command(data, path, folder, Known(env), notes),
    }
    asked = (*path, "resources")
    role |= resources.read_amounts(notes.mapping(data.get("resources"), asked), asked, notes)
    ports = _ports(data.get("ports"), (*path, "ports"), notes)
    role |= ({"ports": ports} if ports else {}) | ({"env": env} if env else {})
    return TaskRead(name or f"{USUAL_TASK}-{index}", 1 if amount is None else amount, path, Pod(role, folder=folder))


def _env(value: Any, path: Path, notes: Notes) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {name: notes.text(text, (*path, name)) for name, text in value.items()}
    return read_env(value, path, notes)


def _ports(value: Any, path: Path, notes: Notes) -> list[dict[str, Any]]:
    """The template shows one port as a mapping; several are a list. An empty one is none."""
    several = value if isinstance(value, list) else [value]
    ports = []
    for index, item in enumerate(several):
        where = (*path, index) if isinstance(value, list) else path
        entry = {"number": item} if isinstance(item, int) else notes.mapping(item, where)
        number, name = entry.get("number"), notes.text(entry.get("name"), (*where, "name"))
        if number is not None or name:
            ports.append(read_port(notes.whole(number, (*where, "number")), name, where, notes))
    return ports
