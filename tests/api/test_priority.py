"""Another priority for work that was submitted already: who may, how far, and what it changes."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard

from gpuyard.store import audit


def submit(client: httpx2.Client, **job: Any) -> str:
    answer = client.post("/api/v1/workloads", json={"command": "true", **job})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def give(client: httpx2.Client, id: str, priority: object) -> httpx2.Response:
    return client.patch(f"/api/v1/workloads/{id}", json={"priority": priority})


def test_a_waiting_job_of_higher_priority_comes_first_and_its_story_tells_why(server: Yard) -> None:
    with server.person("pat") as pat:
        submit(pat, cpu=8, priority=700)  # would be started next; the others wait behind it
        first, second = submit(pat, cpu=8), submit(pat, cpu=8)
        assert line_of(pat, first, second) == [first, second]
        changed = give(pat, second, 620)
        assert (changed.status_code, changed.json()["priority"]) == (200, 620)
        assert line_of(pat, first, second) == [second, first]
        told = pat.get(f"/api/v1/workloads/{second}/events").json()["items"][-1]
        assert (told["code"], told["by"]) == ("story.priority_changed", "pat")
        assert told["facts"]["after"] == 620
        assert "620" in told["message"]


def line_of(client: httpx2.Client, *ids: str) -> list[str]:
    items = client.get("/api/v1/queue", params={"limit": 500}).json()["items"]
    return [one["id"] for one in items if one["id"] in ids]


def test_a_class_of_priority_is_given_by_its_name(server: Yard) -> None:
    with server.person("pia") as pia:
        id = submit(pia)
        assert give(pia, id, "low").json()["priority"] == 200
        wrong = give(pia, id, "lwo")
        assert wrong.status_code == 400
        assert wrong.json()["error"]["facts"]["at"] == "priority"
        assert "low" in wrong.json()["error"]["message"]


@pytest.mark.parametrize("priority", [0, 1001, True, None, 1.5, "", []])
def test_what_is_no_priority_is_refused_and_changes_nothing(server: Yard, priority: object) -> None:
    with server.owner as owner:
        id = submit(owner)
        before = server.workload(id)
        assert give(owner, id, priority).status_code in (400, 422)
        assert server.workload(id) == before


def test_members_and_leads_reach_up_to_their_ceilings_and_admins_further(server: Yard) -> None:
    server.group("prio")
    with server.person("mia", group="prio") as mia, server.person("leo", role="lead", group="prio") as leo:
        id = submit(mia)
        policy = mia.get("/api/v1/policy").json()
        member, lead = policy["ceilings"]["member"], policy["ceilings"]["lead"]
        assert give(mia, id, member).status_code == 200
        refused = give(mia, id, member + 1)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "refused.priority_ceiling")
        assert give(leo, id, lead).status_code == 200
        with server.owner as owner:
            assert give(owner, id, policy["ceilings"]["admin"]).status_code == 200
        assert give(mia, id, 10).json()["priority"] == 10, "its owner may always lower it"


def test_somebody_elses_work_is_not_there(server: Yard) -> None:
    server.group("elsewhere")
    with server.person("pam") as pam, server.person("other", role="lead", group="elsewhere") as other:
        id = submit(pam)
        assert give(other, id, 10).status_code == 404
        with server.client(server.token_of("pam", "read")) as looking:
            assert give(looking, id, 10).status_code == 403


def test_what_has_ended_or_is_being_stopped_keeps_its_priority(server: Yard) -> None:
    with server.owner as owner:
        ended, stopping = submit(owner), submit(owner)
        server.start(ended)
        server.end(ended)
        owner.post(f"/api/v1/workloads/{stopping}/stop")
        for id in (ended, stopping):
            answer = give(owner, id, 10)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "refused.wrong_state")


def test_a_change_is_audited_and_asking_for_what_is_so_already_is_not(server: Yard) -> None:
    with server.owner as owner:
        id = submit(owner)
        for _ in range(2):
            assert give(owner, id, 77).status_code == 200
        with server.database.read() as conn:
            entries = [one for one in audit.page(conn) if one.object == id and one.action == "workload.priority"]
        assert [(one.facts["before"], one.facts["after"]) for one in entries] == [(500, 77)]


def test_running_work_keeps_running_under_its_new_priority(server: Yard) -> None:
    with server.owner as owner:
        id = submit(owner, cards=1)
        server.start(id)
        answer = give(owner, id, 800)
        assert (answer.json()["state"], answer.json()["priority"]) == ("running", 800)
        assert server.end(id).spec.priority == 800
