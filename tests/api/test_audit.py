"""The audit trail through the front door: searched, and checked for lines that somebody changed."""

from __future__ import annotations

import sqlalchemy as sa
from tests.api.yard import Yard

from gpuyard.store.schema import audit


def test_the_trail_is_searched_by_who_what_and_how_it_ended(fresh: Yard) -> None:
    with fresh.person("ada") as ada, fresh.owner as owner:
        job = ada.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        ada.post(f"/api/v1/workloads/{job}/stop")
        owner.post("/api/v1/nodes/node-1/cordon")

        def found(**only: str) -> list[str]:
            return [one["action"] for one in owner.get("/api/v1/audit", params=only).json()["items"]]

        assert found(who="ada") == ["workload.stop", "workload.submit"]
        assert found(object=job, action="workload.stop") == ["workload.stop"]
        assert found(action="node.cordon", outcome="done") == ["node.cordon"]
        assert found(who="nobody") == []
        first = owner.get("/api/v1/audit", params={"who": "ada", "limit": 1}).json()
        rest = owner.get("/api/v1/audit", params={"who": "ada", "limit": 1, "cursor": first["next"]}).json()
        assert [first["items"][0]["action"], rest["items"][0]["action"]] == ["workload.stop", "workload.submit"]
        assert rest["next"] is None


def test_a_line_that_somebody_changed_is_told_by_its_number(fresh: Yard) -> None:
    with fresh.owner as owner:
        for verb in ("cordon", "uncordon"):
            owner.post(f"/api/v1/nodes/node-1/{verb}")
        whole = owner.get("/api/v1/audit/check").json()
        assert (whole["intact"], whole["broken_at"]) == (True, None)
        assert whole["lines"] == owner.get("/api/v1/audit").json()["items"][0]["id"]
        with fresh.database.write() as conn:
            conn.execute(sa.update(audit).where(audit.c.action == "node.cordon").values(who="somebody"))
        forged = owner.get("/api/v1/audit", params={"who": "somebody"}).json()["items"][0]["id"]
        broken = owner.get("/api/v1/audit/check").json()
        assert (broken["intact"], broken["broken_at"]) == (False, forged)
