"""One's own password by command, on the server's machine and elsewhere, with a terminal and without."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.cli.terminal import Terminal
from tests.cli.test_keys import make_key
from tests.cli.yard import Yard, wait_until

OWN = "a password of my own"


def test_the_first_admin_chooses_one_where_the_server_runs_and_then_comes_by_ssh(yard: Yard, tmp_path: Path) -> None:
    yard.up("--engine", "process")
    key = make_key(tmp_path, "key")
    added = yard.run("key", "add", f"{key}.pub")
    assert (added.code, "yard password" in added.err) == (0, True)
    yard.good("env", "create", "dev", "--cpu", "0.2", "--memory", "128M")
    refused = yard.run("env", "ssh", "dev", "-i", str(key), "true")
    assert (refused.code, "yard password" in refused.err) == (4, True)
    terminal = Terminal(yard, "password")
    for prompt in ("New password: ", "again: "):
        terminal.read_until(prompt)
        terminal.type(OWN + "\n")
    assert terminal.exit_code() == 0, terminal.seen
    assert "Old password" not in terminal.seen
    wait_until(lambda: yard.json("env", "show", "dev")["ssh"] is not None, what=lambda: "the gateway is not open")
    target = yard.json("env", "show", "dev")["ssh"].split()
    options = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-i", str(key)]
    entered = subprocess.run(
        [target[0], *options, *target[1:], "echo", "inside", "$YARD_NAME"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=yard.environment(),
    )
    assert entered.stdout == "inside dev\n", entered
    yard.good("env", "rm", "dev", "--yes")


def test_one_line_is_enough_where_the_server_runs_and_nowhere_else(yard: Yard, tmp_path: Path) -> None:
    yard.up("--engine", "simulated")
    url = json.loads((yard.data / "server.json").read_text())["url"]
    yard.good("password", "--password-stdin", stdin=OWN + "\n")
    (tmp_path / "elsewhere").mkdir()
    person = Yard(tmp_path / "elsewhere", tmp_path / "none", {"YARD_DATA": ""})
    person.good("login", url, "--name", "admin", "--password-stdin", stdin=OWN + "\n")
    alone = person.run("password", "--password-stdin", stdin="another of my own\n")
    assert (alone.code, "two lines" in alone.err) == (2, True)
    person.good("password", "--password-stdin", stdin=f"{OWN}\nanother of my own\n")


def test_without_a_terminal_a_password_is_not_asked_for(simulated: Yard, tmp_path: Path) -> None:
    url = json.loads((simulated.data / "server.json").read_text())["url"]
    for arguments in (("password",), ("login", url, "--name", "admin")):
        asked = subprocess.run(
            simulated.command(*arguments),
            input="typed\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            start_new_session=True,  # there is no terminal it could find by another way
            env=simulated.environment(HOME=str(tmp_path)),
        )
        assert (asked.returncode, "--password-stdin" in asked.stderr) == (2, True), asked
        assert "Warning" not in asked.stderr
