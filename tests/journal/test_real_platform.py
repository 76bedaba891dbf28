"""Real platforms, killed at any moment, by the command line: what was decided is decided once more."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.yard import Yard, wait_until
from tests.postgres import PostgresServer

from gpuyard import Client
from gpuyard.cli.processes import is_gone
from gpuyard.journal.folder import segments
from gpuyard.journal.frames import MAGIC
from gpuyard.journal.replay import Asked, replay

SEED = int(os.environ.get("YARD_STORM_SEED", "20261116"))
HEAD_BYTES = 8  # of a frame: its length and its sum
UP = ("--engine", "simulated", "--nodes", "2x8")


def a_yard(tmp_path: Path, settings: str = "") -> Yard:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "settings.toml").write_text(settings)
    (tmp_path / "home").mkdir()
    return Yard(tmp_path / "home", data)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = a_yard(tmp_path)
    yard.up(*UP)
    yield yard
    yard.down()


def submit(yard: Yard, count: int, seconds: float, cards: int = 4, **more: Any) -> list[str]:
    with Client(data=yard.data) as client:
        return [
            client.submit(command=f"sleep {seconds}", cards=cards, name=f"job-{number}", **more).id
            for number in range(count)
        ]


def weather(yard: Yard, kills: int) -> None:
    dice = random.Random(SEED)
    for _ in range(kills):
        yard.up(*UP)
        submit(yard, 6, dice.choice([0.1, 0.6]), cards=dice.choice([1, 4, 8]))
        time.sleep(dice.random())
        pid = yard.pid
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: is_gone(pid), 20)  # type: ignore[misc]


@pytest.mark.timeout(300)
def test_what_was_decided_before_each_kill_is_decided_once_more(tmp_path: Path) -> None:
    yard = a_yard(tmp_path)
    weather(yard, kills=5)
    report = replay(yard.data / "journal", Asked())
    assert report.is_same
    assert len(segments(yard.data / "journal")) >= 5
    assert report.placements > 0
    yard.up(*UP)
    try:
        told = yard.json("replay")
        assert told["same"]
        assert told["cycles"] >= report.cycles
    finally:
        yard.down()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_same_through_fifty_kills(tmp_path: Path) -> None:
    yard = a_yard(tmp_path)
    weather(yard, kills=50)
    assert replay(yard.data / "journal", Asked()).is_same


# --- by hand --------------------------------------------------------------------------------------------------------


def test_a_replay_says_how_much_was_decided_and_that_it_is_the_same(yard: Yard) -> None:
    ids = submit(yard, 6, 0.3, cards=8)
    for id in ids:
        yard.wait_for(id, "succeeded")
    told = yard.good("replay")
    assert re.search(r"\d+ cycles, .* 6 placements, 0 preemptions", told)
    assert "to the last bit the same" in told
    assert "逐位相同" in yard.good("replay", YARD_LANG="zh")
    assert yard.json("replay", "--last", "2")["cycles"] == 2
    assert "nothing was decided" in yard.run("replay", "--since", "2030-01-01").err
    assert "is no time" in yard.run("replay", "--since", "yesterdayish").err
    assert "不是时间" in yard.run("replay", "--since", "yesterdayish", YARD_LANG="zh").err


def test_each_decision_over_a_job_is_told_with_its_reason(yard: Yard) -> None:
    first, second, third = submit(yard, 3, 2.0, cards=8)  # the third comes while both others run
    yard.wait_for(third, "succeeded")
    told = yard.good("replay", "--job", "job-2")
    lines = [line for line in told.splitlines() if re.match(r"\d{4}-", line)]
    assert "waits" in lines[0]
    assert "starts" in lines[-1]
    assert "cycles tell of job-2, " in told
    assert "it has 1 placement, 0 preemptions, " in told
    assert "它被放置 1 次，被抢占 0 次" in yard.good("replay", "--job", "job-2", YARD_LANG="zh")
    assert yard.json("replay", "--job", "job-0", "--last", "1")["moments"][0]["what"] == "placed"
    assert third not in yard.good("replay", "--job", first)
    assert "等待" in yard.good("replay", "--job", third, YARD_LANG="zh")
    moments = yard.json("replay", "--job", second)["moments"]
    assert moments[-1]["what"] == "placed"


def damage(path: Path, frame: int) -> bytes:
    """Alter one bit of what this frame holds, and return what the file held before. The last one is the end."""
    data = path.read_bytes()
    heads, at = [], len(MAGIC)
    while at < len(data):
        heads.append(at)
        at += HEAD_BYTES + int.from_bytes(data[at : at + 4])
    altered = bytearray(data)
    altered[heads[frame] + HEAD_BYTES + 2] ^= 1
    path.write_bytes(altered)
    return data


def test_a_damaged_journal_is_told_and_the_command_fails(yard: Yard) -> None:
    for id in submit(yard, 2, 0.1):
        yard.wait_for(id, "succeeded")
    yard.down()
    path = segments(yard.data / "journal")[0].path
    whole = damage(path, frame=-2)
    yard.up(*UP)
    assert "✓ the journal of decisions" in yard.run("doctor").out, "nobody has looked"
    failed = yard.run("replay")
    assert failed.code == 1
    assert re.search(r"is damaged from byte \d+ on and was read up to there$", failed.err, re.MULTILINE)
    assert failed.out.splitlines()[-1].startswith("what could be read was decided again, to the last bit the same")
    chinese = yard.run("replay", YARD_LANG="zh")
    assert re.search(r"损坏，只读到该处$", chinese.err, re.MULTILINE)
    assert "其余部分无法读出" in chinese.out
    assert f"damaged: {path.name}" in yard.run("doctor").out
    assert f"有损坏：{path.name}" in yard.run("doctor", YARD_LANG="zh").out
    path.write_bytes(whole)
    assert yard.json("replay")["same"]
    assert "✓ the journal of decisions" in yard.run("doctor").out


def test_what_if_warns_of_a_damaged_journal(yard: Yard, tmp_path: Path) -> None:
    for id in submit(yard, 2, 0.1):
        yard.wait_for(id, "succeeded")
    yard.down()
    path = segments(yard.data / "journal")[0].path
    damage(path, frame=-2)
    yard.up(*UP)
    document = tmp_path / "other.yaml"
    document.write_text("backfill: false\n")
    told = yard.run("what-if", "--policy", str(document))
    assert "is damaged from byte" in told.err
    assert "is missing in all numbers below" in told.err
    assert "不在下面的数字中" in yard.run("what-if", "--policy", str(document), YARD_LANG="zh").err
    (found,) = yard.json("what-if", "--policy", str(document))["unreadable"]
    assert (found["segment"], found["torn"]) == (path.name, False)
    damage(path, frame=0)  # nothing of it can be read any more
    told = yard.run("what-if", "--policy", str(document))
    assert "no work of that time" in told.err
    assert "is damaged from byte" in told.err


def test_history_is_rehearsed_under_the_present_and_another_policy(yard: Yard, tmp_path: Path) -> None:
    submit(yard, 2, 2.5, cards=8)
    submit(yard, 3, 0.5, cards=8, priority=500)
    late = submit(yard, 1, 0.5, cards=8, priority=600)
    yard.wait_for(late[0], "succeeded")
    wait_until(lambda: all(job.state == "succeeded" for job in _jobs(yard)), 60)
    yard.good("policy", "set", "backfill=false")
    document = tmp_path / "other.yaml"
    document.write_text("order:\n  age_points: 0\n  fair_share: false\nplacing: spread\n")
    found = yard.json("what-if", "--policy", str(document))
    assert found["jobs"] == 6
    assert found["really"]["jobs"] == found["present"]["waits"]["jobs"] == 6
    assert abs(found["really"]["utilisation"] - found["present"]["utilisation"]) < 0.3
    assert (found["really"]["preemptions"], found["really"]["lost_seconds"], found["really"]["ended"]) == (0, 0, 6)
    assert found["present"]["ended"] == found["other"]["ended"] == 6
    assert 0 < found["present"]["utilisation"] <= 1
    assert abs(found["present"]["waits"]["mean"] - found["really"]["mean"]) < 1.5
    assert {one["name"] for one in found["groups"]} == {"default"}
    changed = {one["key"]: (one["before"], one["after"]) for one in found["changed"]}
    assert changed["placing"] == ("fragments", "spread")
    assert changed["backfill"] == (False, True)  # what the file leaves out is at its default, and that is told
    table = yard.good("what-if", "--policy", str(document), "--since", "1h")
    assert "present policy" in table
    assert re.search(r"^as it was .* \d+\.\d% +0 +0s$", table, re.MULTILINE)
    assert re.search(r"^placing +fragments +spread$", table, re.MULTILINE)
    assert "当前策略" in yard.good("what-if", "--policy", str(document), YARD_LANG="zh")
    assert "no work of that time" in yard.run("what-if", "--policy", str(document), "--since", "2030-01-01").err
    nothing = yard.json("what-if", "--policy", str(document), "--since", "2030-01-01")
    assert (nothing["jobs"], nothing["really"]["utilisation"], nothing["gaining"]) == (0, None, [])
    assert {*nothing} == {*found}
    document.write_text("order:\n  age_points: many\n")
    assert yard.run("what-if", "--policy", str(document)).code != 0


def test_one_that_was_paused_counts_once_and_those_that_lose_are_told_by_name(yard: Yard, tmp_path: Path) -> None:
    (first,) = submit(yard, 1, 6, cards=8, max_time="20s")
    large, paused = submit(yard, 2, 1, cards=8, replicas=2)
    with Client(data=yard.data) as client:  # it passes the large one
        short = client.submit(command="sleep 1", cards=8, name="evaluate", max_time="2s").id
    yard.good("pause", paused)
    yard.wait_for(paused, "paused")
    yard.good("resume", paused)
    for id in (first, large, paused, short):
        yard.wait_for(id, "succeeded")
    document = tmp_path / "other.yaml"
    document.write_text("backfill: false\n")
    found = yard.json("what-if", "--policy", str(document))
    assert found["jobs"] == found["really"]["jobs"] == 4
    assert found["really"]["never_started"] == 0
    assert [(one["id"], one["name"]) for one in found["losing"]] == [(short, "evaluate")]
    assert re.search(rf"^{short} +evaluate ", yard.good("what-if", "--policy", str(document)), re.MULTILINE)


def _jobs(yard: Yard) -> list:  # type: ignore[type-arg]
    with Client(data=yard.data) as client:
        return list(client.jobs())


def test_only_admins_look_back(yard: Yard, tmp_path: Path) -> None:
    yard.good("user", "create", "mara", "--password", "a long enough secret", "--group", "default")
    mara = yard.as_user(yard.good("token", "create", "for tests", "--user", "mara", "--scope", "admin"))
    refused = mara.run("replay")
    assert refused.code != 0
    assert "everybody's work" in refused.err
    policy = tmp_path / "p.yaml"
    policy.write_text("backfill: false\n")
    assert mara.run("what-if", "--policy", str(policy)).code != 0
    assert "所有人" in mara.run("replay", YARD_LANG="zh").err


def test_where_no_journal_is_kept_that_is_said(tmp_path: Path) -> None:
    yard = a_yard(tmp_path, "journal_megabytes = 0\n")
    yard.up(*UP)
    try:
        refused = yard.run("replay")
        assert refused.code != 0
        assert "journal_megabytes" in refused.err
        assert "no journal of decisions" in yard.run("doctor").out
        assert not (yard.data / "journal").exists()
    finally:
        yard.down()


def test_the_doctor_tells_of_a_journal_that_cannot_be_written(tmp_path: Path) -> None:
    yard = a_yard(tmp_path)
    (yard.data / "journal").write_text("in the way")
    yard.up(*UP)
    try:
        (id,) = submit(yard, 1, 0.1)
        yard.wait_for(id, "succeeded")
        assert "journal of decisions is not written" in yard.run("doctor").out
        assert "调度日志无法写入" in yard.run("doctor", YARD_LANG="zh").out
        (yard.data / "journal").unlink()
    finally:
        yard.down()


def test_with_another_database_the_journal_lies_beside_the_data_as_well(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    yard, url = a_yard(tmp_path), postgres.new_database()
    yard.up(*UP, "--database", url)
    try:
        (id,) = submit(yard, 1, 0.1)
        yard.wait_for(id, "succeeded")
        assert yard.json("replay")["placements"] == 1
        assert len(segments(yard.data / "journal")) == 1
    finally:
        yard.down()
        postgres.drop_database(url)


def test_an_ordinary_stop_leaves_a_journal_that_is_whole(tmp_path: Path) -> None:
    yard = a_yard(tmp_path)
    yard.up(*UP)
    (id,) = submit(yard, 1, 0.1)
    yard.wait_for(id, "succeeded")
    yard.down()
    report = replay(yard.data / "journal", Asked())
    assert report.is_same
    assert report.unreadable == []
    assert report.placements == 1
    listed = subprocess.run(["ls", "-l", str(yard.data / "journal")], capture_output=True, text=True, check=True).stdout
    assert "-rw-------" in listed
