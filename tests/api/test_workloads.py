"""Submitting, looking and wishing, through the front door."""

from __future__ import annotations

import hashlib
import threading
from contextlib import closing
from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard, running

from gpuyard.api.parts import ImagePolicy
from gpuyard.domain.cluster import Card, Node
from gpuyard.domain.lifecycle import PauseAsked, StopAsked
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.resources import GIB
from gpuyard.domain.workload import Cause, Life, Seen
from gpuyard.store import nodes, workloads
from gpuyard.store.database import Database

JOB = {"command": "python train.py", "cards": 1}


def submit(client: httpx2.Client, **job: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/workloads", json=JOB | job)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


# --- submitting ---------------------------------------------------------------------------------------------------


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


def test_a_yaml_file_is_taken_and_its_mistakes_are_told_with_their_place(server: Yard) -> None:
    with server.person("yara") as yara:
        headers = {"Content-Type": "application/yaml"}
        good = yara.post("/api/v1/workloads", content="command: echo hi\ncards: 0.5\n", headers=headers)
        assert good.status_code == 201
        assert good.json()["cards"] == 0.5
        bad = yara.post("/api/v1/workloads", content="comand: echo hi\ncards: many\n", headers=headers)
        assert bad.status_code == 400
        problems = bad.json()["error"]["problems"]
        assert len(problems) >= 2
        assert {"line": 1, "column": 1, "key": "comand", "nearest": "command"}.items() <= problems[0]["facts"].items()


def test_the_same_key_and_body_is_one_job(server: Yard) -> None:
    with server.person("ida") as ida:
        headers = {"Idempotency-Key": "once"}
        first = ida.post("/api/v1/workloads", json=JOB, headers=headers)
        second = ida.post("/api/v1/workloads", json=JOB, headers=headers)
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["id"] == second.json()["id"]
        other = ida.post("/api/v1/workloads", json=JOB | {"cards": 2}, headers=headers)
        assert other.status_code == 409
        assert other.json()["error"]["code"] == "refused.same_key_other_job"
        assert len(ida.get("/api/v1/workloads").json()["items"]) == 1


def test_keys_belong_to_their_owner(server: Yard) -> None:
    with server.person("ivo") as ivo, server.person("iris") as iris:
        headers = {"Idempotency-Key": "shared"}
        mine = ivo.post("/api/v1/workloads", json=JOB, headers=headers).json()["id"]
        theirs = iris.post("/api/v1/workloads", json=JOB, headers=headers)
        assert theirs.status_code == 201
        assert theirs.json()["id"] != mine


def test_racing_clients_with_one_key_make_one_job(server: Yard) -> None:
    with server.person("race") as race:
        answers: list[httpx2.Response] = []

        def send() -> None:
            with server.client(race.headers["Authorization"].removeprefix("Bearer ")) as client:
                answers.append(client.post("/api/v1/workloads", json=JOB, headers={"Idempotency-Key": "race"}))

        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
        assert len({answer.json()["id"] for answer in answers}) == 1


def test_many_clients_at_once_lose_no_job_and_every_one_is_audited(fresh: Yard) -> None:
    token = fresh.person("crowd").headers["Authorization"].removeprefix("Bearer ")
    made: list[str] = []

    def send() -> None:
        with fresh.client(token) as client:
            made.extend(submit(client)["id"] for _ in range(20))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 160
    with fresh.client(token) as crowd, fresh.owner as owner:
        assert {w["id"] for w in crowd.get("/api/v1/workloads?limit=500").json()["items"]} == set(made)
        trail = owner.get("/api/v1/audit?limit=500").json()["items"]
        assert {e["object"] for e in trail if e["action"] == "workload.submit"} == set(made)


def test_an_id_that_is_taken_is_not_given_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    ids = iter(["aaaaaaaaaa", "aaaaaaaaaa", "aaaaaaaaaa", "bbbbbbbbbb"])
    with running(tmp_path_factory.mktemp("yard"), make_id=lambda: next(ids)) as yard, yard.owner as owner:
        assert submit(owner)["id"] == "aaaaaaaaaa"
        assert submit(owner)["id"] == "bbbbbbbbbb"


def test_a_folder_named_in_the_address_is_the_jobs(server: Yard) -> None:
    with server.person("wanda") as wanda:
        tar = b"a folder beside the file"
        digest = hashlib.sha256(tar).hexdigest()
        wanda.put(f"/api/v1/workdirs/{digest}", content=tar)
        there = {"workdir": digest}
        id = wanda.post("/api/v1/workloads", json=JOB, params=there).json()["id"]
        assert wanda.get(f"/api/v1/workloads/{id}").json()["workdir"] == digest
        yaml = {"Content-Type": "application/yaml"}
        also = wanda.post("/api/v1/workloads", content=f"command: x\nworkdir: {digest}", headers=yaml, params=there)
        assert also.status_code == 201
        assert wanda.post("/api/v1/preview", json=JOB, params=there).json()["problems"] == []
        missing = wanda.post("/api/v1/preview", json=JOB, params={"workdir": "0" * 64}).json()
        assert missing["problems"][0]["facts"]["what"] == "workdir"


@pytest.mark.parametrize("door", ["workloads", "preview"])
def test_a_folder_in_the_address_that_cannot_be_meant_is_refused(server: Yard, door: str) -> None:
    with server.owner as owner:
        for workdir, job, message in [
            ("1" * 64, JOB | {"workdir": "0" * 64}, "the job file names another folder"),
            ("", JOB, "expected a SHA-256 digest"),
            ("../../etc", JOB, "expected a SHA-256 digest"),
        ]:
            answer = owner.post(f"/api/v1/{door}", json=job, params={"workdir": workdir})
            assert answer.status_code == 400
            assert message in answer.json()["error"]["message"]


def test_the_same_key_with_another_folder_is_another_job(server: Yard) -> None:
    with server.person("winnie") as winnie:
        for tar in (b"one", b"two"):
            winnie.put(f"/api/v1/workdirs/{hashlib.sha256(tar).hexdigest()}", content=tar)

        def send(**query: str) -> int:
            headers = {"Idempotency-Key": "folders"}
            return winnie.post("/api/v1/workloads", json=JOB, headers=headers, params=query).status_code

        one, two = hashlib.sha256(b"one").hexdigest(), hashlib.sha256(b"two").hexdigest()
        assert [send(workdir=one), send(workdir=one), send(workdir=two), send()] == [201, 200, 409, 409]


@pytest.mark.parametrize("key", ["", "a" * 129, "with space", "\x7f"])
def test_a_key_that_is_no_key_is_refused(server: Yard, key: str) -> None:
    with server.owner as owner:
        answer = owner.post("/api/v1/workloads", json=JOB, headers={"Idempotency-Key": key})
        assert answer.status_code == 400


def test_nobody_sets_what_is_not_theirs_to_set(server: Yard) -> None:
    with server.owner as owner:
        for extra in ({"owner": "root"}, {"state": "running"}, {"id": "x"}, {"submitted_at": 0}, {"wanted": "stop"}):
            answer = owner.post("/api/v1/workloads", json=JOB | extra)
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == "refused.unknown_key"


def test_one_submits_into_ones_own_groups_only(server: Yard) -> None:
    server.group("robots")
    with server.person("gus") as gus, server.owner as owner:
        refused = gus.post("/api/v1/workloads", json=JOB | {"group": "robots"})
        assert refused.status_code == 403
        nowhere = gus.post("/api/v1/workloads", json=JOB | {"group": "nowhere"})
        assert nowhere.status_code == 403
        assert submit(owner, group="robots")["group"] == "robots"
        assert owner.post("/api/v1/workloads", json=JOB | {"group": "nowhere"}).status_code == 400


def test_an_image_is_noted_in_the_story_or_refused_by_setting(
    server: Yard, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with server.owner as owner:
        made = submit(owner, image="pytorch:2")
        id = made["id"]
        assert [warning for warning in made["warnings"] if "pytorch:2 is noted but not used" in warning]
        chinese = owner.post(f"/api/v1/workloads/{id}/rerun", headers={"Accept-Language": "zh"}).json()["warnings"]
        assert chinese == ["镜像 pytorch:2 只作记录，没有使用：process 引擎直接在机器上运行命令。"]
        assert submit(owner)["warnings"] == []
        story = owner.get(f"/api/v1/workloads/{id}/events").json()["items"]
        assert [line["code"] for line in story] == ["story.submitted", "story.image_not_used"]
    strict = ImagePolicy("process", refuses=True)
    with running(tmp_path_factory.mktemp("strict"), images=strict) as yard, yard.owner as owner:
        answer = owner.post("/api/v1/workloads", json=JOB | {"image": "pytorch:2"})
        assert answer.json()["error"]["code"] == "refused.image_refused"
        assert owner.get("/api/v1/workloads").json()["items"] == []


def test_preview_says_what_would_happen_and_changes_nothing(fresh: Yard) -> None:
    with fresh.person("pia") as pia:
        fits = pia.post("/api/v1/preview", json=JOB | {"cards": 8}).json()
        assert (fits["starts"], fits["never"]) == (True, False)
        assert fits["nodes"] == ["node-1"]
        never = pia.post("/api/v1/preview", json=JOB | {"cards": 9}).json()
        assert (never["starts"], never["never"]) == (False, True)
        assert never["reason_code"] in ("waiting.never_fits", "waiting.needs_replicas")
        assert never["reason"]
        missing = pia.post("/api/v1/preview", json=JOB | {"workdir": "0" * 64}).json()
        assert missing["starts"] is False
        assert missing["problems"][0]["code"] == "refused.not_found"
        assert pia.get("/api/v1/workloads").json()["items"] == []


# --- looking ------------------------------------------------------------------------------------------------------


def test_a_workload_is_found_by_id_prefix_and_name(server: Yard) -> None:
    with server.person("finn") as finn:
        older, newer = submit(finn, name="same-name"), submit(finn, name="same-name")
        assert finn.get(f"/api/v1/workloads/{older['id']}").json()["id"] == older["id"]
        assert finn.get(f"/api/v1/workloads/{older['id'][:8]}").json()["id"] == older["id"]
        assert finn.get("/api/v1/workloads/same-name").json()["id"] == newer["id"]


def test_a_name_that_only_others_use_is_told_with_their_ids_to_whoever_may_see_them(server: Yard) -> None:
    with server.person("ugo") as ugo, server.person("nosy") as nosy, server.owner as owner:
        older, newer = submit(ugo, name="ugo-large")["id"], submit(ugo, name="ugo-large")["id"]
        told = {
            lang: owner.get("/api/v1/workloads/ugo-large", headers={"Accept-Language": lang}) for lang in ("en", "zh")
        }
        assert {answer.status_code for answer in told.values()} == {404}
        error = told["en"].json()["error"]
        assert error["facts"]["there"] == [f"{newer} (ugo)", f"{older} (ugo)"]
        assert error["message"].startswith("No job of yours is called `ugo-large`, but of others there is ")
        assert "别人的同名任务有" in told["zh"].json()["error"]["message"]
        assert owner.post("/api/v1/workloads/ugo-large/stop").status_code == 404
        hidden, none = (nosy.get(f"/api/v1/workloads/{name}").json()["error"] for name in ("ugo-large", "nobodys"))
        assert hidden["facts"].keys() == none["facts"].keys()
        assert hidden["message"] == none["message"].replace("nobodys", "ugo-large")
        own = submit(owner, name="ugo-large")["id"]
        assert owner.get("/api/v1/workloads/ugo-large").json()["id"] == own


def test_an_ambiguous_prefix_names_the_candidates(tmp_path_factory: pytest.TempPathFactory) -> None:
    ids = iter(["aa00000001", "aa00000002"])
    with running(tmp_path_factory.mktemp("yard"), make_id=lambda: next(ids)) as yard, yard.owner as owner:
        submit(owner), submit(owner)
        answer = owner.get("/api/v1/workloads/aa0")
        assert answer.status_code == 400
        assert answer.json()["error"]["facts"]["matches"] == ["aa00000001", "aa00000002"]


def test_a_beginning_of_one_character_is_told_to_be_too_short(server: Yard) -> None:
    with server.person("bea") as bea:
        id = submit(bea)["id"]
        for path, method in (("", "GET"), ("/logs", "GET"), ("/stop", "POST")):
            answer = bea.request(method, f"/api/v1/workloads/{id[0]}{path}")
            assert answer.status_code == 400
            assert "write at least two characters of the id" in answer.json()["error"]["message"]
        named = submit(bea, name="b")["id"]
        assert bea.get("/api/v1/workloads/b").json()["id"] == named


def test_lists_come_in_pages_newest_first_and_filtered(server: Yard) -> None:
    with server.person("lou") as lou:
        made = [submit(lou, name=f"job-{number % 2}")["id"] for number in range(7)]
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = lou.get("/api/v1/workloads", params={"limit": 3} | ({"cursor": cursor} if cursor else {})).json()
            seen += [w["id"] for w in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert seen == made[::-1]
        named = lou.get("/api/v1/workloads", params={"name": "job-1"}).json()["items"]
        assert [w["id"] for w in named] == made[1::2][::-1]
        lou.post(f"/api/v1/workloads/{made[0]}/stop")
        found = lou.get("/api/v1/workloads", params={"search": "OB-1"}).json()["items"]
        assert [w["id"] for w in found] == made[1::2][::-1]
        assert lou.get("/api/v1/workloads", params={"search": "job_1"}).json()["items"] == []
        assert len(lou.get("/api/v1/workloads", params={"kind": "job"}).json()["items"]) == 7
        assert lou.get("/api/v1/workloads", params={"kind": "env"}).json()["items"] == []
        assert lou.get("/api/v1/workloads", params={"state": "running,failed"}).json()["items"] == []
        assert len(lou.get("/api/v1/workloads", params={"state": "queued,running"}).json()["items"]) == 7


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=x",
        "state=gone",
        "cursor=zzz",
        "cursor=nan_x",
        "owner=A",
        "name=%00",
        "mine=maybe",
    ],
)
def test_a_list_with_a_bad_filter_is_refused(server: Yard, query: str) -> None:
    with server.owner as owner:
        answer = owner.get(f"/api/v1/workloads?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]


def test_members_see_their_own_leads_their_groups_admins_all(server: Yard) -> None:
    server.group("optics")
    lead, member = server.person("olga", role="lead", group="optics"), server.person("omar", group="optics")
    other = server.person("oona")
    theirs, own, elsewhere = submit(member)["id"], submit(lead)["id"], submit(other)["id"]

    def ids(client: httpx2.Client, **query: str) -> set[str]:
        return {w["id"] for w in client.get("/api/v1/workloads", params=query).json()["items"]}

    assert ids(member) == {theirs}
    assert ids(member, owner="olga") == set()
    assert ids(lead) == {theirs, own}
    assert ids(lead, mine="true") == {own}
    assert ids(lead, owner="omar") == {theirs}
    with server.owner as owner:
        assert {theirs, own, elsewhere} <= ids(owner)
        assert ids(owner, group="optics") == {theirs, own}
    assert lead.post(f"/api/v1/workloads/{theirs}/pause").status_code == 200
    assert member.post(f"/api/v1/workloads/{own}/stop").status_code == 404


def test_why_tells_the_reason_and_the_place_in_the_queue(fresh: Yard) -> None:
    ann, bob = fresh.person("ann"), fresh.person("bob")
    fresh.start(submit(ann, cpu=1)["id"])  # one core less: eight cards with all the others do not fit any more
    first = submit(ann, name="secret-project", cards=8)["id"]
    second = submit(bob, cards=8)["id"]
    reason = because(Code.ORDER, ahead=first, ahead_name="secret-project", position=1)
    with fresh.database.write() as conn:
        workloads.set_reasons(conn, {second: reason}, fresh.clock())
    why = bob.get(f"/api/v1/workloads/{second}/why").json()
    assert why["state"] == "queued"
    assert why["position"] == 1
    assert [(one["id"], one["name"], one["owner"]) for one in why["ahead"]] == [(first, None, None)]
    assert why["ahead"][0]["rule"]["code"] == "rule.age"
    for answer in ("", "/why", "/events"):
        text = bob.get(f"/api/v1/workloads/{second}{answer}").text
        assert "secret-project" not in text
        assert first in text
    assert "secret-project" not in bob.get("/api/v1/workloads").text
    with fresh.owner as owner:
        assert "secret-project" in owner.get(f"/api/v1/workloads/{second}/why").text


def test_attempts_replicas_and_their_ends_are_shown(server: Yard) -> None:
    with server.person("rita") as rita:
        id = submit(rita, replicas=2)["id"]
        server.start(id)
        running_now = rita.get(f"/api/v1/workloads/{id}").json()
        assert running_now["state"] == "running"
        assert running_now["attempts"][0]["replicas"][1]["replica"] == "worker-1"
        assert running_now["attempts"][0]["replicas"][0]["cpu"] == 1
        bad = Seen(Life.ENDED, 3, Cause.EXIT, because(Code.EXIT_CODE, exit_code=3, replica="worker-0"), 1.0, 2.0)
        server.end(id, bad)
        ended = rita.get(f"/api/v1/workloads/{id}").json()
        assert (ended["state"], ended["exit_code"]) == ("failed", 3)
        assert ended["attempts"][0]["reason_code"] == "ended.exit_code"
        assert rita.get(f"/api/v1/workloads/{id}/attempts").json()["items"] == ended["attempts"]
        assert rita.get(f"/api/v1/workloads/{id}/usage").json()["items"][0]["points"] == []


def test_what_ran_on_simulated_cards_is_labelled_so_after_they_are_gone(fresh: Yard) -> None:
    with fresh.person("sia") as sia:
        ran, waits = submit(sia)["id"], submit(sia)["id"]
        without = submit(sia, cards=0)["id"]
        for id in (ran, without):
            fresh.start(id)
            fresh.end(id)

        def labels() -> list[bool]:
            return [sia.get(f"/api/v1/workloads/{id}").json()["simulated_cards"] for id in (ran, waits, without)]

        assert labels() == [True, True, False]
        with fresh.database.write() as conn:
            real = Card(0, "nvidia", "real")
            nodes.save(conn, [Node("node-1", 8000, 64 * GIB, (real,))], fresh.clock())
        fresh.clock.ahead += 60
        assert labels() == [True, False, False]


def test_machines_and_use_are_shown(fresh: Yard) -> None:
    with fresh.person("nils") as nils, fresh.person("nora") as nora:
        id = submit(nils)["id"]
        fresh.start(id)
        node = nils.get("/api/v1/nodes").json()["items"][0]
        assert node["cards_total"] == {"nvidia": 8}
        assert node["cpu_used"] == 1
        assert node["cards"][0]["simulated"] is True
        assert [r["workload"] for r in nils.get("/api/v1/top").json()["replicas"]] == [id]
        assert nora.get("/api/v1/top").json()["replicas"] == []


# --- wishes -------------------------------------------------------------------------------------------------------


def test_a_wish_is_written_and_nothing_more(server: Yard) -> None:
    with server.person("will") as will:
        id = submit(will)["id"]
        server.start(id)
        paused = will.post(f"/api/v1/workloads/{id}/pause").json()
        assert (paused["state"], paused["wanted"]) == ("running", "pause")
        assert will.post(f"/api/v1/workloads/{id}/pause").status_code == 200
        assert will.post(f"/api/v1/workloads/{id}/resume").json()["wanted"] == "run"
        assert will.post(f"/api/v1/workloads/{id}/stop").json()["wanted"] == "stop"
        assert will.post(f"/api/v1/workloads/{id}/stop").status_code == 200
        assert server.workload(id).wanted_by == "will"


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_has_ended_is_neither_paused_nor_resumed(server: Yard, verb: str) -> None:
    with server.owner as owner:
        id = submit(owner, name="over")["id"]
        server.start(id)
        server.end(id)
        answer = owner.post(f"/api/v1/workloads/{id}/{verb}")
        assert answer.status_code == 409
        error = answer.json()["error"]
        assert error["facts"] == {"action": verb, "state": "succeeded", "id": id, "name": "over"}
        assert f"over ({id}) has already ended (succeeded)" in error["message"]


def test_stopping_what_has_ended_is_fine_and_says_so(server: Yard) -> None:
    with server.owner as owner:
        done, stopped = submit(owner, name="done")["id"], submit(owner, name="halted")["id"]
        server.start(done)
        server.end(done)
        server.step(stopped, StopAsked("admin"))
        for id, name, state in ((done, "done", "succeeded"), (stopped, "halted", "stopped")):
            answer = owner.post(f"/api/v1/workloads/{id}/stop")
            assert answer.status_code == 200
            assert (answer.json()["state"], answer.json()["wanted"]) == (state, server.workload(id).wanted.value)
            assert answer.json()["warnings"] == [
                f"{name} ({id}) has already ended ({state}); there is nothing to stop."
            ]


def test_asking_for_what_is_so_already_is_fine(server: Yard) -> None:
    with server.owner as owner:
        waiting, going, paused = (submit(owner)["id"] for _ in range(3))
        server.start(going)
        server.step(paused, PauseAsked("admin"))
        assert owner.post(f"/api/v1/workloads/{paused}/pause").json()["state"] == "paused"
        for id, verb in ((waiting, "resume"), (going, "resume"), (paused, "pause")):
            answer = owner.post(f"/api/v1/workloads/{id}/{verb}")
            assert answer.status_code == 200
            assert answer.json()["warnings"] == []


def test_what_is_being_stopped_is_neither_paused_nor_resumed(server: Yard) -> None:
    with server.owner as owner:
        id = submit(owner)["id"]
        owner.post(f"/api/v1/workloads/{id}/stop")
        for verb in ("pause", "resume"):
            answer = owner.post(f"/api/v1/workloads/{id}/{verb}")
            assert answer.status_code == 409
            assert answer.json()["error"]["facts"]["state"] == "stopping"


def test_rerun_makes_a_new_job_of_the_askers_with_values_changed(server: Yard) -> None:
    server.group("dyn")
    with server.person("dan", group="dyn") as dan, server.person("dee", role="lead", group="dyn") as dee:
        tar = b"a shipped folder"
        digest = hashlib.sha256(tar).hexdigest()
        dan.put(f"/api/v1/workdirs/{digest}", content=tar)
        id = submit(dan, name="base", cards=1, workdir=digest)["id"]
        again = dan.post(f"/api/v1/workloads/{id}/rerun")
        assert again.status_code == 201
        assert (
            dan.get(f"/api/v1/workloads/{again.json()['id']}/file").json()
            == dan.get(f"/api/v1/workloads/{id}/file").json()
        )
        plain = submit(dan, name="plain", cards=1)["id"]
        changed = dee.post(f"/api/v1/workloads/{plain}/rerun", json={"set": {"cards": "4", "env.LR": "0.1"}})
        assert changed.status_code == 201, changed.text
        assert (changed.json()["owner"], changed.json()["cards"]) == ("dee", 4)
        with server.owner as admin:
            assert admin.post(f"/api/v1/workloads/{id}/rerun").status_code == 201
            assert admin.head(f"/api/v1/workdirs/{digest}").status_code == 200
        bad = dan.post(f"/api/v1/workloads/{id}/rerun", json={"set": {"crads": "4"}})
        assert bad.json()["error"]["code"] == "refused.unknown_key"
        key = {"Idempotency-Key": "again"}
        first = dan.post(f"/api/v1/workloads/{id}/rerun", json={"set": {}}, headers=key)
        second = dan.post(f"/api/v1/workloads/{id}/rerun", json={"set": {}}, headers=key)
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["id"] == second.json()["id"]


def test_reruns_with_the_same_values_changed_are_as_many_jobs_as_were_asked_for(server: Yard) -> None:
    with server.person("dora") as dora:
        id = submit(dora)["id"]
        made = [dora.post(f"/api/v1/workloads/{id}/rerun", json={"set": {"cards": n}}) for n in (1, 1, 2)]
        assert [answer.status_code for answer in made] == [201, 201, 201]
        assert len({answer.json()["id"] for answer in made}) == 3


def test_a_read_token_looks_and_does_not_touch(server: Yard) -> None:
    with server.person("rex") as rex, server.client(server.token_of("rex", "read")) as reader:
        id = submit(rex)["id"]
        assert reader.get(f"/api/v1/workloads/{id}").status_code == 200
        for path in ("stop", "pause", "resume", "rerun"):
            assert reader.post(f"/api/v1/workloads/{id}/{path}").status_code == 403
        assert reader.post("/api/v1/workloads", json=JOB).status_code == 403
        assert reader.post("/api/v1/tokens", json={"name": "more", "scope": "read"}).status_code == 403


def test_a_busy_store_is_answered_with_patience(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("yard")
    with running(folder, lock_seconds=0.3) as yard, yard.owner as owner:
        with closing(Database.open(f"sqlite:///{folder / 'gpuyard.db'}")) as other, other.write():
            answer = owner.post("/api/v1/workloads", json=JOB)
            assert answer.status_code == 503
            assert answer.headers["retry-after"]
            assert owner.get("/api/v1/workloads").status_code == 200
        assert owner.get("/api/v1/workloads").json()["items"] == []
        submit(owner)
