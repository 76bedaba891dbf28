"""What is fragmented and for whom, through the front door."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard

from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.lifecycle import Launched, Observed, Placed
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Life, Seen

# The one machine of these tests has 8 cards, 8 cores and 64G.


def submit(client: httpx2.Client, **job: Any) -> str:
    answer = client.post("/api/v1/workloads", json={"command": "python train.py", "cpu": 0.5, "memory": "1G", **job})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def run(yard: Yard, id: str, *cards: int, milli: int = 1000) -> str:
    shares = tuple(CardShare(card, milli) for card in cards)
    yard.step(id, Placed({("worker", 0): Allotment("node-1", 500, GIB, 0, "nvidia", shares, True)}))
    workload = yard.step(id, Launched({}))
    seen = Seen(Life.RUNNING, started_at=yard.clock())
    yard.step(id, Observed({replica.id: seen for replica in yard.replicas(workload)}))
    return id


def shown(client: httpx2.Client, language: str = "en") -> dict[str, Any]:
    answer = client.get("/api/v1/nodes/fragments", headers={"Accept-Language": language})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture
def halves(fresh: Yard) -> Yard:
    """zelda's halves of two cards, and all others in use."""
    with fresh.person("zelda") as zelda:
        for card in (0, 1):
            run(fresh, submit(zelda, name=f"half-{card}", cards=0.5, preemptible=True), card, milli=500)
        run(fresh, submit(zelda, name="rest", cards=6), *range(2, 8))
    fresh.clock.ahead += 700.0
    return fresh


def test_free_cards_that_nobody_can_use_are_told_with_whoever_waits_for_them_and_the_moves(halves: Yard) -> None:
    with halves.person("bob") as bob, halves.owner as owner:
        id = submit(bob, name="whole", cards=1)
        told = shown(bob)
        (node,) = told["nodes"]
        assert (node["node"], node["model"], node["cards"], node["free"]) == ("node-1", "stand-in", 8, 1)
        assert 0 < node["unusable"] <= 1
        (waits,) = told["waiting"]
        assert (waits["id"], waits["name"], waits["owner"], waits["asked"]) == (id, "whole", "bob", {"nvidia": 1})
        assert waits["nodes"] == ["node-1"]
        (move,) = waits["moves"]
        assert (move["name"], move["owner"], move["group"]) == (None, None, "default")
        assert (move["source"], move["nodes"]) == (["node-1"], ["node-1"])
        assert 690 < move["lost_seconds"] < 800
        (seen_by_owner,) = shown(owner)["waiting"][0]["moves"]
        assert seen_by_owner["name"] in ("half-0", "half-1")
        assert seen_by_owner["owner"] == "zelda"


def test_each_kind_of_typical_request_is_told_with_what_still_fits_of_it_and_what_is_stranded_for_it(
    halves: Yard,
) -> None:
    with halves.person("bob") as bob:
        submit(bob, name="whole", cards=1)
        told = shown(bob)
    assert told["learned"] is False  # too few were submitted: it is what runs and waits
    requests = {one["cards"]: one for one in told["requests"]}
    assert sorted(requests) == [0.5, 1, 6]
    assert [(requests[n]["fit"], requests[n]["free"], requests[n]["stranded"]) for n in (0.5, 1, 6)] == [
        (2, 1, 0),
        (0, 1, 1),
        (0, 1, 1),
    ]
    assert (requests[0.5]["device"], requests[0.5]["cpu"], requests[0.5]["share"]) == ("nvidia", 0.5, 0.5)


def test_it_is_told_in_the_language_asked_for_and_in_why(halves: Yard) -> None:
    with halves.person("bob") as bob:
        id = submit(bob, cards=1)
        assert "1 move of preemptible work would start it on node-1" in shown(bob)["waiting"][0]["words"]
        assert "移动 1 个可中断的任务" in shown(bob, "zh")["waiting"][0]["words"]
        why = bob.get(f"/api/v1/workloads/{id}/why").json()
        assert [fact["code"] for fact in why["facts"][:2]] == ["fact.moves", "fact.move"]
        assert "could move from node-1 to node-1" in why["facts"][1]["words"]
        assert why["sort"] == "busy"


def test_where_the_policy_forbids_moves_none_are_told_and_a_policy_that_allows_them_is_tried_first(
    halves: Yard,
) -> None:
    with halves.person("bob") as bob, halves.owner as owner:
        id = submit(bob, cards=1)
        tried = owner.post("/api/v1/policy/try", json={"set": {"defragment.mode": "move", "defragment.after": "0s"}})
        assert tried.status_code == 200, tried.text
        assert [(one["by"], one["rule"]) for one in tried.json()["evictions"]] == [(id, "defragment")]
        owner.patch("/api/v1/policy", json={"set": {"defragment.mode": "never"}})
        told = shown(bob)
        assert (told["mode"], told["waiting"][0]["moves"]) == ("never", [])
        assert "Nobody is moved, by policy" in told["waiting"][0]["words"]
        assert "按策略不移动任何任务" in shown(bob, "zh")["waiting"][0]["words"]
        assert "fact.moves" not in str(bob.get(f"/api/v1/workloads/{id}/why").json())


def test_strangers_are_told_nothing(fresh: Yard) -> None:
    with fresh.client() as stranger:
        assert stranger.get("/api/v1/nodes/fragments").status_code == 401
