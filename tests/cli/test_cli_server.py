"""Starting and stopping the server, and what it leaves."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.cli.yard import Yard, wait_until

from gpuyard.cli.checks import open_devices
from gpuyard.cli.container_checks import is_mended, runc_version
from gpuyard.cli.findings import DOUBTFUL, GOOD


def test_up_in_the_background_says_where_it_is_and_shows_the_first_password_once(yard: Yard) -> None:
    said = yard.up("--engine", "simulated")
    told = json.loads((yard.data / "server.json").read_text())
    assert told["url"] in said
    assert "one-time password" in said
    assert not (yard.data / "first-password").exists()
    assert int((yard.data / "server.pid").read_text()) == told["pid"]
    assert (yard.data / "server.log").stat().st_mode & 0o777 == 0o600
    assert (yard.data / "server.pid").stat().st_mode & 0o777 == 0o600
    assert yard.json("whoami")["user"]["name"] == "admin"
    yard.good("down")
    assert "one-time password" not in yard.up("--engine", "simulated")


def test_down_stops_the_server_and_is_no_error_when_none_runs(yard: Yard) -> None:
    assert yard.run("down").code == 0
    yard.up("--engine", "simulated")
    pid = yard.pid
    stopped = yard.run("down").err
    assert "the server is stopped" in stopped
    assert "make run" in stopped
    wait_until(lambda: not Path(f"/proc/{pid}").exists())
    assert not (yard.data / "server.pid").exists()
    assert not (yard.data / "server.json").exists()
    assert "no server runs" in yard.run("down").err
    assert yard.run("ls").code == 5


def test_a_second_server_on_the_same_folder_refuses_and_the_first_goes_on(yard: Yard) -> None:
    yard.up("--engine", "simulated")
    first = yard.pid
    second = yard.run("up", "--detach", "--port", "0", "--engine", "simulated")
    assert second.code == 1
    assert "already runs" in second.err
    assert len(second.err.splitlines()) == 1
    assert "server.log" not in second.err
    chinese = yard.run("up", "--detach", "--port", "0", YARD_LANG="zh")
    assert "已有服务" in chinese.err
    assert "already runs" not in chinese.err
    assert yard.pid == first
    assert yard.run("ls").code == 0


def test_up_in_a_terminal_says_how_to_stop_it_and_how_not_to_sit_there(yard: Yard) -> None:
    terminal = Terminal(yard, "up", "--port", "0", "--engine", "simulated")
    terminal.read_until("gpuyard is ready")
    assert "Ctrl-C stops the server" in terminal.seen
    assert "--detach" in terminal.seen
    terminal.type("\x03")
    assert terminal.exit_code() in (0, 130)


def test_down_leaves_alone_a_process_that_only_has_the_pid(yard: Yard) -> None:
    yard.data.mkdir()
    told = {"url": "http://127.0.0.1:9", "pid": os.getpid(), "started_at": 1.0}
    (yard.data / "server.json").write_text(json.dumps(told))
    done = yard.run("down")
    assert done.code == 1
    assert "is not this server" in done.err


def test_a_server_killed_hard_can_be_started_again_and_knows_its_jobs(yard: Yard) -> None:
    yard.up("--engine", "simulated")
    job = yard.good("run", "--detach", "--env", "YARD_SIM_SECONDS=0.2", "--", "x")
    os.kill(yard.pid, signal.SIGKILL)
    assert yard.run("ls").code == 5
    yard.up("--engine", "simulated")
    assert yard.wait_for(job)["state"] == "succeeded"


def test_a_port_that_is_taken_is_said_in_words(yard: Yard) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = yard.run("up", "--detach", "--engine", "simulated", "--port", str(taken.getsockname()[1]))
    assert done.code == 1
    assert "cannot listen" in done.err


def test_listening_beyond_this_machine_without_tls_is_refused(yard: Yard) -> None:
    done = yard.run("up", "--detach", "--engine", "simulated", "--port", "0", "--host", "0.0.0.0")
    assert done.code == 1
    assert "--insecure-http" in done.err


def test_options_are_read_from_the_environment_too(yard: Yard) -> None:
    done = yard.run("up", "--detach", YARD_ENGINE="simulated", YARD_PORT="0", YARD_NODES="3x2:ascend")
    assert done.code == 0, done.err
    nodes = yard.json("nodes")
    assert [node["cards_total"] for node in nodes] == [{"ascend": 2}] * 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["--engine", "warp"],
        ["--port", "70000"],
        ["--port", "x"],
        ["--tls-cert", "/nonexistent"],
        ["--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"],
        ["--nodes"],
    ],
)
def test_bad_options_are_refused_before_anything_is_made(yard: Yard, arguments: list[str]) -> None:
    done = yard.run("up", "--detach", *arguments)
    assert done.code == 2
    assert done.err
    assert not yard.data.exists()


@pytest.mark.parametrize(
    "arguments",
    [["--engine", "simulated", "--nodes", "many"], ["--engine", "process", "--nodes", "2x2"]],
)
def test_options_the_server_cannot_use_are_told_in_its_words(yard: Yard, arguments: list[str]) -> None:
    done = yard.run("up", "--detach", "--port", "0", *arguments)
    assert done.code == 1
    assert "--nodes" in done.err


def test_backup_and_restore_bring_everything_back(yard: Yard, tmp_path: Path) -> None:
    yard.up("--engine", "simulated")
    yard.good("group", "create", "vision", "--quota", "nvidia=8")
    job = yard.good("run", "--detach", "--name", "kept", "--", "sleep", "0")
    yard.wait_for(job)
    file = tmp_path / "backup.gz"
    yard.good("backup", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    yard.good("group", "rm", "vision")
    assert yard.run("restore", str(file)).code == 1, "a server is running"
    yard.good("down")
    refused = yard.run("restore", str(file))
    assert refused.code == 1, "the folder has contents"
    yard.good("restore", str(file), "--force")
    yard.up("--engine", "simulated")
    assert yard.json("show", "kept")["id"] == job
    assert "vision" in [group["name"] for group in yard.json("group", "ls")]


@pytest.mark.parametrize("content", [b"", b"not a backup", b"\x1f\x8b\x08broken"])
def test_restoring_what_is_no_backup_changes_nothing(yard: Yard, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    done = yard.run("restore", str(file))
    assert done.code == 2
    assert not (yard.data / "gpuyard.db").exists()
    assert yard.run("restore", str(tmp_path / "missing")).code == 2


def test_the_doctor_finds_nothing_broken_on_a_well_server(simulated: Yard) -> None:
    done = simulated.run("doctor")
    assert done.code == 0, done.out
    assert "✗" not in done.out
    checks = {finding["check"] for finding in simulated.json("doctor")}
    assert {"server", "version", "clock", "login", "cards", "data", "disk", "database"} <= checks
    assert {"containers", "access lists", "toolbox", "engine"} <= checks


def test_the_doctor_names_the_engine_that_runs_the_work(simulated: Yard, machine: Yard) -> None:
    for there, words in ((simulated, "the engine is simulated"), (machine, "as processes of this machine")):
        (engine,) = [finding["sentence"] for finding in there.json("doctor") if finding["check"] == "engine"]
        assert words in engine
        assert "the server starts podman" not in there.run("doctor").out


@pytest.mark.parametrize(
    ("said", "is_well"),
    [
        ("runc version 1.1.5+ds1\ncommit: x", False),
        ("runc version 1.2.7", False),
        ("runc version 1.2.8", True),
        ("runc version 1.3.2", False),
        ("runc version 1.3.3", True),
        ("runc version 1.4.0", True),
        ("runc version 2.0.0-rc.1", True),
    ],
)
def test_the_doctor_knows_which_runc_has_holes(said: str, is_well: bool) -> None:
    version = runc_version(said)
    assert version is not None
    assert is_mended(version) == is_well


@pytest.mark.parametrize(("version", "mark"), [("1.17.7", "✗"), ("1.9.0", "✗"), ("1.17.8", "✓"), ("1.18.0", "✓")])
def test_the_doctor_refuses_an_nvidia_toolkit_by_which_images_become_root(
    simulated: Yard, tmp_path: Path, version: str, mark: str
) -> None:
    said = f"NVIDIA Container Toolkit CLI version {version}\ncommit: 4c8a9a6"
    for name, script in {"nvidia-ctk": f"echo '{said}'", "podman": "exit 1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    told = json.loads(simulated.run("doctor", "-o", "json", PATH=f"{tmp_path}:{os.environ['PATH']}").out)
    (finding,) = [finding for finding in told if finding["check"] == "nvidia toolkit"]
    assert (finding["mark"], version in finding["sentence"]) == (mark, True)


def test_the_doctor_does_not_guess_at_what_is_no_runc() -> None:
    assert runc_version("crun version 1.8.1") is None


@pytest.mark.parametrize(
    ("capabilities", "mark", "said"),
    [
        ("000001ffffffffff", GOOD, "sees whoever holds a card"),
        ("0000000000000000", DOUBTFUL, "only what this user's ordinary processes hold"),
    ],
)
def test_the_doctor_knows_whether_every_holder_of_a_card_is_seen(capabilities: str, mark: str, said: str) -> None:
    found = open_devices(f"Name:\tyard\nCapPrm:\t000001ffffffffff\nCapEff:\t{capabilities}\n")
    assert (found.mark, said in found.sentence) == (mark, True)


def test_the_doctor_looks_at_the_server_itself_for_that(simulated: Yard, machine: Yard) -> None:
    def checks(yard: Yard) -> set[str]:
        return {finding["check"] for finding in yard.json("doctor")}

    assert "open devices" in checks(machine)
    assert "open devices" not in checks(simulated)


def test_the_doctor_says_what_is_broken(yard: Yard) -> None:
    done = yard.run("doctor")
    assert done.code == 1
    assert done.out.startswith("✗ no server runs")
    yard.data.mkdir(mode=0o755)
    (yard.data / "owner.token").write_text("yard_x")
    assert "can be read by others" in yard.run("doctor").out
