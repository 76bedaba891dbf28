"""A `batch.volcano.sh/v1alpha1` Job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gpuyard.dialects.volcano import inside, plugins, policies
from gpuyard.dialects.volcano.gathering import USUAL_NAMESPACE, Gathered, TaskRead, gather
from gpuyard.dialects.volcano.notes import NEGATIVE, Notes, Path, dotted
from gpuyard.dialects.volcano.pods import PREEMPTABLE, read_pod
from gpuyard.domain.problems import Problem

API_VERSION = "batch.volcano.sh/v1alpha1"
JOB_TYPE = "volcano.sh/job-type"
SCHEDULER = "volcano"
_TOP_KEYS = ("apiVersion", "kind", "metadata", "spec")
_META_KEYS = ("name", "namespace", "labels", "annotations")
_SPEC_KEYS = (
    *("schedulerName", "minAvailable", "minSuccess", "volumes", "tasks", "policies", "plugins", "queue", "maxRetry"),
    *("ttlSecondsAfterFinished", "priorityClassName", "runningEstimate"),
)
_TASK_KEYS = ("name", "replicas", "template", "policies", "minAvailable", "maxRetry", "topologyPolicy", "dependsOn")
_LONGEST_REMEMBERED = 4096


def read_crd(data: Mapping[str, Any], notes: Notes) -> dict[str, Any]:
    _require_kind(data, notes)
    notes.leave_out_rest(data, (), _TOP_KEYS, "door.unused.unknown")
    meta = notes.mapping(data.get("metadata"), ("metadata",))
    spec = notes.mapping(data.get("spec"), ("spec",))
    notes.leave_out_rest(spec, ("spec",), _SPEC_KEYS, "door.unused.unknown")
    found = Gathered("Job", notes.text(spec.get("queue"), ("spec", "queue")))
    _read_numbers(spec, found, notes)
    found.plugins = _plugins(spec, notes)
    found.rules = policies.read(spec.get("policies"), ("spec", "policies"), notes)
    found.tasks = _tasks(spec, found, notes)
    found.priority_class = notes.text(spec.get("priorityClassName"), ("spec", "priorityClassName"))
    _check_mpi(found, notes)
    if "svc" in found.plugins and sum(task.replicas for task in found.tasks) > inside.MOST_HOSTS:
        notes.leave_out(("spec", "plugins", "svc"), "door.unused.many_hosts")
    _name_the_unused(spec, notes)
    _read_metadata(meta, found, notes)
    return gather(notes.text(meta.get("name"), ("metadata", "name")), ("metadata", "name"), found, notes)


def _require_kind(data: Mapping[str, Any], notes: Notes) -> None:
    version, kind = (notes.text(data.get(key), (key,)) for key in ("apiVersion", "kind"))
    if kind not in ("", "Job") or version not in ("", API_VERSION):
        words = f'no matches for kind "{kind}" in version "{version}": a job is {API_VERSION} Job'
        at = ("kind",) if "kind" in data else ("apiVersion",)
        raise notes.refuse(at, words, "door.problem.kind", value=f"{version} {kind}".strip())


def _read_numbers(spec: Mapping[str, Any], found: Gathered, notes: Notes) -> None:
    found.min_available = notes.whole(spec.get("minAvailable"), ("spec", "minAvailable"))
    found.max_retry = notes.whole(spec.get("maxRetry"), ("spec", "maxRetry"))
    ttl = notes.whole(spec.get("ttlSecondsAfterFinished"), ("spec", "ttlSecondsAfterFinished"))
    if (found.min_available or 0) < 0:
        raise notes.deny(("spec", "minAvailable"), "job 'minAvailable' must be >= 0.", NEGATIVE)
    if (found.max_retry or 0) < 0:
        raise notes.deny(("spec", "maxRetry"), "'maxRetry' cannot be less than zero.", NEGATIVE)
    if (ttl or 0) < 0:
        words = "'ttlSecondsAfterFinished' cannot be less than zero."
        raise notes.deny(("spec", "ttlSecondsAfterFinished"), words, NEGATIVE)


def _plugins(spec: Mapping[str, Any], notes: Notes) -> plugins.Plugins:
    at: Path = ("spec", "plugins")
    given: plugins.Plugins = {}
    for name, value in notes.mapping(spec.get("plugins"), at).items():
        if name in plugins.WITHOUT_MEANING:
            notes.leave_out((*at, name), "door.unused.cluster")
        elif name not in plugins.KNOWN:
            denied = f"unable to find job plugin: {name};"
            raise notes.deny((*at, name), denied, "door.problem.plugin", allowed=list(plugins.KNOWN))
        else:
            words = notes.items(value, (*at, name))
            given[name] = [notes.text(word, (*at, name, index)) for index, word in enumerate(words)]
            _name_unknown_options(name, given[name], (*at, name), notes)
    complete = plugins.complete(given)
    if "ssh" in complete:
        notes.read_as((*at, "ssh" if "ssh" in given else "mpi"), "door.read.ssh")
    return complete


def _name_unknown_options(plugin: str, args: list[str], path: Path, notes: Notes) -> None:
    for index, word in enumerate(args):
        name = word.lstrip("-").partition("=")[0]
        if word.startswith("-") and name not in plugins.OPTIONS.get(plugin, ()):
            notes.leave_out((*path, index), "door.unused.decided")


def _tasks(spec: Mapping[str, Any], found: Gathered, notes: Notes) -> list[TaskRead]:
    at: Path = ("spec", "tasks")
    items = [notes.mapping(item, (*at, index)) for index, item in enumerate(notes.items(spec.get("tasks"), at))]
    tasks = []
    for index, data in enumerate(items):
        path = (*at, index)
        notes.leave_out_rest(data, path, _TASK_KEYS, "door.unused.unknown")
        name = notes.text(data.get("name"), (*path, "name")) or f"default{index}"
        replicas = notes.whole(data.get("replicas"), (*path, "replicas"))
        count = 1 if replicas is None else replicas
        _check_least(data, name, count, path, notes)
        pod = read_pod(data.get("template"), (*path, "template"), inside.VARIABLES, notes)
        rules = policies.read(data.get("policies"), (*path, "policies"), notes)
        tasks.append(TaskRead(name, count, path, pod, rules))
        found.preemptible |= _is_preemptable(notes.mapping(data.get("template"), (*path, "template")))
        for key in ("maxRetry", "topologyPolicy", "dependsOn"):
            if data.get(key) not in (None, "none", 0):
                notes.leave_out((*path, key), f"door.unused.{key}")
    return tasks


def _check_least(data: Mapping[str, Any], name: str, replicas: int, path: Path, notes: Notes) -> None:
    least = notes.whole(data.get("minAvailable"), (*path, "minAvailable"))
    if least is None:
        return
    if least > replicas:
        words = f"'minAvailable' is greater than 'replicas' in task: {name};"
        raise notes.deny(path, words, "door.problem.min_of_task", field=dotted((*path, "minAvailable")))
    if least < replicas:
        notes.leave_out((*path, "minAvailable"), "door.unused.all_or_nothing")


def _check_mpi(found: Gathered, notes: Notes) -> None:
    args = found.plugins.get("mpi")
    if args is None or not found.tasks:
        return
    there = {task.name for task in found.tasks}
    for what in ("master", "worker"):
        if plugins.option(args, what, what) not in there:
            words = f"The specified mpi {what} task was not found"
            raise notes.deny(("spec", "plugins", "mpi"), words, "door.problem.mpi_task", value=what)


def _name_the_unused(spec: Mapping[str, Any], notes: Notes) -> None:
    if spec.get("schedulerName") not in (None, "", SCHEDULER):
        notes.leave_out(("spec", "schedulerName"), "door.unused.decided")
    for key, why in (
        ("ttlSecondsAfterFinished", "ttl"),
        ("minSuccess", "all_or_nothing"),
        ("runningEstimate", "decided"),
    ):
        if spec.get(key) is not None:
            notes.leave_out(("spec", key), f"door.unused.{why}")
    seen: set[str] = set()
    at: Path = ("spec", "volumes")
    for index, item in enumerate(notes.items(spec.get("volumes"), at)):
        place = notes.text(notes.mapping(item, (*at, index)).get("mountPath"), (*at, index, "mountPath"))
        field = dotted((*at, index, "mountPath"))
        if not place:
            raise notes.deny((*at, index), "mountPath is required;", Problem.BLANK, field=field)
        if place in seen:
            raise notes.deny((*at, index), f"duplicated mountPath: {place};", Problem.REPEATED, field=field)
        seen.add(place)
        notes.leave_out((*at, index, place), "door.unused.volume")


def _read_metadata(meta: Mapping[str, Any], found: Gathered, notes: Notes) -> None:
    notes.leave_out_rest(meta, ("metadata",), _META_KEYS, "door.unused.cluster")
    labels = notes.mapping(meta.get("labels"), ("metadata", "labels"))
    annotations = notes.mapping(meta.get("annotations"), ("metadata", "annotations"))
    found.preemptible |= _is_preemptable({"metadata": meta})
    namespace = notes.text(meta.get("namespace"), ("metadata", "namespace"))
    if namespace and namespace != USUAL_NAMESPACE:
        found.remembered["namespace"] = namespace
    if labels.get(JOB_TYPE):
        found.remembered["job_type"] = notes.text(labels[JOB_TYPE], ("metadata", "labels", JOB_TYPE))
    for name, data in (("labels", labels), ("annotations", annotations)):
        told = {str(key): notes.text(value, ("metadata", name, key)) for key, value in data.items()}
        written = json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        if told and len(written) <= _LONGEST_REMEMBERED:
            found.remembered[name] = written


def _is_preemptable(data: Mapping[str, Any]) -> bool:
    meta = data.get("metadata")
    if not isinstance(meta, Mapping):
        return False
    for name in ("labels", "annotations"):
        said = meta.get(name)
        if isinstance(said, Mapping) and str(said.get(PREEMPTABLE)).lower() == "true":
            return True
    return False
