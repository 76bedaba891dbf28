"""Taking work off the lists: it is stopped, shown no more, and still found by its id; and lists of a time window."""

from __future__ import annotations

from typing import Any

import httpx2
from tests.api.yard import Yard

from gpuyard.domain.workload import Wanted


def submit(client: httpx2.Client, name: str, **job: Any) -> str:
    answer = client.post("/api/v1/workloads", json={"command": "sleep 60", "name": name} | job)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def listed(client: httpx2.Client, **params: Any) -> list[str]:
    return [item["id"] for item in client.get("/api/v1/workloads", params=params).json()["items"]]


def test_what_runs_is_stopped_and_off_the_lists_at_once(server: Yard) -> None:
    with server.person("romy") as romy:
        id = submit(romy, "gone")
        kept = submit(romy, "kept")
        server.start(id)
        answer = romy.delete(f"/api/v1/workloads/{id}")
        assert answer.status_code == 200
        assert answer.json()["removed_at"]
        assert server.workload(id).wanted is Wanted.STOP
        assert listed(romy) == [kept]
        assert set(listed(romy, removed=True)) == {id, kept}


def test_its_id_still_leads_to_its_story_and_its_name_no_longer_leads_to_it(server: Yard) -> None:
    with server.person("rolf") as rolf:
        older, newer = submit(rolf, "twin"), submit(rolf, "twin")
        assert rolf.delete("/api/v1/workloads/twin").json()["id"] == newer
        assert rolf.get("/api/v1/workloads/twin").json()["id"] == older
        rolf.delete("/api/v1/workloads/twin")
        assert rolf.get("/api/v1/workloads/twin").status_code == 404
        assert rolf.delete("/api/v1/workloads/twin").status_code == 404
        codes = [line["code"] for line in rolf.get(f"/api/v1/workloads/{newer}/events").json()["items"]]
        assert codes == ["story.submitted", "story.removed"]


def test_removed_twice_it_is_told_once(server: Yard) -> None:
    with server.person("ruth") as ruth, server.owner as owner:
        id = submit(ruth, "once")
        first, second = (ruth.delete(f"/api/v1/workloads/{id}").json() for _ in range(2))
        assert first["removed_at"] == second["removed_at"]
        acts = owner.get("/api/v1/audit").json()["items"]
        assert [line["object"] for line in acts if line["action"] == "workload.remove"].count(id) == 1
        assert len(ruth.get(f"/api/v1/workloads/{id}/events").json()["items"]) == 2


def test_what_has_ended_can_be_removed_and_stays_as_it_ended(server: Yard) -> None:
    with server.person("rafa") as rafa:
        id = submit(rafa, "done")
        server.start(id)
        server.end(id)
        assert rafa.delete(f"/api/v1/workloads/{id}").json()["state"] == "succeeded"
        assert listed(rafa) == []


def test_another_members_work_is_nobody_elses_to_remove(server: Yard) -> None:
    with server.person("rena") as rena, server.person("rick") as rick:
        id = submit(rena, "mine")
        assert rick.delete(f"/api/v1/workloads/{id}").status_code == 404
        assert listed(rena) == [id]


def test_a_name_is_free_again_once_its_job_is_removed(server: Yard) -> None:
    text = "jobname: again\ntasks:\n  - image: debian:12\n    command: sleep 60\n"
    with server.person("rosa") as rosa:
        url, headers = "/api/v1/workloads?dialect=volcano", {"Content-Type": "text/plain"}
        assert rosa.post(url, content=text, headers=headers).status_code == 201
        assert rosa.post(url, content=text, headers=headers).status_code == 409
        assert rosa.delete("/api/v1/workloads/again").status_code == 200
        assert rosa.post(url, content=text, headers=headers).status_code == 201


def test_a_list_of_a_time_window_holds_what_was_submitted_in_it(server: Yard) -> None:
    with server.person("rhea") as rhea:
        first = submit(rhea, "first")
        begun = rhea.get(f"/api/v1/workloads/{first}").json()["submitted_at"]
        assert listed(rhea, since=begun[:-5] + "Z") == [first]
        assert listed(rhea, until=begun[:-5] + "Z") == []
        assert listed(rhea, since="2999-01-01T00:00:00Z") == []
        assert listed(rhea, until="2999-01-01T00:00:00+08:00") == [first]
        assert rhea.get("/api/v1/workloads", params={"since": "yesterday"}).status_code == 400
