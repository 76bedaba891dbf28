"""Where work may run, over HTTP: labels of machines, and what a job says of models, machines and its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard

from gpuyard.store import audit, workloads

LABELS = "/api/v1/nodes/node-1/labels"


def labels_shown(client: httpx2.Client) -> Any:
    return client.get("/api/v1/nodes").json()["items"][0]["labels"]


def test_an_admin_sets_changes_and_takes_away_labels_and_everyone_sees_them(fresh: Yard) -> None:
    fresh.group("lab")
    with fresh.owner as owner, fresh.person("milo", group="lab") as milo:
        assert labels_shown(milo) == {}
        made = owner.patch(LABELS, json={"labels": {"zone": "北", "disk": "ssd"}})
        assert (made.status_code, made.json()) == (200, {"name": "node-1", "labels": {"disk": "ssd", "zone": "北"}})
        changed = owner.patch(LABELS, json={"labels": {"zone": "south", "disk": None, "never": None}})
        assert changed.json()["labels"] == {"zone": "south"}
        assert owner.patch(LABELS, json={"labels": {"zone": "south"}}).status_code == 200
        assert labels_shown(milo) == {"zone": "south"}
    with fresh.database.read() as conn:
        told = [entry for entry in audit.page(conn) if entry.action == "node.label"]
    assert [(entry.object, entry.facts["labels"]["zone"]) for entry in told] == [("node-1", "south"), ("node-1", "北")]


@pytest.mark.parametrize(
    ("labels", "at"),
    [
        ({"zone-": "x"}, "labels"),
        ({"": "x"}, "labels"),
        ({"区": "x"}, "labels"),
        ({"a" * 64: "x"}, "labels"),
        ({"zone": ""}, "labels.zone"),
        ({"zone": " x"}, "labels.zone"),
        ({"zone": "x\n"}, "labels.zone"),
        ({"zone": "x" * 64}, "labels.zone"),
        ({f"key{number}": "x" for number in range(65)}, "labels"),
        ({}, "labels"),
    ],
)
def test_labels_nobody_could_use_are_refused_with_their_place(server: Yard, labels: Any, at: str) -> None:
    with server.owner as owner:
        before = labels_shown(owner)
        answer = owner.patch(LABELS, json={"labels": labels})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["problems"][0]["facts"]["at"] == at
        assert labels_shown(owner) == before


def test_a_machine_has_no_more_labels_than_anyone_could_read(fresh: Yard) -> None:
    with fresh.owner as owner:
        assert owner.patch(LABELS, json={"labels": {f"a{n}": "x" for n in range(64)}}).status_code == 200
        answer = owner.patch(LABELS, json={"labels": {"one-more": "x"}})
        assert answer.status_code == 400
        assert owner.patch(LABELS, json={"labels": {"one-more": "x", "a0": None}}).status_code == 200


def test_a_machine_that_is_not_there_cannot_be_labelled(server: Yard) -> None:
    with server.owner as owner:
        assert owner.patch("/api/v1/nodes/nowhere/labels", json={"labels": {"a": "b"}}).status_code == 404


JOB = {
    "command": "true",
    "cards": 1,
    "models": ["A100", "H100"],
    "where": {"nodes": ["node-1"], "labels": {"zone": "north"}},
    "together": "one_node",
    "checkpoint": "out",
    "preemptible": True,
    "priority": "low",
}


def test_a_job_shows_where_it_may_run_and_when_its_work_was_saved(fresh: Yard) -> None:
    fresh.group("lab")
    with fresh.person("milo", group="lab") as milo:
        id = milo.post("/api/v1/workloads", json=JOB).json()["id"]
        before = fresh.start(id)
        assert before.attempt is not None
        saved = replace(before.attempt, saved_at=1_700_000_000.0, saved_step=1234)
        with fresh.database.write() as conn:
            assert workloads.save(conn, before, replace(before, attempt=saved, version=before.version + 1), ())
        shown = milo.get(f"/api/v1/workloads/{id}").json()
        assert shown["priority"] == 200
        assert (shown["together"], shown["checkpoint"], shown["preemptible"]) == ("one_node", "out", True)
        assert shown["roles"][0]["models"] == ["A100", "H100"]
        assert shown["roles"][0]["where"] == {"nodes": ["node-1"], "labels": {"zone": "north"}}
        attempt = shown["attempts"][0]
        assert (attempt["saved_at"], attempt["saved_step"]) == ("2023-11-14T22:13:20.000Z", 1234)
        file = milo.get(f"/api/v1/workloads/{id}/file").json()
        assert file["models"] == ["A100", "H100"]
        assert file["where"] == {"nodes": ["node-1"], "labels": {"zone": "north"}}


def test_a_job_that_says_nothing_of_it_may_run_anywhere(server: Yard) -> None:
    with server.owner as owner:
        id = owner.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        shown = owner.get(f"/api/v1/workloads/{id}").json()
        assert (shown["together"], shown["checkpoint"]) == ("any", None)
        assert shown["roles"][0]["models"] == []
        assert shown["roles"][0]["where"] == {"nodes": [], "labels": {}}
