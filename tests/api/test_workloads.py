"""Submitting, looking and wishing, through the front door."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.api.yard import Yard

JOB = {"command": "python train.py", "cards": 1}


def submit(client: httpx2.Client, **job: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/workloads", json=JOB | job)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_a_job_file_becomes_a_queued_workload_with_a_story(server: Yard) -> None:
    with server.person("ada") as ada:
        made = submit(ada, name="train", cards=2)
        assert made["state"] == "queued"
        assert (made["owner"], made["group"], made["cards"], made["device"]) == ("ada", "default", 2, "nvidia")
        assert made["simulated_cards"] is True
        shown = ada.get(f"/api/v1/workloads/{made['id']}").json()
        assert shown["id"] == made["id"]
        assert shown["roles"][0]["command"][-1] == "python train.py"
        story = ada.get(f"/api/v1/workloads/{made['id']}/events").json()["items"]
        assert [line["code"] for line in story] == ["story.submitted"]
