"""What a replica of such a job sees: the variables, names and files that their plugins give.

Never raises: what a door remembers may have been written by hand, and then perhaps means nothing. What is the same for
all replicas of a job is made once: it is asked for one after the other, while everybody waits.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from gpuyard.dialects.volcano import plugins
from gpuyard.dialects.volcano.names import is_job_name, is_task_name, pod_name
from gpuyard.dialects.volcano.plugins import KEYS_OPTION, Plugins, Task
from gpuyard.domain.told import KEYS_FOLDER, NOTHING, SmallFile, Told, own_port
from gpuyard.domain.workload import ReplicaId, Spec, Workload

HOSTS_FOLDER = "/etc/volcano"
PYTORCH_PORT, TENSORFLOW_PORT = 23456, 2222
VARIABLES = (
    *("VK_TASK_INDEX", "VC_TASK_INDEX", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "TF_CONFIG", "MPI_HOST"),
)
MOST_HOSTS = 1000  # every replica gets the names of all: of more it would be a flood
_KEPT = 8  # jobs that start at the same time
_NOT_IN_VARIABLES = re.compile(r"[^A-Z0-9_]")

Variables = dict[str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the plugins see it; the same for all of its replicas."""

    name: str
    tasks: tuple[Task, ...]
    own: str = ""  # of which attempt its ports are, where it cannot have those that everybody knows

    def port(self, args: tuple[str, ...], usual: int, number: int = 0) -> int:
        """What the plugin is told to use counts only where no other job can be using it."""
        return own_port(self.own, number) if self.own else plugins.port(args, usual)

    @property
    def lists_hosts(self) -> bool:
        return sum(task.replicas for task in self.tasks) <= MOST_HOSTS

    def task(self, name: str) -> Task | None:
        return next((task for task in self.tasks if task.name == name), None)

    def host(self, task: Task, index: int) -> str:
        return f"{pod_name(self.name, task.name, index)}.{self.name}"

    def hosts(self, task: Task) -> list[str]:
        return [self.host(task, index) for index in range(task.replicas)]


def told(workload: Workload, replica: ReplicaId, *, own_ports: bool = False) -> Told:
    spec = workload.spec
    if spec.origin is None or not is_job_name(spec.name):
        return NOTHING
    job = Job(spec.name, tasks_of(spec), f"{workload.id} {replica.attempt}" if own_ports else "")
    mine = next((task for task in job.tasks if task.role == replica.role), None)
    if mine is None:
        return NOTHING
    given = _plugins(spec.origin.fact("plugins") or "")
    env: Variables = {}
    for name, variables in _VARIABLES_OF.items():
        if name in given:
            env |= variables(job, mine, replica.index, tuple(given[name]))
    pod = pod_name(job.name, mine.name, replica.index)
    aliases = (pod, job.host(mine, replica.index)) if "svc" in given else (pod,)
    files = _host_files(job) if "svc" in given else ()
    keys = plugins.option(given["ssh"], KEYS_OPTION, KEYS_FOLDER) if "ssh" in given else ""
    return Told(tuple(env.items()), aliases if len(pod) <= 63 else (), files, keys)


def tasks_of(spec: Spec) -> tuple[Task, ...]:
    """The roles under the names that the file has for them; each under its own where two would be alike."""
    named = _task_names((spec.origin.fact("tasks") if spec.origin else None) or "")
    tasks = [Task(named.get(role.name, role.name), role.replicas, role.name) for role in spec.roles]
    are_good = len({task.name for task in tasks}) == len(tasks) and all(is_task_name(task.name) for task in tasks)
    return tuple(tasks if are_good else [Task(role.name, role.replicas, role.name) for role in spec.roles])


@lru_cache(maxsize=_KEPT)
def _task_names(text: str) -> Mapping[str, str]:
    """role -> task."""
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return {str(role): str(task) for role, task in data.items()} if isinstance(data, dict) else {}


@lru_cache(maxsize=_KEPT)
def _plugins(text: str) -> Plugins:
    return plugins.from_text(text)


# --- what each plugin gives ---------------------------------------------------------------------------------------

Args = tuple[str, ...]


def _env(job: Job, mine: Task, index: int, args: Args) -> Variables:
    return {"VK_TASK_INDEX": str(index), "VC_TASK_INDEX": str(index)}


def _svc(job: Job, mine: Task, index: int, args: Args) -> Variables:
    return dict(_host_variables(job))


@lru_cache(maxsize=_KEPT)
def _host_variables(job: Job) -> tuple[tuple[str, str], ...]:
    env: Variables = {}
    for task in job.tasks:
        name = _NOT_IN_VARIABLES.sub("_", task.name.upper())
        if job.lists_hosts:
            env[f"VC_{name}_HOSTS"] = ",".join(job.hosts(task))
        env[f"VC_{name}_NUM"] = str(task.replicas)
    return tuple(env.items())


@lru_cache(maxsize=_KEPT)
def _host_files(job: Job) -> tuple[SmallFile, ...]:
    """One host per line, the last line without an end: that is how the plugin writes it."""
    if not job.lists_hosts:
        return ()
    return tuple(SmallFile(f"{HOSTS_FOLDER}/{task.name}.host", "\n".join(job.hosts(task))) for task in job.tasks)


def _pytorch(job: Job, mine: Task, index: int, args: Args) -> Variables:
    master = job.task(plugins.option(args, "master", "master"))
    worker = job.task(plugins.option(args, "worker", "worker"))
    if master is None:
        return {}
    env = {"MASTER_ADDR": job.host(master, 0), "MASTER_PORT": str(job.port(args, PYTORCH_PORT))}
    if mine not in (master, worker):
        return env
    size = master.replicas + (worker.replicas if worker else 0)
    rank = index if mine is master else master.replicas + index
    return env | {"WORLD_SIZE": str(size), "RANK": str(rank)}


def _tensorflow(job: Job, mine: Task, index: int, args: Args) -> Variables:
    """A single pod needs no cluster."""
    kinds = _tensorflow_kinds(job, args)
    kind = next((kind for kind, task in kinds.items() if task is mine), None)
    if kind is None or not job.lists_hosts or sum(task.replicas for task in job.tasks) == 1:
        return {}
    return {"TF_CONFIG": f'{{"cluster":{_cluster(job, args)},"task":{{"type":"{kind}","index":{index}}}}}'}


def _tensorflow_kinds(job: Job, args: Args) -> dict[str, Task]:
    found = {kind: job.task(plugins.option(args, kind, kind)) for kind in ("ps", "worker", "chief", "evaluator")}
    return {kind: task for kind, task in found.items() if task is not None}


@lru_cache(maxsize=_KEPT)
def _cluster(job: Job, args: Args) -> str:
    numbers = itertools.count()
    cluster = {
        kind: [f"{host}:{job.port(args, TENSORFLOW_PORT, next(numbers))}" for host in job.hosts(task)]
        for kind, task in _tensorflow_kinds(job, args).items()
    }
    return json.dumps(cluster, separators=(",", ":"))


def _mpi(job: Job, mine: Task, index: int, args: Args) -> Variables:
    worker = job.task(plugins.option(args, "worker", "worker"))
    if worker is None or mine.name != plugins.option(args, "master", "master") or not job.lists_hosts:
        return {}
    return {"MPI_HOST": ",".join(job.hosts(worker))}


_VARIABLES_OF: Mapping[str, Callable[[Job, Task, int, Args], Variables]] = {
    "env": _env,
    "svc": _svc,
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "mpi": _mpi,
}
