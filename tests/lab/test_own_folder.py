"""What a bench leaves behind, when it breaks or is interrupted, is gone with its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from lab.own_folder import an_own_folder, empty

from gpuyard.cli.processes import is_gone

PROJECT = Path(__file__).parent.parent.parent
SLEEP = [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(600)"]
# A bench that starts a process with an environment of its own, and waits.
WAITS = """
import subprocess, sys, tempfile, time
from lab.bench import measure_all

def waits():
    log = open(tempfile.mkdtemp() + "/log", "w")
    one = subprocess.Popen(["sleep", "600"], stdout=log, env={}, start_new_session=True)
    print(tempfile.gettempdir(), one.pid, flush=True)
    time.sleep(600)

sys.exit(measure_all({"waits": waits}))
"""


def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_temporary_files_go_there_meanwhile_and_are_gone_afterwards() -> None:
    before = tempfile.gettempdir()
    with an_own_folder() as folder:
        made = Path(tempfile.mkdtemp())
        assert made.parent == folder == Path(os.environ["TMPDIR"])

    assert not folder.exists()
    assert tempfile.gettempdir() == before


def test_who_knows_the_folder_or_writes_into_it_is_ended() -> None:
    with an_own_folder() as folder:
        (folder / "data").mkdir()
        with (folder / "log").open("wb") as log:
            told = subprocess.Popen(["sleep", "600"])  # by TMPDIR
            named = subprocess.Popen([*SLEEP, str(folder / "data")], env={}, stdout=subprocess.DEVNULL)
            writes = subprocess.Popen(["sleep", "600"], env={}, stdout=log)
        empty(folder)

        assert [one.wait(10) for one in (told, named, writes)] == [-signal.SIGTERM] * 3
        assert list(folder.iterdir()) == []


def test_who_merely_stands_there_goes_on() -> None:
    with an_own_folder() as folder:
        stands = subprocess.Popen(["sleep", "600"], env={}, cwd=folder)
        empty(folder)

        assert stands.poll() is None
        stands.kill()
        stands.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_bench_leaves_nothing(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITS], cwd=PROJECT, stdout=subprocess.PIPE, text=True) as bench:
        assert bench.stdout is not None
        folder, pid = bench.stdout.readline().split()
        assert Path(folder).exists()

        bench.send_signal(number)

        assert "interrupted" in bench.stdout.read()
    assert bench.returncode == 130
    assert not Path(folder).exists()
    until(lambda: is_gone(int(pid)))
