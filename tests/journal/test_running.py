"""Replays in a process of their own: one at a time, asked after, ended with whoever asked."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.yard import wait_until
from tests.journal.keeper import keep
from tests.scheduling.worlds import Rough

from gpuyard.domain.errors import Conflict, NotFound
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Code
from gpuyard.journal.folder import segments
from gpuyard.journal.plain import to_plain
from gpuyard.journal.running import COMMAND, Run, Runs


@pytest.fixture
def runs() -> Iterator[Runs]:
    made = Runs()
    yield made
    made.close()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    keep(Rough(11, nodes=4, queue=9, runs=9).world(), 3, tmp_path / "journal", cycles=40)
    return tmp_path / "journal"


def test_a_replay_tells_how_far_it_is_and_what_it_found(runs: Runs, journal: Path) -> None:
    run = runs.start("ann", "replay", {"folder": str(journal)})
    wait_until(lambda: run.over, 60)
    assert run.problem == ""
    assert run.result["same"] is True
    assert run.result["cycles"] == 40
    assert run.done == run.of > 1
    assert runs.get(run.id) is run


def test_history_is_rehearsed_there_as_well(runs: Runs, journal: Path) -> None:
    policy = to_plain(Policy())
    request = {"folder": str(journal), "present": policy, "other": policy, "until": 3e6}
    run = runs.start("ann", "what_if", request)
    wait_until(lambda: run.over, 60)
    assert run.problem == ""
    assert run.result["gain_count"] == run.result["lose_count"] == 0


def test_what_could_not_be_read_is_remembered_until_it_can_be(runs: Runs, journal: Path) -> None:
    def replayed() -> None:
        run = runs.start("ann", "replay", {"folder": str(journal)})
        wait_until(lambda: run.over, 60)

    path = segments(journal)[0].path
    whole = path.read_bytes()
    path.write_bytes(whole[:200] + b"x" * 20 + whole[220:])
    replayed()
    assert runs.damaged() == [path.name]
    path.write_bytes(whole)
    replayed()
    assert runs.damaged() == []


def test_a_second_one_is_sent_away_until_the_first_is_over(runs: Runs, journal: Path) -> None:
    first = runs.start("ann", "replay", {"folder": str(journal)})
    with pytest.raises(Conflict) as refused:
        runs.start("bob", "replay", {"folder": str(journal)})
    assert refused.value.reason.code is Code.TOO_MANY_AT_ONCE
    wait_until(lambda: first.over, 60)
    second = runs.start("bob", "replay", {"folder": str(journal), "last": 3})
    wait_until(lambda: second.over, 60)
    assert second.result["cycles"] == 3


def test_one_that_nobody_wants_any_more_is_ended(runs: Runs, journal: Path) -> None:
    run = runs.start("ann", "replay", {"folder": str(journal)})
    runs.cancel(run.id)
    wait_until(lambda: run.over, 60)
    assert run.process.poll() is not None
    assert run.result is None
    assert run.problem
    with pytest.raises(NotFound):
        runs.get("0123")


def test_one_that_fails_says_why(runs: Runs, tmp_path: Path) -> None:
    run = runs.start("ann", "what_if", {"folder": str(tmp_path)})
    wait_until(lambda: run.over, 60)
    assert "KeyError" in run.problem


def test_one_that_nobody_asks_after_any_more_makes_way_for_the_next(journal: Path) -> None:
    runs = Runs(forgotten_after=2.0)
    try:
        first = runs.start("ann", "replay", {"folder": str(journal)})
        os.kill(first.process.pid, signal.SIGSTOP)  # so it lasts
        runs.get(first.id)
        with pytest.raises(Conflict):
            runs.start("bob", "replay", {"folder": str(journal)})
        begun: list[Run] = []
        wait_until(lambda: begins(runs, begun, {"folder": str(journal), "last": 3}))
        wait_until(lambda: begun[0].over, 60)
        assert begun[0].result["cycles"] == 3
        wait_until(lambda: bool(first.problem), 60)
        assert first.over
    finally:
        runs.close()


def begins(runs: Runs, begun: list[Run], request: dict[str, Any]) -> bool:
    with contextlib.suppress(Conflict):
        begun.append(runs.start("bob", "replay", request))
    return bool(begun)


def test_where_memory_runs_out_it_goes_first(journal: Path) -> None:
    request = json.dumps({"what": "replay", "folder": str(journal)}) + "\n"
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        assert "result" in process.stdout.read()
        willing = Path(f"/proc/{process.pid}/oom_score_adj").read_text()  # it is over, and not yet waited for
    assert willing.strip() == "1000"
