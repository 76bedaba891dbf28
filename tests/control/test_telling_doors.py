"""What replicas of a job from a front door are told at their start, on engines with rooms and on one without."""

from __future__ import annotations

import json

import pytest

from gpuyard.control.launching import tell
from gpuyard.dialects import native
from gpuyard.dialects.brought import read
from gpuyard.dialects.inside import told
from gpuyard.domain.cluster import Allotment
from gpuyard.domain.workload import Origin, ReplicaId, RoleSpec, Spec, Workload
from gpuyard.engines.seam import LaunchRequest

PARAMS = (
    "name=a\nkind=PyTorchJob\nworker_count=3\nworker_image=debian:12\nworker_memory=1\nworker_cpu=1\ncommand=true\n"
)


def a_workload(text: str = PARAMS) -> Workload:
    return Workload("jaaaaaaaaa", "ann", "vision", native.read_job(read("dlc", text).job).spec, 1.0)


def requests_of(workload: Workload, env: tuple[tuple[str, str], ...] = ()) -> list[LaunchRequest]:
    ids = [ReplicaId(workload.id, 1, role.name, i) for role in workload.spec.roles for i in range(role.replicas)]
    place = Allotment("node-1", 1000, 1 << 30, 0)
    return [LaunchRequest(id, "ann", 1, 1, "vision", ("true",), env, place, 5.0) for id in ids]


def test_every_replica_knows_the_names_of_all_and_is_known_by_its_own() -> None:
    workload = a_workload()
    found = list(tell(workload, requests_of(workload), makes_rooms=True))
    ranks = [dict(request.env)["RANK"] for request in found]
    assert sorted(ranks) == ["0", "1", "2"]
    master = dict(found[0].env)["MASTER_ADDR"]
    assert [request for request in found if master in request.aliases] == [found[0]]
    assert all(request.peers == found[0].peers and master in request.peers for request in found)


def test_without_rooms_names_become_an_address_that_works() -> None:
    workload = a_workload()
    found = list(tell(workload, requests_of(workload), makes_rooms=False))
    assert {dict(request.env)["MASTER_ADDR"] for request in found} == {"127.0.0.1"}
    assert not any(request.aliases or request.peers for request in found)


def test_the_jobs_own_variables_win() -> None:
    workload = a_workload()
    found = list(tell(workload, requests_of(workload, (("MASTER_PORT", "1"),)), makes_rooms=True))
    assert [dict(request.env)["MASTER_PORT"] for request in found] == ["1", "1", "1"]
    assert [name for name, _ in found[0].env].count("MASTER_PORT") == 1


def ports_of(workload: Workload, attempt: int = 1) -> dict[str, str]:
    """Where each replica of a TensorFlow job listens, or the master of another."""
    env = dict(told(workload, ReplicaId(workload.id, attempt, workload.spec.roles[0].name, 0), own_ports=True).env)
    if "TF_CONFIG" not in env:
        return {"master": env["MASTER_PORT"]}
    cluster = json.loads(env["TF_CONFIG"])["cluster"]
    return dict(host.split(":") for hosts in cluster.values() for host in hosts)


TENSORFLOW = "name=a\nkind=TFJob\nps_count=2\nworker_count=3\ncommand=true\n"
VOLCANO_JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: a}}
spec:
  plugins: {{{plugin}: ["--port=23456"]}}
  tasks:
  - {{name: {first}, replicas: 1, template: {{spec: {{containers: [{{image: a, command: ["true"]}}]}}}}}}
  - {{name: worker, replicas: 2, template: {{spec: {{containers: [{{image: a, command: ["true"]}}]}}}}}}
"""


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("dlc", PARAMS),
        ("dlc", TENSORFLOW),
        ("volcano", VOLCANO_JOB.format(plugin="pytorch", first="master")),
        ("volcano", VOLCANO_JOB.format(plugin="tensorflow", first="ps")),
    ],
)
def test_on_a_shared_network_no_two_jobs_and_no_two_listeners_of_one_have_the_same_port(
    dialect: str, text: str
) -> None:
    spec = native.read_job(read(dialect, text).job).spec
    one, other = (Workload(id, "ann", "vision", spec, 1.0) for id in ("jaaaaaaaaa", "jaaaaaaaab"))
    ports = [*ports_of(one).values(), *ports_of(other).values(), *ports_of(one, attempt=2).values()]
    assert len(set(ports)) == len(ports)
    assert all(10_000 <= int(port) < 30_000 for port in ports)
    assert ports_of(one) == ports_of(one)


def test_all_replicas_of_a_job_are_told_the_same_port_of_its_own() -> None:
    workload = a_workload()
    found = list(tell(workload, requests_of(workload), makes_rooms=True, own_ports=True))
    ports = {dict(request.env)["MASTER_PORT"] for request in found}
    assert len(ports) == 1
    assert ports != {"23456"}


def test_our_own_jobs_are_told_nothing_more() -> None:
    workload = Workload("jaaaaaaaaa", "ann", "vision", Spec("a", (RoleSpec("worker", ("true",)),)), 1.0)
    requests = requests_of(workload)
    assert list(tell(workload, requests, makes_rooms=True)) == requests


@pytest.mark.parametrize("door", ["dlc", "volcano"])
@pytest.mark.parametrize("value", ["", "{", "[1]", "-1", "../../etc", "\n", "null", "9" * 50])
def test_facts_written_by_hand_keep_nothing_from_starting(door: str, value: str) -> None:
    """Every fact that this door remembers, made senseless."""
    role = RoleSpec("worker", ("true",), replicas=2)
    names = ("kind", "plugins", "tasks", "roles", "job", "task.worker", "minAvailable", "policies", "name", "queue")
    origin = Origin(door, tuple((name, value) for name in names))
    workload = Workload("jaaaaaaaaa", "ann", "vision", Spec("a", (role,), origin=origin), 1.0)
    assert told(workload, ReplicaId(workload.id, 1, "worker", 1)) is not None


@pytest.mark.parametrize("makes_rooms", [True, False])
def test_what_thousands_are_told_is_made_once(makes_rooms: bool) -> None:
    role = RoleSpec("worker", ("true",), replicas=1000)
    origin = Origin("volcano", (("plugins", '{"svc":[],"env":[]}'),))
    workload = Workload("jaaaaaaaaa", "ann", "vision", Spec("a", (role,), origin=origin), 1.0)
    found = list(tell(workload, requests_of(workload), makes_rooms=makes_rooms))
    texts = {id(file.text) for request in found for file in request.files}
    assert len(found) == 1000
    assert len(texts) <= 1
    hosts = {dict(request.env)["VC_WORKER_HOSTS"] for request in found}
    assert [len(text.split(",")) for text in hosts] == [1000]
