"""What a program says of itself while it runs as a job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def run(code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src"), **env},
    )
    return done.stdout.strip()


@pytest.mark.parametrize(("call", "words"), [("saved()", ""), ("saved(120)", "120\n"), ("saved(step=7)", "7\n")])
def test_saved_work_is_told_in_the_beacon(tmp_path: Path, call: str, words: str) -> None:
    beacon = tmp_path / "saved"
    run(f"import gpuyard; gpuyard.{call}", YARD_BEACON=str(beacon))
    assert beacon.read_text() == words
    assert os.listdir(tmp_path) == ["saved"]


def test_outside_a_job_nothing_happens() -> None:
    assert run("import gpuyard; gpuyard.saved(step=1); print(gpuyard.resuming())") == "False"


def test_a_beacon_that_cannot_be_written_does_not_end_the_training(tmp_path: Path) -> None:
    assert run("import gpuyard; gpuyard.saved(1); print('on')", YARD_BEACON=str(tmp_path / "no" / "saved")) == "on"


@pytest.mark.parametrize(("attempt", "answer"), [("1", "False"), ("2", "True"), ("13", "True"), ("", "False")])
def test_a_later_attempt_knows_that_it_is_one(attempt: str, answer: str) -> None:
    assert run("from gpuyard.sdk.beacon import resuming; print(resuming())", YARD_ATTEMPT=attempt) == answer


def test_telling_loads_nothing_but_the_standard_library(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); from gpuyard.sdk.beacon import saved; saved(1)\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(tops - set(sys.stdlib_module_names)))"
    )
    assert run(code, YARD_BEACON=str(tmp_path / "saved")) == "['gpuyard']"
