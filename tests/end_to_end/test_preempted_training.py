"""A real training makes room for more urgent work and goes on at exactly the right step, as if nothing had happened."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cli.yard import Yard
from tests.end_to_end import trainings
from tests.provisions import Unavailable, shown_to_jobs, torch

from gpuyard import Client, Job

PATIENCE_SECONDS = 90.0
FRAMEWORKS = {"plain": trainings.PLAIN, "torch": trainings.TORCH}


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    until = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.1)
    return found


@pytest.fixture(autouse=True)
def short_minimum_run(machine: Yard) -> Iterator[None]:
    machine.good("policy", "set", "preempt.min_run=1s")
    yield
    machine.good("policy", "set", "preempt.min_run=")


@dataclass(frozen=True)
class Training:
    folder: Path  # to ship
    env: dict[str, str]  # where its framework is found


@pytest.fixture(params=["plain", "torch"])
def training(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Training]:
    folder = tmp_path / f"training-{request.param}"
    folder.mkdir()
    (folder / "train.py").write_text(trainings.FRAME)
    (folder / "model.py").write_text(FRAMEWORKS[request.param])
    if request.param == "torch":
        with a_torch() as env:
            yield Training(folder, env)
    else:
        yield Training(folder, {})


@contextmanager
def a_torch() -> Iterator[dict[str, str]]:
    """The one that was asked for, else the one that happens to be installed here."""
    version = os.environ.get("TORCH")
    if not version:
        if importlib.util.find_spec("torch") is None:
            pytest.skip("torch is asked for by its version: make test TORCH=2.13.0")
        yield {}
        return
    folder = torch(version).entry().taken()
    if folder is None:
        pytest.skip(f"torch {version} is not there: make prepare TORCH={version}")
    try:
        with shown_to_jobs(folder) as place:
            yield {"PYTHONPATH": str(place)}
    except Unavailable as problem:
        pytest.skip(f"{problem}; GPUYARD_TEST_CACHE must name a folder that every user can reach")


def final_loss(log: str) -> str:
    found = re.search(r"^final loss (\S+)$", log, re.MULTILINE)
    assert found is not None, log
    return found[1]


def undisturbed_loss(training: Training, tmp_path: Path) -> str:
    env = {"YARD_CHECKPOINT": str(tmp_path), "YARD_BEACON": str(tmp_path / "beacon"), **training.env}
    command = [sys.executable, "-u", "train.py"]
    done = subprocess.run(
        command, cwd=training.folder, env=env, capture_output=True, text=True, timeout=120, check=True
    )
    return final_loss(done.stdout)


def numbers(pattern: str, log: str) -> list[int]:
    return [int(number) for number in re.findall(rf"^{pattern} (\d+)$", log, re.MULTILINE)]


def log(job: Job, attempt: int) -> str:
    return job.logs(attempt=attempt)


def event(job: Job, code: str) -> Any:
    return next((event for event in job.events() if event.code == code), None)


def test_a_preempted_training_goes_on_at_the_right_step_and_ends_with_the_same_loss(
    machine: Yard, client: Client, training: Training, tmp_path: Path
) -> None:
    go = f"{training.folder.name}.go"
    expected = undisturbed_loss(training, tmp_path)
    owner_home = machine.data / "files" / "user"
    victim = client.submit(
        name="training",
        command=[sys.executable, "train.py"],
        cards=2,
        priority=200,
        preemptible=True,
        checkpoint=training.folder.name,
        grace="60s",
        env={"STEP_SECONDS": "0.1", **training.env},
        workdir=training.folder,
    )
    wait_for(lambda: victim.refresh().state == "running", "the start of the training")
    wait_for(lambda: numbers("saved", log(victim, 1)), "a first checkpoint")
    later = client.submit(name="later", command="echo late", cards=2, priority=200)
    urgent = client.submit(name="urgent", command=f"while [ ! -e ~/{go} ]; do sleep 0.1; done", cards=2, priority=900)

    wait_for(lambda: victim.refresh().state == "queued", "the training to make room")
    first = log(victim, 1)
    stopped_at = numbers("saved", first)[-1]
    assert numbers("step", first) == list(range(1, stopped_at + 1))
    assert later.refresh().state == "queued"
    check_story(machine, victim, urgent, stopped_at)

    (owner_home / victim.raw["owner"] / go).touch()
    ended = victim.wait(timeout=PATIENCE_SECONDS)
    assert (ended.state, ended.raw["attempt"]) == ("succeeded", 2)
    second = log(victim, 2)
    assert numbers("begins after step", second) == [stopped_at]
    assert numbers("step", first) + numbers("step", second) == list(range(1, trainings.STEPS + 1))
    assert final_loss(second) == expected
    assert ended.raw["submitted_at"] == victim.raw["submitted_at"]
    late = later.wait(timeout=PATIENCE_SECONDS)
    assert late.raw["started_at"] > ended.raw["attempts"][-1]["started_at"], "it lost its old place in the queue"


def check_story(machine: Yard, victim: Job, urgent: Job, step: int) -> None:
    """Who, by which rule, and how much was lost: at most, and in truth once its last checkpoint was found."""
    preempted = event(victim, "story.preempted")
    assert (preempted.facts["by"], preempted.facts["rule"]) == (urgent.id, "priority")
    assert 0 <= preempted.facts["lost_seconds"] < 60
    saved = wait_for(lambda: event(victim, "story.saved_in_time"), "a look at what it saved")
    assert saved.facts["step"] == step
    assert 0 <= saved.facts["lost_seconds"] < 30
    english = machine.good("events", victim.id, YARD_LANG="en")
    chinese = machine.good("events", victim.id, YARD_LANG="zh")
    assert f"Made room for urgent ({urgent.id})" in english
    assert "which has a higher priority" in english
    assert re.search(r"At most \d+ s of work is lost", english)
    assert f"at step {step}" in english
    assert f"已让位给 urgent（{urgent.id}，" in chinese
    assert "对方优先级更高" in chinese
    assert re.search(r"最多丢失最近一次检查点之后 \d+ ?秒的工作", chinese)
    assert f"第 {step} 步" in chinese
