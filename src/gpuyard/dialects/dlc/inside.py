"""What a replica of a job that came through dlc is told: the variables its framework starts from, and its pod's name.

RANK and WORLD_SIZE count nodes, the master first.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from functools import lru_cache

from gpuyard.dialects.dlc import keys
from gpuyard.dialects.dlc.ids import job_id, pod_id
from gpuyard.domain.told import KEYS_FOLDER, Told, own_port
from gpuyard.domain.workload import ReplicaId, RoleSpec, Workload

MASTER_PORT = 23456
TF_PORT = 2222
RANKED = ("master", "worker")
NOT_IN_CLUSTER = frozenset({"evaluator"})  # TensorFlow keeps evaluators outside


def told(workload: Workload, replica: ReplicaId, *, own_ports: bool = False) -> Told:
    """Whatever is remembered of the job: a kind that is not known is told nothing but its name."""
    origin = workload.spec.origin
    kind = origin.fact("kind") if origin else ""
    id = job_id(workload.id)
    own = f"{workload.id} {replica.attempt}" if own_ports else ""
    env: tuple[tuple[str, str], ...] = ()
    if kind in keys.NAMES_ALL and sum(role.replicas for role in workload.spec.roles) > keys.MOST_NAMED:
        env = ()
    elif kind == keys.TENSORFLOW:
        env = (("TF_CONFIG", _tf_config(id, workload, replica, own)),)
    elif kind in keys.PROMOTES:
        env = _ranks(id, workload, replica, own)
        if kind == "MPIJob":
            env += (("MPI_HOST", _hosts(id, _shape(_in_order(workload)))),)
    return Told(env, aliases=(pod_id(id, replica.short),), keys=KEYS_FOLDER if kind == "MPIJob" else "")


def _in_order(workload: Workload) -> list[RoleSpec]:
    """The master before the workers; roles that nobody expects come last."""
    place = {name: number for number, name in enumerate(RANKED)}
    return sorted(workload.spec.roles, key=lambda role: place.get(role.name, len(place)))


Shape = tuple[tuple[str, int], ...]  # each role's name and how many replicas it has


def _shape(roles: Iterable[RoleSpec]) -> Shape:
    return tuple((role.name, role.replicas) for role in roles)


@lru_cache(maxsize=16)  # the same for all replicas of a job, of which there may be thousands
def _hosts(id: str, shape: Shape) -> str:
    return ",".join(f"{id}-{name}-{index}" for name, count in shape for index in range(count))


def _ranks(id: str, workload: Workload, replica: ReplicaId, own: str) -> tuple[tuple[str, str], ...]:
    before, cards = 0, None
    roles = _in_order(workload)
    for role in roles:
        if role.name == replica.role:
            cards = role.resources.cards
            break
        before += role.replicas
    return (
        ("MASTER_ADDR", pod_id(id, f"{roles[0].name}-0")),
        ("MASTER_PORT", str(own_port(own) if own else MASTER_PORT)),
        ("WORLD_SIZE", str(sum(role.replicas for role in roles))),
        ("RANK", str(before + replica.index)),
        ("NPROC_PER_NODE", str(max(1, cards.whole if cards else 0))),
    )


def _tf_config(id: str, workload: Workload, replica: ReplicaId, own: str) -> str:
    cluster = _cluster(id, _shape(role for role in workload.spec.roles if role.name not in NOT_IN_CLUSTER), own)
    task = json.dumps({"type": replica.role, "index": replica.index}, separators=(",", ":"))
    return f'{{"cluster":{cluster},"task":{task},"environment":"cloud"}}'


@lru_cache(maxsize=16)
def _cluster(id: str, shape: Shape, own: str) -> str:
    numbers = itertools.count()
    hosts = {
        name: [f"{id}-{name}-{index}:{own_port(own, next(numbers)) if own else TF_PORT}" for index in range(count)]
        for name, count in shape
    }
    return json.dumps(hosts, separators=(",", ":"))
