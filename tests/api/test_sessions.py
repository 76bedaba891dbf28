"""A browser's session is a cookie and a key. The cookie reaches every port of its host: alone it opens nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest
from tests.api.test_doors import NAMES, every_route, fill
from tests.api.yard import PASSWORD, Yard, running

from gpuyard.access import gates
from gpuyard.access.actors import Actor
from gpuyard.access.service import Credentials
from gpuyard.api.guard import OPEN_TO_ALL
from gpuyard.api.models import ErrorOut

JOB = {"command": "true"}
STREAMS = ("/live", "/logs/follow")  # endless


@dataclass(frozen=True)
class Browser:
    """What somebody's browser has after a login."""

    cookie: str
    key: str


def log_in(yard: Yard, name: str) -> Browser:
    with yard.client() as client:
        answer = client.post("/api/v1/login", json={"name": name, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        return Browser(client.cookies["yard_session"], answer.json()["session_key"])


def asking(yard: Yard, cookie: str = "", key: str = "", bearer: str = "") -> httpx2.Client:
    client = yard.client(bearer or None)
    if cookie:
        client.headers["Cookie"] = f"yard_session={cookie}"
    if key:
        client.headers["X-Session-Key"] = key
    return client


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with running(tmp_path_factory.mktemp("yard")) as yard:
        yard.person("ada", role="admin")
        yard.person("ann")
        yield yard


@pytest.fixture(scope="module")
def adas(yard: Yard) -> Browser:
    return log_in(yard, "ada")


def refused_everywhere(yard: Yard, client: httpx2.Client, code: str) -> int:
    """How many doors were tried; each has to say that nobody is logged in, in these words."""
    tried = 0
    for method, path in every_route(yard):
        if path in OPEN_TO_ALL:
            continue
        answer = client.request(method, fill(path, NAMES))
        assert answer.status_code == 401, (method, path, answer.text)
        assert "set-cookie" not in answer.headers, (method, path)
        if method != "HEAD":
            assert ErrorOut.model_validate(answer.json()).error.code == code, (method, path)
        tried += 1
    return tried


def test_a_cookie_alone_opens_no_door(yard: Yard, adas: Browser) -> None:
    with asking(yard, adas.cookie) as thief:
        assert refused_everywhere(yard, thief, "refused.cookie_alone") > 80


def test_a_cookie_that_is_none_is_refused_in_the_same_words(yard: Yard) -> None:
    with asking(yard, "made-up") as thief:
        answer = thief.get("/api/v1/whoami")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "refused.cookie_alone")


def test_a_key_alone_opens_no_door(yard: Yard, adas: Browser) -> None:
    with asking(yard, key=adas.key) as thief:
        assert refused_everywhere(yard, thief, "refused.login_needed") > 80
    for given in ({"cookie": adas.key, "key": adas.key}, {"bearer": adas.key}, {"bearer": adas.cookie}):
        with asking(yard, **given) as thief:
            assert thief.get("/api/v1/whoami").status_code == 401


def test_the_key_of_another_session_opens_no_door(yard: Yard, adas: Browser) -> None:
    with asking(yard, adas.cookie, log_in(yard, "ann").key) as thief:
        assert refused_everywhere(yard, thief, "refused.login_needed") > 80
    with asking(yard, adas.cookie, log_in(yard, "ada").key) as thief:  # of the same person
        assert thief.get("/api/v1/whoami").status_code == 401


@pytest.mark.parametrize("wrong", ["x", "0", "\u00e9", "null", "undefined"])
def test_no_other_key_will_do(yard: Yard, adas: Browser, wrong: str) -> None:
    with asking(yard, adas.cookie) as thief:
        for key in (wrong, adas.key[:-1], adas.key + wrong, wrong + adas.key, adas.key.swapcase()):
            headers = {"X-Session-Key": key.encode()}
            assert thief.get("/api/v1/whoami", headers=headers).status_code == 401  # type: ignore[arg-type]
    with asking(yard, adas.cookie, adas.key) as ada:
        assert ada.get("/api/v1/whoami").status_code == 200


def test_who_was_seen_a_moment_ago_with_both_is_not_known_by_the_cookie_alone(yard: Yard, adas: Browser) -> None:
    yard.clock.stop()
    with asking(yard, adas.cookie, adas.key) as ada, asking(yard, adas.cookie) as thief:
        assert ada.get("/api/v1/whoami").status_code == 200
        assert thief.get("/api/v1/whoami").status_code == 401
        assert thief.post("/api/v1/tokens", json={"name": "mine", "scope": "admin"}).status_code == 401


def test_both_together_are_a_login_and_no_answer_tells_the_key_again(yard: Yard, adas: Browser) -> None:
    with asking(yard, adas.cookie, adas.key) as ada:
        names = {**NAMES, "ref": ada.post("/api/v1/workloads", json=JOB).json()["id"], "name": "ann", "user": "ann"}
        for method, path in every_route(yard):
            if method == "GET" and not path.endswith(STREAMS):
                answer = ada.get(fill(path, names))
                assert answer.status_code != 401, (path, answer.text)
                assert adas.key not in answer.text + str(answer.headers), path
                assert adas.cookie not in answer.text + str(answer.headers), path
        made = ada.post("/api/v1/tokens", json={"name": "mine", "scope": "admin"})
        assert made.status_code == 201, made.text


def test_the_store_has_neither_cookie_nor_key(yard: Yard, adas: Browser) -> None:
    with yard.database.read() as conn:
        kept = str(conn.exec_driver_sql("SELECT * FROM sessions").all())
    assert "ada" in kept
    assert adas.cookie not in kept
    assert adas.key not in kept


def test_no_cookie_of_the_gateway_is_a_login_here(yard: Yard, adas: Browser) -> None:
    """Those are sent to every port of the host as well."""
    ada: Actor = yard.parts.access.authenticate(Credentials(None, adas.cookie, "::1", adas.key))
    with yard.database.write() as conn:
        _, gate = gates.begin(conn, "ada", gates.parent_of(ada), gates.OWN_PAGES, yard.clock())
        code = gates.make_code(conn, ada, gates.OWN_PAGES, yard.clock())
    for secret in (gate, code):
        for given in (
            {"cookie": secret},
            {"key": secret},
            {"bearer": secret},
            {"cookie": secret, "key": secret},
            {"cookie": adas.cookie, "key": secret},
        ):
            with asking(yard, **given) as thief:
                thief.headers["Cookie"] = f"{thief.headers.get('Cookie', 'a=b')}; yard_gate={secret}"
                assert thief.get("/api/v1/whoami").status_code == 401
                assert thief.post("/api/v1/tokens", json={"name": "mine"}).status_code == 401
