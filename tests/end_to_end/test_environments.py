"""Dev environments in containers, as people use them, and through the death of every part of the platform."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.cli.yard import wait_until
from tests.images import stage
from tests.platforms import Platform, a_platform

from gpuyard.engines.container.names import mark_of

pytestmark = pytest.mark.skipif(bool(stage.missing("iptables", "ssh")), reason=stage.missing("iptables", "ssh"))
SMALL = ("--cpu", "0.2", "--memory", "128M")
CARDS = ("--simulate-cards", "2")
NOWHERE = "127.0.0.1:1"  # a registry that is allowed, and not there
SSH = ("-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    settings = f'registries = ["{NOWHERE}"]'
    with a_platform(tmp_path_factory.mktemp("yard"), "container", *CARDS, settings=settings) as yard:
        yard.load(stage.busybox_image())
        yield yard
        yard.remove_environments()
        wait_until(lambda: not mounted(yard), 60, lambda: f"not removed: {mounted(yard)}")


def mounted(yard: Platform) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f"{yard.data}/containers/" in line]


def create(yard: Platform, name: str, *more: str) -> str:
    made = yard.json("env", "create", name, "--image", stage.busybox_image(), *SMALL, *more)
    assert made["state"] == "running", made
    return str(made["id"])


def inside(yard: Platform, name: str, line: str) -> str:
    """What a shell inside prints; tried again while the parts of the platform come back."""
    told: list[str] = []

    def answered() -> bool:
        done = yard.run("shell", name, "--", f"{line} ")
        told[:] = [done.out.replace("\r\n", "\n").strip(), done.err]
        return done.code == 0

    wait_until(answered, 60, lambda: f"{name} cannot be entered: {told}")
    return told[0]


def of_the_yard(yard: Platform, words: str) -> list[psutil.Process]:
    """The platform's own processes whose command line has all of these words."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        ours = str(yard.data) in line or mark_of(str(yard.data.resolve())) in line
        if ours and all(word in line for word in words.split()):
            found.append(process)
    return found


def kill_nine(processes: list[psutil.Process]) -> None:
    assert processes, "there is nothing to kill"
    for process in processes:
        process.kill()


def test_what_is_installed_stays_when_it_is_stopped_and_when_it_moves_to_a_card_and_back(yard: Platform) -> None:
    create(yard, "moves")
    inside(yard, "moves", "echo mine > /root/installed")
    card = yard.json("env", "restart", "moves", "--cards", "1")
    assert (card["state"], card["cards"], card["simulated_cards"]) == ("running", 1, True)
    assert inside(yard, "moves", "cat /root/installed && echo card $CUDA_VISIBLE_DEVICES") == "mine\ncard 0"
    inside(yard, "moves", "echo more > /root/more")
    yard.json("env", "restart", "moves", "--cards", "0")
    assert (
        inside(yard, "moves", "cat /root/installed /root/more && echo card $CUDA_VISIBLE_DEVICES") == "mine\nmore\ncard"
    )
    yard.good("env", "stop", "moves")
    wait_until(lambda: yard.json("env", "show", "moves")["state"] == "paused", 30, lambda: "it did not stop")
    assert all(node["cards_free"]["nvidia"] == 2 for node in yard.json("nodes"))
    yard.good("env", "start", "moves")
    assert inside(yard, "moves", "cat /root/more") == "more"


def test_kill_nine_of_every_part_loses_no_environment_and_leaves_no_card_held(yard: Platform) -> None:
    id = create(yard, "tough", "--cards", "1")
    began = inside(yard, "tough", "cat /proc/1/stat").split()[21]
    for words in ("gpuyard.gateway.main", "gpuyard.gateway.broker", "system service", f"conmon yard-{id}-"):
        kill_nine(of_the_yard(yard, words))
        assert inside(yard, "tough", "cat /proc/1/stat").split()[21] == began
    yard.kill_server()
    yard.start_server()
    assert inside(yard, "tough", "cat /proc/1/stat").split()[21] == began
    assert yard.json("env", "show", "tough")["state"] == "running"
    yard.good("env", "stop", "tough")
    wait_until(lambda: yard.json("env", "show", "tough")["state"] == "paused", 60, lambda: "it did not stop")
    assert all(node["cards_free"]["nvidia"] == 2 for node in yard.json("nodes"))
    assert yard.json("env", "start", "tough")["state"] == "running"


def test_an_ssh_session_goes_on_while_the_server_is_killed_and_started_again(yard: Platform, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    name = a_person(yard, (tmp_path / "key.pub").read_text())
    port = json.loads((yard.data / "gateway.json").read_text())["ssh_port"]
    words = ["ssh", *SSH, "-i", str(key), "-p", str(port), f"{name}+mine@localhost"]
    session = subprocess.Popen([*words, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert session.stdin is not None
    assert session.stdout is not None
    try:
        for line in ("before", "after"):
            session.stdin.write(f"{line}\n")
            session.stdin.flush()
            assert session.stdout.readline() == f"{line}\n"
            if line == "before":
                yard.kill_server()
                yard.start_server()
        session.stdin.close()
        assert session.wait(timeout=30) == 0
    finally:
        session.kill()
        session.wait()
        session.stdout.close()


def a_person(yard: Platform, public_key: str) -> str:
    """Someone with a key and an environment called `mine`."""
    from gpuyard import Client

    with Client(data=yard.data) as owner:
        owner.create_user("sam", password="a long enough secret", group="default")
        token = owner.create_token("t", user="sam", scope="admin").raw["token"]
    with Client(url=json.loads((yard.data / "server.json").read_text())["url"], token=token) as sam:
        sam.add_key(public_key, name="laptop")
        asked = {"image": stage.busybox_image(), "cpu": 0.2, "memory": "128M"}
        assert sam.create_env("mine", **asked).wait(timeout=60).state == "running"
    return "sam"


def test_one_that_is_removed_leaves_nothing_behind(yard: Platform) -> None:
    id = create(yard, "gone")
    inside(yard, "gone", "echo x > /root/x")
    yard.json("env", "restart", "gone", "--cards", "1")
    yard.good("env", "rm", "gone", "--yes")
    wait_until(lambda: not (yard.data / "replicas" / id).exists(), 120, lambda: "its folder is still there")
    assert not any(f"yard-{id}-" in line for line in mounted(yard))
    assert all(id not in image["name"] for image in yard.json("image", "ls"))


def test_images_are_listed_and_one_in_use_is_not_removed(yard: Platform) -> None:
    create(yard, "uses")
    name = stage.busybox_image()
    assert name in [image["name"] for image in yard.json("image", "ls")]
    refused = yard.run("image", "rm", name)
    assert refused.code != 0
    missing = yard.run("image", "rm", "localhost/nothing:1")
    assert (missing.code != 0, "localhost/nothing:1" in missing.err) == (True, True)


def test_an_image_that_cannot_be_had_is_told_in_words(yard: Platform) -> None:
    refused = yard.run("image", "pull", f"{NOWHERE}/nothing:1")
    assert refused.code != 0
    assert f"{NOWHERE}/nothing:1" in refused.err
    stuck = yard.run("env", "create", "nope", "--image", f"{NOWHERE}/nothing:1", *SMALL, "--detach")
    id = stuck.out.strip()
    wait_until(lambda: told(yard, id), 60, lambda: f"it is not told why: {yard.run('events', id).out}")
    yard.good("env", "rm", "nope", "--yes")


def told(yard: Platform, id: str) -> bool:
    return f"{NOWHERE}/nothing:1" in yard.good("events", id)


def test_work_that_names_no_image_is_told_to(yard: Platform) -> None:
    refused = yard.run("env", "create", "plain", *SMALL)
    assert refused.code != 0
    assert "image" in refused.err
