"""A `Spec` back to plain data: what is read from it again is equal to what was written."""

from __future__ import annotations

from typing import Any

from gpuyard.dialects.native.reading import ONLY_ROLE, SHELL
from gpuyard.domain.resources import GIB, KIB, MIB, TIB, Resources
from gpuyard.domain.workload import (
    DEFAULT_GRACE_SECONDS,
    DEFAULT_PRIORITY,
    DEFAULT_RETRIES,
    Mount,
    Origin,
    Port,
    RoleSpec,
    Spec,
    Together,
    Where,
)


def write_job(spec: Spec, group: str | None = None) -> dict[str, Any]:
    """The shortest job file that says the same."""
    data: dict[str, Any] = {"name": spec.name}
    if group:
        data["group"] = group
    if len(spec.roles) == 1 and spec.roles[0].name == ONLY_ROLE:
        data |= _role(spec.roles[0])
    else:
        data["roles"] = {role.name: _role(role) for role in spec.roles}
    return data | _policy(spec)


def _policy(spec: Spec) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if spec.priority != DEFAULT_PRIORITY:
        data["priority"] = spec.priority
    if spec.preemptible:
        data["preemptible"] = True
    if dict(spec.retries) != dict(DEFAULT_RETRIES):
        data["retries"] = {cause.value: count for cause, count in spec.retries.items()}
    if spec.max_seconds is not None:
        data["max_time"] = exact_duration(spec.max_seconds)
    if spec.grace_seconds != DEFAULT_GRACE_SECONDS:
        data["grace"] = exact_duration(spec.grace_seconds)
    if spec.together is not Together.ANY:
        data["together"] = spec.together.value
    if spec.checkpoint is not None:
        data["checkpoint"] = spec.checkpoint
    if spec.workdir is not None:
        data["workdir"] = spec.workdir
    if spec.origin is not None:
        data["origin"] = _origin(spec.origin)
    return data


def _origin(origin: Origin) -> dict[str, Any]:
    return {"door": origin.door} | ({"facts": dict(origin.facts)} if origin.facts else {})


def _role(role: RoleSpec) -> dict[str, Any]:
    data: dict[str, Any] = {"command": _command(role.command)}
    if role.replicas != 1:
        data["replicas"] = role.replicas
    data |= _resources(role.resources)
    if role.where != Where():
        data["where"] = _where(role.where)
    if role.image is not None:
        data["image"] = role.image
    if role.env:
        data["env"] = dict(role.env)
    if role.mounts:
        data["mounts"] = [_mount(mount) for mount in role.mounts]
    if role.ports:
        data["ports"] = [_port(port) for port in role.ports]
    if role.completes:
        data["completes"] = True
    return data


def _resources(asked: Resources) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if asked.cards is not None:
        data |= {"cards": exact_milli(asked.cards.milli), "device": asked.cards.device}
        if asked.cards.models:
            data["models"] = list(asked.cards.models)
    if asked.cpu_milli is not None:
        data["cpu"] = exact_milli(asked.cpu_milli)
    if asked.memory is not None:
        data["memory"] = exact_bytes(asked.memory)
    if asked.shm is not None:
        data["shm"] = exact_bytes(asked.shm)
    return data


def _where(where: Where) -> dict[str, Any]:
    data: dict[str, Any] = {"nodes": list(where.nodes)} if where.nodes else {}
    return data | ({"labels": dict(where.labels)} if where.labels else {})


def _command(command: tuple[str, ...]) -> str | list[str]:
    if len(command) == 3 and command[:2] == SHELL and command[2].strip():
        return command[2]
    return list(command)


def _mount(mount: Mount) -> dict[str, Any]:
    data: dict[str, Any] = {"volume": mount.volume}
    if mount.path:
        data["path"] = mount.path
    data["at"] = mount.at
    return data | ({"read_only": True} if mount.read_only else {})


def _port(port: Port) -> dict[str, Any]:
    return {"number": port.number} | ({"name": port.name} if port.name else {})


def exact_milli(milli: int) -> int | float:
    """Thousandths as a number that reads back the same."""
    return milli // 1000 if milli % 1000 == 0 else milli / 1000


def exact_bytes(amount: int) -> str | int:
    """In the largest unit that leaves no rest."""
    for unit, scale in (("T", TIB), ("G", GIB), ("M", MIB), ("K", KIB)):
        if amount % scale == 0:
            return f"{amount // scale}{unit}"
    return amount


def exact_duration(seconds: float) -> str:
    """`2h30m`, or with a fraction `90.5s`."""
    if seconds != int(seconds):
        return f"{seconds:.3f}".rstrip("0") + "s"
    rest, written = int(seconds), ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            written += f"{count}{unit}"
    return written or "0s"
