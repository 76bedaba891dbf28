"""Every door: closed to strangers, closed to other tenants, and the same words at each of them."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from typing import Annotated, Any

import pytest
from fastapi.routing import iter_route_contexts
from tests.api.yard import PASSWORD, Yard

from gpuyard.access.rights import Action
from gpuyard.api.app import create_app
from gpuyard.api.front import SECURITY_HEADERS
from gpuyard.api.guard import OPEN_TO_ALL, Caller, Doors, is_guarded, needs
from gpuyard.api.models import ErrorOut

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def every_route(yard: Yard) -> list[tuple[str, str]]:
    """(method, path) of the whole application."""
    found = []
    for context in iter_route_contexts(create_app(yard.parts).routes):
        assert context.path is not None
        found += [(method, context.path) for method in sorted(context.methods or ())]
    return found


def test_there_is_no_route_without_a_guard(server: Yard) -> None:
    contexts = list(iter_route_contexts(create_app(server.parts).routes))
    assert len(contexts) > 40
    for context in contexts:
        assert context.path in OPEN_TO_ALL or is_guarded(context.dependant), context.path


def test_a_route_without_a_guard_cannot_be_registered() -> None:
    doors = Doors()
    with pytest.raises(TypeError, match="no guard"):

        @doors.get("/secret")
        def secret() -> dict[str, str]:
            return {}

    assert doors.routes == []

    @doors.get("/guarded")
    def guarded(caller: Annotated[Caller, needs(Action.WHO_AM_I)]) -> dict[str, str]:
        return {}


def fill(path: str, names: dict[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda match: names[match.group(1)], path)


NAMES = {
    "ref": "abcdefghij",
    "name": "nobody",
    "user": "nobody",
    "id": "t000",
    "digest": "0" * 64,
    "other": "abcdefghik",
}


def test_strangers_are_sent_away_from_every_door(server: Yard) -> None:
    asked = 0
    for secret in (None, "yard_" + "x" * 43, ""):
        with server.client(secret) as stranger:
            for method, path in every_route(server):
                if path in OPEN_TO_ALL:
                    continue
                answer = stranger.request(method, fill(path, NAMES))
                assert answer.status_code == 401, (method, path, answer.text)
                asked += 1
                if method != "HEAD":
                    assert ErrorOut.model_validate(answer.json()).error.code == "refused.login_needed"
    assert asked > 100


def test_the_open_doors_are_these_and_no_others() -> None:
    assert {"/healthz", "/api/v1/login", "/api/v1/openapi.json", "/api/v1/schema/job.json"} == OPEN_TO_ALL


BODIES: dict[str, Any] = {
    "/api/v1/envs/{ref}/timer": {"timer": "1h"},
    "/api/v1/workloads/{ref}": {"priority": 10},
    "/api/v1/workloads/{ref}/rerun": {"set": {}},
    "/api/v1/groups/{name}/quota": {"limits": {"nvidia": 1}},
    "/api/v1/groups/{name}/merge": {"into": "default"},
    "/api/v1/groups/{name}": {"quota": {"nvidia": 1}},
    "/api/v1/users/{name}": {"admin": True},
    "/api/v1/groups/{name}/members/{user}": {"role": "lead"},
}


def test_other_tenants_objects_answer_exactly_like_none_at_all(fresh: Yard) -> None:
    """Every route that names an object, asked by someone of another group, for an object that exists and one that
    does not: the answers must not differ in anything but the name that was asked for."""
    fresh.group("vision")
    fresh.group("speech")
    mara, otto = fresh.person("mara", group="vision"), fresh.person("otto", group="speech")
    job = mara.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
    fresh.start(job)
    token = mara.get("/api/v1/tokens").json()["items"][0]["id"]
    theirs = {"ref": job, "other": job, "name": "vision", "user": "mara", "id": token, "digest": "1" * 64}
    none = "zzzzzzzzzz"
    nothing = {"ref": none, "other": none, "name": "nowhere", "user": "nobody", "id": "t0", "digest": "2" * 64}
    asked = 0
    for method, path in every_route(fresh):
        if "{" not in path or "workdirs" in path:
            continue
        if "/users/" in path:
            theirs["name"], nothing["name"] = "mara", "nobody"
        else:
            theirs["name"], nothing["name"] = "vision", "nowhere"
        answers = []
        for names in (theirs, nothing):
            answer = otto.request(method, fill(path, names), json=BODIES.get(path))
            assert answer.status_code in (403, 404), (method, path, answer.text)
            text = answer.text
            for name in sorted(names.values(), key=len, reverse=True):
                text = text.replace(name, "...")
            answers.append((answer.status_code, text))
        assert answers[0] == answers[1], (method, path)
        asked += 1
    assert asked >= 25
    mara.close()
    otto.close()


def test_reaching_for_somebody_elses_job_is_in_the_audit_trail(server: Yard) -> None:
    with server.person("amy") as amy, server.person("ben") as ben, server.owner as owner:
        job = amy.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        assert ben.post(f"/api/v1/workloads/{job}/stop").status_code == 404
        trail = owner.get("/api/v1/audit").json()["items"]
        entry = next(e for e in trail if e["outcome"] == "refused")
        assert (entry["who"], entry["action"], entry["object"]) == ("ben", "workload.control", job)


def test_workdirs_are_each_owners_alone(server: Yard) -> None:
    tar = b"not really a tar file"
    digest = hashlib.sha256(tar).hexdigest()
    with server.person("carl") as carl, server.person("dora") as dora:
        assert carl.put(f"/api/v1/workdirs/{digest}", content=tar).status_code == 200
        assert carl.head(f"/api/v1/workdirs/{digest}").status_code == 200
        assert dora.head(f"/api/v1/workdirs/{digest}").status_code == 404
        refused = dora.post("/api/v1/workloads", json={"command": "true", "workdir": digest})
        assert refused.status_code == 400
        assert carl.post("/api/v1/workloads", json={"command": "true", "workdir": digest}).status_code == 201


# --- the frame around every answer --------------------------------------------------------------------------------


def test_every_answer_carries_the_security_headers(server: Yard) -> None:
    with server.client() as client:
        for path in ("/healthz", "/api/v1/whoami", "/api/v1/nowhere", "/api/v1/openapi.json"):
            headers = client.get(path).headers
            assert all(headers[name] == value for name, value in SECURITY_HEADERS.items()), path
            assert "access-control-allow-origin" not in headers
            assert "server" not in headers


def test_unknown_paths_and_methods_answer_in_our_form(server: Yard) -> None:
    with server.client() as client:
        missing = client.get("/api/v1/nowhere")
        assert missing.status_code == 404
        ErrorOut.model_validate(missing.json())
        wrong = client.delete("/api/v1/workloads")
        assert wrong.status_code == 405
        assert wrong.headers["allow"] == "GET, POST"
        ErrorOut.model_validate(wrong.json())
        assert client.options("/api/v1/users/x").headers["allow"] == "DELETE, GET, PATCH"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_another_host_name_is_refused(server: Yard, host: str) -> None:
    with server.owner as owner:
        assert owner.get("/healthz", headers={"Host": host}).status_code == 400
        assert owner.get("/api/v1/whoami", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]", "[::1]:80"])
def test_the_names_of_this_machine_are_fine(server: Yard, host: str) -> None:
    with server.owner as owner:
        assert owner.get("/api/v1/whoami", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://"])
def test_a_change_from_another_origin_is_refused(server: Yard, origin: str) -> None:
    with server.owner as owner:
        refused = owner.post("/api/v1/groups", json={"name": "evil"}, headers={"Origin": origin})
        assert refused.status_code == 403
        assert owner.get("/api/v1/groups/evil").status_code == 404
        login = {"name": "admin", "password": "x"}
        assert owner.post("/api/v1/login", json=login, headers={"Origin": origin}).status_code == 403


def test_a_change_from_our_own_origin_is_fine(server: Yard) -> None:
    with server.owner as owner:
        made = owner.post("/api/v1/groups", json={"name": "own-origin"}, headers={"Origin": server.url})
        assert made.status_code == 201


def test_no_forwarded_header_changes_who_one_is(server: Yard) -> None:
    claims = {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "evil", "X-Real-IP": "::1", "Forwarded": "for=::1"}
    with server.client() as client:
        assert client.get("/api/v1/whoami", headers=claims).status_code == 401


# --- bodies -------------------------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: Yard) -> None:
    with server.owner as owner:
        answer = owner.post(
            "/api/v1/workloads", content=b"x" * (300 << 10), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "refused.too_large"

        def endless() -> Any:
            for _ in range(100):
                yield b" " * 10_000

        answer = owner.post("/api/v1/users", content=endless(), headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["error"]["code"] == "refused.too_large"


def test_a_workdir_that_is_too_large_or_another_is_refused_and_leaves_nothing(server: Yard) -> None:
    with server.owner as owner:
        for content in (b"x" * (5 << 20), b"something else"):
            answer = owner.put(f"/api/v1/workdirs/{'3' * 64}", content=content)
            assert answer.status_code == 400, answer.text
        assert owner.head(f"/api/v1/workdirs/{'3' * 64}").status_code == 404


def test_a_body_that_never_comes_is_given_up(fresh: Yard) -> None:
    host, port = fresh.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        head = f"POST /api/v1/login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n"
        connection.sendall(head.encode() + b"{")
        assert connection.recv(200).startswith(b"HTTP/1.1 400")


BROKEN_BODIES = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b'"text"',
    b"null",
    b"[" * 100_000,
    b'{"name": ' * 5_000,
    b'{"name": NaN}',
    b'{"name": 1e400, "password": 5}',
    b'{"name": "\\ud800", "password": "\\udfff"}',
    b'{"name": "a\\u0000b", "password": "\\u0000"}',
    b'{"name": ' + b"9" * 10_000 + b"}",
    json.dumps({"name": "x", "password": PASSWORD, "state": "running", "owner": "root"}).encode(),
]


@pytest.mark.parametrize(
    "path", ["/api/v1/login", "/api/v1/users", "/api/v1/groups", "/api/v1/tokens", "/api/v1/workloads"]
)
@pytest.mark.parametrize("body", BROKEN_BODIES, ids=range(len(BROKEN_BODIES)))
def test_a_broken_body_is_refused_in_our_form(server: Yard, path: str, body: bytes) -> None:
    with server.owner as owner:
        answer = owner.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 401), answer.text
        ErrorOut.model_validate(answer.json())


def test_a_form_or_plain_text_is_no_json(server: Yard) -> None:
    body = json.dumps({"name": "sneaky"})
    with server.owner as owner:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = owner.post("/api/v1/groups", content=body, headers={"Content-Type": kind})
            assert answer.status_code == 400
        assert owner.get("/api/v1/groups/sneaky").status_code == 404


ODD_NAMES = ["%00", "..", "%2e%2e%2f", "a%0ab", "%ff", "'; DROP TABLE users; --", "𝖺𝖽𝗆𝗂𝗇", "a" * 5000, "*", "%25s"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_is_not_found_or_refused(server: Yard, name: str) -> None:
    with server.owner as owner:
        for path in ("workloads", "users", "groups", "tokens", "nodes"):
            for method in ("GET", "DELETE"):
                answer = owner.request(method, f"/api/v1/{path}/{name}")
                assert answer.status_code in (400, 404, 405), (path, answer.text)
                ErrorOut.model_validate(answer.json())


def test_refusals_speak_the_askers_language(server: Yard) -> None:
    with server.owner as owner:
        english = owner.get("/api/v1/workloads/nothing").json()["error"]
        chinese = owner.get("/api/v1/workloads/nothing", headers={"Accept-Language": "zh-CN,zh;q=0.9"}).json()["error"]
        assert english["code"] == chinese["code"]
        assert english["message"] != chinese["message"]
        assert re.search(r"[一-鿿]", chinese["message"])


def test_the_description_and_the_job_schema_are_published(server: Yard) -> None:
    with server.client() as client:
        described = client.get("/api/v1/openapi.json").json()
        assert described["openapi"].startswith("3.1")
        assert "422" not in described["paths"]["/api/v1/workloads"]["post"]["responses"]
        assert client.get("/api/v1/schema/job.json").json()["properties"]["command"]
        assert client.get("/healthz").json() == {"status": "ok", "version": "0.0.test"}
