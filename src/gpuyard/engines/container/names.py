"""How what is ours is named in the engine, so that it is found again and two yards on one machine never mix. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from gpuyard.domain.workload import Kind, ReplicaId
from gpuyard.engines.seam import LaunchRequest

DATA, WORKLOAD, ATTEMPT, ROLE, INDEX = "yard.data", "yard.workload", "yard.attempt", "yard.role", "yard.index"
KEPT_IMAGES = "localhost/yard-kept"
_MOST_HOST_NAME = 59  # of 63, with room for a word before it


def mark_of(data: str) -> str:
    """A short name for a data folder."""
    return hashlib.sha256(data.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def container_name(id: ReplicaId) -> str:
    return f"yard-{id}"


def kept_name(workload: str, digest: str) -> str:
    """A dev environment's container outlives its attempts, so its name has none in it."""
    return f"yard-{workload}-{digest[:12]}"


def kept_image(workload: str) -> str:
    return f"{KEPT_IMAGES}/{workload}"


def network_name(workload: str) -> str:
    return f"yard-{workload}"


def bridge_name(mark: str, workload: str) -> str:
    """At most 15 letters, as the kernel wants it. The firewall knows them all by their beginning."""
    return "yard" + hashlib.sha256(f"{mark}/{workload}".encode()).hexdigest()[:10]


def host_name(request: LaunchRequest) -> str:
    """What a shell's prompt shows. People know an environment by its name; among replicas of a job the place counts."""
    named = dict(request.env).get("YARD_NAME", "") if request.kind is Kind.ENV else ""
    name = re.sub(r"[^A-Za-z0-9]+", "-", named).strip("-")[:_MOST_HOST_NAME].strip("-")
    if name.isdigit() or name.lower() == "localhost":  # as a host's name it would mean something else
        name = f"env-{name}"
    return name or request.id.short


def labels(id: ReplicaId, mark: str) -> dict[str, str]:
    return {
        DATA: mark,
        WORKLOAD: id.workload,
        ATTEMPT: str(id.attempt),
        ROLE: id.role,
        INDEX: str(id.index),
    }


def read_labels(labels: Mapping[str, str]) -> ReplicaId | None:
    """Whose container it is; None when the labels are not ours."""
    try:
        return ReplicaId(labels[WORKLOAD], int(labels[ATTEMPT]), labels[ROLE], int(labels[INDEX]))
    except (KeyError, ValueError):
        return None
