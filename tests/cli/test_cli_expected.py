"""When something starts and ends, on a screen: two moments, no more exact than they are, in both languages."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.test_cli_why import start
from tests.cli.yard import Yard

from gpuyard.cli.expected import away, clock, in_table, in_words
from gpuyard.cli.output import by_local_clock
from gpuyard.sdk.results import Estimate

JST = timezone(timedelta(hours=9))
NOON = datetime.now(UTC).astimezone().replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Yard, str, str]]:
    """Both nodes are full for two hours at most; one waits. Nothing has ended there that one could judge by."""
    yard = Yard.fresh(tmp_path_factory.mktemp("declared"))
    yard.up("--engine", "simulated", "--nodes", "2x4")
    running = [start(yard, "--cards", "4", "--max-time", "2h") for _ in range(2)]
    for job in running:
        yard.wait_for(job, "running")
    yield yard, running[0], start(yard, "--cards", "4", "--max-time", "1h")
    yard.down()


def test_why_ls_and_show_tell_when_it_starts_and_when_the_running_one_ends(declared: tuple[Yard, str, str]) -> None:
    yard, running, waits = declared
    told = yard.good("why", waits)
    assert "Start: about " in told
    assert "; nine times out of ten by " in told
    assert "End: about " in yard.good("why", running)
    lines = {line.split()[0]: line for line in yard.good("ls").splitlines()}
    assert "EXPECTED" in lines["ID"]
    assert "starts ~" in lines[waits]
    assert "(by " in lines[waits]
    assert "ends ~" in lines[running]
    assert "starts  " in yard.good("show", waits)
    assert yard.json("show", waits)["expected_start"]["p50"] <= yard.json("show", waits)["expected_start"]["p90"]


def test_the_same_is_told_in_chinese(declared: tuple[Yard, str, str]) -> None:
    yard, running, waits = declared
    told = yard.good("why", waits, YARD_LANG="zh")
    assert "预计启动：约 " in told
    assert "九成可能不晚于" in told
    assert "预计结束：约 " in yard.good("why", running, YARD_LANG="zh")
    assert "启动（一般不晚于 " in yard.good("ls", YARD_LANG="zh")
    assert "预计启动" in yard.good("show", waits, YARD_LANG="zh")


def test_every_moment_that_why_tells_is_one_of_the_readers_own_clock(declared: tuple[Yard, str, str]) -> None:
    yard, _, waits = declared
    behind = start(yard, "--cards", "4")
    for language in ("en", "zh"):
        for job, moments in ((waits, ends_of_holders(yard, waits)), (behind, submissions_ahead(yard, behind))):
            told = yard.good("why", job, YARD_LANG=language, TZ="JST-9")
            assert "UTC" not in told
            assert [at for at in moments if f"{datetime.fromtimestamp(at, JST):%Y-%m-%d %H:%M:%S}" in told] == moments
    yard.good("stop", behind)


def ends_of_holders(yard: Yard, job: str) -> list[float]:
    found = [fact["facts"]["ends_by"] for fact in yard.json("why", job)["facts"] if "ends_by" in fact["facts"]]
    assert found
    return found


def submissions_ahead(yard: Yard, job: str) -> list[float]:
    (ahead,) = yard.json("why", job)["ahead"]
    return [ahead["rule"]["facts"][who] for who in ("theirs", "mine")]


def test_what_only_looks_like_a_moment_is_left_alone() -> None:
    for text in ("at 2026-99-18 03:36:23 UTC", "12026-11-18 03:36:23 UTC", "2026-11-18 03:36:23"):
        assert by_local_clock(text) == text


def test_before_submitting_the_same_is_told(declared: tuple[Yard, str, str], tmp_path: Path) -> None:
    yard, _, _ = declared
    (tmp_path / "job.yaml").write_text("command: train\ncards: 4\n")
    told = yard.good("preview", str(tmp_path / "job.yaml"))
    assert "it would wait" in told
    assert "Start: about " in told


def test_where_nobody_knows_a_waiting_job_is_listed_as_unknown_and_why_says_why(yard: Yard) -> None:
    yard.up("--engine", "simulated", "--nodes", "1x4")
    yard.wait_for(start(yard, "--cards", "4"), "running")
    waits, never = start(yard, "--cards", "4"), start(yard, "--cards", "5")
    lines = {line.split()[0]: line for line in yard.good("ls").splitlines()}
    assert "EXPECTED" in lines["ID"]
    assert " unknown " in lines[waits]
    assert "unknown" not in lines[never]
    assert " 未知 " in yard.good("ls", YARD_LANG="zh")
    assert "Start: Nobody can tell" in yard.good("why", waits)


def test_why_tells_of_a_paused_job_what_show_tells(simulated: Yard) -> None:
    job = start(simulated, "--cards", "1")
    simulated.wait_for(job, "running")
    simulated.good("pause", job)
    simulated.wait_for(job, "paused")
    told = "It is paused: it starts when somebody resumes it."
    assert told in simulated.good("show", job)
    assert f"Start: {told}" in simulated.good("why", job)
    assert "预计启动：它已暂停" in simulated.good("why", job, YARD_LANG="zh")
    simulated.good("stop", job)


# --- the words ----------------------------------------------------------------------------------------------------


def estimate(seconds: float, late: float) -> Estimate:
    now = datetime.now(UTC)
    return Estimate(p50=(now + timedelta(seconds=seconds)).isoformat(), p90=(now + timedelta(seconds=late)).isoformat())


def test_what_is_about_to_start_is_told_without_a_time() -> None:
    assert in_table(estimate(2, 30), "start") == "starts any moment"
    assert in_words(estimate(2, 30), "start") == "at any moment"


def test_where_nobody_knows_a_table_says_nothing_and_a_line_says_why() -> None:
    unknown = Estimate(unknown="Nobody can tell.", unknown_code="guess.endless")
    assert in_table(unknown, "start") == ""
    assert in_words(unknown, "start") == "Nobody can tell."
    assert in_table(None, "end") == in_words(None, "end") == ""


def test_the_further_away_the_less_exact() -> None:
    assert clock(NOON + timedelta(minutes=7, seconds=40), NOON) == "12:08"
    assert clock(NOON + timedelta(minutes=63), NOON) == "13:05"
    assert clock(NOON + timedelta(minutes=63), NOON, up=True) == "13:05"
    assert clock(NOON + timedelta(hours=5, minutes=5), NOON, up=True) == "17:15"
    assert clock(NOON + timedelta(hours=31, minutes=5), NOON).endswith(" 19:00")
    assert away(47 * 60) == "45m"
    assert away(5.4 * 86400) == "5d12h"


@settings(deadline=None)
@given(st.integers(60, 30 * 86400))
def test_the_late_moment_is_never_told_too_early(seconds: int) -> None:
    at = NOON + timedelta(seconds=seconds)
    told = clock(at, NOON, up=True)
    dated = told if " " in told else f"{NOON:%m-%d} {told}"
    shown = datetime.strptime(f"{NOON.year} {dated}", "%Y %m-%d %H:%M")
    if shown < NOON.replace(tzinfo=None):  # over new year
        shown = shown.replace(year=NOON.year + 1)
    assert shown >= at.replace(tzinfo=None)
