"""Our job as a `batch.volcano.sh/v1alpha1` Job. JSON is YAML, so the text is both.

What their file has no place for (models of cards, mounts, the folder shipped with it, saving) is not written; `unsaid`
names it.
"""

from __future__ import annotations

import json
from typing import Any

from gpuyard.dialects.volcano.jobs import API_VERSION
from gpuyard.dialects.volcano.pods import HOST_LABEL, PREEMPTABLE, SHARED_MEMORY
from gpuyard.dialects.volcano.quantities import show_bytes, show_milli
from gpuyard.dialects.volcano.resources import ASCEND_CARD, NVIDIA_CARD
from gpuyard.domain.resources import Resources
from gpuyard.domain.workload import DEFAULT_GRACE_SECONDS, Cause, RoleSpec, Spec, Together

_SHM = "shared-memory"


def write(spec: Spec, group: str = "default") -> str:
    meta: dict[str, Any] = {"name": spec.name}
    if spec.preemptible:
        meta["annotations"] = {PREEMPTABLE: "true"}
    body: dict[str, Any] = {
        "schedulerName": "volcano",
        "queue": group,
        "minAvailable": sum(role.replicas for role in spec.roles),
        "tasks": [_task(role, spec) for role in spec.roles],
    }
    body |= _retries(spec)
    return json.dumps(
        {"apiVersion": API_VERSION, "kind": "Job", "metadata": meta, "spec": body},
        indent=2,
        ensure_ascii=False,
    )


def unsaid(spec: Spec) -> list[str]:
    """The keys of our job file that say something for which theirs has no place."""
    found = {
        "workdir": spec.workdir is not None,
        "checkpoint": spec.checkpoint is not None,
        "together": spec.together is not Together.ANY,
        "mounts": any(role.mounts for role in spec.roles),
        "models": any(role.resources.cards and role.resources.cards.models for role in spec.roles),
        "where": any(len(role.where.nodes) > 1 for role in spec.roles),
        "ports": any(len(port.name) > 15 or port.name.endswith("-") for role in spec.roles for port in role.ports),
    }
    return [key for key, is_said in found.items() if is_said]


def _retries(spec: Spec) -> dict[str, Any]:
    """Only one number is known there; it counts for a failing command."""
    count = spec.retries.get(Cause.EXIT, 0)
    if not count:
        return {}
    return {"maxRetry": count, "policies": [{"event": "PodFailed", "action": "RestartJob"}]}


def _task(role: RoleSpec, spec: Spec) -> dict[str, Any]:
    task: dict[str, Any] = {"name": role.name, "replicas": role.replicas, "template": {"spec": _pod(role, spec)}}
    if role.completes:
        task["policies"] = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    return task


def _pod(role: RoleSpec, spec: Spec) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": role.name,
        "image": role.image or "busybox",
        "command": [word.replace("$", "$$") for word in role.command],
    }
    if role.env:
        container["env"] = [{"name": name, "value": value} for name, value in role.env]
    if amounts := _amounts(role.resources):
        container["resources"] = {"limits": amounts, "requests": amounts}
    if role.ports:
        container["ports"] = [_port(port.number, port.name) for port in role.ports]
    pod: dict[str, Any] = {"containers": [container], "restartPolicy": "Never"}
    if role.resources.shm is not None:
        container["volumeMounts"] = [{"name": _SHM, "mountPath": SHARED_MEMORY}]
        folder = {"medium": "Memory", "sizeLimit": show_bytes(role.resources.shm)}
        pod["volumes"] = [{"name": _SHM, "emptyDir": folder}]
    if selector := _selector(role):
        pod["nodeSelector"] = selector
    if spec.grace_seconds != DEFAULT_GRACE_SECONDS:
        pod["terminationGracePeriodSeconds"] = round(spec.grace_seconds)
    if spec.max_seconds is not None:
        pod["activeDeadlineSeconds"] = round(spec.max_seconds)
    return pod


def _port(number: int, name: str) -> dict[str, Any]:
    return {"containerPort": number} | ({"name": name} if name else {})


def _selector(role: RoleSpec) -> dict[str, str]:
    host = {HOST_LABEL: role.where.nodes[0]} if role.where.nodes else {}
    return {**dict(role.where.labels), **host}


def _amounts(asked: Resources) -> dict[str, str]:
    amounts: dict[str, str] = {}
    if asked.cpu_milli is not None:
        amounts["cpu"] = show_milli(asked.cpu_milli)
    if asked.memory is not None:
        amounts["memory"] = show_bytes(asked.memory)
    if asked.cards is not None:
        name = ASCEND_CARD if asked.cards.device == "ascend" else NVIDIA_CARD
        amounts[name] = show_milli(asked.cards.milli)
    return amounts
