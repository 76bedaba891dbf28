"""Guarantees, weights and the merging of groups over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard, place

from gpuyard.domain.cluster import CardShare
from gpuyard.domain.lifecycle import Placed
from gpuyard.domain.workload import State


def lines(client: httpx2.Client) -> dict[tuple[str, str | None, str], dict[str, Any]]:
    items = client.get("/api/v1/quota").json()["items"]
    return {(line["group"], line["user"], line["resource"]): line for line in items}


def set_quota(client: httpx2.Client, group: str, **wish: Any) -> httpx2.Response:
    return client.put(f"/api/v1/groups/{group}/quota", json=wish)


def hold(yard: Yard, client: httpx2.Client, group: str, *cards: int) -> str:
    """A job of the group that has these cards."""
    sent = client.post("/api/v1/workloads", json={"command": "true", "group": group, "cards": len(cards)})
    assert sent.status_code == 201, sent.text
    id = str(sent.json()["id"])
    given = replace(place(yard.workload(id).spec.roles[0]), device="nvidia")
    shares = tuple(CardShare(card, 1000) for card in cards)
    yard.step(id, Placed({("worker", 0): replace(given, cards=shares)}))
    return id


def test_a_group_has_a_limit_and_a_guarantee_or_only_one_of_them(server: Yard) -> None:
    server.group("g1")
    with server.owner as owner:
        assert set_quota(owner, "g1", limits={"nvidia": 6}, guarantees={"nvidia": 4}).status_code == 200
        line = lines(owner)["g1", None, "nvidia"]
        assert (line["limit"], line["guaranteed"], line["used"]) == (6, 4, 0)
        assert set_quota(owner, "g1", limits={"nvidia": None}).status_code == 200
        assert (lines(owner)["g1", None, "nvidia"]["limit"], line["guaranteed"]) == (None, 4)
        assert set_quota(owner, "g1", guarantees={"nvidia": 0}).status_code == 200
        assert ("g1", None, "nvidia") not in lines(owner)
        assert set_quota(owner, "g1").status_code == 400


def test_guarantees_that_make_no_sense_are_refused(server: Yard) -> None:
    server.group("g2", {"nvidia": 4})
    with server.person("gus", group="g2"), server.owner as owner:
        wishes: list[tuple[dict[str, Any], str]] = [
            ({"guarantees": {"nvidia": 5}}, "quota.guarantee_limit"),
            ({"guarantees": {"nvidia": 1}, "user": "gus"}, "quota.user_guarantee"),
            ({"guarantees": {"cpu": 1}}, "value.one_of"),
            ({"guarantees": {"nvidia": "many"}}, "rule.cards"),
        ]
        for wish, problem in wishes:
            answer = set_quota(owner, "g2", **wish)
            assert answer.status_code == 400, wish
            assert answer.json()["error"]["facts"]["problem"] == problem
        assert set_quota(owner, "g2", guarantees={"nvidia": 3}).status_code == 200
        too_low = set_quota(owner, "g2", limits={"nvidia": 2})
        assert too_low.json()["error"]["facts"]["problem"] == "quota.guarantee_limit"
        for language, word in (("en", "guarantee"), ("zh", "保证")):
            headers = {"Accept-Language": language}
            told = owner.put("/api/v1/groups/g2/quota", json={"limits": {"nvidia": 2}}, headers=headers).json()
            assert word in told["error"]["message"]
        set_quota(owner, "g2", guarantees={"nvidia": 0})


def test_leads_set_no_guarantees(server: Yard) -> None:
    server.group("g3", {"nvidia": 4})
    with server.person("lia", role="lead", group="g3") as lead:
        assert set_quota(lead, "g3", guarantees={"nvidia": 1}).status_code == 403
        assert set_quota(lead, "g3", guarantees={"nvidia": 1}, user="lia").status_code == 403
        assert lead.patch("/api/v1/groups/g3", json={"weight": 5}).status_code == 403
        assert lead.post("/api/v1/groups/g3/merge", json={"into": "default"}).status_code == 403


def test_more_guaranteed_than_there_is_stands_but_is_told(fresh: Yard) -> None:
    fresh.group("g4")
    fresh.group("g5")
    with fresh.owner as owner:
        assert set_quota(owner, "g4", guarantees={"nvidia": 6}).json()["warnings"] == []
        told = set_quota(owner, "g5", guarantees={"nvidia": 6}).json()["warnings"]
        assert len(told) == 1
        assert "12" in told[0]
        assert "8" in told[0]
        assert lines(owner)["g5", None, "nvidia"]["guaranteed"] == 6


def test_weight_and_order_are_set_and_shown(server: Yard) -> None:
    with server.owner as owner:
        made = owner.post(
            "/api/v1/groups", json={"name": "g6", "weight": 2.5, "fifo": True, "guarantees": {"nvidia": 1}}
        )
        assert made.status_code == 201, made.text
        assert (made.json()["weight"], made.json()["fifo"]) == (2.5, True)
        assert made.json()["quotas"][0]["guaranteed"] == 1
        changed = owner.patch("/api/v1/groups/g6", json={"fifo": False}).json()
        assert (changed["weight"], changed["fifo"]) == (2.5, False)
        assert owner.get("/api/v1/groups/g6").json()["weight"] == 2.5
        for wrong in ({"weight": 0}, {"weight": -1}, {"weight": 1001}, {"fifo": "yes"}):
            assert owner.patch("/api/v1/groups/g6", json=wrong).status_code == 400
        assert owner.delete("/api/v1/groups/g6").status_code == 200


def test_what_is_borrowed_and_lent_is_shown(fresh: Yard) -> None:
    """Eight cards: five are guaranteed to one group, one to another; three more are used by a third."""
    for name in ("rich", "some", "none"):
        fresh.group(name)
    with fresh.owner as owner:
        set_quota(owner, "rich", guarantees={"nvidia": 5})
        set_quota(owner, "some", guarantees={"nvidia": 1})
        hold(fresh, owner, "rich", 0)
        hold(fresh, owner, "some", 1, 2)
        hold(fresh, owner, "none", 3, 4, 5)
        shown = {group: line for (group, _, resource), line in lines(owner).items() if resource == "nvidia"}
        assert {group: (line["used"], line["borrowed"], line["lent"]) for group, line in shown.items()} == {
            "rich": (1, 0, 2),  # of the four borrowed two come out of the part that is nobody's
            "some": (2, 1, 0),
            "none": (3, 3, 0),
        }
        used = {group["name"]: group["used"].get("nvidia") for group in owner.get("/api/v1/groups").json()["items"]}
        assert (used["rich"], used["some"], used["none"], used["default"]) == (1, 2, 3, None)


def test_a_quota_lowered_below_what_runs_kills_nothing(fresh: Yard) -> None:
    fresh.group("busy", {"nvidia": 4})
    with fresh.owner as owner:
        id = hold(fresh, owner, "busy", 0, 1, 2)
        before = fresh.workload(id)
        lowered = set_quota(owner, "busy", limits={"nvidia": 1})
        assert lowered.status_code == 200
        assert ["3 nvidia cards are in use" in text for text in lowered.json()["warnings"]] == [True]
        assert set_quota(owner, "busy", limits={"nvidia": 3}).json()["warnings"] == []
        assert set_quota(owner, "busy", limits={"nvidia": 1}).status_code == 200
        assert fresh.workload(id) == before
        line = lines(owner)["busy", None, "nvidia"]
        assert (line["used"], line["limit"]) == (3, 1)


# --- merging ------------------------------------------------------------------------------------------------------


def test_groups_are_merged_and_running_work_goes_on(fresh: Yard) -> None:
    fresh.group("vision", {"nvidia": 4})
    fresh.group("speech", {"nvidia": 3})
    with (
        fresh.person("lena", role="lead", group="vision") as lena,
        fresh.person("milo", group="vision") as milo,
        fresh.owner as owner,
    ):
        running = hold(fresh, milo, "vision", 0)
        waiting = milo.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        owner.patch("/api/v1/policy", json={"set": {"pools.p.models": "stand-in", "groups.vision": "p"}})
        told = owner.post("/api/v1/groups/vision/merge", json={"into": "speech", "preview": True}).json()
        assert (told["done"], told["live"], told["running"], told["joining"]) == (False, 2, 1, ["lena", "milo"])
        assert owner.get("/api/v1/groups/vision").status_code == 200
        done = owner.post("/api/v1/groups/vision/merge", json={"into": "speech"})
        assert done.status_code == 200, done.text
        assert done.json() == {**told, "done": True, "warnings": done.json()["warnings"]}
        assert any("lena" in warning for warning in done.json()["warnings"])
        assert done.json()["quotas"][0]["limit"] == 7
        assert owner.get("/api/v1/groups/vision").status_code == 404
        assert owner.get("/api/v1/policy").json()["groups"] == {}
        assert fresh.workload(running).state is State.PLACED
        assert milo.get(f"/api/v1/workloads/{running}").json()["group"] == "speech"
        assert milo.get(f"/api/v1/workloads/{running}/events").json()["items"][-1]["code"] == "story.group_merged"
        assert milo.post("/api/v1/workloads", json={"command": "true"}).json()["group"] == "speech"
        assert lena.get(f"/api/v1/workloads/{waiting}").status_code == 404, "no lead any more"
        line = owner.get("/api/v1/audit").json()["items"]
        assert ("group.merge", "vision") in {(one["action"], one["object"]) for one in line}


def test_the_shared_folder_moves_along_or_it_is_told_what_to_do(fresh: Yard) -> None:
    share = fresh.parts.shares.roots[0]
    share.mkdir(parents=True)
    fresh.group("vision")
    fresh.group("speech")
    fresh.group("sound")
    (share / "vision").mkdir()
    (share / "vision" / "a.txt").write_text("kept")
    with fresh.owner as owner:
        told = owner.post("/api/v1/groups/vision/merge", json={"into": "speech"}).json()
        assert (share / "speech" / "vision" / "a.txt").read_text() == "kept"
        assert any("`vision`" in warning for warning in told["warnings"])
        (share / "sound").mkdir()
        (share / "sound" / "speech").write_text("in the way")
        stuck = owner.post("/api/v1/groups/speech/merge", json={"into": "sound"}, headers={"Accept-Language": "zh"})
        assert stuck.status_code == 200
        assert any("files/share/speech" in warning for warning in stuck.json()["warnings"])
        assert (share / "speech").is_dir()
        assert owner.get("/api/v1/groups/speech").status_code == 404


@pytest.mark.parametrize(
    ("source", "target", "status"),
    [("default", "default", 400), ("nothing", "default", 404), ("default", "nothing", 404)],
)
def test_what_cannot_be_merged_is_refused(server: Yard, source: str, target: str, status: int) -> None:
    with server.owner as owner:
        assert owner.post(f"/api/v1/groups/{source}/merge", json={"into": target}).status_code == status
