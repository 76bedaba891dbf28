"""Why something waits, who comes first, and what would start it now, through the front door."""

from __future__ import annotations

import shlex
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.lifecycle import Placed, Preempted
from gpuyard.domain.workload import Life, Seen

# The one machine of these tests has 8 cards, 8 cores and 64G.


def submit(client: httpx2.Client, **job: Any) -> str:
    answer = client.post("/api/v1/workloads", json={"command": "python train.py", **job})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def why(client: httpx2.Client, id: str, language: str = "en", **options: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/workloads/{id}/why", params=options, headers={"Accept-Language": language})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.fixture
def busy(fresh: Yard) -> Yard:
    """zelda runs something with six of the eight cores."""
    with fresh.person("zelda") as zelda:
        fresh.start(submit(zelda, name="secret", cpu=1))
        for _ in range(5):
            fresh.start(submit(zelda, cpu=1))
    return fresh


def test_the_proof_and_what_would_start_it_come_in_the_language_asked_for(busy: Yard) -> None:
    with busy.person("bob") as bob:
        id = submit(bob, cards=4)
        told = why(bob, id)
        assert (told["state"], told["sort"], told["reason_code"]) == ("queued", "busy", "waiting.busy")
        assert told["sort_words"] == "It waits for running work to end"
        assert told["facts"][0]["words"].startswith("node-1: 4 asked, 2 cores free; running there: ")
        assert told["remedies"][0]["changes"] == {"cpu": "2"}
        assert told["remedies"][0]["words"] == "Ask for 2 cores: it would start on node-1."
        chinese = why(bob, id, "zh")
        assert chinese["sort_words"] == "在等正在运行的任务结束"
        assert chinese["remedies"][0]["words"] == "改用 2 核：可以在 node-1 上马上启动。"
        assert why(bob, id, remedies=False)["remedies"] == []


def test_of_somebody_else_s_work_only_the_id_and_the_group_are_told(busy: Yard) -> None:
    with busy.person("bob") as bob, busy.owner as owner:
        before = submit(owner, name="hidden", cards=8)
        id = submit(bob, cards=8)
        told = why(bob, id)
        assert [(one["id"], one["group"], one["name"], one["owner"]) for one in told["ahead"]] == [
            (before, "default", None, None)
        ]
        text = bob.get(f"/api/v1/workloads/{id}/why").text
        assert not any(word in text for word in ("zelda", "secret", "hidden", "admin"))
        assert "zelda" in owner.get(f"/api/v1/workloads/{id}/why").text


def test_the_command_offered_puts_the_changed_job_in_the_place_of_the_waiting_one(busy: Yard) -> None:
    with busy.person("bob") as bob:
        id = submit(bob, cards=4)
        remedy = why(bob, id)["remedies"][0]
        assert shlex.split(remedy["command"]) == ["yard", "rerun", id, "--set", "cpu=2", "--instead"]
        made = bob.post(f"/api/v1/workloads/{id}/rerun", json={"set": remedy["changes"], "instead": True})
        assert made.status_code == 201, made.text
        new, old = busy.workload(made.json()["id"]), busy.workload(id)
        assert old.wanted.value == "stop"
        assert f"Replaced by {new.id}" in bob.get(f"/api/v1/workloads/{id}/events").text
        assert f"takes the place of {id}" in bob.get(f"/api/v1/workloads/{new.id}/events").text
        assert new.submitted_at == old.submitted_at
        assert new.spec.roles[0].resources.cpu_milli == 2000
        again = bob.post(f"/api/v1/workloads/{id}/rerun", json={"set": remedy["changes"], "instead": True})
        assert again.status_code == 409


def test_what_runs_is_not_replaced(busy: Yard) -> None:
    with busy.person("bob") as bob:
        id = submit(bob, cpu=1)
        busy.start(id)
        refused = bob.post(f"/api/v1/workloads/{id}/rerun", json={"set": {"cpu": 1}, "instead": True})
        assert refused.status_code == 409
        assert "`--instead` needs a job that is waiting" in refused.json()["error"]["message"]
        assert busy.workload(id).wanted.value == "run"


def test_nothing_comes_before_itself(busy: Yard) -> None:
    with busy.person("bob") as bob:
        id = submit(bob, cpu=1)
        refused = bob.get(f"/api/v1/workloads/{id}/before/{id}")
        assert refused.status_code == 400
        assert "the same job" in refused.json()["error"]["message"]


def test_what_does_not_wait_has_its_reason_and_no_proof(busy: Yard) -> None:
    with busy.person("bob") as bob:
        id = submit(bob, cpu=1)
        busy.start(id)
        told = why(bob, id)
        assert (told["state"], told["sort"], told["position"], told["facts"]) == ("running", None, None, [])
        busy.end(id)
        assert why(bob, id)["reason_code"] == "ended.succeeded"


def test_one_that_had_to_make_room_is_told_for_whom_by_which_rule_and_what_it_lost(busy: Yard) -> None:
    with busy.person("bob") as bob, busy.owner as owner:
        urgent = submit(owner, name="urgent", cards=8)
        id = submit(bob, cards=1, cpu=1)
        busy.start(id)
        who = Preempted(by=urgent, by_name="urgent", by_owner="admin", by_group="default", rule="priority")
        busy.step(id, replace(who, lost_seconds=180.0, ran_seconds=7200.0))
        now = busy.clock()
        busy.end(id, Seen(Life.ENDED, exit_code=143, started_at=now, ended_at=now))
        for _ in range(2):  # the cores it had are taken: it waits
            busy.start(submit(owner, cpu=1))
        told = why(bob, id)
        assert (told["sort"], told["facts"][0]["code"]) == ("busy", "story.preempted")
        words = told["facts"][0]["words"]
        assert words.startswith(f"Made room for {urgent}, group default, which has a higher priority.")
        assert "had run for 2 h" in words
        assert "3 min" in words
        assert not {"admin", "urgent"} & set(told["facts"][0]["facts"].values())
        assert "Made room for urgent" in why(owner, id)["facts"][0]["words"]


def test_how_much_other_persons_used_is_not_told(busy: Yard) -> None:
    with busy.person("bob") as bob:
        id = submit(bob, cpu=1)
        given = Allotment("node-1", 1000, 1 << 30, 0)
        busy.step(id, Placed({("worker", 0): given}, {"uses": {"default": 7.0, "default/zelda": 5.0}}))
        placed = bob.get(f"/api/v1/workloads/{id}/events").json()["items"][-1]
        assert placed["facts"]["uses"] == {"default": 7.0}


def test_why_that_job_runs_before_mine_is_answered_to_whoever_owns_one_of_them(busy: Yard) -> None:
    with busy.person("bob") as bob, busy.person("eve") as eve, busy.owner as owner:
        theirs = submit(owner, cards=8, priority=700)
        mine = submit(bob, cards=8)
        told = bob.get(f"/api/v1/workloads/{theirs}/before/{mine}").json()
        assert (told["first"], told["other"], told["as_asked"]) == (theirs, mine, True)
        assert told["rule"]["words"] == "Its priority is higher: 700 against 500."
        other_way = bob.get(f"/api/v1/workloads/{mine}/before/{theirs}").json()
        assert (other_way["first"], other_way["as_asked"]) == (theirs, False)
        assert eve.get(f"/api/v1/workloads/{theirs}/before/{mine}").status_code == 404
        assert bob.get(f"/api/v1/workloads/{mine}/before/azzzzzzzz9").status_code == 404


def test_who_asks_for_so_much_that_cards_are_left_to_nobody_is_told_before_and_after(fresh: Yard) -> None:
    with closing(fresh.person("greta")) as greta:
        job = {"command": "x", "cards": 1, "cpu": 7}
        outlook = greta.post("/api/v1/preview", json=job).json()
        made = greta.post("/api/v1/workloads", json=job).json()
        assert outlook["starts"]
        assert "On node-1 that leaves 6 cards that nobody can use." in outlook["warnings"][0]
        assert made["warnings"] == outlook["warnings"]
        story = greta.get(f"/api/v1/workloads/{made['id']}/events").json()["items"]
        assert "note.strands" in [line["code"] for line in story]
        assert greta.post("/api/v1/workloads", json={**job, "cpu": 1}).json()["warnings"] == []


def test_what_would_start_it_is_offered_before_it_is_submitted_and_starts_it(busy: Yard) -> None:
    with busy.person("bob") as bob:
        job = {"command": "python train.py", "cards": 4}
        plain = bob.post("/api/v1/preview", json=job).json()
        assert (plain["starts"], plain["remedies"]) == (False, [])
        told = bob.post("/api/v1/preview", json=job, params={"remedies": True}).json()
        offer = told["remedies"][0]
        assert offer["changes"] == {"cpu": "2"}
        assert offer["words"] == "Ask for 2 cores: it would start on node-1."
        assert bob.post("/api/v1/preview", json=job | offer["changes"]).json()["starts"] is True
        assert bob.get("/api/v1/workloads", params={"mine": True}).json()["items"] == []


def test_what_starts_anyway_or_cannot_be_submitted_is_offered_nothing(busy: Yard) -> None:
    with busy.person("bob") as bob:
        for job in ({"cards": 1}, {"cards": 4, "workdir": "0" * 64}):
            body = {"command": "python train.py", **job}
            assert bob.post("/api/v1/preview", json=body, params={"remedies": True}).json()["remedies"] == []
