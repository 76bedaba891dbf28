"""A pod template as a role of our job file. What a pod has and a replica has not is named."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from gpuyard.dialects.native.writing import exact_bytes
from gpuyard.dialects.volcano import quantities, resources
from gpuyard.dialects.volcano.commands import Known, NothingToRun, OpenQuote, Words, command_of
from gpuyard.dialects.volcano.notes import NEGATIVE, Notes, Path, dotted
from gpuyard.domain.images import read_image_name
from gpuyard.domain.problems import Problem
from gpuyard.domain.resources import MAX_MEMORY, MIB
from gpuyard.domain.workload import ENV_NAME_RULE

SHARED_MEMORY = "/dev/shm"  # noqa: S108 a name, never opened
HOST_LABEL = "kubernetes.io/hostname"
RESTART_POLICIES = ("Always", "OnFailure", "Never")
PREEMPTABLE = "volcano.sh/preemptable"
NO_COMMAND = (
    "a command is needed: what an image runs by itself is not run here. Write `command: [...]` with what to run"
)
_POD_KEYS = (
    *("containers", "initContainers", "restartPolicy", "nodeSelector", "volumes", "imagePullSecrets"),
    *("terminationGracePeriodSeconds", "activeDeadlineSeconds", "schedulerName"),
)
_CONTAINER_KEYS = (
    *("name", "image", "command", "args", "workingDir", "env", "envFrom", "resources", "ports", "volumeMounts"),
    "imagePullPolicy",
)
_PORT_NAME = re.compile(r"(?=[a-z0-9-]*[a-z])[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Pod:
    """What one template says: the keys of our role, and what is about the job as a whole."""

    role: dict[str, Any]
    restarts: bool = False
    grace_seconds: int | None = None
    max_seconds: int | None = None
    restart_policy: str = ""
    folder: str = ""


def read_pod(template: Any, path: Path, told: Collection[str], notes: Notes) -> Pod:
    data = notes.mapping(template, path)
    where = (*path, "spec")
    spec = notes.mapping(data.get("spec"), where)
    notes.leave_out_rest(spec, where, _POD_KEYS, "door.unused.cluster")
    _name_decided(spec, "schedulerName", ("volcano",), where, notes)
    _name_labels(data, path, notes)
    container, at = _only_container(spec, where, notes)
    role = _read_container(container, at, told, notes)
    role |= _where(spec, where, notes) | _volumes(spec, container, (where, at), notes)
    policy = notes.text(spec.get("restartPolicy"), (*where, "restartPolicy"))
    if policy not in ("", *RESTART_POLICIES):
        there = ", ".join(f'"{one}"' for one in RESTART_POLICIES)
        words = f'spec.restartPolicy: Unsupported value: "{policy[:80]}": supported values: {there}'
        raise notes.deny((*where, "restartPolicy"), words, Problem.ONE_OF, allowed=list(RESTART_POLICIES))
    if policy == "Always":
        notes.read_as((*where, "restartPolicy"), "door.read.always")
    if spec.get("imagePullSecrets"):
        notes.leave_out((*where, "imagePullSecrets"), "door.unused.registries")
    return Pod(
        role,
        policy in ("OnFailure", "Always"),
        _seconds(spec, "terminationGracePeriodSeconds", where, notes),
        _seconds(spec, "activeDeadlineSeconds", where, notes),
        policy,
        notes.text(container.get("workingDir"), (*at, "workingDir")),
    )


def _seconds(spec: Mapping[str, Any], key: str, path: Path, notes: Notes) -> int | None:
    seconds = notes.whole(spec.get(key), (*path, key))
    if seconds is not None and seconds < 0:
        words = f"{key}: Invalid value: {seconds}: must be greater than or equal to 0"
        raise notes.deny((*path, key), words, NEGATIVE)
    return seconds


def _name_labels(template: Mapping[str, Any], path: Path, notes: Notes) -> None:
    """Labels of pods are for other parts of a cluster to choose them by; only one of them says something here."""
    meta = notes.mapping(template.get("metadata"), (*path, "metadata"))
    notes.leave_out_rest(meta, (*path, "metadata"), ("name", "labels", "annotations"), "door.unused.cluster")
    for key in ("labels", "annotations"):
        at = (*path, "metadata", key)
        for name in notes.mapping(meta.get(key), at):
            if name != PREEMPTABLE:
                notes.leave_out((*at, name), "door.unused.cluster")


def _name_decided(data: Mapping[str, Any], key: str, usual: tuple[str, ...], path: Path, notes: Notes) -> None:
    """Something that is decided here, unless it says what happens anyway."""
    if data.get(key) not in (None, "", *usual):
        notes.leave_out((*path, key), "door.unused.decided")


def _only_container(spec: Mapping[str, Any], path: Path, notes: Notes) -> tuple[Mapping[str, Any], Path]:
    if spec.get("initContainers"):
        words = "initContainers are not run here: do it first in the command"
        raise notes.refuse((*path, "initContainers"), words, "door.problem.init_containers")
    containers = notes.items(spec.get("containers"), (*path, "containers"))
    if not containers:
        task = next((part for part in path if isinstance(part, int)), 0)
        words = f"spec.task[{task}].template.spec.containers: Required value. "
        raise notes.deny(path, words, "door.problem.no_container")
    if len(containers) > 1:
        words = f"{len(containers)} containers: one is run per pod here; make the others tasks of their own"
        raise notes.refuse((*path, "containers", 1), words, "door.problem.containers", count=len(containers))
    at = (*path, "containers", 0)
    return notes.mapping(containers[0], at), at


def _read_container(data: Mapping[str, Any], path: Path, told: Collection[str], notes: Notes) -> dict[str, Any]:
    notes.leave_out_rest(data, path, _CONTAINER_KEYS, "door.unused.cluster")
    _name_decided(data, "imagePullPolicy", ("IfNotPresent",), path, notes)
    env = read_env(data.get("env"), (*path, "env"), notes)
    if data.get("envFrom"):
        notes.leave_out((*path, "envFrom"), "door.unused.secrets")
    folder = notes.text(data.get("workingDir"), (*path, "workingDir")).strip()
    role: dict[str, Any] = {
        "command": read_command(data, path, folder, Known(env, told), notes),
        "image": read_image(data.get("image"), path, notes),
    }
    asked = notes.mapping(data.get("resources"), (*path, "resources"))
    limits, requests = (
        resources.read_amounts(
            notes.mapping(asked.get(key), (*path, "resources", key)), (*path, "resources", key), notes
        )
        for key in ("limits", "requests")
    )
    if limits and requests and any(limits.get(name, value) != value for name, value in requests.items()):
        notes.leave_out((*path, "resources", "requests"), "door.unused.requests")
    role |= resources.merged(limits, requests)
    ports = [
        _container_port(item, (*path, "ports", n), notes)
        for n, item in enumerate(notes.items(data.get("ports"), (*path, "ports")))
    ]
    return role | ({"env": env} if env else {}) | ({"ports": ports} if ports else {})


def read_command(data: Mapping[str, Any], path: Path, folder: str, known: Known, notes: Notes) -> str | list[str]:
    command, args = (_words(data.get(key), (*path, key), notes) for key in ("command", "args"))
    try:
        return command_of(command, args, folder, known)
    except NothingToRun as error:
        raise notes.refuse(path, NO_COMMAND, "door.problem.no_command") from error
    except OpenQuote as error:
        raise notes.refuse((*path, "args"), f"args: Invalid value: {error}", Problem.UNCLOSED_QUOTE) from error


def _words(value: Any, path: Path, notes: Notes) -> Words:
    if isinstance(value, list):
        return [notes.text(word, (*path, index)) for index, word in enumerate(value)]
    text = notes.text(value, path)
    return text if text.strip() else None


def read_image(value: Any, path: Path, notes: Notes) -> str:
    image = notes.text(value, (*path, "image")).strip()
    task = next((part for part in path if isinstance(part, int)), 0)
    field = f"spec.task[{task}].template.spec.containers[0].image"
    if not image:
        raise notes.deny(path, f"{field}: Required value. ", Problem.BLANK, field=dotted((*path, "image")))
    if read_image_name(image) is None:
        words = f'{field}: Invalid value: "{image}": not a name of an image. '
        raise notes.deny((*path, "image"), words, Problem.IMAGE)
    return image


def read_env(value: Any, path: Path, notes: Notes) -> dict[str, str]:
    env: dict[str, str] = {}
    for index, item in enumerate(notes.items(value, path)):
        where = (*path, index)
        entry = notes.mapping(item, where)
        name = notes.text(entry.get("name"), (*where, "name"))
        if not ENV_NAME_RULE.match(name):
            words = f'{where[-2]}[{index}].name: Invalid value: "{name}": a valid environment variable name'
            raise notes.deny(where, words, Problem.ENV_NAME, field=dotted((*where, "name")))
        if entry.get("valueFrom") is not None:
            notes.leave_out((*where, "valueFrom"), "door.unused.secrets")
        else:
            env[name] = notes.text(entry.get("value"), (*where, "value"))
    return env


def _container_port(item: Any, path: Path, notes: Notes) -> dict[str, Any]:
    entry = notes.mapping(item, path)
    notes.leave_out_rest(entry, path, ("containerPort", "name", "protocol"), "door.unused.cluster")
    _name_decided(entry, "protocol", ("TCP",), path, notes)
    number = notes.whole(entry.get("containerPort"), (*path, "containerPort"))
    return read_port(number, notes.text(entry.get("name"), (*path, "name")), path, notes)


def read_port(number: int | None, name: str, path: Path, notes: Notes) -> dict[str, Any]:
    if number is None or not 0 < number < 65536:
        words = f"ports: Invalid value: {number}: must be between 1 and 65535, inclusive"
        raise notes.refuse(path, words, Problem.WHOLE_NUMBER, least=1, most=65535)
    if name and not _PORT_NAME.fullmatch(name.lower()):
        words = "must contain only letters and digits, at most 15 of them, and at least one letter"
        raise notes.refuse(path, f'ports.name: Invalid value: "{name}": {words}', "door.problem.port_name")
    plain = name.lower()
    return {"number": number} | ({"name": plain if plain[:1].isalpha() else f"p{plain}"} if plain else {})


def _where(spec: Mapping[str, Any], path: Path, notes: Notes) -> dict[str, Any]:
    at = (*path, "nodeSelector")
    chosen = {key: notes.text(value, (*at, key)) for key, value in notes.mapping(spec.get("nodeSelector"), at).items()}
    where: dict[str, Any] = {"nodes": [chosen.pop(HOST_LABEL)]} if chosen.get(HOST_LABEL) else {}
    where |= {"labels": chosen} if chosen else {}
    return {"where": where} if where else {}


def _volumes(
    spec: Mapping[str, Any], container: Mapping[str, Any], paths: tuple[Path, Path], notes: Notes
) -> dict[str, Any]:
    """A memory folder over /dev/shm is shared memory. Other volumes are the cluster's own."""
    pod, at = paths
    volumes = {
        notes.text(volume.get("name"), (*pod, "volumes", index)): volume
        for index, item in enumerate(notes.items(spec.get("volumes"), (*pod, "volumes")))
        if (volume := notes.mapping(item, (*pod, "volumes", index)))
    }
    role: dict[str, Any] = {}
    for index, item in enumerate(notes.items(container.get("volumeMounts"), (*at, "volumeMounts"))):
        where = (*at, "volumeMounts", index)
        mount = notes.mapping(item, where)
        place = notes.text(mount.get("mountPath"), where)
        folder = volumes.get(notes.text(mount.get("name"), where), {}).get("emptyDir")
        if place.rstrip("/") == SHARED_MEMORY and isinstance(folder, Mapping):
            role |= _shared_memory(folder.get("sizeLimit"), where, notes)
        else:
            notes.leave_out((*where, place), "door.unused.volume")
    return role


def _shared_memory(size: Any, path: Path, notes: Notes) -> dict[str, Any]:
    written = notes.text(size, path).strip()
    if not written:
        return {}
    try:
        amount = quantities.whole(written)
    except quantities.WrongQuantity as error:
        words = f"sizeLimit: Invalid value: {written[:80]!r}: {error}"
        raise notes.refuse(path, words, "door.problem.quantity") from error
    return {"shm": exact_bytes(amount)} if MIB <= amount <= MAX_MEMORY else {}
