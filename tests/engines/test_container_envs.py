"""Dev environments in containers: what is installed in them stays, whatever they are started with."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

from tests.engines.containers import ContainerYard
from tests.engines.places import replica

from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Kind, Life, ReplicaId
from gpuyard.engines.seam import LaunchRequest

WORKLOAD = "eaaaaaaaaa"


def env(yard: ContainerYard, attempt: int, **more: Any) -> LaunchRequest:
    id = ReplicaId(WORKLOAD, attempt, "main", 0)
    return yard.request(id, kind=Kind.ENV, keeps=WORKLOAD, **more)


def start(yard: ContainerYard, attempt: int, **more: Any) -> ReplicaId:
    request = env(yard, attempt, **more)
    yard.engine.launch(request)
    assert yard.look(request.id).life is Life.RUNNING
    return request.id


def stop(yard: ContainerYard, id: ReplicaId) -> None:
    yard.engine.stop(id, None, 5.0)
    assert yard.ended(id)[0].cause is None


def inside(yard: ContainerYard, id: ReplicaId, line: str) -> str:
    """Run by the porter, through its door."""
    door = yard.engine.log_path(id).parent / "door" / "porter.sock"
    yard.wait_for(door.exists, "a door")
    read, write = os.pipe()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking, open(os.devnull, "rb") as nothing:
        folder = os.open(door.parent, os.O_PATH)
        try:
            asking.connect(f"/proc/self/fd/{folder}/{door.name}")  # the folder's own path may be too long for that
        finally:
            os.close(folder)
        ask = json.dumps({"do": "run", "argv": ["sh", "-c", line], "env": {}, "cwd": None}).encode()
        socket.send_fds(asking, [ask], [nothing.fileno(), write, write])
        os.close(write)
        assert json.loads(asking.recv(65536))["ok"]
        with os.fdopen(read, "r", encoding="utf-8") as output:
            return output.read()


def test_it_stays_until_it_is_stopped_and_that_is_a_good_end(container_yard: ContainerYard) -> None:
    id = start(container_yard, 1, env=[("YARD_NAME", "My_Env")])
    assert inside(container_yard, id, "echo $YARD_ATTEMPT $HOME; id -u; hostname") == "1 /mnt/user/ann\n0\nMy-Env\n"
    assert container_yard.look(id).life is Life.RUNNING
    stop(container_yard, id)


def test_what_is_installed_is_there_at_the_next_start_and_the_attempt_is_the_new_one(
    container_yard: ContainerYard,
) -> None:
    first = start(container_yard, 1)
    inside(container_yard, first, "mkdir -p /usr/bin; echo tool > /usr/bin/tool; chown 33 /usr/bin/tool")
    stop(container_yard, first)
    kept = container_yard.containers()
    second = start(container_yard, 2)
    assert inside(container_yard, second, "cat /usr/bin/tool; stat -c %u /usr/bin/tool; echo $YARD_ATTEMPT") == (
        "tool\n33\n2\n"
    )
    assert container_yard.containers() == kept
    assert container_yard.look(first).life is Life.ENDED
    stop(container_yard, second)


def test_moved_from_processor_to_card_and_back_it_keeps_what_is_installed(container_yard: ContainerYard) -> None:
    first = start(container_yard, 1)
    inside(container_yard, first, "echo one > /one; rm /bin/yes")
    stop(container_yard, first)
    second = start(container_yard, 2, cards=[0], memory=128 * MIB)
    assert inside(container_yard, second, "cat /one; ls /bin/yes; ls $YARD_CARD_PATHS; echo two > /two").startswith(
        "one\nls: /bin/yes"
    )
    stop(container_yard, second)
    third = start(container_yard, 3)
    assert inside(container_yard, third, "cat /one /two; ls -d /bin/yes; echo $NVIDIA_VISIBLE_DEVICES").split() == [
        *("one", "two"),
        *["ls:", "/bin/yes:", "No", "such", "file", "or", "directory"],
        "void",
    ]
    assert len(container_yard.containers()) == 1
    stop(container_yard, third)


def test_another_image_is_a_fresh_start(container_yard: ContainerYard) -> None:
    container_yard.host.load("localhost/other:1", files={"etc/other": "yes"})
    first = start(container_yard, 1)
    inside(container_yard, first, "echo one > /one")
    stop(container_yard, first)
    second = start(container_yard, 2, image="localhost/other:1")
    assert inside(container_yard, second, "cat /etc/other; ls /one").startswith("yesls: /one")
    assert len(container_yard.containers()) == 1
    stop(container_yard, second)


def test_a_stopped_one_holds_nothing_but_disk_and_is_left_alone_by_sweeps(container_yard: ContainerYard) -> None:
    id = start(container_yard, 1, cards=[0])
    inside(container_yard, id, "echo one > /one")
    stop(container_yard, id)
    container_yard.engine.sweep(())
    container_yard.run("true", replica())
    container_yard.engine.sweep(())
    container_yard.wait_for(lambda: len(container_yard.containers()) == 1, "only the kept one")
    again = start(container_yard, 2, cards=[0])
    assert inside(container_yard, again, "cat /one") == "one\n"
    stop(container_yard, again)


def test_an_environment_that_is_killed_keeps_what_is_installed(container_yard: ContainerYard) -> None:
    id = start(container_yard, 1)
    inside(container_yard, id, "echo one > /one; sync")
    os.kill(int(container_yard.status(id)["job"]["pid"]), 9)
    container_yard.ended(id)
    again = start(container_yard, 2)
    assert inside(container_yard, again, "cat /one") == "one\n"
    stop(container_yard, again)


def test_forgotten_it_leaves_no_container_image_or_folder(container_yard: ContainerYard) -> None:
    first = start(container_yard, 1)
    stop(container_yard, first)
    stop(container_yard, start(container_yard, 2, memory=128 * MIB))
    assert "yard-kept" in container_yard.host.command("images")
    assert not [held for held in container_yard.engine.images() if "yard-kept" in held.name]
    container_yard.engine.forget(WORKLOAD)
    assert container_yard.containers() == []
    assert "yard-kept" not in container_yard.host.command("images")
    assert not (container_yard.data / "kept" / WORKLOAD).exists()


def test_a_door_note_says_who_stands_behind_it(container_yard: ContainerYard) -> None:
    id = start(container_yard, 1)
    note = json.loads((container_yard.engine.log_path(id).parent / "door.json").read_text())
    request = env(container_yard, 1)
    assert note == {"uid": request.uid, "uids": 65536, "owner": "ann", "group": "vision", "kind": "env"}
    stop(container_yard, id)
