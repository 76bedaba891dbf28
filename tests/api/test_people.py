"""Logging in, and who may change whom: users, groups, quotas, tokens, and the trail of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.api.yard import OWNER_SECRET, PASSWORD, Yard, running

from gpuyard.access.passwords import Passwords
from gpuyard.access.service import Access, AccessRules
from gpuyard.store import audit, workloads
from gpuyard.store.database import Database
from gpuyard.store.restore import restore

JOB = {"command": "true"}


def log_in(client: httpx2.Client, name: str, password: str = PASSWORD) -> httpx2.Response:
    return client.post("/api/v1/login", json={"name": name, "password": password})


@contextmanager
def logged_in(yard: Yard, name: str, password: str = PASSWORD) -> Iterator[httpx2.Client]:
    """A browser with a session and its key."""
    with yard.client() as client:
        answer = log_in(client, name, password)
        assert answer.status_code == 200, answer.text
        client.headers["X-Session-Key"] = answer.json()["session_key"]
        yield client


# --- the first start ----------------------------------------------------------------------------------------------


def test_the_first_start_makes_an_admin_with_a_one_time_password(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'gpuyard.db'}")
    try:
        access = Access(database, lambda: 1000.0, passwords=Passwords())
        first = access.first_start()
        assert first is not None
        assert first.password not in repr(first)
        assert access.first_start() is None
        actor, _ = access.log_in("admin", first.password, "::1")
        assert actor.user.must_change_password
    finally:
        database.close()


@pytest.mark.parametrize("password", ["admin", "password", "gpuyard", "", "changeme", "root"])
def test_there_is_no_default_password(fresh: Yard, password: str) -> None:
    with fresh.client() as client:
        assert log_in(client, "admin", password).status_code in (400, 401)


# --- sessions -----------------------------------------------------------------------------------------------------


def test_a_session_begins_with_login_and_ends_with_logout(server: Yard) -> None:
    server.person("sam")
    with logged_in(server, "sam") as sam:
        cookie = sam.cookies["yard_session"]
        assert sam.get("/api/v1/whoami").json()["user"]["name"] == "sam"
        assert sam.get("/api/v1/whoami").json()["via"] == "session"
        assert sam.get("/api/v1/whoami").json()["role"] == "member"
        assert sam.post("/api/v1/logout").status_code == 200
        both = {"Cookie": f"yard_session={cookie}", "X-Session-Key": sam.headers["X-Session-Key"]}
        assert sam.get("/api/v1/whoami", headers=both).status_code == 401


def test_the_cookie_is_kept_from_scripts_and_other_sites(server: Yard) -> None:
    server.person("sid")
    with server.client() as client:
        cookie = log_in(client, "sid").headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/" in cookie


def test_with_tls_the_cookie_is_secure_and_bound_to_the_host(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("tls"), tls=True) as yard:
        yard.person("sue")
        with yard.client() as client:
            answer = log_in(client, "sue")
            assert answer.headers["set-cookie"].startswith("__Host-yard_session=")
            assert "; secure" in answer.headers["set-cookie"].lower()
            assert "domain=" not in answer.headers["set-cookie"].lower()
            assert "strict-transport-security" in answer.headers


def test_a_cookie_from_before_the_login_is_worth_nothing(server: Yard) -> None:
    server.person("fix")
    with server.client(cookies={"yard_session": "chosen-by-an-attacker"}) as client:
        key = log_in(client, "fix").json()["session_key"]
    with server.client(cookies={"yard_session": "chosen-by-an-attacker"}) as attacker:
        assert attacker.get("/api/v1/whoami", headers={"X-Session-Key": key}).status_code == 401


def test_a_session_runs_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("yard"), rules=AccessRules(session_seconds=60)) as yard:
        yard.person("rob")
        with logged_in(yard, "rob") as rob:
            assert rob.get("/api/v1/whoami").status_code == 200
            yard.clock.ahead += 61
            assert rob.get("/api/v1/whoami").status_code == 401


def test_a_new_password_ends_the_other_sessions(server: Yard) -> None:
    server.person("pat")
    with logged_in(server, "pat") as here, logged_in(server, "pat") as elsewhere:
        wrong = here.post("/api/v1/password", json={"old": "not it at all", "new": "another good secret"})
        assert wrong.status_code == 401
        weak = here.post("/api/v1/password", json={"old": PASSWORD, "new": "short"})
        assert weak.json()["error"]["code"] == "refused.weak_password"
        assert elsewhere.get("/api/v1/whoami").status_code == 200
        changed = here.post("/api/v1/password", json={"old": PASSWORD, "new": "another good secret"})
        assert changed.status_code == 200
        assert here.get("/api/v1/whoami").status_code == 200
        assert elsewhere.get("/api/v1/whoami").status_code == 401
    with server.client() as client:
        assert log_in(client, "pat").status_code == 401
        assert log_in(client, "pat", "another good secret").status_code == 200


def test_a_one_time_password_opens_nothing_until_it_is_changed(server: Yard) -> None:
    with server.owner as owner:
        once = owner.post("/api/v1/users", json={"name": "newbie"}).json()["password"]
    with logged_in(server, "newbie", once) as newbie:
        refused = newbie.get("/api/v1/workloads")
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "refused.password_change_needed"
        assert newbie.get("/api/v1/whoami").json()["user"]["must_change_password"] is True
        same = newbie.post("/api/v1/password", json={"old": once, "new": once})  # who gave it would go on knowing it
        assert (same.status_code, same.json()["error"]["code"]) == (400, "refused.same_password")
        assert newbie.get("/api/v1/workloads").status_code == 403
        assert newbie.post("/api/v1/password", json={"old": once, "new": "my very own words"}).status_code == 200
        assert newbie.get("/api/v1/workloads").status_code == 200


def test_who_owns_the_data_folder_chooses_a_password_without_the_old_one_and_nobody_else_does(fresh: Yard) -> None:
    new = {"new": "my very own words"}
    with fresh.person("pia") as by_token, logged_in(fresh, "pia") as pia:
        for other in (by_token, pia):
            refused = other.post("/api/v1/password", json=new)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "refused.wrong_password")
    with fresh.client(fresh.token_of("admin")) as admin, fresh.owner as owner:
        assert admin.post("/api/v1/password", json=new).status_code == 401
        assert owner.post("/api/v1/password", json={"old": "not it at all", **new}).status_code == 401
        assert owner.post("/api/v1/password", json=new).status_code == 200
        assert owner.get("/api/v1/whoami").json()["user"]["must_change_password"] is False
        assert owner.get("/api/v1/audit").json()["items"][0]["action"] == "password.change"
    with fresh.client() as client:
        assert log_in(client, "admin", new["new"]).status_code == 200


# --- guessing -----------------------------------------------------------------------------------------------------


def test_guessing_is_slowed_down_and_audited(fresh: Yard) -> None:
    fresh.person("vic")
    fresh.clock.stop()
    with fresh.client() as attacker, fresh.owner as owner:
        codes = [log_in(attacker, "vic", f"guess number {n}").status_code for n in range(200)]
        assert codes == [401] * 10 + [429] * 190
        blocked = log_in(attacker, "vic", PASSWORD)
        assert blocked.status_code == 429
        assert int(blocked.headers["retry-after"]) >= 1
        trail = owner.get("/api/v1/audit?limit=500").json()["items"]
        failed = [e for e in trail if e["action"] == "session.begin" and e["outcome"] == "failed"]
        assert len(failed) == codes.count(401)
        assert failed[0]["who"] == "vic"
        fresh.clock.ahead += 301
        assert log_in(attacker, "vic").status_code == 200


def test_an_unknown_user_is_refused_in_the_same_words(fresh: Yard) -> None:
    fresh.person("una")
    with fresh.client() as client:
        known, unknown = log_in(client, "una", "wrong guess"), log_in(client, "nobody", "wrong guess")
        assert (known.status_code, known.text) == (unknown.status_code, unknown.text)
        assert unknown.json()["error"]["code"] == "refused.wrong_password"


def test_a_password_typed_as_a_name_is_not_written_down(fresh: Yard) -> None:
    with fresh.client() as client, fresh.owner as owner:
        log_in(client, "My Secret Password 1!", "x")
        assert "My Secret" not in owner.get("/api/v1/audit").text


# --- users --------------------------------------------------------------------------------------------------------


def test_admins_make_and_change_and_remove_users(server: Yard) -> None:
    with server.owner as owner:
        made = owner.post("/api/v1/users", json={"name": "ulf", "password": PASSWORD, "role": "admin"}).json()
        assert (made["admin"], made["password"], made["must_change_password"]) == (True, None, False)
        assert made["uid"] >= 310_000
        assert made["memberships"] == [{"group": "default", "role": "member"}]
        assert owner.post("/api/v1/users", json={"name": "ulf"}).status_code == 409
        assert owner.patch("/api/v1/users/ulf", json={"admin": False}).json()["admin"] is False
        assert owner.get("/api/v1/users/ulf").json()["admin"] is False
        assert owner.delete("/api/v1/users/ulf").status_code == 200
        assert owner.get("/api/v1/users/ulf").status_code == 404


@pytest.mark.parametrize("name", ["Root", "a b", "", "1abc", "a" * 33, "ädmin", "аdmin", "../x", "root\n"])
def test_an_odd_user_name_is_refused(server: Yard, name: str) -> None:
    with server.owner as owner:
        assert owner.post("/api/v1/users", json={"name": name}).status_code == 400
        assert owner.post("/api/v1/groups", json={"name": name}).status_code == 400


def test_a_user_with_live_work_is_not_removed(server: Yard) -> None:
    with server.person("liv") as liv, server.owner as owner:
        id = liv.post("/api/v1/workloads", json=JOB).json()["id"]
        refused = owner.delete("/api/v1/users/liv")
        assert refused.status_code == 409
        assert refused.json()["error"]["facts"]["by"] == id
        server.start(id)
        server.end(id)
        assert owner.delete("/api/v1/users/liv").status_code == 200
        assert liv.get("/api/v1/whoami").status_code == 401


def test_a_name_that_left_work_behind_is_not_given_to_a_stranger(server: Yard) -> None:
    with server.person("gone") as gone, server.owner as owner:
        id = gone.post("/api/v1/workloads", json=JOB).json()["id"]
        server.start(id)
        server.end(id)
        assert owner.delete("/api/v1/users/gone").status_code == 200
        assert owner.post("/api/v1/users", json={"name": "gone"}).status_code == 409


def test_someone_deactivated_is_out_at_once_and_for_good(server: Yard) -> None:
    with server.person("otis") as otis, logged_in(server, "otis") as browser, server.owner as owner:
        assert otis.get("/api/v1/whoami").status_code == 200
        assert owner.patch("/api/v1/users/otis", json={"active": False}).status_code == 200
        assert otis.get("/api/v1/whoami").status_code == 401
        assert browser.get("/api/v1/whoami").status_code == 401
        with server.client() as client:
            assert log_in(client, "otis").status_code == 401
        assert owner.patch("/api/v1/users/otis", json={"active": True}).status_code == 200
        assert otis.get("/api/v1/whoami").status_code == 401


def test_the_last_admin_stays(fresh: Yard) -> None:
    with fresh.owner as owner:
        for change in ({"admin": False}, {"active": False}):
            assert owner.patch("/api/v1/users/admin", json=change).status_code == 409
        assert owner.delete("/api/v1/users/admin").status_code == 409
        fresh.person("second", role="admin")
        assert owner.delete("/api/v1/users/admin").status_code == 200
        assert owner.get("/api/v1/whoami").json()["user"]["name"] == "second"


def test_where_all_work_runs_as_one_there_is_one_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("yard"), rules=AccessRules(single_user=True)) as yard, yard.owner as owner:
        refused = owner.post("/api/v1/users", json={"name": "second"})
        assert refused.status_code == 409
        assert refused.json()["error"]["code"] == "refused.single_user"


# --- rising above oneself -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cast(server: Yard) -> dict[str, httpx2.Client]:
    """A lead, a member and an outsider."""
    server.group("lab", {"nvidia": 8, "memory": "64G"})
    server.group("attic")
    return {
        "lead": server.person("lana", role="lead", group="lab"),
        "member": server.person("milo", group="lab"),
        "outsider": server.person("oleg", group="attic"),
    }


ESCALATIONS: list[tuple[str, str, str, Any]] = [
    ("lead", "PATCH", "/users/lana", {"admin": True}),
    ("lead", "PATCH", "/users/milo", {"admin": True}),
    ("lead", "POST", "/users", {"name": "minion"}),
    ("lead", "POST", "/users", {"name": "minion", "role": "admin"}),
    ("lead", "POST", "/users/admin/password", {"password": "mine now, thanks"}),
    ("lead", "POST", "/users/milo/password", {"password": "mine now, thanks"}),
    ("lead", "DELETE", "/users/milo", None),
    ("lead", "PUT", "/groups/lab/members/milo", {"role": "lead"}),
    ("lead", "PUT", "/groups/lab/members/lana", {"role": "member"}),
    ("lead", "PUT", "/groups/lab/members/admin", {"role": "member"}),
    ("lead", "DELETE", "/groups/lab/members/lana", None),
    ("lead", "PUT", "/groups/lab/quota", {"limits": {"nvidia": 64}}),
    ("lead", "PUT", "/groups/lab/quota", {"limits": {"nvidia": None}}),
    ("lead", "PUT", "/groups/lab/quota", {"limits": {"nvidia": 9}, "user": "milo"}),
    ("lead", "PATCH", "/groups/lab", {"quota": {"nvidia": 64}}),
    ("lead", "PUT", "/groups/attic/quota", {"limits": {"nvidia": 1}, "user": "oleg"}),
    ("lead", "PUT", "/groups/attic/members/lana", {"role": "member"}),
    ("lead", "DELETE", "/groups/lab", None),
    ("lead", "POST", "/groups", {"name": "mine"}),
    ("lead", "POST", "/tokens", {"name": "sneaky", "user": "admin"}),
    ("lead", "POST", "/tokens", {"name": "sneaky", "user": "milo", "scope": "read"}),
    ("lead", "POST", "/nodes/node-1/cordon", None),
    ("lead", "PATCH", "/nodes/node-1/labels", {"labels": {"zone": "mine"}}),
    ("member", "PATCH", "/nodes/node-1/labels", {"labels": {"zone": "mine"}}),
    ("lead", "GET", "/audit", None),
    ("lead", "GET", "/audit/check", None),
    ("lead", "POST", "/backup", None),
    ("member", "PUT", "/groups/lab/members/milo", {"role": "lead"}),
    ("member", "PUT", "/groups/lab/members/oleg", {"role": "member"}),
    ("member", "DELETE", "/groups/lab/members/lana", None),
    ("member", "PUT", "/groups/lab/quota", {"limits": {"nvidia": 1}, "user": "milo"}),
    ("member", "PATCH", "/users/milo", {"admin": True}),
    ("outsider", "PUT", "/groups/lab/members/oleg", {"role": "member"}),
    ("outsider", "PUT", "/groups/lab/members/oleg", None),
    ("outsider", "GET", "/groups/lab", None),
    ("outsider", "GET", "/users/milo", None),
    ("outsider", "GET", "/tokens?user=milo", None),
]


@pytest.mark.parametrize(("who", "method", "path", "body"), ESCALATIONS)
def test_nobody_rises_above_themselves(
    server: Yard, cast: dict[str, httpx2.Client], who: str, method: str, path: str, body: Any
) -> None:
    def state() -> list[Any]:
        with server.owner as owner:
            return [owner.get(f"/api/v1/{path}").json() for path in ("users", "groups", "nodes", "tokens?user=milo")]

    before = state()
    answer = cast[who].request(method, f"/api/v1{path}", json=body)
    assert answer.status_code in (403, 404), answer.text
    after = state()
    assert [_without_use(part) for part in before] == [_without_use(part) for part in after]


def _without_use(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key != "last_used_at"} for item in part["items"]]


def test_a_lead_divides_the_group_among_its_members(server: Yard, cast: dict[str, httpx2.Client]) -> None:
    lead = cast["lead"]
    server.person("nina", group="attic")
    with server.owner as owner:
        assert owner.put("/api/v1/groups/lab/members/nina").status_code == 200
    limited = lead.put("/api/v1/groups/lab/quota", json={"limits": {"nvidia": 2, "cpu": "4"}, "user": "nina"})
    assert limited.status_code == 200, limited.text
    lines = {(q["user"], q["resource"]): q["limit"] for q in lead.get("/api/v1/quota").json()["items"]}
    assert lines == {(None, "nvidia"): 8, (None, "memory"): 64 << 30, ("nina", "nvidia"): 2, ("nina", "cpu"): 4}
    assert lead.put("/api/v1/groups/lab/quota", json={"limits": {"cpu": None}, "user": "nina"}).status_code == 200
    assert lead.delete("/api/v1/groups/lab/members/nina").status_code == 200
    assert {u["name"] for u in lead.get("/api/v1/users").json()["items"]} == {"lana", "milo"}
    member = cast["member"].get("/api/v1/groups/lab").json()
    assert {(m["user"], m["role"]) for m in member["members"]} == {("lana", "lead"), ("milo", "member")}


def test_quotas_in_use_are_shown(fresh: Yard) -> None:
    fresh.group("gpu", {"cpu": 4, "nvidia": 0})
    with fresh.person("quinn", group="gpu") as quinn:
        id = quinn.post("/api/v1/workloads", json=JOB).json()["id"]
        fresh.start(id)
        lines = {q["resource"]: (q["used"], q["limit"]) for q in quinn.get("/api/v1/quota").json()["items"]}
        assert lines == {"cpu": (1, 4), "nvidia": (0, 0)}


@pytest.mark.parametrize(
    "limits", [{"nvidia": -1}, {"nvidia": 1.5}, {"cpu": "many"}, {"memory": True}, {"tpu": 1}, {}, {"cpu": 1e400}]
)
def test_a_limit_that_means_nothing_is_refused(server: Yard, limits: dict[str, Any]) -> None:
    with server.owner as owner:
        body = json.dumps({"limits": limits})
        headers = {"Content-Type": "application/json"}
        assert owner.put("/api/v1/groups/default/quota", content=body, headers=headers).status_code == 400
        assert owner.get("/api/v1/groups/default").json()["quotas"] == []


@pytest.mark.parametrize(("written", "meant"), [("gpu", "nvidia"), ("NPU", "ascend"), ("memroy", "memory")])
def test_a_resource_by_another_name_is_told_the_name_it_has_here(server: Yard, written: str, meant: str) -> None:
    with server.owner as owner:
        answer = owner.put("/api/v1/groups/default/quota", json={"limits": {written: 8}})
        assert answer.status_code == 400
        assert f"did you mean `{meant}`?" in answer.json()["error"]["message"]


def test_an_amount_of_the_wrong_kind_is_told_once(server: Yard) -> None:
    with server.owner as owner:
        error = owner.put("/api/v1/groups/default/quota", json={"limits": {"cpu": [1]}}).json()["error"]
        assert error["message"] == "limits.cpu: expected an amount like 8, 0.5 or 16G."
        assert len(error["problems"]) == 1


def test_a_group_in_use_is_not_removed(server: Yard) -> None:
    server.group("busy")
    server.group("idle")
    server.person("bea", group="busy")
    with server.owner as owner:
        assert owner.delete("/api/v1/groups/busy").json()["error"]["facts"]["by"] == "bea"
        assert owner.delete("/api/v1/groups/idle").status_code == 200


# --- tokens -------------------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_kept_as_a_hash_and_revoked_at_once(server: Yard) -> None:
    with server.person("tess") as tess:
        made = tess.post("/api/v1/tokens", json={"name": "ci", "scope": "write"}).json()
        secret = made["token"]
        assert secret.startswith("yard_")
        assert len(secret) == 48
        assert secret not in tess.get("/api/v1/tokens").text
        with server.client(secret) as by_token:
            assert by_token.get("/api/v1/whoami").json()["scope"] == "write"
            assert by_token.delete(f"/api/v1/tokens/{made['id']}").status_code == 200
            assert by_token.get("/api/v1/whoami").status_code == 401
        assert made["id"] not in tess.get("/api/v1/tokens").text


def test_no_secret_is_on_disk(fresh: Yard) -> None:
    token = fresh.person("disk").headers["Authorization"].removeprefix("Bearer ")
    with logged_in(fresh, "disk") as browser:
        cookie = browser.cookies["yard_session"]
    assert fresh.database.path is not None
    with sqlite3.connect(fresh.database.path) as connection:
        everything = "\n".join(connection.iterdump())
    connection.close()
    for secret in (token, cookie, PASSWORD, OWNER_SECRET):
        assert secret not in everything


def test_a_token_makes_no_token_wider_or_longer_than_itself(server: Yard) -> None:
    with server.person("tom") as tom:
        narrow = tom.post("/api/v1/tokens", json={"name": "narrow", "scope": "write", "days": 1}).json()
        with server.client(narrow["token"]) as by_token:
            assert by_token.post("/api/v1/tokens", json={"name": "x", "scope": "admin"}).status_code == 403
            assert by_token.post("/api/v1/tokens", json={"name": "x", "days": 2}).status_code == 403
            child = by_token.post("/api/v1/tokens", json={"name": "x", "scope": "read"}).json()
            assert child["expires_at"] == narrow["expires_at"]


def test_a_token_runs_out(fresh: Yard) -> None:
    with fresh.person("ted") as ted:
        secret = ted.post("/api/v1/tokens", json={"name": "short", "days": 0.001}).json()["token"]
        with fresh.client(secret) as by_token:
            assert by_token.get("/api/v1/whoami").status_code == 200
            fresh.clock.ahead += 100
            assert by_token.get("/api/v1/whoami").status_code == 401


def test_a_narrow_token_of_an_admin_is_no_admin(server: Yard) -> None:
    with server.client(server.token_of("admin", "write")) as narrow:
        for method, path, body in (
            ("POST", "/users", {"name": "sneak"}),
            ("GET", "/audit", None),
            ("POST", "/backup", None),
            ("POST", "/nodes/node-1/cordon", None),
            ("PATCH", "/nodes/node-1/labels", {"labels": {"zone": "mine"}}),
            ("PUT", "/groups/default/quota", {"limits": {"cpu": 1}}),
        ):
            # The first admin still has the one-time password, which alone would refuse; the owner has no such limit.
            assert narrow.request(method, f"/api/v1{path}", json=body).status_code == 403


def test_when_a_token_was_last_used_is_told(fresh: Yard) -> None:
    with fresh.person("uma") as uma:
        uma.get("/api/v1/whoami")
        fresh.parts.access.tidy()
        assert uma.get("/api/v1/tokens").json()["items"][0]["last_used_at"] is not None


# --- the trail, machines, backup ----------------------------------------------------------------------------------


def test_every_change_leaves_its_entry_and_the_chain_holds(fresh: Yard) -> None:
    fresh.group("trail")
    with fresh.person("tia", group="trail") as tia, fresh.owner as owner:
        id = tia.post("/api/v1/workloads", json=JOB).json()["id"]
        tia.post(f"/api/v1/workloads/{id}/pause")
        tia.post(f"/api/v1/workloads/{id}/resume")
        tia.post(f"/api/v1/workloads/{id}/stop")
        owner.put("/api/v1/groups/trail/quota", json={"limits": {"cpu": 1}})
        owner.put("/api/v1/groups/trail/members/admin")
        owner.delete("/api/v1/groups/trail/members/admin")
        owner.patch("/api/v1/users/tia", json={"active": True, "must_change_password": True})
        owner.post("/api/v1/users/tia/password")
        owner.post("/api/v1/nodes/node-1/cordon")
        owner.post("/api/v1/nodes/node-1/uncordon")
        trail: list[dict[str, Any]] = []
        page = owner.get("/api/v1/audit?limit=5").json()
        while True:
            trail += page["items"]
            if page["next"] is None:
                break
            page = owner.get("/api/v1/audit", params={"limit": 5, "cursor": page["next"]}).json()
    actions = [entry["action"] for entry in reversed(trail)]
    assert actions == [
        *("store.first_start", "group.create", "user.create", "token.create", "workload.submit"),
        *("workload.pause", "workload.resume", "workload.stop", "group.quota", "group.member", "group.member"),
        *("user.change", "user.password", "node.cordon", "node.uncordon"),
    ]
    assert trail[0]["address"] == "127.0.0.1"
    with fresh.database.read() as conn:
        assert audit.verify(conn) is None


def test_a_cordoned_machine_is_shown_as_such(fresh: Yard) -> None:
    with fresh.owner as owner:
        assert owner.post("/api/v1/nodes/node-1/cordon").status_code == 200
        assert owner.get("/api/v1/nodes").json()["items"][0]["state"] == "cordoned"
        id = owner.post("/api/v1/workloads", json={"command": "x", "cards": 1}).json()["id"]
        told = owner.get(f"/api/v1/workloads/{id}/why").json()["sort_words"]
        assert "taken out by an admin" in told
        assert "broken" not in told
        assert owner.post("/api/v1/nodes/node-1/uncordon").status_code == 200
        assert owner.get("/api/v1/nodes").json()["items"][0]["state"] == "ready"
        assert owner.post("/api/v1/nodes/nowhere/cordon").status_code == 404


def test_a_backup_is_a_whole_file(fresh: Yard, tmp_path: Path) -> None:
    with fresh.owner as owner:
        id = owner.post("/api/v1/workloads", json=JOB).json()["id"]
        answer = owner.post("/api/v1/backup")
        assert answer.status_code == 200
        assert int(answer.headers["content-length"]) == len(answer.content)
    (tmp_path / "copy.gz").write_bytes(answer.content)
    url = f"sqlite:///{tmp_path / 'restored.db'}"
    restore(url, tmp_path / "copy.gz")
    database = Database.open(url)
    try:
        with database.read() as conn:
            assert workloads.get(conn, id) is not None
    finally:
        database.close()


def test_a_password_is_never_repeated_in_a_refusal(server: Yard) -> None:
    secret = "very secret " * 200
    with server.owner as owner, server.client() as client:
        for answer in (
            owner.post("/api/v1/users", json={"name": "spill", "password": secret}),
            owner.post("/api/v1/users", json={"name": "spill", "password": 12345678}),
            owner.post("/api/v1/password", json={"old": secret, "new": secret}),
            client.post("/api/v1/login", json={"name": "admin", "password": secret}),
        ):
            assert answer.status_code == 400
            assert "secret" not in answer.text
            assert "12345678" not in answer.text
