"""What is different on docker: nobody is root inside, its own rules come before ours, and it forgets networks and keeps
images where podman does not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.containers import GROUP_ID, UID, ContainerYard
from tests.engines.places import replica
from tests.engines.test_container_envs import WORKLOAD, inside, start, stop
from tests.engines.test_container_networks import ASK

from gpuyard.domain.people import BLOCK
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Cause
from gpuyard.files.shares import Shares

BOB = UID + BLOCK
METADATA = "169.254.169.254"


# --- who one is -----------------------------------------------------------------------------------------------------


def test_work_is_done_under_the_owners_own_number_and_without_any_right(docker_yard: ContainerYard) -> None:
    rights = "grep -hE '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/1/status /proc/self/status"
    _, log = docker_yard.run(f"id -u; echo mine > $HOME/file; {rights}", replica())
    assert log.split("\n")[0] == str(UID)
    assert log.count("CapEff:\t0000000000000000") == log.count("CapBnd:\t0000000000000000") == 2
    assert log.count("NoNewPrivs:\t1") == log.count("Seccomp:\t2") == 2
    assert (docker_yard.data / "files" / "user" / "ann" / "file").stat().st_uid == UID


def test_what_would_widen_ones_rights_is_refused(docker_yard: ContainerYard) -> None:
    attempts = (
        "mknod /tmp/disk b 254 0",
        "mount -t tmpfs none /tmp",
        "unshare -U true",
        "unshare -n true",
        "ping -c 1 -w 1 127.0.0.1",
        "echo x > /etc/passwd",
        "echo x > /opt/yard/x",
        "echo x > /run/yard/request.json",
        "chown 0 $HOME",
        "ls /var/run/docker.sock /run/yard-docker-*",
        "sudo true",
    )
    script = "".join(f"if {attempt}; then echo could: '{attempt}'; fi; " for attempt in attempts)
    _, log = docker_yard.run(script + "echo tried", replica())
    assert "tried" in log
    assert "could" not in log


def test_an_images_word_on_user_entry_and_cards_does_not_count(docker_yard: ContainerYard) -> None:
    hostile = ("USER 0", 'ENTRYPOINT ["/bin/sh", "-c", "echo hijacked"]', "VOLUME /mnt/user/ann", "VOLUME /stuff")
    cards = ("ENV NVIDIA_VISIBLE_DEVICES=all", "ENV ASCEND_VISIBLE_DEVICES=0-7")
    docker_yard.host.load("localhost/hostile:1", *hostile, *cards)
    script = "id -u; echo kept > $HOME/kept; cat /proc/1/environ"
    seen, log = docker_yard.run(script, replica(), image="localhost/hostile:1")
    assert seen.exit_code == 0
    assert log.startswith(f"{UID}\n")
    told = {variable for variable in log.split("\n")[1].split("\0") if "_VISIBLE_" in variable}
    assert told == {"ASCEND_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=void"}
    assert (docker_yard.data / "files" / "user" / "ann" / "kept").exists()
    docker_yard.wait_for(lambda: not docker_yard.host.command("volume", "ls", "-q"), "the volumes' removal")


def test_what_one_member_makes_is_the_groups_and_a_home_is_ones_own(docker_yard: ContainerYard) -> None:
    shares = Shares(docker_yard.data / "files" / "share")
    if shares.without_lists():
        pytest.skip("this file system keeps no access lists")
    shares.open_to("vision", GROUP_ID, [UID, BOB])
    docker_yard.run("umask 077; cd $YARD_SHARE_DIR; mkdir d; echo ann > d/f; echo secret > $HOME/f", replica(0))
    script = "cd /mnt/share/vision; echo bob >> d/f; cat d/f; rm d/f; ls /mnt/user; cat /mnt/user/ann/f"
    _, log = docker_yard.run(script, replica(1), owner="bob", uid=BOB)
    assert log.startswith("ann\nbob\nbob\n")
    assert "secret" not in log


# --- the network ----------------------------------------------------------------------------------------------------


@pytest.fixture
def metadata() -> Iterator[None]:
    """A machine's secrets, told to whoever asks from there, as clouds do it."""
    commands = (
        "netns add yardmeta",
        "link add yrdmeta0 type veth peer name eth0 netns yardmeta",
        "addr add 169.254.169.253/30 dev yrdmeta0",
        "link set yrdmeta0 up",
        f"-n yardmeta addr add {METADATA}/30 dev eth0",
        "-n yardmeta link set eth0 up",
        "-n yardmeta route add default via 169.254.169.253",
    )
    page = Path("/run/yardmeta")
    for words in commands:
        subprocess.run(["ip", *words.split()], check=True)
    page.mkdir()
    (page / "page").write_text("reached\n")
    busybox = shutil.which("busybox")
    assert busybox is not None
    serving = ["ip", "netns", "exec", "yardmeta", busybox, "httpd", "-f", "-p", "80", "-h", str(page)]
    server = subprocess.Popen(serving)
    yield
    server.kill()
    server.wait()
    subprocess.run(["ip", "netns", "del", "yardmeta"], check=True)
    shutil.rmtree(page)


def test_dockers_rules_do_not_let_out_what_ours_keep_in(docker_yard: ContainerYard, metadata: None) -> None:
    docker_yard.wait_for(lambda: _is_there(METADATA), "the service's start")
    first = docker_yard.launch(ASK + f"ask {METADATA} 80; echo tried; sleep 600", replica())
    docker_yard.says(first, "tried")
    docker_yard.run("true", replica(workload="wbbbbbbbbb"))  # docker writes its rules anew for every network
    _, log = docker_yard.run(ASK + f"ask {METADATA} 80; echo tried", replica(1))
    assert (docker_yard.log(first), log) == ("tried\n", "tried\n")


def _is_there(address: str) -> bool:
    asked = subprocess.run(["busybox", "wget", "-q", "-O", "-", f"http://{address}/page"], capture_output=True)
    return asked.stdout == b"reached\n"


def test_a_network_that_went_before_the_start_is_made_again(docker_yard: ContainerYard) -> None:
    id, engine = replica(), docker_yard.engine
    request = docker_yard.request(id, "sh", "-c", "echo well")
    made = engine._make(request, engine.log_path(id).parent)
    assert engine._settler.begin(id, made, request.allotment.memory)
    docker_yard.host.command("network", "rm", f"yard-{id.workload}")
    engine.launch(request)
    assert docker_yard.ended(id)[1] == "well\n"


# --- guards ---------------------------------------------------------------------------------------------------------


def test_with_its_guard_killed_work_ends_and_that_is_told(docker_yard: ContainerYard) -> None:
    """Containerd does that: whom nobody watches over may not run."""
    id = docker_yard.launch("exec 9<$YARD_CARD_PATHS; sleep 600", cards=[0])
    pid = int(docker_yard.status(id)["job"]["pid"])
    guard = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    os.kill(guard, signal.SIGKILL)
    seen, _ = docker_yard.ended(id)
    assert seen.cause is Cause.LOST or (seen.cause, seen.exit_code) == (Cause.EXIT, 137)
    docker_yard.wait_for(lambda: docker_yard.containers() == [], "the removal of its container")
    docker_yard.wait_for(lambda: not docker_yard.engine.nodes()[0].cards[0].trouble, "a card that is free")


# --- environments ---------------------------------------------------------------------------------------------------


def test_an_environment_moved_to_a_card_and_back_keeps_what_is_in_it_and_leaves_no_image(
    docker_yard: ContainerYard,
) -> None:
    before = docker_yard.host.command("images", "--all", "--quiet")
    first = start(docker_yard, 1)
    assert inside(docker_yard, first, "echo one > /tmp/one; rm -rf /tmp/none; id -u") == f"{UID}\n"
    stop(docker_yard, first)
    second = start(docker_yard, 2, cards=[0], memory=128 * MIB)
    assert inside(docker_yard, second, "cat /tmp/one; ls $YARD_CARD_PATHS; echo two > /tmp/two").startswith("one\n/")
    stop(docker_yard, second)
    third = start(docker_yard, 3)
    assert inside(docker_yard, third, "cat /tmp/one /tmp/two; stat -c %u /tmp/two") == f"one\ntwo\n{UID}\n"
    assert len(docker_yard.containers()) == 1
    stop(docker_yard, third)
    kept = docker_yard.containers()
    fourth = start(docker_yard, 4)
    assert docker_yard.containers() == kept
    assert inside(docker_yard, fourth, "cat /tmp/two; echo $YARD_ATTEMPT") == "two\n4\n"
    stop(docker_yard, fourth)
    docker_yard.engine.forget(WORKLOAD)
    assert docker_yard.containers() == []
    assert docker_yard.host.command("images", "--all", "--quiet") == before
