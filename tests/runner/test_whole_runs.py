"""Whole runs, of small projects: good, unsteady and bad ones, lost workers, and runs that are killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.yard import wait_until
from tests.runner import runs

PROJECT = Path(__file__).parents[2]
FAILS_ONCE = """
import pathlib, pytest
@pytest.mark.parametrize("n", range({times}))
def test_unsteady(n):
    there = pathlib.Path(__file__).with_name(f"seen-{{n}}")
    if not there.exists():
        there.touch()
        raise AssertionError("the first time")
"""
GOOD = "def test_good(): pass\n"


class Trial:
    """A project of its own, with the runner that gpuyard has."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-ra'\n")

    def file(self, name: str, text: str) -> None:
        (self.folder / f"test_{name}.py").write_text(text)

    def start(self, *words: str) -> subprocess.Popen[str]:
        env = {name: value for name, value in os.environ.items() if name not in ("PYTEST_ADDOPTS", runs.VARIABLE)}
        command = [sys.executable, "-m", "tests.runner", "-p", "no:cacheprovider", "--workers=2", *words]
        return subprocess.Popen(
            command, cwd=self.folder, env=env | {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        said, _ = process.communicate(timeout=200)
        return process.returncode, said

    def unsteady(self) -> str:
        return (self.folder / "build" / "tests" / "unsteady.txt").read_text()


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_a_good_run_counts_each_test_once_and_leaves_nothing(trial: Trial) -> None:
    trial.file("a", GOOD)
    trial.file(
        "b", "import pytest\ndef test_b(tmp_path): (tmp_path / 'x').touch()\ndef test_c(): pytest.skip('no card')\n"
    )
    code, said = trial.run()
    assert (code, re.findall(r"\d+ passed, \d+ skipped", said)) == (0, ["2 passed, 1 skipped"]), said
    assert "no card" in said
    assert trial.unsteady() == "unsteady: none\n"
    (name,) = re.findall(r"cleared after (\S+) in", said)
    assert not list(Path(runs.home()).glob(f"{name}*"))


def test_a_test_that_passes_by_itself_is_listed_last_and_the_run_is_good(trial: Trial) -> None:
    trial.file("a", GOOD)
    trial.file("b", FAILS_ONCE.format(times=3))
    code, said = trial.run()
    assert code == 0, said
    assert "4 passed" in said
    last = said[said.index("unsteady: 3 failed among others") :]
    assert last.count("AssertionError: the first time") >= 3
    assert trial.unsteady() in said


def test_more_than_three_unsteady_tests_are_too_many(trial: Trial) -> None:
    trial.file("b", FAILS_ONCE.format(times=4))
    code, said = trial.run()
    assert code == 1, said
    assert "the run has failed" in trial.unsteady()


def test_what_fails_again_is_a_failure_and_shows_both(trial: Trial) -> None:
    trial.file("a", FAILS_ONCE.format(times=1) + "    raise ValueError('again')\n")
    trial.file("b", "def test_bad(): raise KeyError('each time')\n")
    code, said = trial.run()
    assert code == 1, said
    assert "2 failed" in said
    assert said.index("ValueError: again") < said.index("the first time, among others") < said.rindex("the first time")


def test_a_test_that_takes_its_worker_along_is_named_and_the_others_are_run(trial: Trial) -> None:
    trial.file(
        "a", "import os\ndef test_one(): pass\ndef test_two(): os.kill(os.getpid(), 9)\ndef test_three(): pass\n"
    )
    code, said = trial.run()
    assert code == 1, said
    assert "1 failed, 2 passed" in said
    assert "the worker that ran it ended with 137" in said


def test_what_fails_when_shared_things_are_torn_down_at_the_very_end_is_told(trial: Trial) -> None:
    shared = (
        "import pytest\n@pytest.fixture(scope='session')\ndef shared():\n    yield\n    raise OSError('left over')\n"
    )
    trial.file("a", shared + "def test_a(shared): pass\n")
    code, said = trial.run()
    assert code == 1, said
    assert "left over" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces are made by root only")
def test_workers_see_an_own_machine_with_a_loopback_and_nobody_else(trial: Trial) -> None:
    trial.file(
        "a",
        """if True:
        import os, pathlib, socket, subprocess, pytest
        def test_network():
            with socket.create_server(("127.0.0.1", 4711)) as served:
                socket.create_connection(served.getsockname()).close()
            assert [name for _, name in socket.if_nameindex() if "tun" not in name and "gre" not in name
                    and "sit" not in name and "ip6" not in name and "vti" not in name] == ["lo"]
        def test_processes():
            assert len([name for name in os.listdir("/proc") if name.isdigit()]) == 2
        def test_programs_of_the_machine_cannot_be_written():
            with pytest.raises(OSError, match="Read-only"): pathlib.Path("/usr/local/bin/yard-x").touch()
        def test_folders():
            assert not list(pathlib.Path("/dev/shm").iterdir())
            assert not list(pathlib.Path("/tmp").glob("*.lock"))
        def test_orphans_are_taken_in():
            orphan = subprocess.run(["sh", "-c", "sleep 0.1 & echo $!"], stdout=subprocess.PIPE).stdout
            while os.path.exists(f"/proc/{int(orphan)}"): pass
        """,
    )
    code, said = trial.run()
    assert code == 0, said


SLEEPS = """
import pathlib, subprocess, time, pytest
HERE = pathlib.Path(__file__).parent
@pytest.fixture
def torn():
    yield
    HERE.joinpath("torn-down").touch()
def test_sleeps(torn):
    subprocess.Popen(["setsid", "sleep", "{seconds}"])
    HERE.joinpath("begun").touch()
    time.sleep(100)
"""


def sleepers(seconds: int) -> list[str]:
    told = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in told.splitlines() if line == f"sleep {seconds}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_tears_down_and_clears_after_itself(trial: Trial, number: int) -> None:
    trial.file("a", SLEEPS.format(seconds=7001))
    running = trial.start()
    wait_until((trial.folder / "begun").exists)
    running.send_signal(number)
    said, _ = running.communicate(timeout=100)
    assert running.returncode != 0, said
    assert (trial.folder / "torn-down").exists()
    wait_until(lambda: not sleepers(7001))
    assert "cleared after" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces are made by root only")
def test_a_killed_run_takes_its_processes_along_and_the_next_clears_the_rest_but_not_after_one_that_lives(
    trial: Trial, tmp_path_factory: pytest.TempPathFactory
) -> None:
    trial.file("a", SLEEPS.format(seconds=7002))
    living = Trial(tmp_path_factory.mktemp("living"))
    living.file("a", SLEEPS.format(seconds=7003))
    killed, lives = trial.start(), living.start()
    wait_until((trial.folder / "begun").exists)
    wait_until((living.folder / "begun").exists)
    killed.kill()
    killed.communicate()
    wait_until(lambda: not sleepers(7002))
    trial.file("a", GOOD)
    code, said = trial.run()
    assert code == 0, said
    (gone,) = re.findall(r"cleared after (\S+), a run that is gone", said)
    assert not list(runs.home().glob(f"{gone}*"))
    assert not runs.groups_of(gone)
    assert sleepers(7003)
    lives.send_signal(signal.SIGINT)
    lives.communicate(timeout=100)
    assert (living.folder / "torn-down").exists()
