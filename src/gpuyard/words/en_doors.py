"""English for files of other systems. What their own programs refuse they tell in their own words, from the facts."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Code
from gpuyard.words.language import Facts, Template

# What is wrong with a file, for those who read it with a program of ours. What else can be wrong is a `Problem`.
DOOR_PROBLEMS: Mapping[str, str] = {
    "door.problem.no_task": "it has no task; a job needs at least one with replicas",
    "door.problem.min_of_job": "it is more than all tasks together have replicas",
    "door.problem.min_of_task": "it is more than the task has replicas",
    "door.problem.plugin": "there is no such plugin here; there are {allowed:list}",
    "door.problem.mpi_task": "it needs a task as its {value}, and there is none of that name",
    "door.problem.negative": "it cannot be less than 0",
    "door.problem.queue": "there is no group `{value}` here that you may use; a queue is a group",
    "door.problem.task_name": (
        "expected at most 63 small letters, digits and `-`, beginning and ending with a letter or digit"
    ),
    "door.problem.job_name": (
        "expected at most 63 small letters, digits, `-` and `.`, beginning and ending with a letter or digit"
    ),
    "door.problem.port_name": "expected at most 15 letters, digits and `-`, with at least one letter",
    "door.problem.no_container": "it has no container; write one with an image and a command",
    "door.problem.containers": (
        "there are {count} containers, and one is run per pod here; make the others tasks of their own"
    ),
    "door.problem.init_containers": "they are not run here; do it first in the command",
    "door.problem.no_command": "a command is needed, because what an image runs by itself is not run here",
    "door.problem.policy_star": "`*` is every event; beside it there can be no other policy",
    "door.problem.policy_both": "it has an `event` and an `exitCode`; keep one of them",
    "door.problem.policy_neither": "it needs an `event` or an `exitCode`",
    "door.problem.policy_zero": "exit code 0 is no failure; write another one",
    "door.problem.policy_twice": "`{value}` is there in two policies; keep one of them",
    "door.problem.kind": "`{value}` is not a job; a job is `kind: Job` of `apiVersion: batch.volcano.sh/v1alpha1`",
    "door.problem.too_many": "there are too many (at most {tasks} tasks, and {replicas} replicas in all)",
    "door.problem.resource": "nothing here is called so; there are {allowed:list}",
    "door.problem.quantity": "expected an amount like `500m`, `2`, `1024Mi` or `16Gi`",
    "door.problem.too_few_bytes": (
        "that is {count} bytes, too little for anything; write a unit, like `1024Mi` or `16Gi`"
    ),
    "door.problem.too_much": "that is more than any machine has",
    "door.problem.unknown_field": "it is not known; did you mean `{nearest}`?",
}


def _refused(facts: Facts) -> str:
    """That system's own words where nothing else is known: they are no language of ours."""
    where, problem = "This cannot be taken[, line {line}][, column {column}]: ", facts.get("problem")
    if not problem:
        return where + "{text}"
    return where + "[`{field}`: ]" + DOOR_PROBLEMS.get(str(problem), "{problem:problem}") + "."


DOORS: Mapping[Code, Template] = {
    Code.DOOR_REFUSED: _refused,
    Code.NAME_TAKEN: (
        "There is already a job called `{name}` that has not ended[ ({id})]. Choose another name, or stop that one "
        "first[: `yard stop {id}`]."
    ),
    Code.REMOVED: "Taken off the lists[ by {by}]; its story, its log and its id stay.",
    Code.DOOR_UNUSED: "[Line {line}: ]`{at}` is not used here[: {why:noun}].",
    Code.DOOR_READ_AS: "[Line {line}: ][`{at}`: ]{what:noun}.",
}

# Why something of another system's file is not used. Readers may also give a reason of their own, in plain words.
DOOR_NOUNS: Mapping[str, str] = {
    "door.unused.always": "it is always so",
    "door.unused.cluster": "it is about a machinery that is not there",
    "door.unused.decided": "the platform decides this by itself",
    "door.unused.unknown": "it is not known",
    "door.unused.not_yet": "this is not possible yet",
    "door.read.tab": "a tab is read as spaces",
    "door.read.name": "characters that names cannot have are replaced",
    "door.unused.dlc_resource": "the quota is that of the workspace",
    "door.unused.dlc_data": "datasets are folders here: yours under /mnt/user, your group's under /mnt/share",
    "door.unused.dlc_code": "code is not fetched here; put it under /mnt/user, or send it along with `yard run`",
    "door.unused.dlc_tags": "jobs have no tags here",
    "door.unused.dlc_registry": "who may fetch which images is set by the platform's admin",
    "door.unused.dlc_spec": "there are no machine types here; say cpu, gpu and memory",
    "door.unused.dlc_aimaster": "only --enable-job-restart and --max-num-of-job-restart are used",
    "door.unused.dlc_no_gpu": "no GPUs are asked for",
    "door.unused.dlc_no_node": "no such node is asked for",
    "door.unused.dlc_aimaster_off": "aimaster_enable is not true",
    "door.unused.dlc_success": "it is for a TFJob with a chief",
    "door.read.dlc_workspace": "an id of another platform is no group here; write the name of your group",
    "door.read.dlc_elastic": "it runs with a fixed number of nodes",
    "door.read.dlc_quote": "a quotation mark is not closed: look whether the file is complete",
    "door.unused.at_once": "what follows an event follows at once",
    "door.unused.policy": "nothing here answers to this event in this way",
    "door.unused.no_replicas": "it has no replicas",
    "door.unused.all_or_nothing": "a job starts with all of its replicas or not at all",
    "door.unused.registries": "the platform knows its registries",
    "door.unused.secrets": "there are no secrets, config maps or fields of pods here; write the value itself",
    "door.unused.requests": "a replica gets what `limits` says",
    "door.unused.volume": "there are no such volumes here; your own files and your group's are shown in every job",
    "door.unused.many_hosts": "of more than 1,000 replicas the hosts are not listed; names and numbers are told",
    "door.read.ssh": "keys are shown in containers, for root; elsewhere bring your own, and tell ssh and sshd where",
    "door.unused.ttl": "it stays on the list until it is deleted",
    "door.unused.maxRetry": "retries are counted for the whole job",
    "door.unused.topologyPolicy": "the platform decides this by itself",
    "door.unused.dependsOn": "all tasks start together",
    "door.read.any_ascend": "every Ascend card will do",
    "door.read.any_exit_code": "every exit code other than 0 is tried again",
    "door.read.always": "it is tried again when it fails, and is over once it has ended well",
}
