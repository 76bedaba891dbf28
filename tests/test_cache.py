"""What tests need is made once, by whoever comes first, and whatever is killed meanwhile leaves nothing half there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.yard import wait_until

PROJECT = Path(__file__).parents[1]
Start = Callable[..., subprocess.Popen[str]]

# Each writes down that it makes; `until_told` keeps it at that until somebody writes it a line.
MAKE = """
import sys
from pathlib import Path
from tests.cache import Entry, sweep

def fill(folder):
    (folder / "half").touch()
    print("making", flush=True)
    if until_told: sys.stdin.readline()
    (folder / "half").rename(folder / "whole")

content, until_told = sys.argv[1], "until_told" in sys.argv
place = Entry("thing", (content,)).made(fill)
print("made" if (place / "whole").exists() else "half", flush=True)
if "sweep" in sys.argv: sweep("thing")
if "use" in sys.argv: sys.stdin.readline()
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running = list[subprocess.Popen[str]]()
    env = os.environ | {"GPUYARD_TEST_CACHE": str(tmp_path)}

    def begin(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", MAKE, *words]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=PROJECT, env=env))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def finish(process: subprocess.Popen[str]) -> list[str]:
    told, _ = process.communicate("\n", timeout=60)
    assert process.returncode == 0
    return told.split()


def waits_for_a_lock(process: subprocess.Popen[str]) -> bool:
    """The kernel lists who waits behind whom."""
    lines = Path("/proc/locks").read_text().splitlines()
    return any("->" in line and f" {process.pid} " in line for line in lines)


def things(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def age(folder: Path) -> None:
    """As if nobody had used anything for years."""
    for lock in folder.glob(".*.lock"):
        os.utime(lock, (0, 0))


def test_two_who_want_the_same_make_it_once(start: Start, tmp_path: Path) -> None:
    first = start("one", "until_told")
    assert said(first) == "making"
    second = start("one", "until_told")
    wait_until(lambda: waits_for_a_lock(second))
    assert finish(first) == ["made"]
    assert finish(second) == ["made"]  # without having made anything
    assert len(things(tmp_path)) == 1


def test_what_a_killed_one_left_is_not_taken_for_whole_and_is_cleared_by_the_next(start: Start, tmp_path: Path) -> None:
    killed = start("one", "until_told")
    assert said(killed) == "making"
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (left,) = things(tmp_path)
    assert left.endswith(".part")
    assert finish(start("one")) == ["making", "made"]
    (made,) = things(tmp_path)
    assert made.startswith("thing-")
    assert (tmp_path / made / "whole").exists()


def test_what_a_killed_one_left_of_something_else_is_cleared_too(start: Start, tmp_path: Path) -> None:
    killed, living = start("older", "until_told"), start("other", "until_told")
    assert (said(killed), said(living)) == ("making", "making")
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert finish(start("newer", "sweep")) == ["making", "made"]
    assert len(things(tmp_path)) == 2  # the new one, and what the living one is at
    assert finish(living) == ["made"]


def test_older_content_is_removed_when_nobody_uses_it(start: Start, tmp_path: Path) -> None:
    user = start("older", "use")
    assert (said(user), said(user)) == ("making", "made")
    (older,) = things(tmp_path)
    age(tmp_path)
    finish(start("newer", "sweep"))
    assert older in things(tmp_path), "it is in use"
    finish(user)
    finish(start("newer", "sweep"))
    assert older not in things(tmp_path)
    assert len(things(tmp_path)) == 1


def test_older_content_that_was_used_today_stays_for_the_clones_that_take_turns(start: Start, tmp_path: Path) -> None:
    finish(start("older"))
    finish(start("newer", "sweep"))
    assert len(things(tmp_path)) == 2


def test_whoever_uses_it_again_keeps_it_from_being_old(start: Start, tmp_path: Path) -> None:
    finish(start("older"))
    age(tmp_path)
    finish(start("older"))
    finish(start("newer", "sweep"))
    assert len(things(tmp_path)) == 2


def test_everything_may_be_deleted_between_runs(start: Start, tmp_path: Path) -> None:
    finish(start("one"))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.unlink()
    for path in tmp_path.iterdir():
        path.rmdir()
    assert finish(start("one", "sweep")) == ["making", "made"]
