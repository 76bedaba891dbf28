"""What a replica of such a job sees: the variables, names and files that their plugins give.

Never raises: what a door remembers may have been written by hand, and then perhaps means nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpuyard.dialects.volcano import plugins
from gpuyard.dialects.volcano.names import is_job_name, is_task_name, pod_name
from gpuyard.dialects.volcano.plugins import Task
from gpuyard.domain.told import MAX_SMALL_FILES, NOTHING, SmallFile, Told
from gpuyard.domain.workload import Origin, ReplicaId, Spec, Workload

HOSTS_FOLDER = "/etc/volcano"
PYTORCH_PORT, TENSORFLOW_PORT = 23456, 2222
VARIABLES = (
    "VK_TASK_INDEX",
    "VC_TASK_INDEX",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
    "RANK",
    "TF_CONFIG",
    "MPI_HOST",
)
MOST_HOST_BYTES = 64 * 1024  # a variable longer than this would keep the program from starting
_NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9_]")

Variables = dict[str, str]


def told(workload: Workload, replica: ReplicaId) -> Told:
    spec = workload.spec
    if spec.origin is None or not is_job_name(spec.name):
        return NOTHING
    tasks = tasks_of(spec)
    mine = next((task for task in tasks if task.role == replica.role), None)
    if mine is None:
        return NOTHING
    given = plugins.from_text(spec.origin.fact("plugins") or "")
    env: Variables = {}
    for name, variables in _VARIABLES_OF.items():
        if name in given:
            env |= variables(spec.name, tasks, mine, replica.index, given[name])
    pod = pod_name(spec.name, mine.name, replica.index)
    aliases = (pod, f"{pod}.{spec.name}") if "svc" in given else (pod,)
    files = _host_files(spec.name, tasks) if "svc" in given else ()
    return Told(tuple(env.items()), aliases if len(pod) <= 63 else (), files)


def tasks_of(spec: Spec) -> list[Task]:
    """The roles under the names that the file has for them."""
    named = task_names(spec.origin)
    tasks = [Task(named.get(role.name, role.name), role.replicas, role.name) for role in spec.roles]
    return [task if is_task_name(task.name) else Task(task.role, task.replicas, task.role) for task in tasks]


def task_names(origin: Origin | None) -> dict[str, str]:
    """role -> task."""
    try:
        data: Any = json.loads((origin.fact("tasks") if origin else None) or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(role): str(task) for role, task in data.items()} if isinstance(data, dict) else {}


def _find(tasks: Sequence[Task], name: str) -> Task | None:
    return next((task for task in tasks if task.name == name), None)


# --- what each plugin gives ---------------------------------------------------------------------------------------


def _env(job: str, tasks: Sequence[Task], mine: Task, index: int, args: Sequence[str]) -> Variables:
    return {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}


def _svc(job: str, tasks: Sequence[Task], mine: Task, index: int, args: Sequence[str]) -> Variables:
    env: Variables = {}
    for task in tasks:
        name = _NOT_IN_VARIABLES.sub("_", task.name.upper())
        hosts = ",".join(task.hosts(job))
        if len(hosts) <= MOST_HOST_BYTES:
            env[f"VC_{name}_HOSTS"] = hosts
        env[f"VC_{name}_NUM"] = str(task.replicas)
    return env


def _pytorch(job: str, tasks: Sequence[Task], mine: Task, index: int, args: Sequence[str]) -> Variables:
    master = _find(tasks, plugins.option(args, "master", "master"))
    worker = _find(tasks, plugins.option(args, "worker", "worker"))
    if master is None:
        return {}
    env = {"MASTER_ADDR": master.hosts(job)[0], "MASTER_PORT": str(plugins.port(args, PYTORCH_PORT))}
    if mine not in (master, worker):
        return env
    size = master.replicas + (worker.replicas if worker else 0)
    rank = index if mine is master else master.replicas + index
    return env | {"WORLD_SIZE": str(size), "RANK": str(rank)}


def _tensorflow(job: str, tasks: Sequence[Task], mine: Task, index: int, args: Sequence[str]) -> Variables:
    """A single pod needs no cluster."""
    if sum(task.replicas for task in tasks) == 1:
        return {}
    port = plugins.port(args, TENSORFLOW_PORT)
    found = {kind: _find(tasks, plugins.option(args, kind, kind)) for kind in ("ps", "worker", "chief", "evaluator")}
    there = {kind: task for kind, task in found.items() if task is not None}
    kind = next((kind for kind, task in there.items() if task is mine), None)
    if kind is None:
        return {}
    cluster = {kind: [f"{host}:{port}" for host in task.hosts(job)] for kind, task in there.items()}
    written = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}, separators=(",", ":"))
    return {"TF_CONFIG": written} if len(written) <= MOST_HOST_BYTES else {}


def _mpi(job: str, tasks: Sequence[Task], mine: Task, index: int, args: Sequence[str]) -> Variables:
    worker = _find(tasks, plugins.option(args, "worker", "worker"))
    if worker is None or mine.name != plugins.option(args, "master", "master"):
        return {}
    hosts = ",".join(worker.hosts(job))
    return {"MPI_HOST": hosts} if len(hosts) <= MOST_HOST_BYTES else {}


_VARIABLES_OF: Mapping[str, Any] = {
    "env": _env,
    "svc": _svc,
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "mpi": _mpi,
}


def _host_files(job: str, tasks: Sequence[Task]) -> tuple[SmallFile, ...]:
    """One host per line, as the last line without an end: that is how the plugin writes it."""
    files = [SmallFile(f"{HOSTS_FOLDER}/{task.name}.host", "\n".join(task.hosts(job))) for task in tasks]
    return tuple(files[:MAX_SMALL_FILES])
