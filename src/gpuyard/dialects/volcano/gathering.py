"""What was read of a file, from either kind of it, put together as our job file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from gpuyard.dialects.brought import VOLCANO
from gpuyard.dialects.native.fields import MAX_ROLES
from gpuyard.dialects.volcano import names, plugins
from gpuyard.dialects.volcano.notes import NEGATIVE, NO_SUCH_QUEUE, Notes, Path, dotted, no_such_queue
from gpuyard.dialects.volcano.plugins import Plugins
from gpuyard.dialects.volcano.pods import Pod
from gpuyard.dialects.volcano.policies import MAX_RETRIES, USUAL_RETRIES, Rules
from gpuyard.domain.people import NAME_RULE
from gpuyard.domain.problems import Problem
from gpuyard.domain.workload import MAX_REPLICAS

USUAL_QUEUE = "default"
USUAL_NAMESPACE = "default"
MAX_GRACE_SECONDS = 3600
MAX_FOLDER = 1024
NO_TASK = "door.problem.no_task"


@dataclass(frozen=True, slots=True)
class TaskRead:
    name: str
    replicas: int
    path: Path
    pod: Pod
    rules: Rules = field(default_factory=Rules)


@dataclass(slots=True)
class Gathered:
    """A job before it is one of ours."""

    kind: str
    queue: str = ""
    tasks: list[TaskRead] = field(default_factory=list)
    rules: Rules = field(default_factory=Rules)
    plugins: Plugins = field(default_factory=dict)
    max_retry: int | None = None
    min_available: int | None = None
    priority_class: str = ""
    preemptible: bool = False
    remembered: dict[str, str] = field(default_factory=dict)  # more facts that the door must not forget


def gather(written_name: str, at: Path, found: Gathered, notes: Notes) -> dict[str, Any]:
    name = _job_name(written_name, at, notes)
    if not found.tasks:
        where = ("tasks",) if at == ("jobname",) else ("spec", "tasks")
        raise notes.deny(where, "No task specified in job spec", NO_TASK)
    tasks = _checked(name, found, notes)
    roles = names.role_names([task.name for task in tasks])
    job: dict[str, Any] = {"name": name, "group": _group(found.queue, notes)}
    job["roles"] = {role: _role(task, found.rules) for role, task in zip(roles, tasks, strict=True)}
    if found.priority_class:
        job["priority"] = found.priority_class
    if found.preemptible:
        job["preemptible"] = True
    job |= _endings(tasks, found, notes)
    return job | {"origin": {"door": VOLCANO, "facts": _facts(roles, tasks, found)}}


def _job_name(written: str, path: Path, notes: Notes) -> str:
    if not written.strip():
        raise notes.refuse(path, "job name cannot be left blank", Problem.BLANK)
    name = names.job_name(written)
    if not names.is_job_name(name):
        why = names.SUBDOMAIN_WORDS if len(name) <= names.LONGEST_NAME else "must be no more than 63 characters"
        words = f'Job.batch.volcano.sh "{name[:80]}" is invalid: metadata.name: Invalid value: "{name[:80]}": {why}'
        raise notes.refuse(path, words, "door.problem.job_name")
    if name != written:
        notes.read_as(path, "door.read.name")
    return name


def _checked(job: str, found: Gathered, notes: Notes) -> list[TaskRead]:
    """The tasks that have replicas, after what their admission hook would look at."""
    seen: set[str] = set()
    for task in found.tasks:
        if task.replicas < 0:
            words = f"'replicas' < 0 in task: {task.name}, job: {job};"
            raise notes.deny(task.path, words, NEGATIVE, field=dotted((*task.path, "replicas")))
        named = dotted((*task.path, "name"))
        if not names.is_task_name(task.name):
            raise notes.deny(task.path, f"[{names.LABEL_WORDS}];", "door.problem.task_name", field=named)
        if task.name in seen:
            raise notes.deny(task.path, f"duplicated task name {task.name};", Problem.REPEATED, field=named)
        seen.add(task.name)
        if task.replicas == 0:
            notes.leave_out(task.path, "door.unused.no_replicas")
    tasks = [task for task in found.tasks if task.replicas]
    total = sum(task.replicas for task in tasks)
    if found.min_available is not None and found.min_available > total:
        words = "job 'minAvailable' should not be greater than total replicas in tasks;"
        raise notes.deny(("spec", "minAvailable"), words, "door.problem.min_of_job")
    if not tasks:
        raise notes.deny(found.tasks[0].path, "No task specified in job spec", NO_TASK)
    if len(tasks) > MAX_ROLES or total > MAX_REPLICAS:
        words = f"at most {MAX_ROLES} tasks and {MAX_REPLICAS} replicas in all"
        raise notes.refuse(tasks[-1].path, words, "door.problem.too_many", tasks=MAX_ROLES, replicas=MAX_REPLICAS)
    if found.min_available and found.min_available < total:
        notes.leave_out(("spec", "minAvailable"), "door.unused.all_or_nothing")
    return tasks


def _group(queue: str, notes: Notes) -> str:
    name = queue.strip() or USUAL_QUEUE
    if not NAME_RULE.match(name):
        words = no_such_queue(name).reason.facts["text"]
        raise notes.refuse(("spec", "queue"), words, NO_SUCH_QUEUE, value=name[:80])
    return name


def _role(task: TaskRead, job_rules: Rules) -> dict[str, Any]:
    role = dict(task.pod.role)
    if task.replicas != 1:
        role["replicas"] = task.replicas
    if task.rules.completes or job_rules.completes:
        role["completes"] = True
    return role


def _endings(tasks: list[TaskRead], found: Gathered, notes: Notes) -> dict[str, Any]:
    rules = Rules(set(found.rules.retries), fails_as=found.rules.fails_as)
    for task in tasks:
        rules.add(task.rules)
    if any(task.pod.restarts for task in tasks):
        rules.retries |= {"exit", "oom"}
    found.rules.fails_as = rules.fails_as
    job: dict[str, Any] = {}
    count = min(USUAL_RETRIES if found.max_retry is None else found.max_retry, MAX_RETRIES)
    if rules.retries:
        job["retries"] = dict.fromkeys(sorted(rules.retries), count)
    graces = [task.pod.grace_seconds for task in tasks if task.pod.grace_seconds]
    if graces:
        job["grace"] = f"{min(max(graces), MAX_GRACE_SECONDS)}s"
    limits = [task.pod.max_seconds for task in tasks if task.pod.max_seconds]
    if limits:
        job["max_time"] = f"{max(limits)}s"
    return job


def _facts(roles: list[str], tasks: list[TaskRead], found: Gathered) -> dict[str, str]:
    facts = {"kind": found.kind, "queue": found.queue or USUAL_QUEUE, **found.remembered}
    if found.plugins:
        facts["plugins"] = plugins.to_text(found.plugins)
    if found.min_available:
        facts["min_available"] = str(found.min_available)
    if found.max_retry is not None:
        facts["max_retry"] = str(found.max_retry)
    if found.rules.fails_as:
        facts["fails_as"] = found.rules.fails_as
    if found.priority_class:
        facts["priority_class"] = found.priority_class
    facts["tasks"] = json.dumps(dict(zip(roles, (task.name for task in tasks), strict=True)))
    folders = {role: task.pod.folder[:MAX_FOLDER] for role, task in zip(roles, tasks, strict=True) if task.pod.folder}
    if folders:
        facts["folders"] = json.dumps(folders, ensure_ascii=False)
    return facts
