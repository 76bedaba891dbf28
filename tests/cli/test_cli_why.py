"""`yard why` on a screen: everything that matters on one page of 24 lines, in both languages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.yard import Yard, wait_until

from gpuyard.cli.output import width, wrapped

LINES, COLUMNS = 24, 80
FOR_EVER = ["--env", "YARD_SIM_SECONDS=3600"]


def start(yard: Yard, *options: str) -> str:
    job = yard.good("run", "--detach", *FOR_EVER, *options, "--", "train")
    wait_until(lambda: yard.json("why", job)["reason_code"] != "waiting.new")
    return job


@pytest.fixture
def full(simulated: Yard) -> Iterator[Yard]:
    """One of the two nodes is full, the other has three of four cards left."""
    made = [start(simulated, "--cards", "4"), start(simulated, "--cards", "1")]
    for job in made:
        simulated.wait_for(job, "running")
    yield simulated
    left = [job["id"] for job in simulated.json("ls", "--state", "queued", "--state", "running")]
    simulated.good("stop", *left)
    for job in left:
        simulated.wait_for(job)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_whole_answer_fits_on_one_screen(full: Yard, language: str) -> None:
    job = start(full, "--cards", "4", "--replicas", "2", "--name", "gang")
    for _ in range(3):
        start(full, "--cards", "4")
    waits = start(full, "--cards", "4", "--memory", "2G")
    for id in (job, waits):
        screen = full.good("why", id, COLUMNS=str(COLUMNS), YARD_LANG=language)
        lines = screen.splitlines()
        assert len(lines) <= LINES, screen
        assert max(map(width, lines)) <= COLUMNS, screen
        assert id in lines[0]


def test_the_command_it_offers_works_as_printed(full: Yard) -> None:
    job = start(full, "--cards", "4")
    told = full.good("why", job)
    assert "What would start it now:" in told
    [command] = re.findall(r"yard (rerun .* --instead)", told)[:1]
    new = full.good(*shlex.split(command))
    assert full.wait_for(new, "running")["cards"] == 3
    assert full.wait_for(job)["state"] == "stopped"


def test_who_comes_before_whom_is_told_with_the_numbers(full: Yard) -> None:
    mine = start(full, "--cards", "4")
    urgent = start(full, "--cards", "4", "--priority", "700")
    told = full.good("why", urgent, "--before", mine)
    assert told.splitlines() == [f"{urgent} comes before {mine}:", "  Its priority is higher: 700 against 500."]
    reverse = full.good("why", mine, "--before", urgent, YARD_LANG="zh")
    assert reverse.splitlines()[0] == f"情况相反：先的是 {urgent}。"
    assert full.json("why", urgent, "--before", mine)["rule"]["code"] == "rule.priority"


def test_a_request_that_strands_cards_is_told_so_on_the_side(full: Yard) -> None:
    node = full.json("nodes")[0]
    done = full.run("run", "--detach", "--cards", "1", "--cpu", str(node["cpu"] - 1), "--", "train")
    assert done.code == 0
    assert len(done.out.split()) == 1
    assert "leaves 2 cards that nobody can use" in done.err


@settings(deadline=None)
@given(st.text(alphabet="abc 中文，。（）x", max_size=120), st.integers(10, 60))
def test_broken_lines_lose_nothing_and_stay_within_the_screen(text: str, room: int) -> None:
    lines = list(wrapped(text, room, "  ", "    "))
    assert "".join("".join(lines).split()) == "".join(text.split())
    words = [word for word in re.split(r"[\s中文，。（）]", text) if len(word) > room - 10]
    if not words and not re.search(r"[，。（）]{3}", text):
        assert all(width(line) <= room for line in lines), lines
