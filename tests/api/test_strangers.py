"""What hostile and careless people try with the queue: to learn of strangers' work, and to break the order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.api.yard import Yard, running

from gpuyard.api.parts import ApiLimits
from gpuyard.domain.lifecycle import PauseAsked

JOB: dict[str, Any] = {"command": "true", "cpu": 0.1, "memory": "16M"}


def submitted(person: Any, **changes: Any) -> str:
    made = person.post("/api/v1/workloads", json={**JOB, **changes})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def test_what_kept_a_strangers_work_from_starting_is_not_told(fresh: Yard) -> None:
    fresh.group("attic")
    with (
        fresh.person("milo") as milo,
        fresh.person("vera", group="attic") as vera,
        fresh.person("lena", role="lead", group="attic") as lena,
    ):
        hers = submitted(vera, group="attic", name="hidden")
        lena.post(f"/api/v1/workloads/{hers}/pause")
        fresh.clock.ahead += 5
        mine = submitted(milo)
        fresh.step(hers, PauseAsked("lena"))
        fresh.clock.ahead += 5
        fresh.start(mine)
        told = milo.get(f"/api/v1/workloads/{mine}/before/{hers}")
        assert told.json()["rule"]["code"] == "rule.passed"
        assert not [word for word in ("lena", "vera", "hidden") if word in told.text], told.text
        assert "lena" in vera.get(f"/api/v1/workloads/{mine}/before/{hers}").text, "of her own work she learns all"


def test_a_place_is_not_given_up_when_the_change_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    limits = ApiLimits(live_workloads_per_user=1)
    with running(tmp_path_factory.mktemp("yard"), limits=limits) as yard, yard.person("milo") as milo:
        last = submitted(milo)
        refused = milo.post(f"/api/v1/workloads/{last}/rerun", json={"set": {"cpu": "0.2"}, "instead": True})
        assert refused.status_code == 429, refused.text
        assert milo.get(f"/api/v1/workloads/{last}").json()["wanted"] == "run"


@pytest.mark.parametrize("weight", ["5e-324", "1e-310", "0", "-1", "NaN", "Infinity", "1001"])
def test_a_weight_that_makes_no_number_is_refused(fresh: Yard, weight: str) -> None:
    with fresh.owner as owner:
        headers = {"Content-Type": "application/json"}
        refused = owner.patch("/api/v1/groups/default", content=f'{{"weight": {weight}}}', headers=headers)
        assert refused.status_code == 400, refused.text


@pytest.mark.parametrize("tolerance", [5e-324, 1e-300, 1e-12, 0, -0.1, 2])
def test_a_tolerance_that_makes_no_number_is_refused(fresh: Yard, tolerance: float) -> None:
    with fresh.owner as owner:
        wish = json.dumps({"set": {"order.tolerance": tolerance}})
        headers = {"Content-Type": "application/json"}
        assert owner.patch("/api/v1/policy", content=wish, headers=headers).status_code == 400


def test_the_policy_names_no_strangers_and_no_strange_groups(fresh: Yard) -> None:
    fresh.group("attic")
    with fresh.person("milo") as milo, fresh.person("vera", group="attic") as vera, fresh.owner as owner:
        pools = {"pools": {"old": {"models": ["P100"]}}, "groups": {"attic": ["old"]}}
        assert owner.put("/api/v1/policy", json={"order": {"people": ["vera"]}, **pools}).status_code == 200
        assert "vera" not in milo.get("/api/v1/policy").text
        assert "attic" not in milo.get("/api/v1/policy").text
        assert vera.get("/api/v1/policy").json()["groups"] == {"attic": ["old"]}
        assert vera.get("/api/v1/policy").json()["order"]["people"] == ["vera"]
        assert owner.get("/api/v1/policy").json()["order"]["people"] == ["vera"]
