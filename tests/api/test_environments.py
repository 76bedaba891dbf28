"""Dev environments through the front door."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard

from gpuyard.domain.lifecycle import Observed, PauseAsked, ResumeAsked
from gpuyard.domain.workload import Kind, Life, Seen, State, Wanted, Workload
from gpuyard.store import workplaces


def create(client: httpx2.Client, name: str, **asked: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/envs", json={"name": name, "cards": 1} | asked)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def rest(server: Yard, id: str) -> Workload:
    """What control does when the owner wants it stopped."""
    server.step(id, PauseAsked("owner"))
    gone = Seen(Life.ABSENT)
    return server.step(id, Observed({r.id: gone for r in server.replicas(server.workload(id))}))


def test_an_environment_is_a_workload_that_waits_like_any_other(server: Yard) -> None:
    with server.person("eva") as eva:
        made = create(eva, "dev_1", cpu=2, memory="4G", idle="2h", timer="8h")
        assert (made["kind"], made["state"], made["name"], made["cpu"]) == ("env", "queued", "dev_1", 2)
        assert made["idle_seconds"] == 7200
        assert made["stop_at"] is not None
        workload = server.workload(made["id"])
        assert (workload.spec.kind, workload.spec.roles[0].command) == (Kind.ENV, ())
        assert eva.get(f"/api/v1/workloads/{made['id']}/why").status_code == 200
        assert [env["id"] for env in eva.get("/api/v1/envs").json()["items"]] == [made["id"]]
        assert eva.get("/api/v1/envs/dev_1").json()["id"] == made["id"]


@pytest.mark.parametrize("name", ["with-dash", "", "a" * 28, "dots.no", "空", "a b", "../x", "$(id)"])
def test_a_name_that_is_not_letters_digits_and_underscores_is_refused_in_words(server: Yard, name: str) -> None:
    with server.owner as owner:
        answer = owner.post("/api/v1/envs", json={"name": name})
        assert answer.status_code == 400
        assert answer.json()["error"]["facts"]["at"] == "name"
        assert all(env["name"] != name for env in owner.get("/api/v1/envs").json()["items"])


def test_nobody_has_two_environments_of_one_name_but_two_people_may(server: Yard) -> None:
    with server.person("eric") as eric, server.person("ella") as ella:
        create(eric, "same")
        again = eric.post("/api/v1/envs", json={"name": "same"})
        assert again.status_code == 409
        assert again.json()["error"]["code"] == "refused.already_there"
        create(ella, "same")


def test_the_same_request_again_is_one_environment(server: Yard) -> None:
    with server.person("emil") as emil:
        body, headers = {"name": "once"}, {"Idempotency-Key": "k1"}
        first, second = (emil.post("/api/v1/envs", json=body, headers=headers) for _ in range(2))
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["id"] == second.json()["id"]


def test_stop_frees_it_and_start_can_move_it_to_the_cpu_and_back(server: Yard) -> None:
    with server.person("edda") as edda:
        made = create(edda, "moves", cards=2, memory="4G")
        server.start(made["id"])
        assert edda.post("/api/v1/envs/moves/stop").json()["wanted"] == "pause"
        rest(server, made["id"])
        resting = server.workload(made["id"])
        moved = edda.post("/api/v1/envs/moves/start", json={"set": {"cards": 0}})
        assert moved.status_code == 200, moved.text
        assert (moved.json()["cards"], moved.json()["memory"], moved.json()["wanted"]) == (0, 4 << 30, "run")
        now = server.workload(made["id"])
        assert now.spec.roles[0].resources.cards is None
        assert now.submitted_at > resting.submitted_at
        server.step(made["id"], ResumeAsked("edda"))
        server.start(made["id"])
        edda.post("/api/v1/envs/moves/stop")
        rest(server, made["id"])
        back = edda.post("/api/v1/envs/moves/start", json={"set": {"cards": 1, "memory": "8G"}})
        assert (back.json()["cards"], back.json()["memory"]) == (1, 8 << 30)
        story = edda.get(f"/api/v1/workloads/{made['id']}/events").json()["items"]
        changes = [line["facts"]["changes"] for line in story if line["code"] == "story.asked_anew"]
        assert changes == ["cards=0, device=-", "cards=1, device=nvidia, memory=8G"]


def test_a_running_one_is_not_changed_and_starting_it_again_changes_nothing(server: Yard) -> None:
    with server.person("enzo") as enzo:
        made = create(enzo, "runs")
        server.start(made["id"])
        refused = enzo.post("/api/v1/envs/runs/start", json={"set": {"cards": 0}})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "refused.wrong_state")
        assert enzo.post("/api/v1/envs/runs/start").json()["state"] == "running"


def test_a_restart_is_one_request_and_is_told_until_it_is_done(server: Yard) -> None:
    with server.person("restarts") as egon:
        made = create(egon, "again", cards=2)
        server.start(made["id"])
        asked = egon.post("/api/v1/envs/again/restart", json={"set": {"cards": 1, "idle": "3h"}})
        assert asked.status_code == 200, asked.text
        told = asked.json()
        assert (told["restarting"], told["wanted"], told["cards"]) == (True, "pause", 2)
        assert told["idle_seconds"] == 3 * 3600
        assert egon.get("/api/v1/envs").json()["items"][0]["restarting"] is True
        rest(server, made["id"])
        with server.database.write() as conn:  # what control does next
            workplaces.start_those_that_stopped(conn, [made["id"]], server.clock())
        now = egon.get("/api/v1/envs/again").json()
        assert (now["restarting"], now["wanted"], now["cards"], now["idle_seconds"]) == (False, "run", 1, 3 * 3600)


@pytest.mark.parametrize("way", ["envs/{id}/stop", "workloads/{id}/stop", "workloads/{id}/pause"])
def test_a_stop_ends_a_restart_however_it_is_asked_for(server: Yard, way: str) -> None:
    with server.owner as owner:
        id = create(owner, "w" + "".join(letter for letter in way if letter.isalpha())[:20])["id"]
        server.start(id)
        assert owner.post(f"/api/v1/envs/{id}/restart").json()["restarting"] is True
        assert owner.post(f"/api/v1/envs/{id}/start").json()["restarting"] is True, "it will run: nothing to do"
        assert owner.post("/api/v1/" + way.format(id=id)).status_code == 200
        assert owner.get(f"/api/v1/envs/{id}").json()["restarting"] is False


def test_a_restart_of_a_stopped_one_starts_it_and_of_a_removed_one_is_refused(server: Yard) -> None:
    with server.person("elsbeth") as elsa:
        made = create(elsa, "rests")
        server.step(made["id"], PauseAsked("elsbeth"))
        started = elsa.post("/api/v1/envs/rests/restart", json={"set": {"cards": 2}}).json()
        assert (started["restarting"], started["wanted"], started["cards"]) == (False, "run", 2)
        elsa.delete("/api/v1/envs/rests")
        refused = elsa.post("/api/v1/envs/rests/restart")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "refused.wrong_state")


def test_a_restart_that_could_never_start_again_leaves_it_running(server: Yard) -> None:
    with server.person("erna") as erna:
        made = create(erna, "stays")
        server.start(made["id"])
        before = server.workload(made["id"])
        for wish, status in (({"cards": 1000}, 409), ({"memory": "lots"}, 400)):
            assert erna.post("/api/v1/envs/stays/restart", json={"set": wish}).status_code == status
        assert erna.post("/api/v1/envs/stays/restart", json={"timer": "soon"}).status_code == 400
        assert server.workload(made["id"]) == before
        forced = erna.post("/api/v1/envs/stays/restart", json={"set": {"cards": 1000}, "force": True})
        assert forced.json()["restarting"] is True


@pytest.mark.parametrize(
    "changes", [{"cards": -1}, {"memory": "lots"}, {"name": "other"}, {"group": "x"}, {"command": "id"}]
)
def test_a_bad_change_is_refused_and_nothing_is_changed(server: Yard, changes: dict[str, Any]) -> None:
    with server.owner as owner:
        name = "bad" + "".join(changes)
        id = (owner.get(f"/api/v1/envs/{name}").json().get("id")) or create(owner, name)["id"]
        if server.workload(id).state is State.QUEUED:
            server.step(id, PauseAsked("admin"))
        before = server.workload(id)
        assert owner.post(f"/api/v1/envs/{name}/start", json={"set": changes}).status_code == 400
        assert server.workload(id) == before


def test_the_stop_of_a_job_only_rests_an_environment_and_only_rm_removes_it(server: Yard) -> None:
    with server.person("ezra") as ezra:
        made = create(ezra, "kept")
        server.start(made["id"])
        assert ezra.post(f"/api/v1/workloads/{made['id']}/stop").json()["wanted"] == "pause"
        assert ezra.post(f"/api/v1/workloads/{made['id']}/rerun").status_code == 400
        assert ezra.delete("/api/v1/envs/kept").json()["wanted"] == "stop"
        assert server.workload(made["id"]).wanted is Wanted.STOP


def test_timers_are_set_extended_and_taken_away(server: Yard) -> None:
    with server.person("esme") as esme:
        id = create(esme, "timed")["id"]
        now = server.clock()
        for asked, later in (("2h", 7200), ("+1h", 3 * 3600), ("30m", 1800)):
            assert esme.put("/api/v1/envs/timed/timer", json={"timer": asked}).status_code == 200
            with server.database.read() as conn:
                place = workplaces.get(conn, id)
            assert place is not None
            assert place.stop_at == pytest.approx(now + later, abs=30)
        assert esme.put("/api/v1/envs/timed/timer", json={"timer": "off"}).json()["stop_at"] is None
        assert esme.put("/api/v1/envs/timed/timer", json={"idle": "45m"}).json()["idle_seconds"] == 2700
        assert esme.put("/api/v1/envs/timed/timer", json={"idle": "off"}).json()["idle_seconds"] is None
        for short in ("1s", "59s", "0"):
            refused = esme.put("/api/v1/envs/timed/timer", json={"idle": short})
            assert (refused.status_code, refused.json()["error"]["facts"]["at"]) == (400, "idle")
        assert esme.put("/api/v1/envs/timed/timer", json={"idle": "1m"}).json()["idle_seconds"] == 60
        assert esme.post("/api/v1/envs", json={"name": "hasty", "idle": "30s"}).status_code == 400
        for bad in ("soon", "-1h", "0", "1e99h", "999999d"):
            assert esme.put("/api/v1/envs/timed/timer", json={"timer": bad}).status_code == 400


def test_to_others_it_does_not_exist(server: Yard) -> None:
    with server.person("elif") as elif_, server.person("eve") as eve:
        id = create(elif_, "mine")["id"]
        for ref in ("mine", id):
            assert eve.get(f"/api/v1/envs/{ref}").status_code == 404
            assert eve.post(f"/api/v1/envs/{ref}/stop").status_code == 404
            assert eve.post(f"/api/v1/envs/{ref}/start").status_code == 404
            assert eve.put(f"/api/v1/envs/{ref}/timer", json={"timer": "1h"}).status_code == 404
            assert eve.delete(f"/api/v1/envs/{ref}").status_code == 404
        assert eve.get("/api/v1/envs?all=true").json()["items"] == []
        assert server.workload(id).wanted is Wanted.RUN


def test_an_image_that_this_engine_cannot_use_is_refused(server: Yard) -> None:
    with server.person("ernst") as ernst:
        answer = ernst.post("/api/v1/envs", json={"name": "image", "image": "debian:12"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "refused.image_refused")


def test_a_wish_that_can_never_come_true_changes_nothing_unless_it_is_forced(server: Yard) -> None:
    with server.person("egon") as egon:
        id = create(egon, "large", cards=1)["id"]
        server.start(id)
        running = server.workload(id)
        told = egon.post("/api/v1/envs/large/preview", json={"set": {"cards": 1000}}).json()
        assert (told["never"], told["reason_code"]) == (True, "waiting.never_fits")
        assert told["reason"]
        possible = egon.post("/api/v1/envs/large/preview", json={"set": {"cards": 8}}).json()
        assert (possible["never"], possible["reason"]) == (False, None)
        assert egon.post("/api/v1/envs/large/preview", json={"set": {"cards": -1}}).status_code == 400
        assert egon.post("/api/v1/envs/large/preview", json={"timer": "soon"}).status_code == 400
        assert server.workload(id) == running
        egon.post("/api/v1/envs/large/stop")
        stopped = rest(server, id)
        refused = egon.post("/api/v1/envs/large/start", json={"set": {"cards": 1000}})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "waiting.never_fits")
        assert server.workload(id).spec == stopped.spec
        forced = egon.post("/api/v1/envs/large/start", json={"set": {"cards": 1000}, "force": True})
        assert (forced.status_code, forced.json()["cards"]) == (200, 1000)


def test_a_strangers_wishes_for_it_are_answered_as_for_none(server: Yard) -> None:
    with server.person("ewald") as ewald, server.person("edith") as edith:
        id = create(ewald, "his")["id"]
        assert edith.post(f"/api/v1/envs/{id}/preview").status_code == 404


def test_it_tells_since_when_it_runs_not_when_it_first_did(server: Yard) -> None:
    with server.person("elsa") as elsa:
        id = create(elsa, "twice")["id"]
        server.start(id)
        first = elsa.get("/api/v1/envs/twice").json()["started_at"]
        elsa.post("/api/v1/envs/twice/stop")
        rest(server, id)
        assert elsa.get("/api/v1/envs/twice").json()["started_at"] is None
        server.clock.ahead += 600
        elsa.post("/api/v1/envs/twice/start")
        server.step(id, ResumeAsked("elsa"))
        server.start(id)
        again = elsa.get("/api/v1/envs/twice").json()
        assert first < again["submitted_at"] < again["started_at"]
        assert elsa.get(f"/api/v1/workloads/{id}").json()["started_at"] == again["started_at"]


def test_what_is_said_of_it_calls_it_by_its_name(server: Yard) -> None:
    with server.person("enno") as enno:
        id = create(enno, "called")["id"]
        server.start(id)
        enno.post("/api/v1/envs/called/stop")
        rest(server, id)
        detail = enno.get(f"/api/v1/workloads/{id}").json()
        story = enno.get(f"/api/v1/workloads/{id}/events").json()["items"]
        said = [detail["reason"], story[-1]["message"]]
        assert all("yard env start called" in sentence for sentence in said), said


# --- before it is created -----------------------------------------------------------------------------------------


def test_a_preview_says_whether_it_would_start_and_writes_nothing(server: Yard) -> None:
    with server.person("previewer_1") as one:
        told = one.post("/api/v1/envs/preview", json={"cards": 1, "memory": "1G", "timer": "8h"})
        assert told.status_code == 200, told.text
        assert told.json()["starts"] is (told.json()["reason"] is None)
        assert bool(told.json()["nodes"]) is told.json()["starts"]
        assert one.get("/api/v1/envs").json()["items"] == []


def test_a_preview_of_what_can_never_start_offers_what_would(fresh: Yard) -> None:
    with fresh.person("previewer_2") as one:
        asked = {"cards": 100, "memory": "1G"}
        told = one.post("/api/v1/envs/preview", json=asked, params={"remedies": True}).json()
        assert (told["starts"], told["never"]) == (False, True)
        assert told["remedies"], "there are free cards, only not a hundred"
        assert any("cards" in offer["changes"] for offer in told["remedies"])
        for offer in told["remedies"]:
            assert all("." not in key for key in offer["changes"])
            again = one.post("/api/v1/envs/preview", json=asked | offer["changes"])
            assert again.json()["starts"] is True


def test_a_preview_of_nonsense_says_where(server: Yard) -> None:
    with server.person("previewer_3") as one:
        answer = one.post("/api/v1/envs/preview", json={"name": "n", "memory": "much"})
        assert (answer.status_code, answer.json()["error"]["facts"]["at"]) == (400, "memory")


def test_what_cannot_be_opened_is_told_with_the_reason(server: Yard) -> None:
    with server.person("previewer_4") as one:
        made = create(one, "shut")
        detail = one.get("/api/v1/envs/shut").json()
        assert set(detail["closed"]) == {"lab", "ide", "terminal"}
        assert all(detail["closed"].values())
        assert made["id"] == detail["id"]
