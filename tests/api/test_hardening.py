"""What a member, a lead or a stranger may try against the others, and how far it gets them."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx2
import pytest
from tests.api.yard import PASSWORD, Yard, running, wait_until

from gpuyard.access.rights import OTHERS_MAY_CHANGE
from gpuyard.access.service import MOST_REFUSALS
from gpuyard.api.parts import ApiLimits
from gpuyard.dialects.native.workplace import WORKPLACE_FIELDS
from gpuyard.domain.lifecycle import PauseAsked

JOB = {"command": "true"}
OWNERS_ALONE = "refused.owners_alone"


# --- leads --------------------------------------------------------------------------------------------------------


def test_a_lead_brings_nobody_in_and_learns_no_names(server: Yard) -> None:
    server.group("aaa")
    server.group("zzz")
    server.person("bystander", group="zzz")
    with server.person("grabber", role="lead", group="aaa") as lead:
        stranger = lead.put("/api/v1/groups/aaa/members/bystander", json={"role": "member"})
        nobody = lead.put("/api/v1/groups/aaa/members/nobodyatall", json={"role": "member"})
        assert stranger.status_code == nobody.status_code == 404
        assert stranger.text.replace("bystander", "nobodyatall") == nobody.text
        assert lead.delete("/api/v1/groups/aaa/members/bystander").status_code == 404
        assert lead.get("/api/v1/users/bystander").status_code == 404
    with server.owner as owner:
        assert [m["user"] for m in owner.get("/api/v1/groups/aaa").json()["members"]] == ["grabber"]


def test_a_lead_still_lets_members_go_and_divides_the_group(server: Yard) -> None:
    server.group("crew", {"nvidia": 4})
    server.person("matt", group="crew")
    with server.person("mona", role="lead", group="crew") as lead:
        limits = {"limits": {"nvidia": 1}, "user": "matt"}
        assert lead.put("/api/v1/groups/crew/quota", json=limits).status_code == 200
        assert lead.put("/api/v1/groups/crew/members/matt", json={"role": "member"}).status_code == 200
        assert lead.delete("/api/v1/groups/crew/members/matt").status_code == 200
        assert lead.put("/api/v1/groups/crew/members/matt").status_code == 404


CHANGES: dict[str, tuple[Any, bool]] = {
    "image": ("localhost/other:1", False),
    "env": ({"LD_PRELOAD": "/mnt/share/crew2/mine.so"}, False),
    "mounts": ([{"volume": "home", "at": "/opt/x"}], False),
    "ports": ([8080], False),
    "preemptible": (True, False),
    "max_time": ("1h", False),
    "cards": (2, True),
    "device": ("nvidia", True),
    "models": (["A100"], True),
    "cpu": (2, True),
    "memory": ("2G", True),
    "shm": ("1G", True),
    "priority": ("low", True),
    "idle": ("2h", True),
    "where": ({"nodes": ["node-1"]}, True),
}


def test_of_every_key_of_an_environment_it_is_known_whether_a_lead_may_change_it() -> None:
    assert set(CHANGES) | {"name", "group"} == set(WORKPLACE_FIELDS)
    assert {key for key, (_, may) in CHANGES.items() if may} == OTHERS_MAY_CHANGE


@pytest.mark.parametrize("verb", ["start", "restart", "preview"])
def test_what_runs_in_an_environment_is_changed_by_its_owner_alone(fresh: Yard, verb: str) -> None:
    """A variable like LD_PRELOAD, an image or a mount set by a lead would be a lead's code with a member's rights."""
    fresh.group("crew2")
    lead = fresh.person("lea", role="lead", group="crew2")
    with fresh.person("mel", group="crew2") as mel, fresh.owner as admin, lead:
        made = mel.post("/api/v1/envs", json={"name": "mine", "cards": 1, "env": {"KEY": "secret of mel"}}).json()
        fresh.step(made["id"], PauseAsked("mel"))
        before = fresh.workload(made["id"])
        for key in (key for key, (_, may) in CHANGES.items() if not may):
            asked = {"set": {key: CHANGES[key][0]}, "force": True}
            for whom in (lead, admin):
                refused = whom.post(f"/api/v1/envs/{made['id']}/{verb}", json=asked)
                assert refused.status_code == 403, (key, refused.text)
                error = refused.json()["error"]
                assert (error["code"], error["facts"]["keys"]) == (OWNERS_ALONE, [key])
        assert fresh.workload(made["id"]) == before


@pytest.mark.parametrize("key", ["image", "env", "mounts", "ports", "preemptible", "max_time"])
def test_its_owner_may(fresh: Yard, key: str) -> None:
    with fresh.person("mel") as mel:
        made = mel.post("/api/v1/envs", json={"name": "mine"}).json()
        told = mel.post(f"/api/v1/envs/{made['id']}/preview", json={"set": {key: CHANGES[key][0]}})
        assert told.status_code in (200, 400), told.text
        assert told.status_code == 200 or told.json()["error"]["code"] != OWNERS_ALONE


def test_how_much_it_asks_for_is_changed_by_a_lead_too_and_the_trail_says_what(fresh: Yard) -> None:
    fresh.group("crew2")
    lead = fresh.person("lea", role="lead", group="crew2")
    with fresh.person("mel", group="crew2") as mel, fresh.owner as admin, lead:
        made = mel.post("/api/v1/envs", json={"name": "mine", "cards": 1, "env": {"KEY": "secret of mel"}}).json()
        fresh.step(made["id"], PauseAsked("mel"))
        wish = {key: value for key, (value, may) in CHANGES.items() if may and key not in ("models", "where")}
        started = lead.post(f"/api/v1/envs/{made['id']}/start", json={"set": wish, "force": True, "timer": "3h"})
        assert started.status_code == 200, started.text
        told = started.json()
        assert (told["cards"], told["memory"], told["idle_seconds"]) == (2, 2 << 30, 7200)
        line = next(e for e in admin.get("/api/v1/audit").json()["items"] if e["action"] == "env.start")
        assert (line["who"], line["object"]) == ("lea", made["id"])
        assert "memory=2G" in line["facts"]["changes"]


def test_variables_are_named_in_stories_and_trails_and_their_values_are_not(fresh: Yard) -> None:
    fresh.group("crew2")
    lead = fresh.person("lea", role="lead", group="crew2")
    with fresh.person("mel", group="crew2") as mel, fresh.owner as admin, lead:
        made = mel.post("/api/v1/envs", json={"name": "mine"}).json()
        fresh.step(made["id"], PauseAsked("mel"))
        changed = {"set": {"env": {"WANDB_API_KEY": "hush-hush"}}}
        assert mel.post(f"/api/v1/envs/{made['id']}/start", json=changed).status_code == 200
        story = lead.get(f"/api/v1/workloads/{made['id']}/events").text
        trail = admin.get("/api/v1/audit").text
        assert "env=WANDB_API_KEY" in story
        assert "env=WANDB_API_KEY" in trail
        assert "hush" not in story + trail


def test_a_lead_reads_neither_variables_nor_the_shipped_folder_of_a_member(fresh: Yard) -> None:
    fresh.group("crew2")
    lead = fresh.person("lea", role="lead", group="crew2")
    with fresh.person("mel", group="crew2") as mel, fresh.owner as admin, lead:
        content = b"a shipped folder"
        digest = hashlib.sha256(content).hexdigest()
        assert mel.put(f"/api/v1/workdirs/{digest}", content=content).status_code in (200, 201, 204)
        with_folder = mel.post("/api/v1/workloads", json={**JOB, "workdir": digest}).json()["id"]
        with_key = mel.post("/api/v1/workloads", json={**JOB, "env": {"KEY": "hush"}}).json()["id"]
        role = {"command": "true", "replicas": 1, "env": {"KEY": "hush"}}
        with_roles = mel.post("/api/v1/workloads", json={"roles": {"worker": role, "ps": role}}).json()["id"]
        for id in (with_folder, with_key, with_roles):
            refused = lead.post(f"/api/v1/workloads/{id}/rerun", json={"set": {"command": "env"}})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "refused.owners_belongings")
            file = lead.get(f"/api/v1/workloads/{id}/file")
            assert file.status_code == 200
            assert "hush" not in file.text
            assert mel.post(f"/api/v1/workloads/{id}/rerun").status_code == 201
        assert lead.head(f"/api/v1/workdirs/{digest}").status_code == 404
        for whom in (mel, admin):
            assert "hush" in whom.get(f"/api/v1/workloads/{with_key}/file").text
            assert "hush" in whom.get(f"/api/v1/workloads/{with_roles}/file").text


def test_who_is_let_go_from_a_group_runs_nothing_there_until_they_are_back(fresh: Yard) -> None:
    """What runs would keep the group's folder open, and a paused job would open it once more."""
    fresh.group("crew2")
    fresh.group("other")
    lead = fresh.person("lea", role="lead", group="crew2")
    with fresh.person("mel", group="crew2") as mel, fresh.owner as admin, lead:
        assert admin.put("/api/v1/groups/other/members/mel").status_code == 200
        job = mel.post("/api/v1/workloads", json={**JOB, "group": "crew2"}).json()["id"]
        elsewhere = mel.post("/api/v1/workloads", json={**JOB, "group": "other"}).json()["id"]
        of_lead = lead.post("/api/v1/workloads", json={**JOB, "group": "crew2"}).json()["id"]
        env = mel.post("/api/v1/envs", json={"name": "mine", "group": "crew2"}).json()["id"]
        assert lead.delete("/api/v1/groups/crew2/members/mel").status_code == 200
        wanted = {id: fresh.workload(id).wanted.value for id in (job, env, elsewhere, of_lead)}
        assert wanted == {job: "pause", env: "pause", elsewhere: "run", of_lead: "run"}
        line = next(e for e in admin.get("/api/v1/audit").json()["items"] if e["facts"].get("paused"))
        assert sorted(line["facts"]["paused"]) == sorted([job, env])
        fresh.step(env, PauseAsked("lea"))
        assert mel.post(f"/api/v1/envs/{env}/restart").status_code == 403
        for path in (f"workloads/{job}/resume", f"workloads/{env}/resume", f"envs/{env}/start"):
            for who in (mel, lead, admin):
                refused = who.post(f"/api/v1/{path}")
                assert refused.json()["error"]["code"] == "refused.owner_left_group", (path, refused.text)
        assert mel.post(f"/api/v1/workloads/{job}/rerun", json={"set": {"group": "other"}}).status_code == 201
        assert admin.put("/api/v1/groups/crew2/members/mel").status_code == 200
        assert mel.post(f"/api/v1/workloads/{job}/resume").status_code == 200
        assert mel.post(f"/api/v1/envs/{env}/start").status_code == 200


def test_a_job_without_a_group_goes_to_the_only_one(server: Yard) -> None:
    server.group("solo")
    with server.person("sole", group="solo") as sole:
        assert sole.post("/api/v1/workloads", json=JOB).json()["group"] == "solo"


def test_with_several_groups_a_job_has_to_name_one(server: Yard) -> None:
    server.group("early")
    server.group("later")
    with server.person("both", group="later") as both, server.owner as owner:
        assert owner.put("/api/v1/groups/early/members/both").status_code == 200
        for path in ("/api/v1/workloads", "/api/v1/preview"):
            refused = both.post(path, json=JOB)
            assert refused.status_code == 400
            error = refused.json()["error"]
            assert (error["facts"]["at"], error["facts"]["allowed"]) == ("group", ["early", "later"])
            assert "several groups (early, later): add `--group`" in error["message"]
            assert "early" in error["message"]
        assert both.post("/api/v1/workloads", json={**JOB, "group": "later"}).json()["group"] == "later"


def test_the_owner_in_several_groups_works_in_the_first_one(fresh: Yard) -> None:
    fresh.group("another")
    with fresh.owner as owner:
        assert owner.put("/api/v1/groups/another/members/admin").status_code == 200
        assert owner.post("/api/v1/workloads", json=JOB).json()["group"] == "default"


# --- the head of a request ----------------------------------------------------------------------------------------


def raw_answer(yard: Yard, *lines: str) -> tuple[int, dict[str, Any]]:
    """Ask with these very lines, as no client library would send them."""
    host, port = yard.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        request = "\r\n".join([*lines, "Content-Length: 0", "Connection: close", "", ""])
        connection.sendall(request.encode("latin-1"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if body.startswith(b"{") else {}


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://]/", "null", "", "http://evil.example"])
def test_an_origin_that_is_not_ours_is_refused_however_it_is_written(server: Yard, origin: str) -> None:
    host = server.url.removeprefix("http://")
    status, body = raw_answer(server, "POST /api/v1/logout HTTP/1.1", f"Host: {host}", f"Origin: {origin}")
    assert status == 403
    assert body["error"]["code"] == "refused.bad_csrf"


def test_a_second_origin_does_not_hide_behind_the_first(server: Yard) -> None:
    host = server.url.removeprefix("http://")
    ours, theirs = f"Origin: http://{host}", "Origin: http://evil.example"
    assert raw_answer(server, "POST /api/v1/logout HTTP/1.1", f"Host: {host}", ours, theirs)[0] == 403


@pytest.mark.parametrize("hosts", [("127.0.0.1", "evil.example"), ("evil.example", "127.0.0.1"), ("127.0.0.1",) * 2])
def test_two_host_names_are_refused(server: Yard, hosts: tuple[str, str]) -> None:
    status, _ = raw_answer(server, "GET /healthz HTTP/1.1", *(f"Host: {host}" for host in hosts))
    assert status == 400


def test_a_parameter_given_twice_is_refused_rather_than_half_heard(server: Yard) -> None:
    host = server.url.split("//")[1]
    status, body = raw_answer(server, "GET /api/v1/workloads?owner=a&owner=b HTTP/1.1", f"Host: {host}")
    assert (status, "owner" in str(body)) == (400, True)


# --- uploads ------------------------------------------------------------------------------------------------------


@contextmanager
def trickling(yard: Yard, client: httpx2.Client, number: int) -> Iterator[list[socket.socket]]:
    """Uploads that have begun and go on by a byte now and then."""
    host, port = yard.url.removeprefix("http://").split(":")
    lines = [f"Host: {host}:{port}", f"Authorization: {client.headers['Authorization']}", "Content-Length: 100000000"]
    ended = threading.Event()
    with ExitStack() as stack:
        connections = []
        for n in range(number):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            digest = hashlib.sha256(str(n).encode()).hexdigest()
            head = "\r\n".join([f"PUT /api/v1/workdirs/{digest} HTTP/1.1", *lines, "", "A"])
            connection.sendall(head.encode())
            connections.append(connection)

        def drip() -> None:
            while not ended.wait(0.05):
                for connection in connections:
                    with suppress(OSError):
                        connection.sendall(b"A")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            yield connections
        finally:
            ended.set()
            dripping.join()


def upload(client: httpx2.Client, content: bytes) -> httpx2.Response:
    return client.put(f"/api/v1/workdirs/{hashlib.sha256(content).hexdigest()}", content=content)


def test_one_member_does_not_hold_up_the_uploads_of_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    limits = ApiLimits(upload_wait_seconds=0.1)
    with running(tmp_path_factory.mktemp("yard"), limits=limits) as yard:
        slow, other = yard.person("slow"), yard.person("other")
        with trickling(yard, slow, 8):
            assert upload(other, b"a folder").status_code == 200
            wait_until(lambda: upload(slow, b"another folder").status_code == 429)
        wait_until(lambda: upload(slow, b"another folder").status_code == 200)


def test_a_third_upload_of_the_same_member_waits_for_its_turn(fresh: Yard) -> None:
    with fresh.person("busy") as busy, ThreadPoolExecutor(6) as threads:
        contents = [bytes([n]) * 300_000 for n in range(12)]
        assert [r.status_code for r in threads.map(lambda content: upload(busy, content), contents)] == [200] * 12


def test_an_upload_that_only_drips_is_cut_off(tmp_path_factory: pytest.TempPathFactory) -> None:
    limits = ApiLimits(upload_seconds=0.3)
    with running(tmp_path_factory.mktemp("yard"), limits=limits) as yard:
        with trickling(yard, yard.person("drip"), 1) as (connection,):
            answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 400")


def test_an_upload_that_keeps_up_may_take_its_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    limits = ApiLimits(upload_seconds=1.0, upload_bytes_per_second=10.0)
    content = b"A" * 440

    def slowly() -> Iterator[bytes]:
        yield content[:400]  # enough for the time that the rest takes, and for a machine that is busy meanwhile
        for n in range(400, 440):
            yield content[n : n + 1]
            time.sleep(0.04)

    with running(tmp_path_factory.mktemp("yard"), limits=limits) as yard, yard.person("steady") as steady:
        digest = hashlib.sha256(content).hexdigest()
        assert steady.put(f"/api/v1/workdirs/{digest}", content=slowly()).status_code == 200


def test_a_stranger_holds_no_place_with_a_small_body_that_only_drips(fresh: Yard) -> None:
    host, port = fresh.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=1) as connection:
        lines = [f"Host: {host}:{port}", "Content-Type: application/json", "Content-Length: 100000"]
        connection.sendall("\r\n".join(["POST /api/v1/login HTTP/1.1", *lines, "", "{"]).encode())
        deadline, answer = time.monotonic() + 30, b""
        while not answer and time.monotonic() < deadline:
            connection.sendall(b" ")
            with suppress(TimeoutError):
                answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400")


# --- guessing -----------------------------------------------------------------------------------------------------


def test_failures_at_one_address_do_not_lock_out_everybody_behind_it(fresh: Yard) -> None:
    fresh.person("target")
    fresh.person("neighbour")
    fresh.clock.stop()
    with fresh.client() as client:
        codes = [log_in(client, "target", f"guess number {n}").status_code for n in range(150)]
        assert codes[-1] == 429
        assert log_in(client, "neighbour", PASSWORD).status_code == 200


def log_in(client: httpx2.Client, name: str, password: str) -> httpx2.Response:
    return client.post("/api/v1/login", json={"name": name, "password": password})


# --- tokens -------------------------------------------------------------------------------------------------------


def works(yard: Yard, token: str) -> bool:
    with yard.client(token) as client:
        return client.get("/api/v1/whoami").status_code == 200


def make_token(client: httpx2.Client, **wish: Any) -> dict[str, Any]:
    made = client.post("/api/v1/tokens", json={"name": "made", **wish})
    assert made.status_code == 201, made.text
    return dict(made.json())


def test_tokens_made_with_a_token_die_with_it(server: Yard) -> None:
    with server.person("gran") as gran:
        parent = make_token(gran)
        with server.client(parent["token"]) as by_parent:
            child = make_token(by_parent)
        with server.client(child["token"]) as by_child:
            grandchild = make_token(by_child)
        sibling = make_token(gran)
        assert works(server, grandchild["token"])
        assert gran.delete(f"/api/v1/tokens/{parent['id']}").status_code == 200
        assert [works(server, t["token"]) for t in (parent, child, grandchild, sibling)] == [False, False, False, True]
        assert works(server, gran.headers["Authorization"].removeprefix("Bearer "))


def test_the_tokens_of_nobody_are_not_an_empty_list(server: Yard) -> None:
    with server.owner as owner:
        assert owner.get("/api/v1/tokens?user=nobodyatall").status_code == 404


def test_tokens_an_admins_token_made_for_others_die_with_it(server: Yard) -> None:
    server.person("plain")
    with server.person("boss", role="admin") as boss:
        stolen = make_token(boss, scope="admin")
        with server.client(stolen["token"]) as thief:
            hidden = make_token(thief, user="plain", scope="read")
        assert works(server, hidden["token"])
        assert boss.delete(f"/api/v1/tokens/{stolen['id']}").status_code == 200
        assert not works(server, hidden["token"])


def test_a_new_password_takes_all_tokens_back_but_the_one_that_asks(server: Yard) -> None:
    with server.person("wary") as wary:
        stolen = make_token(wary)
        with server.client(stolen["token"]) as thief:
            hidden = make_token(thief)
        mine = make_token(wary)
        with server.client(mine["token"]) as here:
            change = {"old": PASSWORD, "new": "quite another secret"}
            assert here.post("/api/v1/password", json=change).status_code == 200
            assert [token["id"] for token in here.get("/api/v1/tokens").json()["items"]] == [mine["id"]]
        assert [works(server, t["token"]) for t in (stolen, hidden, mine)] == [False, False, True]
        assert wary.get("/api/v1/whoami").status_code == 401


def test_the_token_that_asks_stays_even_if_it_was_made_with_another(server: Yard) -> None:
    with server.person("heir") as heir:
        child = make_token(heir)
        with server.client(child["token"]) as here:
            change = {"old": PASSWORD, "new": "quite another secret"}
            assert here.post("/api/v1/password", json=change).status_code == 200
            assert here.get("/api/v1/whoami").status_code == 200
        assert heir.get("/api/v1/whoami").status_code == 401


def test_a_password_given_by_an_admin_takes_all_tokens_back(server: Yard) -> None:
    with server.person("reset") as reset, server.owner as owner:
        assert owner.post("/api/v1/users/reset/password", json={"password": "given by an admin"}).status_code == 200
        assert reset.get("/api/v1/whoami").status_code == 401


def test_tokens_stay_when_told_so(server: Yard) -> None:
    with server.person("calm") as calm, server.owner as owner:
        token = make_token(calm)["token"]
        change = {"old": PASSWORD, "new": "quite another secret", "keep_tokens": True}
        assert calm.post("/api/v1/password", json=change).status_code == 200
        assert works(server, token)
        given = {"password": "given by an admin", "keep_tokens": True}
        assert owner.post("/api/v1/users/calm/password", json=given).status_code == 200
        assert works(server, token)


# --- floods -------------------------------------------------------------------------------------------------------


def test_a_flood_of_refused_tries_does_not_bury_the_trail(fresh: Yard) -> None:
    with fresh.person("nosy") as nosy, fresh.person("quiet") as quiet, fresh.owner as owner:
        id = owner.post("/api/v1/workloads", json=JOB).json()["id"]
        for _ in range(MOST_REFUSALS + 20):
            assert nosy.get(f"/api/v1/workloads/{id}").status_code == 404
        assert quiet.get(f"/api/v1/workloads/{id}").status_code == 404
        fresh.clock.ahead += 3601
        assert nosy.get(f"/api/v1/workloads/{id}").status_code == 404
        trail = owner.get("/api/v1/audit?limit=500").json()["items"]
    refused = [(e["who"], e["action"]) for e in reversed(trail) if e["outcome"] == "refused"]
    told = ("nosy", "workload.show")
    assert refused == [told] * MOST_REFUSALS + [("nosy", "audit.left_out"), ("quiet", "workload.show"), told]


def test_nobody_has_more_live_work_than_they_may(tmp_path_factory: pytest.TempPathFactory) -> None:
    limits = ApiLimits(live_workloads_per_user=3)
    with running(tmp_path_factory.mktemp("yard"), limits=limits) as yard:
        flood, other = yard.person("flood"), yard.person("other")
        key = {"Idempotency-Key": "first"}
        first = flood.post("/api/v1/workloads", json=JOB, headers=key).json()["id"]
        codes = [flood.post("/api/v1/workloads", json=JOB).status_code for _ in range(10)]
        assert codes == [201] * 2 + [429] * 8
        refused = flood.post("/api/v1/workloads", json=JOB)
        assert refused.json()["error"]["code"] == "refused.too_many_live"
        assert "3" in refused.json()["error"]["message"]
        assert int(refused.headers["retry-after"]) >= 1
        assert flood.post(f"/api/v1/workloads/{first}/rerun", json={}).status_code == 429
        assert flood.post("/api/v1/workloads", json=JOB, headers=key).status_code == 200
        assert other.post("/api/v1/workloads", json=JOB).status_code == 201
        yard.start(first)
        yard.end(first)
        yard.clock.ahead += 2
        assert flood.post("/api/v1/workloads", json=JOB).status_code == 201
        assert flood.post("/api/v1/workloads", json=JOB).status_code == 429
