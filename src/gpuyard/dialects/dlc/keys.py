"""Every key of a params file, which is also the name of a flag of `dlc create job`, and every kind of job."""

from __future__ import annotations

from collections.abc import Mapping

TENSORFLOW = "TFJob"
# Kinds that run here, and the roles each may have, in the order of their ranks.
ROLES_OF: Mapping[str, tuple[str, ...]] = {
    "PyTorchJob": ("master", "worker"),
    TENSORFLOW: ("chief", "ps", "worker", "evaluator", "graphlearn"),
    "BatchJob": ("worker",),
    "MPIJob": ("master", "worker"),
    "ElasticBatchJob": ("master", "worker"),
}
KINDS = tuple(ROLES_OF)
NOT_YET = ("XGBoostJob", "OneFlowJob", "SlurmJob", "RayJob", "DataJuicerJob")
# Kinds whose nodes are told the names of all others, so that there must be an end to them.
NAMES_ALL = frozenset({TENSORFLOW, "MPIJob"})
MOST_NAMED = 1000
ELASTIC = "ElasticBatchJob"  # there it grows and shrinks
# Without a master, the first worker is the master.
PROMOTES = frozenset({"PyTorchJob", "MPIJob", "ElasticBatchJob"})

TYPE_OF_ROLE: Mapping[str, str] = {
    "master": "Master",
    "chief": "Chief",
    "ps": "PS",
    "worker": "Worker",
    "evaluator": "Evaluator",
    "graphlearn": "GraphLearn",
}
ROLES = tuple(TYPE_OF_ROLE)
ROLE_PARTS: Mapping[str, str] = {
    "count": "number of {role} nodes",
    "cpu": "CPU cores of each {role} node",
    "gpu": "GPUs of each {role} node",
    "gpu_type": "model of the GPUs of each {role} node, such as nvidia_a100-sxm4-80gb",
    "image": "image of each {role} node",
    "memory": "memory of each {role} node, in GB, or with a unit: 128Gi",
    "shared_memory": "shared memory of each {role} node, in GB, or with a unit",
    "spec": "not used here: say cpu, gpu and memory",
}
ROLE_KEYS: Mapping[str, tuple[str, str]] = {f"{role}_{part}": (role, part) for role in ROLES for part in ROLE_PARTS}

# Keys with a meaning here, and what they mean.
JOB_KEYS: Mapping[str, str] = {
    "name": "name of the job; it need not be unique",
    "kind": f"kind of the job: {', '.join(KINDS)}",
    "command": "what to run, by the shell, on every node (of an MPIJob: on the first one)",
    "workspace_id": "id or name of the workspace; see 'dlc get workspace'",
    "priority": "priority of the job, 1 to 9, 9 is highest",
    "interactive": "stay, show the output, and end as the job ends",
    "node_names": "comma separated names of the nodes it may run on",
    "envs": "environment variables: k=v,k=v",
    "thirdparty_libs": "comma separated packages, installed with pip before the command",
    "thirdparty_lib_dir": "directory with a requirements.txt, installed with pip before the command",
    "job_max_running_time_minutes": "how long it may run, in minutes; 0: no limit",
    "enable_preemptible_job": "more urgent work may take its place",
    "aimaster_enable": "fault tolerance",
    "aimaster_args": "of these, --enable-job-restart and --max-num-of-job-restart are used",
    "success_policy": "of a TFJob: ChiefWorker or AllWorkers",
    "resource_id": "id of the quota; the workspace's own is used here",
    "data_sources": "comma separated ids of datasets; files are found under /mnt here",
}
# Keys that have none: why.
UNUSED_KEYS: Mapping[str, str] = {
    "resource_id": "door.unused.dlc_resource",
    "data_sources": "door.unused.dlc_data",
    "data_source_uris": "door.unused.dlc_data",
    "code_source": "door.unused.dlc_code",
    "code_branch": "door.unused.dlc_code",
    "code_commit": "door.unused.dlc_code",
    "enable_priority_preemption": "door.unused.decided",
    "tags": "door.unused.dlc_tags",
    "driver": "door.unused.cluster",
    "vpc_id": "door.unused.cluster",
    "switch_id": "door.unused.cluster",
    "security_group_id": "door.unused.cluster",
    "extended_cidrs": "door.unused.cluster",
    "default_route": "door.unused.cluster",
    "oversold_type": "door.unused.cluster",
    "exit_code_on_stopped": "door.unused.not_yet",
    "job_reserved_minutes": "door.unused.not_yet",
    "job_reserved_policy": "door.unused.not_yet",
    "image_repo_username": "door.unused.dlc_registry",
    "image_repo_password": "door.unused.dlc_registry",
}
# As the public cloud's program of the same name spells them.
SPELLED_ELSEWHERE: Mapping[str, str] = {
    **{f"{role}s": f"{role}_count" for role in ROLES},
    **{role: f"{role}_count" for role in ("chief", "ps")},
}
TRUE, FALSE = ("true", "t", "1", "yes"), ("false", "f", "0", "no")  # in any case
BOOLEANS = frozenset({"interactive", "enable_preemptible_job", "enable_priority_preemption", "aimaster_enable"})
# An empty value of these says nothing; an empty value of any other is a file that was not finished.
MAY_BE_EMPTY = frozenset(
    {"node_names", "envs", "thirdparty_libs", "thirdparty_lib_dir", "aimaster_args", "success_policy", *UNUSED_KEYS}
    | {f"{role}_{part}" for role in ROLES for part in ("gpu_type", "spec")}
)
ALL_KEYS = tuple(dict.fromkeys((*JOB_KEYS, *ROLE_KEYS, *UNUSED_KEYS)))
REQUIRED = ("name", "kind", "command")


def about(key: str) -> str:
    """One line for the help of the flag."""
    if key in JOB_KEYS:
        return JOB_KEYS[key]
    if key in ROLE_KEYS:
        role, part = ROLE_KEYS[key]
        return ROLE_PARTS[part].format(role=role)
    return "not used here"
