"""What the engine is asked for: nothing that a user could widen, and cards by the best way the engine has."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuyard.domain.cluster import Allotment, Card, CardShare
from gpuyard.domain.people import BLOCK, FIRST_BLOCK
from gpuyard.domain.places import Root
from gpuyard.domain.workload import Kind, ReplicaId
from gpuyard.engines.container import creating, inside_request, names
from gpuyard.engines.container.containers import read_time
from gpuyard.engines.container.creating import EngineFacts, Plan, Source
from gpuyard.engines.container.endings import told_by_engine, told_by_porter
from gpuyard.engines.container.finding import card_folders, facts_of, limits_of, sockets, unfit
from gpuyard.engines.seam import LaunchRequest

PODMAN = EngineFacts(is_podman=True, most_files=20_000, most_processes=32_768)
DOCKER = EngineFacts(is_podman=False, most_files=1 << 20, most_processes=60_000)
ID = ReplicaId("waaaaaaaaa", 2, "worker", 3)
ROOTS = [Root("/mnt", "/data/files"), Root("/mnt2", "/nas2")]


def request(uid: int = FIRST_BLOCK, device: str = "", cards: int = 0, **more: Any) -> LaunchRequest:
    shares = tuple(CardShare(number, 1000) for number in range(cards))
    allotment = Allotment("n", 1500, 1 << 30, 1 << 29, device, shares)
    return LaunchRequest(ID, "ann", uid, FIRST_BLOCK + BLOCK, "vision", ("true",), (), allotment, 5.0, **more)


def plan(asked: LaunchRequest, cards: tuple[Card, ...] = (), network: str | None = "yard-waaaaaaaaa") -> Plan:
    return Plan(
        asked, "sha256:1", (Source("/a", "/b"),), cards, ("/dev/nvidiactl",), (), network, ("init",), 99, "mark"
    )


def host(asked: LaunchRequest, engine: EngineFacts, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = creating.config(plan(asked, **more), engine)["HostConfig"]
    return found


def real(device: str, count: int) -> tuple[Card, ...]:
    name = "nvidia" if device == "nvidia" else "davinci"
    return tuple(Card(number, device, "X", path=f"/dev/{name}{number}") for number in range(count))


def test_amounts_are_as_allotted_and_swap_adds_nothing() -> None:
    found = host(request(), PODMAN)
    assert (found["NanoCpus"], found["PidsLimit"], found["ShmSize"]) == (1_500_000_000, 99, 1 << 29)
    assert found["Memory"] == found["MemorySwap"] == 1 << 30


@pytest.mark.parametrize("engine", [PODMAN, DOCKER])
def test_both_file_and_process_limits_are_always_given_and_none_above_the_engines_own(engine: EngineFacts) -> None:
    limits = {limit["Name"]: limit["Hard"] for limit in host(request(), engine)["Ulimits"]}
    assert limits == {"nofile": engine.most_files, "nproc": engine.most_processes, "core": 0}


@pytest.mark.parametrize("engine", [PODMAN, DOCKER])
def test_nobody_makes_device_nodes_raw_packets_or_new_rights(engine: EngineFacts) -> None:
    found = host(request(), engine)
    assert found["CapDrop"] == ["ALL"]
    assert not {"MKNOD", "NET_RAW", "SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE"} & set(found["CapAdd"])
    assert found["SecurityOpt"] == ["no-new-privileges"]
    assert not found.get("Privileged")
    assert found["Devices"] == []
    assert not {"PidMode", "UTSMode", "CgroupParent", "VolumesFrom", "Binds"} & found.keys()


def test_with_podman_the_owner_is_root_over_their_own_numbers_only() -> None:
    body = creating.config(plan(request(FIRST_BLOCK + 7 * BLOCK)), PODMAN)
    start = FIRST_BLOCK + 7 * BLOCK
    assert body["User"] == "0:0"
    assert body["HostConfig"]["UsernsMode"] == f"auto:uidmapping=0:{start}:65536,gidmapping=0:{start}:65536,size=65536"


@pytest.mark.parametrize(("engine", "uid", "map"), [(DOCKER, FIRST_BLOCK, "host"), (PODMAN, 310_001, None)])
def test_without_a_map_they_are_their_own_number_with_no_rights_at_all(
    engine: EngineFacts, uid: int, map: str | None
) -> None:
    body = creating.config(plan(request(uid)), engine)
    assert body["User"] == f"{uid}:{FIRST_BLOCK + BLOCK}"
    assert body["HostConfig"]["CapAdd"] == []
    assert body["HostConfig"].get("UsernsMode") == map


def test_the_machines_network_is_used_only_when_no_other_is_given() -> None:
    assert host(request(), PODMAN)["NetworkMode"] == "yard-waaaaaaaaa"
    body = creating.config(plan(request(), network=None), PODMAN)
    assert body["HostConfig"]["NetworkMode"] == "host"
    assert "NetworkingConfig" not in body


def test_what_moves_memory_over_the_network_comes_with_the_machines_network_only() -> None:
    asked = replace(plan(request(), network=None), rdma_nodes=("/dev/infiniband/uverbs0",))
    devices = creating.config(asked, PODMAN)["HostConfig"]["Devices"]
    assert [device["PathOnHost"] for device in devices] == ["/dev/infiniband/uverbs0"]


def test_the_engines_own_log_stays_small() -> None:
    assert host(request(), PODMAN)["LogConfig"] == {"Type": "k8s-file", "Config": {"max-size": "1m"}}
    assert host(request(), DOCKER)["LogConfig"]["Config"]["max-size"] == "1m"


@pytest.mark.parametrize(
    ("device", "told"),
    [
        ("", {"NVIDIA_VISIBLE_DEVICES=void", "ASCEND_VISIBLE_DEVICES="}),
        ("nvidia", {"NVIDIA_VISIBLE_DEVICES=0,1", "ASCEND_VISIBLE_DEVICES="}),
        ("ascend", {"NVIDIA_VISIBLE_DEVICES=void", "ASCEND_VISIBLE_DEVICES=0,1"}),
    ],
)
def test_cards_that_were_not_given_are_not_visible_whatever_the_image_says(device: str, told: set[str]) -> None:
    cards = real(device, 2) if device else ()
    assert told <= set(creating.config(plan(request(device=device, cards=len(cards)), cards), DOCKER)["Env"])


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("bert", "bert"),
        ("My_First_Env", "My-First-Env"),
        ("_a__b_", "a-b"),
        ("___", "worker-3"),
        ("2026", "env-2026"),
        ("LocalHost", "env-LocalHost"),
        ("x" * 70, "x" * 59),
        ("", "worker-3"),
    ],
)
def test_an_environment_is_called_by_its_name_inside(name: str, host: str) -> None:
    asked = request(kind=Kind.ENV)
    body = creating.config(plan(replace(asked, env=(("YARD_NAME", name),))), PODMAN)
    assert body["Hostname"] == host
    assert body["NetworkingConfig"]["EndpointsConfig"]["yard-waaaaaaaaa"]["Aliases"] == ["worker-3"]


def test_replicas_of_a_job_are_called_by_their_place() -> None:
    body = creating.config(plan(replace(request(), env=(("YARD_NAME", "bert"),))), PODMAN)
    assert body["Hostname"] == "worker-3"


def test_real_cards_come_by_name_by_runtime_or_node_by_node() -> None:
    asked, cards = request(device="nvidia", cards=2), real("nvidia", 2)
    by_name = host(asked, replace(DOCKER, cdi_devices=True, runtimes=frozenset({"nvidia"})), cards=cards)
    assert by_name["DeviceRequests"] == [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]}]
    assert host(asked, replace(DOCKER, runtimes=frozenset({"nvidia"})), cards=cards)["Runtime"] == "nvidia"
    by_node = host(asked, replace(PODMAN, runtimes=frozenset({"nvidia"})), cards=cards)  # podman would do nothing
    assert "Runtime" not in by_node
    nodes = [device["PathOnHost"] for device in by_node["Devices"]]
    assert nodes == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"]


def test_ascend_cards_are_given_by_their_nodes() -> None:
    found = host(request(device="ascend", cards=1), replace(PODMAN, cdi_devices=True), cards=real("ascend", 1))
    assert found["Devices"][0]["PathOnHost"] == "/dev/davinci0"
    assert "DeviceRequests" not in found


def test_control_nodes_come_with_real_cards_only() -> None:
    there = ["/dev/davinci_manager", "/dev/hisi_hdc"]
    assert creating.control_nodes("ascend", real("ascend", 1), there) == ("/dev/davinci_manager", "/dev/hisi_hdc")
    stand_in = Card(0, "ascend", "X", simulated=True, path="/x")
    assert creating.control_nodes("ascend", [stand_in], there) == ()


def test_labels_entry_and_health_are_ours() -> None:
    body = creating.config(plan(request()), PODMAN)
    assert names.read_labels(body["Labels"]) == ID
    assert (body["Entrypoint"], body["Cmd"], body["Healthcheck"]) == (["init"], [], {"Test": ["NONE"]})


def test_containers_that_would_be_made_differently_are_told_apart() -> None:
    first = creating.config(plan(request()), PODMAN)
    again = creating.config(plan(replace(request(), id=replace(ID, attempt=9))), PODMAN)
    other = creating.config(plan(replace(request(), allotment=Allotment("n", 1500, 2 << 30, 1 << 29))), PODMAN)
    assert creating.digest(first) == creating.digest(again)
    assert creating.digest(first) != creating.digest(other)


def test_a_bridge_has_a_name_that_the_firewall_knows_and_the_kernel_takes() -> None:
    name = names.bridge_name("mark", "waaaaaaaaa")
    assert name.startswith("yard")
    assert len(name) <= 15
    assert name != names.bridge_name("other", "waaaaaaaaa")


def test_the_platform_has_the_last_word_on_variables_and_the_image_the_first() -> None:
    asked = replace(request(), env=(("YARD_ROLE", "boss"), ("HOME", "/elsewhere"), ("A", "mine")))
    env = inside_request.environment(asked, [], ROOTS, ["PATH=/opt/conda/bin", "A=image", "B=image", "YARD_ROLE=x"])
    assert (env["A"], env["B"], env["HOME"]) == ("mine", "image", "/elsewhere")
    assert env["PATH"] == "/opt/conda/bin:/opt/yard/shims"
    assert (env["YARD_ROLE"], env["YARD_REPLICA"], env["NVIDIA_VISIBLE_DEVICES"]) == ("worker", str(ID), "void")


def test_a_checkpoint_folder_is_found_again_when_the_container_is_gone() -> None:
    asked = request(checkpoint="out/ckpt")
    assert inside_request.checkpoint_inside(asked, ROOTS) == "/mnt/user/ann/out/ckpt"
    assert inside_request.checkpoint_place(asked, ROOTS) == {"root": "/data/files/user/ann", "path": "out/ckpt"}


def test_engines_are_looked_for_in_the_usual_places_and_only_on_this_machine() -> None:
    here = {"DOCKER_HOST": "unix:///y.sock"}
    assert sockets("unix:///x.sock", here, has_podman=True) == ["/x.sock"]
    assert sockets("", here, has_podman=True) == ["/y.sock", "/run/podman/podman.sock"]
    elsewhere = {"DOCKER_HOST": "tcp://10.0.0.1:2375"}
    assert sockets("", elsewhere, has_podman=True) == ["/run/podman/podman.sock"]
    assert sockets("", elsewhere, has_podman=False) == ["/run/podman/podman.sock", "/var/run/docker.sock"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["name=seccomp,profile=default"], ""),
        (["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"], ""),
        (["name=seccomp,profile=default", "name=userns"], ""),
        (["name=seccomp,profile=default", "name=rootless"], "without root"),
        (["name=seccomp,profile=unconfined"], "every kernel call"),
        (["name=apparmor"], "every kernel call"),
        (None, "every kernel call"),
    ],
)
def test_an_engine_that_could_not_keep_people_apart_is_not_taken(options: list[str] | None, problem: str) -> None:
    said = unfit({"SecurityOptions": options})
    assert problem in said
    assert bool(problem) == bool(said)


def test_a_process_that_is_gone_is_given_modest_limits() -> None:
    assert limits_of(2**22 + 5) == (1024, 1024)


@pytest.fixture
def answering() -> Iterator[str]:
    """A socket that somebody listens on."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        path = f"{folder}/s"
        listening.bind(path)
        listening.listen()
        yield path


def test_what_an_engine_says_of_itself_is_understood(answering: str) -> None:
    said = {"Version": {"Components": [{"Name": "Engine"}]}, "Runtimes": {"runc": {}, "nvidia": {}}}
    facts = facts_of(said, answering)
    assert (facts.is_podman, facts.runtimes, facts.cdi_devices) == (False, frozenset({"runc", "nvidia"}), False)
    assert facts.most_files > 1


def test_docker_takes_cards_by_name_where_it_says_that_names_are(answering: str, tmp_path: Path) -> None:
    said: dict[str, Any] = {"Version": {"Components": [{"Name": "Engine"}]}, "CDISpecDirs": [str(tmp_path)]}
    assert not facts_of(said, answering).cdi_devices
    (tmp_path / "nvidia.yaml").touch()
    assert facts_of(said, answering).cdi_devices
    assert not facts_of({**said, "CDISpecDirs": None}, answering).cdi_devices


@pytest.mark.parametrize(("version", "is_able"), [("4.3.1", False), ("5.3.2", False), ("5.4.0", True), ("6.0.1", True)])
def test_podman_takes_cards_by_name_only_since_it_heeds_them(version: str, is_able: bool) -> None:
    folders = card_folders({"ServerVersion": version}, is_podman=True)
    assert bool(folders) is is_able


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-16T02:09:40.5Z", 1794794980.5),
        ("2026-11-16T10:09:40.527903524+08:00", 1794794980.527903524),
        ("0001-01-01T00:00:00Z", 0.0),
        ("", 0.0),
    ],
)
def test_an_engines_times_are_read(text: str, seconds: float) -> None:
    assert read_time(text) == pytest.approx(seconds)


# --- how it ended -----------------------------------------------------------------------------------------------------


def test_a_first_process_that_fails_by_itself_is_a_failed_launch_with_its_last_words() -> None:
    ended = told_by_engine(126, "no such library", was_stopped=False, oom_kills=0)
    assert ended["how"] == "launch"
    assert "no such library" in ended["detail"]


@pytest.mark.parametrize(
    ("code", "stopped", "kills", "how"),
    [(137, False, 0, "signalled"), (137, True, 0, "stopped"), (137, False, 1, "oom"), (0, False, 1, "good")],
)
def test_the_engines_exit_code_is_read_with_what_the_kernel_counted(
    code: int, stopped: bool, kills: int, how: str
) -> None:
    told = {"exit_code": code, "oom": False, "problem": None}
    assert told_by_porter(told, was_stopped=stopped, oom_kills=kills)["how"] == how


def test_a_problem_seen_before_the_start_is_a_failed_launch() -> None:
    told = {"exit_code": 126, "problem": {"code": "ended.no_start_file", "path": "a.py"}}
    assert told_by_porter(told, was_stopped=False, oom_kills=0)["problem"]["path"] == "a.py"
