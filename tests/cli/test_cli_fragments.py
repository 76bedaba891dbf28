"""`yard nodes --fragments`, and moves carried out by a real server on simulated nodes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.cli.yard import Yard, wait_until


def run(yard: Yard, name: str, cards: int, *flags: str) -> str:
    return yard.good(
        *("run", "--detach", "--name", name, "--cards", str(cards), "--cpu", "1", "--env", "YARD_SIM_SECONDS=3600"),
        *(*flags, "--", "train"),
    )


@pytest.fixture
def scattered(yard: Yard) -> Yard:
    """Two nodes of four cards, a small job on each, and a large one that waits."""
    yard.up("--engine", "simulated", "--nodes", "2x4")
    yard.good("policy", "set", "defragment.after=0s", "defragment.min_run=0s")
    fillings = []
    for number in (1, 2):
        fillings.append(run(yard, f"filling-{number}", 3))
        yard.wait_for(fillings[-1], "running")
        yard.wait_for(run(yard, f"small-{number}", 1, "--preemptible"), "running")
    for job in fillings:
        yard.good("stop", job)
        yard.wait_for(job)
    run(yard, "large", 4)
    return yard


def jobs(yard: Yard) -> dict[str, Any]:
    return {job["name"]: job for job in yard.json("ls", "--all")}


def test_fragments_are_shown_with_whoever_waits_and_the_moves_and_moves_are_made_once_allowed(scattered: Yard) -> None:
    yard = scattered
    large = jobs(yard)["large"]["id"]
    told = yard.json("nodes", "--fragments")
    assert [node["free"] for node in told["nodes"]] == [3, 3]
    (waits,) = told["waiting"]
    assert (waits["id"], len(waits["moves"]), told["mode"]) == (large, 1, "propose")
    shown = yard.good("nodes", "--fragments")
    assert "NO FIT" in shown
    assert re.search(
        r"^6 cards are free; [\d.]+ of them in places where not even one typical request fits", shown, re.M
    )
    assert "Too few submissions are known yet" in shown
    assert "LEFT OVER: free cards that remain" in shown
    assert [line.split()[-2:] for line in shown.splitlines() if line.startswith("4 nvidia ")] == [["0", "6"]]
    assert f"{large} large" in shown
    assert "1 move of preemptible work would start it" in shown
    assert waits["moves"][0]["id"] in shown
    chinese = yard.good("nodes", "--fragments", YARD_LANG="zh")
    assert "所在之处连一个常见请求也放不下" in chinese
    assert "提交的任务还太少" in chinese
    assert "移动 1 个可中断的任务" in chinese
    assert "would start it" in yard.good("why", large)
    assert "空闲的卡够它用，但不在一起" in yard.good("why", large, YARD_LANG="zh")

    yard.good("policy", "set", "defragment.mode=move")
    yard.wait_for(large, "running")
    moved = waits["moves"][0]["id"]
    wait_until(lambda: yard.json("show", moved)["state"] == "running")
    story = yard.good("events", moved)
    assert "Moves to other cards, so that large" in story
    assert "kept for it" in story
    assert "正在换到别的卡上" in yard.good("events", moved, YARD_LANG="zh")
    assert "No job waits" in yard.good("nodes", "--fragments")


def test_machines_that_take_no_new_work_are_counted_instead_of_vanishing(simulated: Yard) -> None:
    assert "left out" not in simulated.good("nodes", "--fragments")
    simulated.good("nodes", "cordon", "sim-1")
    try:
        shown = simulated.good("nodes", "--fragments")
        assert "sim-1" not in shown
        assert "1 machine with cards is left out: no new work goes there" in shown
        assert "另有 1 台带卡的机器不接收新任务" in simulated.good("nodes", "--fragments", YARD_LANG="zh")
    finally:
        simulated.good("nodes", "uncordon", "sim-1")


def test_showing_fragments_and_changing_a_machine_at_once_is_refused(simulated: Yard) -> None:
    done = simulated.run("nodes", "--fragments", "cordon", "sim-1")
    assert (done.code, "--fragments" in done.err, "cordon" in done.err) == (2, True, True)
    assert {node["state"] for node in simulated.json("nodes")} == {"ready"}


def test_where_nobody_asked_for_cards_yet_it_is_said_that_nobody_can_say_what_fits(yard: Yard) -> None:
    yard.up("--engine", "simulated", "--nodes", "1x4")
    shown = yard.good("nodes", "--fragments")
    assert "4 cards are free.\n" in shown
    assert "No request for cards is known yet" in shown


def test_a_word_that_is_no_mode_is_refused_with_those_there_are(simulated: Yard) -> None:
    for wrong in ("on", "moev"):
        done = simulated.run("policy", "set", f"defragment.mode={wrong}")
        assert done.code == 2, done.out
        assert "propose" in done.err
    assert simulated.run("policy", "set", "defragment.moves=0").code == 2
    done = simulated.run("policy", "set", "defragment.mod=move")
    assert "defragment.mode" in done.err
