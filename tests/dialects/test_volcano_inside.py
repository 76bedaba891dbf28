"""What replicas of Volcano jobs are told: variables, names and files of its plugins, nothing from nonsense."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.draw import a_job

from gpuyard.dialects.inside import told as told_by_any
from gpuyard.dialects.volcano.inside import told
from gpuyard.domain.told import Told
from gpuyard.domain.workload import Origin, ReplicaId, RoleSpec, Workload


def a_workload(name: str = "train", tasks: dict[str, tuple[str, int]] | None = None, **plugins: list[str]) -> Workload:
    """Tasks as role: (task, replicas)."""
    tasks = tasks or {"master": ("master", 1), "worker": ("worker", 2)}
    roles = tuple(RoleSpec(role, ("true",), count) for role, (_, count) in tasks.items())
    names = json.dumps({role: task for role, (task, _) in tasks.items()})
    origin = Origin("volcano", (("tasks", names), ("plugins", json.dumps(plugins))))
    job = a_job(name=name)
    return replace(job, spec=replace(job.spec, roles=roles, origin=origin))


def seen_by(workload: Workload, role: str, index: int = 0) -> Told:
    return told(workload, ReplicaId(workload.id, 1, role, index))


def test_without_plugins_a_replica_is_known_by_its_pods_name_alone() -> None:
    assert seen_by(a_workload(), "worker", 1) == Told((), ("train-worker-1",), ())


def test_env_says_which_of_its_task_one_is() -> None:
    env = dict(seen_by(a_workload(env=[]), "worker", 1).env)
    assert env == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}


def test_svc_gives_hosts_as_variables_and_files_and_names() -> None:
    seen = seen_by(a_workload(tasks={"ps0": ("ps-0", 1), "worker": ("worker", 2)}, svc=[]), "worker", 1)
    assert dict(seen.env) == {
        "VC_PS_0_HOSTS": "train-ps-0-0.train",
        "VC_PS_0_NUM": "1",
        "VC_WORKER_HOSTS": "train-worker-0.train,train-worker-1.train",
        "VC_WORKER_NUM": "2",
    }
    assert seen.aliases == ("train-worker-1", "train-worker-1.train")
    files = {file.path: file.text for file in seen.files}
    assert files == {
        "/etc/volcano/ps-0.host": "train-ps-0-0.train",
        "/etc/volcano/worker.host": "train-worker-0.train\ntrain-worker-1.train",
    }


def test_tasks_of_one_name_are_told_apart_by_their_roles() -> None:
    """Only somebody who writes by hand what the door remembers can have it so; no file is shown twice."""
    seen = seen_by(a_workload(tasks={"one": ("same", 1), "two": ("same", 1)}, svc=[]), "two")
    assert seen.aliases == ("train-two-0", "train-two-0.train")
    assert [file.path for file in seen.files] == ["/etc/volcano/one.host", "/etc/volcano/two.host"]


def test_pytorch_counts_the_master_first() -> None:
    workload = a_workload(pytorch=["--master=master", "--worker=worker", "--port=1234"], svc=[])
    common = {"MASTER_ADDR": "train-master-0.train", "MASTER_PORT": "1234", "WORLD_SIZE": "3"}
    for role, index, rank in (("master", 0, "0"), ("worker", 0, "1"), ("worker", 1, "2")):
        env = dict(seen_by(workload, role, index).env)
        assert {name: env[name] for name in (*common, "RANK")} == {**common, "RANK": rank}


def test_pytorch_has_a_usual_port_and_needs_a_master() -> None:
    assert dict(seen_by(a_workload(pytorch=[]), "worker").env)["MASTER_PORT"] == "23456"
    assert seen_by(a_workload(tasks={"worker": ("worker", 2)}, pytorch=[]), "worker").env == ()


def test_tensorflow_says_the_cluster_and_ones_place_in_it() -> None:
    workload = a_workload(tasks={"ps": ("ps", 1), "worker": ("worker", 2)}, tensorflow=["--port=5000"])
    assert json.loads(dict(seen_by(workload, "worker", 1).env)["TF_CONFIG"]) == {
        "cluster": {
            "ps": ["train-ps-0.train:5000"],
            "worker": ["train-worker-0.train:5000", "train-worker-1.train:5000"],
        },
        "task": {"type": "worker", "index": 1},
    }


def test_tensorflow_says_nothing_to_a_single_pod() -> None:
    assert seen_by(a_workload(tasks={"worker": ("worker", 1)}, tensorflow=[]), "worker").env == ()


def test_mpi_tells_the_workers_to_the_master_only() -> None:
    tasks = {"mpimaster": ("mpimaster", 1), "mpiworker": ("mpiworker", 2)}
    workload = a_workload(tasks=tasks, mpi=["--master=mpimaster", "--worker", "mpiworker"])
    hosts = "train-mpiworker-0.train,train-mpiworker-1.train"
    assert dict(seen_by(workload, "mpimaster").env) == {"MPI_HOST": hosts}
    assert seen_by(workload, "mpiworker").env == ()


def test_what_is_common_to_all_replicas_of_a_job_is_made_once() -> None:
    workload = a_workload(tasks={"ps": ("ps", 1), "worker": ("worker", 999)}, svc=[], tensorflow=[])
    first, other = seen_by(workload, "worker", 0), seen_by(workload, "worker", 998)
    assert first.files is other.files
    assert dict(first.env)["VC_WORKER_HOSTS"] is dict(other.env)["VC_WORKER_HOSTS"]


def test_of_very_many_replicas_the_hosts_are_not_listed() -> None:
    workload = a_workload(tasks={"master": ("master", 1), "worker": ("worker", 1000)}, svc=[], pytorch=[])
    seen = seen_by(workload, "worker", 999)
    assert seen.files == ()
    assert set(dict(seen.env)) == {
        *("VC_MASTER_NUM", "VC_WORKER_NUM", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    }
    assert seen.aliases == ("train-worker-999", "train-worker-999.train")


def test_the_table_of_doors_leads_here() -> None:
    workload = a_workload(env=[])
    id = ReplicaId(workload.id, 1, "worker", 0)
    assert told_by_any(workload, id) == told(workload, id)


@pytest.mark.parametrize("plugins", ["", "{", "[]", "7", "[" * 10_000, '{"svc": 3}', '{"pytorch": ["--port=x"]}'])
@pytest.mark.parametrize("tasks", ["", "[1]", "{", '{"worker": "Not A Name"}', "[" * 10_000])
def test_senseless_facts_raise_nothing(plugins: str, tasks: str) -> None:
    job = a_job(name="train", replicas=2)
    origin = Origin("volcano", (("tasks", tasks), ("plugins", plugins)))
    job = replace(job, spec=replace(job.spec, origin=origin))
    assert seen_by(job, "worker", 1).aliases[0] == "train-worker-1"


@settings(deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=70))
def test_nothing_that_was_written_by_hand_raises(plugins: str, tasks: str, name: str) -> None:
    job = a_job(name=name or "x", replicas=2)
    origin = Origin("volcano", (("tasks", tasks), ("plugins", plugins)))
    job = replace(job, spec=replace(job.spec, origin=origin))
    for alias in seen_by(job, "worker", 1).aliases:
        assert alias.islower()
