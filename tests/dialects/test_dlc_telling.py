"""Ids, states, JSON, tables and variables as dlc has them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects import specs
from tests.dialects.test_dlc import changed, job_of

from gpuyard.dialects.dlc import ids, priorities, tables, telling
from gpuyard.dialects.dlc.inside import told
from gpuyard.dialects.dlc.libraries import installing
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import ID_RULE, Origin, ReplicaId, RoleSpec, Spec, Workload

our_ids = st.from_regex(ID_RULE, fullmatch=True)


# --- ids and priorities -------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(our_ids)
def test_a_job_id_has_dlc_s_form_and_leads_back(id: str) -> None:
    theirs = ids.job_id(id)
    assert len(theirs) == 16
    assert theirs.startswith("dlc")
    assert ids.own_id(theirs) == id


@settings(deadline=None)
@given(our_ids, st.integers(3, 15), st.sampled_from(ids.DIGITS))
def test_a_mistyped_job_id_is_noticed(id: str, place: int, digit: str) -> None:
    right = ids.job_id(id)
    wrong = right[:place] + digit + right[place + 1 :]
    if wrong != right and place < 6:
        assert ids.own_id(wrong) is None
    assert ids.own_id(right + "x") is None


@settings(deadline=None)
@given(st.lists(specs.group_names, min_size=1, max_size=5, unique=True))
def test_a_workspace_is_found_by_its_id_and_by_its_name(groups: list[str]) -> None:
    for group in groups:
        id = ids.workspace_id(group)
        assert ids.WORKSPACE_RULE.match(id)
        assert ids.group_of(id, groups) == group
        assert ids.group_of(group, groups) == group
    assert ids.group_of("no such", groups) is None


def test_priorities_rise_from_the_usual_to_the_ceiling_of_members() -> None:
    ours = [priorities.to_ours(theirs) for theirs in range(1, 10)]
    assert (ours[0], ours[-1]) == (500, 700)
    assert ours == sorted(set(ours))
    assert [priorities.to_theirs(priority) for priority in ours] == list(range(1, 10))
    assert (priorities.to_theirs(1), priorities.to_theirs(1000)) == (1, 9)


# --- inside -------------------------------------------------------------------------------------------------------


def workload(**keys: str) -> Workload:
    return Workload("abcdefghij", "ann", "vision", job_of(changed(**keys)).spec, 0.0)


def env(work: Workload, role: str, index: int) -> dict[str, str]:
    return dict(told(work, ReplicaId(work.id, 1, role, index)).env)


def test_a_pytorch_job_counts_nodes_with_the_master_first() -> None:
    work = workload(worker_count="3", worker_gpu="8")
    host = f"{ids.job_id(work.id)}-master-0"
    shared = {"MASTER_ADDR": host, "MASTER_PORT": "23456", "WORLD_SIZE": "3", "NPROC_PER_NODE": "8"}
    assert env(work, "master", 0) == shared | {"RANK": "0"}
    assert env(work, "worker", 0) == shared | {"RANK": "1"}
    assert env(work, "worker", 1) == shared | {"RANK": "2"}
    assert told(work, ReplicaId(work.id, 1, "master", 0)).aliases == (host,)


def test_a_tensorflow_job_has_its_cluster_in_tf_config() -> None:
    work = workload(kind="TFJob", worker_count="2", ps_count="1", evaluator_count="1")
    id = ids.job_id(work.id)
    assert json.loads(env(work, "worker", 1)["TF_CONFIG"]) == {
        "cluster": {"ps": [f"{id}-ps-0:2222"], "worker": [f"{id}-worker-0:2222", f"{id}-worker-1:2222"]},
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }


def test_an_mpi_job_has_the_list_of_its_hosts_and_a_batch_job_nothing() -> None:
    work = workload(kind="MPIJob", worker_count="2")
    id = ids.job_id(work.id)
    assert env(work, "master", 0)["MPI_HOST"] == f"{id}-master-0,{id}-worker-0"
    assert env(workload(kind="BatchJob"), "worker", 0) == {}


def test_senseless_memories_of_a_door_do_no_harm() -> None:
    for facts in ((), (("kind", "Nonsense"),), (("kind", "PyTorchJob"), ("promoted", "maybe"))):
        spec = Spec("x", (RoleSpec("any", ("true",), 2),), origin=Origin("dlc", facts))
        told(Workload("abcdefghij", "ann", "vision", spec, 0.0), ReplicaId("abcdefghij", 1, "any", 1))
    crowd = Spec("x", (RoleSpec("worker", ("true",), 100_000),), origin=Origin("dlc", (("kind", "MPIJob"),)))
    work = Workload("abcdefghij", "ann", "vision", crowd, 0.0)
    assert told(work, ReplicaId("abcdefghij", 1, "worker", 7)).env == ()


# --- telling ------------------------------------------------------------------------------------------------------

NOW = datetime(2026, 11, 16, 10, 0, tzinfo=UTC)
KEYS = [
    "ClusterId",
    "CodeSource",
    "DataSources",
    "DisplayName",
    "Duration",
    "ElasticSpec",
    "EnabledDebugger",
    "GmtCreateTime",
    "GmtSubmittedTime",
    "GmtRunningTime",
    "GmtFinishTime",
    "JobId",
    "JobSpecs",
    "JobType",
    "Pods",
    "Priority",
    "ReasonCode",
    "ReasonMessage",
    "RequestId",
    "ResourceId",
    "ResourceLevel",
    "Settings",
    "Status",
    "ThirdpartyLibDir",
    "UserCommand",
    "UserId",
    "WorkspaceId",
    "WorkspaceName",
]


def answer(**more: Any) -> dict[str, Any]:
    """A job as the api tells it."""
    role = {
        "name": "master",
        "replicas": 1,
        "command": ["sh", "-c", "echo hi"],
        "image": "a:1",
        "cards": 2,
        "device": "nvidia",
        "models": [],
        "cpu": 4,
        "memory": 4 * GIB,
        "shm": None,
    }
    replica = {
        "replica": "master-0",
        "state": "ended",
        "exit_code": 0,
        "started_at": "2026-11-16T09:00:01.500Z",
        "ended_at": "2026-11-16T09:30:01.500Z",
    }
    return {
        "id": "abcdefghij",
        "name": "t",
        "state": "succeeded",
        "wanted": "run",
        "reason": "ended well",
        "reason_code": "ended.succeeded",
        "owner": "ann",
        "group": "vision",
        "priority": 500,
        "attempt": 1,
        "submitted_at": "2026-11-16T08:59:00.000Z",
        "started_at": "2026-11-16T09:00:01.500Z",
        "ended_at": "2026-11-16T09:30:01.500Z",
        "origin": {"door": "dlc", "facts": {"kind": "PyTorchJob", "promoted": "true"}},
        "roles": [role],
        "attempts": [{"created_at": "2026-11-16T09:00:00.000Z", "replicas": [replica]}],
        **more,
    }


def test_one_job_is_json_with_the_keys_that_callers_know() -> None:
    data = json.loads(telling.job_json(answer(), "R", NOW))
    assert sorted(data) == sorted([*KEYS, "GmtSuccessedTime"])
    id = ids.job_id("abcdefghij")
    assert (data["Status"], data["Duration"], data["JobType"]) == ("Succeeded", 1800, "PyTorchJob")
    assert data["ReasonMessage"] == f"PyTorchJob {id} is successfully completed."
    assert data["GmtCreateTime"] == "2026-11-16T08:59:00Z"
    assert data["JobSpecs"][0]["Type"] == "Worker"
    (pod,) = data["Pods"]
    assert sorted(pod) == sorted(
        ["GmtCreateTime", "GmtStartTime", "GmtFinishTime", "Ip", "PodId", "PodUid", "Status", "Type"]
    )
    assert (pod["PodId"], pod["Status"], pod["Type"]) == (f"{id}-master-0", "Succeeded", "Master")


@pytest.mark.parametrize(
    ("state", "more", "status"),
    [
        ("queued", {"attempt": 0, "reason_code": "waiting.new"}, "Creating"),
        ("queued", {"attempt": 0, "reason_code": "waiting.busy"}, "Queuing"),
        ("queued", {"attempt": 1}, "Restarting"),
        ("queued", {"wanted": "stop"}, "Stopping"),
        *(("placed", {}, "EnvPreparing"), ("starting", {}, "EnvPreparing"), ("running", {}, "Running")),
        *(("running", {"wanted": "stop"}, "Stopping"), ("stopping", {}, "Stopping"), ("paused", {}, "Queuing")),
        *(("succeeded", {}, "Succeeded"), ("failed", {}, "Failed"), ("stopped", {"wanted": "stop"}, "Stopped")),
    ],
)
def test_states_have_dlc_s_names_and_are_found_by_them(state: str, more: dict[str, Any], status: str) -> None:
    assert telling.status(answer(state=state, **more)) == status
    assert state in telling.STATES[status]


@pytest.mark.parametrize(
    ("amount", "told"), [(4 * GIB, "4Gi"), (64 << 20, "64Mi"), (3 * GIB // 2, "1536Mi"), (1_000_000_001, "1000000001")]
)
def test_amounts_are_told_as_they_were_asked_for(amount: int, told: str) -> None:
    role = answer()["roles"][0] | {"memory": amount}
    (spec,) = telling.job_specs(answer(roles=[role]))
    assert spec["ResourceConfig"]["Memory"] == told


def test_an_only_worker_is_found_under_both_of_its_names() -> None:
    assert telling.replica_of(answer(), "master", 0) == "master-0"
    assert telling.replica_of(answer(), "worker", 0) == "master-0"
    assert telling.replica_of(answer(), "worker", 1) is None


def test_a_command_is_told_without_what_was_put_before_it() -> None:
    facts = {"kind": "BatchJob", "thirdparty_libs": "einops"}
    role = answer()["roles"][0] | {"command": ["sh", "-c", installing("einops", "") + "echo hi"]}
    assert telling.user_command(answer(roles=[role], origin={"door": "dlc", "facts": facts})) == "echo hi"


def test_a_table_is_drawn_as_dlc_draws_it() -> None:
    table = tables.boxed(("JobId", "RequestId"), [("dlc1xjcumbfm7aai", "71CB9CAA-87F6-5F8E-A38A-8D0E32F2559F")])
    assert table == (
        "+------------------+--------------------------------------+\n"
        "|      JobId       |              RequestId               |\n"
        "+------------------+--------------------------------------+\n"
        "| dlc1xjcumbfm7aai | 71CB9CAA-87F6-5F8E-A38A-8D0E32F2559F |\n"
        "+------------------+--------------------------------------+"
    )


def test_a_table_without_rows_is_closed_too() -> None:
    assert tables.boxed(("JobId",), []) == "+-------+\n| JobId |\n+-------+\n+-------+"


def test_plain_columns_hold_name_id_and_status_as_words_one_two_and_eight() -> None:
    line = tables.columns(telling.LIST_HEADERS, [telling.row(answer(), NOW)]).splitlines()[1].split()
    assert (line[0], line[1], line[7]) == ("t", ids.job_id("abcdefghij"), "Succeeded")


def test_jobs_that_came_another_way_are_told_too() -> None:
    data = json.loads(telling.job_json(answer(origin=None, attempts=[]), "R", NOW))
    assert (data["JobType"], data["Pods"]) == ("BatchJob", [])
