"""When something will start and end, through the front door: two moments, or why nobody knows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import httpx2
import pytest
from tests.api.test_why import submit, why
from tests.api.yard import Yard

from gpuyard.domain.lifecycle import PauseAsked

# The one machine of these tests has 8 cards, 8 cores and 64G.
HOUR = 3600.0


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def shown(client: httpx2.Client, id: str) -> dict[str, Any]:
    return dict(client.get(f"/api/v1/workloads/{id}").json())


def listed(client: httpx2.Client, id: str) -> dict[str, Any]:
    items = client.get("/api/v1/workloads").json()["items"]
    return next(dict(item) for item in items if item["id"] == id)


def fill(yard: Yard, client: httpx2.Client, **job: Any) -> list[str]:
    """All eight cores are taken."""
    ids = [submit(client, cpu=1, **job) for _ in range(8)]
    for id in ids:
        yard.start(id)
    return ids


def test_with_too_little_history_it_says_so_in_the_language_asked_for(fresh: Yard) -> None:
    with fresh.person("bob") as bob:
        running = fill(fresh, bob)
        waits = submit(bob, cpu=2)
        told = why(bob, waits)["expected_start"]
        assert (told["p50"], told["p90"], told["unknown_code"]) == (None, None, "guess.history")
        assert told["unknown"].startswith("Nobody can tell yet: no run has ended here so far")
        assert why(bob, waits, "zh")["expected_start"]["unknown"].startswith("暂时无法预计")
        assert shown(bob, running[0])["expected_end"]["unknown_code"] == "guess.history"
        assert shown(bob, running[0])["expected_start"] is None


@pytest.fixture
def declared(fresh: Yard) -> tuple[Yard, httpx2.Client, list[str]]:
    """Eight that run for an hour at most."""
    client = fresh.person("bob")
    return fresh, client, fill(fresh, client, max_time="1h")


def test_declared_maximums_tell_when_something_starts_wherever_it_is_asked(
    declared: tuple[Yard, httpx2.Client, list[str]],
) -> None:
    yard, bob, running = declared
    waits = submit(bob, cpu=2, max_time="30m")
    told = [why(bob, waits)["expected_start"], shown(bob, waits)["expected_start"]]
    told += [listed(bob, waits)["expected_start"]]
    for one in told:
        assert one["unknown"] is None
        assert yard.clock() + 0.9 * HOUR < moment(one["p50"]) < yard.clock() + 1.1 * HOUR
        assert moment(one["p50"]) <= moment(one["p90"])
    ends = shown(bob, running[0])["expected_end"]
    assert ends["p50"] == ends["p90"]
    assert yard.clock() + 0.9 * HOUR < moment(ends["p50"]) <= yard.clock() + HOUR


def test_before_submitting_it_is_told_when_it_would_start_and_nothing_is_left_behind(
    declared: tuple[Yard, httpx2.Client, list[str]],
) -> None:
    yard, bob, _ = declared
    first = bob.post("/api/v1/preview", json={"command": "true", "cpu": 2}).json()
    again = bob.post("/api/v1/preview", json={"command": "true", "cpu": 2}).json()
    for told in (first, again):
        assert not told["starts"]
        assert yard.clock() + 0.9 * HOUR < moment(told["expected_start"]["p50"]) < yard.clock() + 1.1 * HOUR
    never = bob.post("/api/v1/preview", json={"command": "true", "cpu": 200}).json()
    assert never["never"]
    assert never["expected_start"] is None
    assert bob.get("/api/v1/workloads", params={"state": "queued"}).json()["items"] == []


def test_one_behind_another_is_told_a_later_start(declared: tuple[Yard, httpx2.Client, list[str]]) -> None:
    _, bob, _ = declared
    first = submit(bob, cpu=8, max_time="2h")
    second = submit(bob, cpu=8, max_time="2h")
    starts = [moment(why(bob, id)["expected_start"]["p50"]) for id in (first, second)]
    assert starts[1] - starts[0] > HOUR


def test_runs_that_are_over_teach_how_long_the_next_ones_run(fresh: Yard) -> None:
    with fresh.person("bob") as bob:
        for _ in range(8):
            id = submit(bob, cpu=1, name="short")
            fresh.start(id)
            fresh.clock.ahead += 600.0
            fresh.end(id)
        running = fill(fresh, bob, name="short")
        waits = submit(bob, cpu=2)
        told = why(bob, waits)["expected_start"]
        assert told["unknown"] is None
        assert fresh.clock() < moment(told["p50"]) < fresh.clock() + 900.0
        end = shown(bob, running[0])["expected_end"]
        assert fresh.clock() < moment(end["p50"]) < fresh.clock() + 900.0


def test_what_is_paused_or_can_never_start_is_given_no_moment(
    declared: tuple[Yard, httpx2.Client, list[str]],
) -> None:
    yard, bob, _ = declared
    never = submit(bob, cpu=200)
    assert why(bob, never)["expected_start"]["unknown_code"] == "guess.never"
    paused = submit(bob, cpu=2)
    yard.step(paused, PauseAsked("bob"))
    assert shown(bob, paused)["expected_start"]["unknown_code"] == "guess.paused"
