"""Hostile tenants against what the container engine keeps apart, where its own tests do not go yet: what else the
machine hosts, and what others have installed."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator

import pytest
from tests.engines.containers import UID, ContainerYard, Podman, missing
from tests.engines.test_container_networks import ASK

from gpuyard.devices.simulated import SimulatedProbe
from gpuyard.domain.errors import EngineError
from gpuyard.domain.people import BLOCK
from gpuyard.domain.workload import Kind, Life, ReplicaId
from gpuyard.engines.logs import MOST_TAIL_BYTES, Chunk, LogFile
from gpuyard.images.toolbox.base import AT, python_command

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
BOB = UID + BLOCK


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    service = Podman(tmp_path_factory.mktemp("podman"))
    try:
        service.start()
        yield service
    finally:
        service.close()


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory, podman: Podman) -> Iterator[ContainerYard]:
    data = tmp_path_factory.mktemp("yard") / "data"
    yard = ContainerYard(podman, data, devices=[SimulatedProbe(data, 2)])
    yield yard
    yard.close()


# --- the network --------------------------------------------------------------------------------------------------


@pytest.fixture
def neighbour() -> Iterator[str]:
    """Somebody else's container, as Docker would have connected it: a room, a cable, and something that answers."""
    commands = (
        "netns add yardatk",
        "link add br-yardatk type veth peer name eth0 netns yardatk",
        "addr add 10.214.77.1/30 dev br-yardatk",
        "link set br-yardatk up",
        "-n yardatk addr add 10.214.77.2/30 dev eth0",
        "-n yardatk link set eth0 up",
        "-n yardatk route add default via 10.214.77.1",
    )
    busybox = shutil.which("busybox")
    assert busybox is not None
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True, capture_output=True)
        answer = "printf 'HTTP/1.0 200 OK\\r\\n\\r\\nreached\\n'"
        serve = [
            "ip",
            "netns",
            "exec",
            "yardatk",
            busybox,
            "nc",
            "-ll",
            "-p",
            "8080",
            "-e",
            busybox,
            "sh",
            "-c",
            answer,
        ]
        server = subprocess.Popen(serve)
        yield "10.214.77.2"
        server.kill()
        server.wait()
    finally:
        subprocess.run(["ip", "netns", "delete", "yardatk"], check=False, capture_output=True)


def test_containers_of_others_on_this_machine_are_out_of_reach(yard: ContainerYard, neighbour: str) -> None:
    from_here = f"until exec 3<>/dev/tcp/{neighbour}/8080; do sleep 0.1; done"
    subprocess.run(["timeout", "10", "bash", "-c", from_here], check=True, capture_output=True)  # it does answer
    _, log = yard.run(f"{ASK} ask {neighbour} 8080; echo tried", ReplicaId("wneighbour", 1, "main", 0))
    assert log == "tried\n"


# --- what others have installed -----------------------------------------------------------------------------------


def test_what_is_installed_in_an_environment_is_no_image_for_others(yard: ContainerYard, podman: Podman) -> None:
    for attempt, cards in ((1, (0,)), (2, ())):
        id = ReplicaId("wannsown00", attempt, "main", 0)
        yard.engine.launch(yard.request(id, cards=cards, kind=Kind.ENV, keeps="wannsown00"))
        assert yard.look(id).life is Life.RUNNING
        yard.engine.stop(id, None, 5.0)
        yard.ended(id)
    kept = podman.command("images", "--no-trunc", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}").split("\n")
    image, name = next(line.split() for line in kept if "wannsown00" in line)
    number = image.removeprefix("sha256:")
    for chosen in (name, name.removeprefix("localhost/"), image, number, number[:12]):
        id = ReplicaId("wbobs00000", 1, "main", 0)
        with pytest.raises(EngineError):
            yard.engine.launch(yard.request(id, "true", owner="bob", uid=BOB, image=chosen))
        assert not yard.engine.remove_image(chosen)


# --- what lies in their hands ----------------------------------------------------------------------------------------


def test_a_first_process_killed_with_a_forged_end_stops_nothing(yard: ContainerYard) -> None:
    """Its owner may trace it, and so end it at a moment of their choice."""
    deep = 'printf \'{"exit_code": 0, "x": \'; yes [ | head -n 60000'
    kill = (
        "import ctypes, os\n"
        "trace = ctypes.CDLL(None).ptrace\n"
        "trace.argtypes = [ctypes.c_long] * 4\n"
        "assert trace(16, 1, 0, 0) == 0\n"
        "os.waitpid(1, 0x40000000)\n"
        "trace(0x4200, 1, 0, 0x100000)\n"
    )
    script = f"({deep}) > /run/yard/door/end.json; {' '.join(python_command(AT))} -I -S -c '{kill}'; sleep 60"
    first = ReplicaId("wforged000", 1, "main", 0)
    seen, _ = yard.run(script, first)
    assert seen.life is Life.ENDED
    assert yard.run("echo fine", ReplicaId("wafter0000", 1, "main", 0))[1] == "fine\n"


def test_odd_things_in_ones_own_folders_make_nobody_wait(yard: ContainerYard) -> None:
    """Pipes, links, sockets and endless files where the server looks."""
    script = (
        "cd /run/yard; mknod beacon/saved p || mkfifo beacon/saved; ln -s /etc/shadow door/end.json; "
        "ln -s /run/yard/door/x door/x; ln -s / beacon/all; mkdir -p door/deep; "
        "dd if=/dev/zero of=log bs=1 count=1 seek=1000000000000 2>/dev/null; echo done > $HOME/done; sleep 600"
    )
    id = yard.launch(script, ReplicaId("wodd000000", 1, "main", 0))
    done = yard.data / "files" / "user" / "ann" / "done"
    yard.wait_for(done.exists, "the odd things")
    looked: list[object] = []

    def look() -> None:
        looked.append((yard.look(id).life, yard.engine.progress({id: None}), yard.engine.usage([id])))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    yard.wait_for(lambda: bool(looked), "a look")
    thread.join()
    yard.engine.stop(id, None, 0.0)
    yard.wait_for(lambda: yard.look(id).life is Life.ENDED, "the end")
    log = LogFile(yard.engine.log_path(id))
    assert sum(piece.end - piece.start for piece in log.tail(10) if isinstance(piece, Chunk)) <= MOST_TAIL_BYTES
    assert yard.engine.log_path(id).stat().st_blocks * 512 < 1 << 30
    yard.engine.forget(id.workload)
    assert not yard.engine.log_path(id).exists()
