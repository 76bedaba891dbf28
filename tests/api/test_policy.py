"""The policy over HTTP: read by all, changed by admins, tried before it is set, and kept to when work is submitted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.api.yard import Yard

from gpuyard.dialects.policy import write_policy
from gpuyard.domain.policy import Policy

DEFAULT = write_policy(Policy())


def test_everyone_reads_the_policy_and_only_admins_change_or_try_it(fresh: Yard) -> None:
    with fresh.person("milo") as member, fresh.person("lena", role="lead") as lead:
        for person in (member, lead):
            assert person.get("/api/v1/policy").json() == DEFAULT
            assert person.put("/api/v1/policy", json={}).status_code == 403
            assert person.patch("/api/v1/policy", json={"set": {"backfill": False}}).status_code == 403
            assert person.post("/api/v1/policy/try", json={}).status_code == 403
    with fresh.client() as stranger:
        assert stranger.get("/api/v1/policy").status_code == 401


def test_one_value_is_set_and_the_others_stay(fresh: Yard) -> None:
    with fresh.owner as owner:
        told = owner.patch("/api/v1/policy", json={"set": {"order.half_life": "3d", "order.people": "admin"}})
        assert told.status_code == 200, told.text
        assert {one["key"]: (one["before"], one["after"]) for one in told.json()["changed"]} == {
            "order.half_life": ("7d", "3d"),
            "order.people": ([], ["admin"]),
        }
        now = owner.get("/api/v1/policy").json()
        assert now == {**DEFAULT, "order": {**DEFAULT["order"], "half_life": "3d", "people": ["admin"]}}
        line = owner.get("/api/v1/audit").json()["items"][0]
        assert (line["action"], line["object"]) == ("policy.change", "policy")
        assert line["facts"]["changed"]["order.half_life"] == ["7d", "3d"]
        assert owner.put("/api/v1/policy", json={}).json()["policy"] == DEFAULT
        assert owner.put("/api/v1/policy", json={}).json()["changed"] == []


def test_a_whole_policy_is_set_from_yaml_and_read_back(fresh: Yard) -> None:
    text = "placing: in_order\nservers: [node-1, node-9]\npools:\n  p100: {models: [P100]}\ngroups: {default: [p100]}\n"
    with fresh.owner as owner:
        told = owner.put("/api/v1/policy", content=text, headers={"Content-Type": "application/yaml"})
        assert told.status_code == 200, told.text
        assert owner.get("/api/v1/policy").json() == told.json()["policy"]
        assert told.json()["policy"]["groups"] == {"default": ["p100"]}
        assert any("node-9" in warning for warning in told.json()["warnings"])
        assert any("P100" in warning for warning in told.json()["warnings"])
        again = owner.put("/api/v1/policy", json=owner.get("/api/v1/policy").json())
        assert again.json()["changed"] == []


@pytest.mark.parametrize(
    ("document", "at"),
    [
        ({"order": {"half_life": 0}}, "order.half_life"),
        ({"groups": {"default": ["p100"]}}, "groups.default.0"),
        ({"pools": {"p100": {}}, "groups": {"nobody": ["p100"]}}, "groups.nobody"),
        ({"order": {"people": ["nobody"]}}, "order.people.0"),
        ({"priorities": {"normal": 500, "mine": 1001}}, "priorities.mine"),
    ],
)
def test_nonsense_is_refused_in_both_languages_and_changes_nothing(fresh: Yard, document: Any, at: str) -> None:
    with fresh.owner as owner:
        for language in ("en", "zh"):
            for answer in (
                owner.put("/api/v1/policy", json=document, headers={"Accept-Language": language}),
                owner.post("/api/v1/policy/try", json=document, headers={"Accept-Language": language}),
            ):
                assert answer.status_code == 400
                assert answer.json()["error"]["facts"]["at"] == at
                assert at in answer.json()["error"]["message"]
        assert owner.get("/api/v1/policy").json() == DEFAULT


def test_a_mistake_in_a_yaml_policy_is_told_by_its_line(fresh: Yard) -> None:
    with fresh.owner as owner:
        headers = {"Content-Type": "application/yaml"}
        error = owner.put("/api/v1/policy", content="order:\n  half_live: 3d\n", headers=headers).json()["error"]
        assert (error["facts"]["line"], error["facts"]["nearest"]) == (2, "half_life")
        wrong = owner.patch("/api/v1/policy", json={"set": {"half_life": "3d"}}).json()["error"]
        assert wrong["facts"]["nearest"] == "order.half_life"
        assert owner.patch("/api/v1/policy", json={"set": {}}).status_code == 400
        assert owner.put("/api/v1/policy", content="x", headers={"Content-Type": "text/plain"}).status_code == 400


def test_whoever_is_removed_is_no_longer_in_the_policy(fresh: Yard) -> None:
    fresh.group("attic")
    with fresh.person("otto"), fresh.owner as owner:
        wish = {"order.people": "otto", "pools.p.models": "P100", "groups.attic": "p"}
        assert owner.patch("/api/v1/policy", json={"set": wish}).status_code == 200
        assert owner.delete("/api/v1/users/otto").status_code == 200
        assert owner.delete("/api/v1/groups/attic").status_code == 200
        now = owner.get("/api/v1/policy").json()
        assert (now["order"]["people"], now["groups"]) == ([], {})


# --- trying -------------------------------------------------------------------------------------------------------


def job(cards: int, **more: Any) -> dict[str, Any]:
    return {"command": "true", "cards": cards, **more}


def test_trying_tells_who_would_start_and_who_would_not_and_changes_nothing(fresh: Yard) -> None:
    with fresh.person("milo") as milo, fresh.person("nina") as nina, fresh.owner as owner:
        first = milo.post("/api/v1/workloads", json=job(8)).json()["id"]
        second = nina.post("/api/v1/workloads", json=job(8)).json()["id"]
        told = owner.post("/api/v1/policy/try", json={"set": {"order.people": "nina"}})
        assert told.status_code == 200, told.text
        found = told.json()
        assert [work["id"] for work in found["starts"]] == [second]
        assert [work["id"] for work in found["stays"]] == [first]
        assert (found["starts_count"], found["stays_count"], found["evictions_count"]) == (1, 1, 0)
        moves = {move["work"]["id"]: (move["before"], move["after"]) for move in found["moves"]}
        assert moves == {first: (None, 1), second: (1, None)}
        assert found["groups"] == [
            {
                "group": "default",
                "before": {"starting": 1, "waiting": 1, "evicted": 0},
                "after": {"starting": 1, "waiting": 1, "evicted": 0},
            }
        ]
        assert found["changed"] == [{"key": "order.people", "before": [], "after": ["nina"]}]
        assert owner.get("/api/v1/policy").json() == DEFAULT


def test_trying_what_is_in_force_changes_nothing(fresh: Yard) -> None:
    with fresh.person("milo") as milo, fresh.owner as owner:
        for _ in range(3):
            milo.post("/api/v1/workloads", json=job(8))
        found = owner.post("/api/v1/policy/try", json=owner.get("/api/v1/policy").json()).json()
        counts = {key: value for key, value in found.items() if key.endswith("_count")}
        assert set(counts.values()) == {0}
        assert found["changed"] == []


def test_a_pool_that_is_tried_keeps_work_from_starting(fresh: Yard) -> None:
    with fresh.person("milo") as milo, fresh.owner as owner:
        id = milo.post("/api/v1/workloads", json=job(1)).json()["id"]
        wish = {"pools.p100.models": "P100", "groups.default": "p100"}
        found = owner.post("/api/v1/policy/try", content=json.dumps({"set": wish})).json()
        assert [work["id"] for work in found["stays"]] == [id]
        assert found["warnings"]


# --- priorities ---------------------------------------------------------------------------------------------------


def test_classes_and_the_usual_priority_come_from_the_policy(fresh: Yard) -> None:
    with fresh.person("milo") as milo, fresh.owner as owner:
        assert milo.post("/api/v1/workloads", json=job(0)).json()["priority"] == 500
        assert milo.post("/api/v1/workloads", json=job(0, priority="low")).json()["priority"] == 200
        owner.patch("/api/v1/policy", json={"set": {"priorities.normal": 300, "priorities.night": 50}})
        plain = milo.post("/api/v1/workloads", json=job(0)).json()
        assert plain["priority"] == 300
        assert milo.post("/api/v1/workloads", json=job(0, priority="night")).json()["priority"] == 50
        assert milo.post("/api/v1/workloads", json=job(0, priority="noon")).status_code == 400
        owner.patch("/api/v1/policy", json={"set": {"priorities.normal": ""}})
        owner.patch("/api/v1/policy", json={"set": {"priorities.normal": 400}})
        again = milo.post(f"/api/v1/workloads/{plain['id']}/rerun")
        assert again.json()["priority"] == 300, "a rerun is the same job, whatever is usual today"
        assert milo.get(f"/api/v1/workloads/{plain['id']}/file").json()["priority"] == 300


def test_nobody_asks_for_more_than_their_role_allows(fresh: Yard) -> None:
    fresh.group("lab")
    fresh.group("attic")
    with (
        fresh.person("milo", group="lab") as member,
        fresh.person("lena", role="lead", group="lab") as lead,
        fresh.owner as owner,
    ):
        owner.put("/api/v1/groups/attic/members/lena", json={})
        for person, group, ceiling, role in [
            (member, "lab", 700, "member"),
            (lead, "lab", 900, "lead"),
            (lead, "attic", 700, "member"),
            (owner, "attic", 1000, "admin"),
        ]:
            fine = person.post("/api/v1/workloads", json=job(0, group=group, priority=ceiling))
            assert fine.status_code == 201, fine.text
            if ceiling < 1000:
                refused = person.post("/api/v1/workloads", json=job(0, group=group, priority=ceiling + 1))
                assert refused.status_code == 403
                error = refused.json()["error"]
                assert error["code"] == "refused.priority_ceiling"
                assert error["facts"] == {"asked": ceiling + 1, "ceiling": ceiling, "role": role}
                assert person.post("/api/v1/preview", json=job(0, group=group, priority=999)).status_code == 403


def test_a_rerun_keeps_to_the_ceiling_of_today(fresh: Yard) -> None:
    with fresh.person("milo") as milo, fresh.owner as owner:
        id = milo.post("/api/v1/workloads", json=job(0, priority="high")).json()["id"]
        raised = milo.post(f"/api/v1/workloads/{id}/rerun", json={"set": {"priority": "urgent"}})
        assert raised.json()["error"]["code"] == "refused.priority_ceiling"
        owner.patch("/api/v1/policy", json={"set": {"ceilings.member": 600}})
        assert milo.post(f"/api/v1/workloads/{id}/rerun").json()["error"]["facts"]["ceiling"] == 600
        assert milo.post(f"/api/v1/workloads/{id}/rerun", json={"set": {"priority": "normal"}}).status_code == 201
