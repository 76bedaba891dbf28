"""Who comes in, how, and how long: codes, cookies, the login page, and what ends them."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from tests.gateway.house import PASSWORD, House, Told, host, running, wait_until
from tests.gateway.programs import Program, a_program

from gpuyard.access import tokens
from gpuyard.access.actors import Scope
from gpuyard.access.service import Credentials
from gpuyard.domain.workload import Kind, Workload
from gpuyard.store import audit, logins, people, workplaces


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with a_program() as there:
        yield there


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with running(tmp_path_factory.mktemp("gateway")) as there:
        there.person("ann")
        yield there


@pytest.fixture
def job(house: House, program: Program) -> Workload:
    return house.workload("ann", kind=Kind.JOB, ports={8080: program.port})


def status(house: House, job: Workload, cookie: str, what: str = "p8080") -> int:
    return house.get(host(job, what), "/", Cookie=cookie).status


def open_websocket(house: House, job: Workload, cookie: str) -> socket.socket:
    name = f"{host(job, 'p8080')}:{house.port}"
    sock = house.connect()
    lines = ["GET /ws HTTP/1.1", f"Host: {name}", f"Cookie: {cookie}", "Upgrade: websocket", "Connection: Upgrade"]
    sock.sendall("\r\n".join([*lines, f"Origin: http://{name}", "", ""]).encode())
    assert sock.recv(65536).startswith(b"HTTP/1.1 101")
    return sock


def closes_within(sock: socket.socket, seconds: float) -> bool:
    sock.settimeout(seconds)
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


# --- codes --------------------------------------------------------------------------------------------------------


def test_a_code_is_exchanged_for_a_cookie_once(house: House, job: Workload) -> None:
    code = house.code(house.log_in("ann")[0], job.id, "p8080")
    first = house.get(host(job, "p8080"), f"/.yard/enter?code={code}&next=/tree%3Fa=1")
    assert (first.status, first.headers["Location"]) == (303, "/tree?a=1")
    cookie = first.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Domain" not in cookie
    assert status(house, job, cookie.partition(";")[0]) == 200
    second = house.get(host(job, "p8080"), f"/.yard/enter?code={code}")
    assert second.status == 403
    assert "Set-Cookie" not in second.headers


def test_an_old_code_is_worth_nothing(house: House, job: Workload) -> None:
    code = house.code(house.log_in("ann")[0], job.id, "p8080")
    house.clock.ahead += 61
    assert house.get(host(job, "p8080"), f"/.yard/enter?code={code}").status == 403


def test_a_code_is_good_for_its_own_place_only(house: House, job: Workload) -> None:
    code = house.code(house.log_in("ann")[0], job.id, "p8080")
    assert house.get(host(job, "terminal"), f"/.yard/enter?code={code}").status == 403
    assert house.get(host(job, "p8080"), f"/.yard/enter?code={code}").status == 403, "it is gone with the first try"


@pytest.mark.parametrize("further", ["//evil.example/", "https://evil.example", "/\\evil.example", "javascript:1"])
def test_a_code_leads_nowhere_else(house: House, job: Workload, further: str) -> None:
    code = house.code(house.log_in("ann")[0], job.id, "p8080")
    told = house.get(host(job, "p8080"), "/.yard/enter?" + urlencode({"code": code, "next": further}))
    assert told.headers["Location"] == "/"


def test_a_cookie_is_good_for_its_own_place_only(house: House, job: Workload, program: Program) -> None:
    cookie = house.cookie("ann", job, "p8080")
    other = house.workload("ann", kind=Kind.JOB, ports={8080: program.port})
    assert status(house, job, cookie) == 200
    assert status(house, other, cookie) == 401
    assert status(house, job, cookie, "p9090") == 401


def test_a_second_cookie_of_the_same_name_does_not_lock_anyone_out(house: House, job: Workload) -> None:
    cookie = house.cookie("ann", job, "p8080")
    assert status(house, job, f"yard_gate=tossed-by-a-neighbour; {cookie}") == 200


# --- who may ------------------------------------------------------------------------------------------------------


def test_neither_other_members_nor_leads_come_in_but_admins_do(house: House, job: Workload) -> None:
    house.person("ben")
    house.person("lea", lead=True)
    house.person("ada", admin=True)
    assert status(house, job, house.cookie("ben", job, "p8080")) == 404
    assert status(house, job, house.cookie("lea", job, "p8080")) == 403
    assert status(house, job, house.cookie("ada", job, "p8080")) == 200


def test_a_token_that_may_only_read_does_not_enter(house: House, job: Workload) -> None:
    with house.database.write() as conn:
        _, secret = tokens.make_token(conn, "ann", "t", Scope.READ, None, house.clock())
    actor = house.context.access.authenticate(Credentials(secret, None, "127.0.0.1"))
    assert status(house, job, house.cookie(actor, job, "p8080")) == 403


def test_what_does_not_run_is_not_entered(house: House, job: Workload) -> None:
    cookie = house.cookie("ann", job, "p8080")
    house.stop(job)
    told = house.get(host(job, "p8080"), "/", Cookie=cookie, Accept="text/html")
    assert told.status == 409
    assert "not running" in told.text


def test_a_stopped_environment_says_how_it_is_started(house: House) -> None:
    env = house.workload("ann")
    cookie = house.cookie("ann", env, "lab")
    house.stop(env)
    told = house.get(host(env, "lab"), "/", Cookie=cookie, Accept="text/html", Accept_Language="en")
    assert told.status == 409
    assert f"yard env start {env.spec.name}" in told.text


# --- what ends it -------------------------------------------------------------------------------------------------


def test_logging_out_ends_every_way_in_that_was_opened_with_the_login(house: House, job: Workload) -> None:
    actor, _ = house.log_in("ann")
    cookie = house.cookie(actor, job, "p8080")
    other = house.cookie("ann", job, "p8080")
    with open_websocket(house, job, cookie) as sock, open_websocket(house, job, other) as stays:
        house.context.access.log_out(actor)
        assert closes_within(sock, 5.0)
        stays.sendall(b"still here")
        assert stays.recv(100) == b"still here"
    assert status(house, job, cookie) == 401


def test_a_removed_token_ends_what_was_opened_with_it(house: House, job: Workload) -> None:
    with house.database.write() as conn:
        token, secret = tokens.make_token(conn, "ann", "t", Scope.WRITE, None, house.clock())
    actor = house.context.access.authenticate(Credentials(secret, None, "127.0.0.1"))
    cookie = house.cookie(actor, job, "p8080")
    with open_websocket(house, job, cookie) as sock:
        with house.database.write() as conn:
            logins.revoke_token(conn, token.id, house.clock())
        assert closes_within(sock, 5.0)


def test_who_is_shut_out_is_shut_out_of_everything_open(house: House, job: Workload) -> None:
    cookie = house.cookie("ann", job, "p8080")
    with open_websocket(house, job, cookie) as sock, house.connect() as stream:
        head = f"GET /endless HTTP/1.1\r\nHost: {host(job, 'p8080')}\r\nCookie: {cookie}\r\n\r\n"
        stream.sendall(head.encode())
        assert stream.recv(65536)
        with house.database.write() as conn:
            user = people.get_user(conn, "ann")
            assert user is not None
            people.set_user(conn, type(user)("ann", memberships=user.memberships, active=False))
        assert closes_within(sock, 5.0)
        assert closes_within(stream, 5.0)


def test_an_end_of_the_work_closes_what_is_open(house: House, job: Workload) -> None:
    with open_websocket(house, job, house.cookie("ann", job, "p8080")) as sock:
        house.stop(job)
        assert closes_within(sock, 5.0)


# --- the login page -----------------------------------------------------------------------------------------------


def log_in_by_form(house: House, name: str, to: str = "", password: str = PASSWORD, **headers: str) -> Told:
    form = urlencode({"name": name, "password": password, "to": to, "next": "/tree"})
    origin = headers.pop("Origin", f"http://localhost:{house.port}")
    kind = "application/x-www-form-urlencoded"
    return house.ask("POST", "localhost", "/.yard/login", form, Content_Type=kind, Origin=origin, **headers)


def test_a_visitor_without_cookie_logs_in_and_comes_to_the_page_asked_for(house: House, job: Workload) -> None:
    first = house.get(host(job, "p8080"), "/tree?x=1", Accept="text/html,*/*")
    assert first.status == 303
    login = urlsplit(first.headers["Location"])
    assert login.netloc == f"localhost:{house.port}"
    assert parse_qs(login.query) == {"to": [f"p8080-{job.id}"], "next": ["/tree?x=1"]}
    form = house.get("localhost", f"{login.path}?{login.query}", Accept="text/html", Accept_Language="zh-CN")
    assert "密码" in form.text
    entered = log_in_by_form(house, "ann", f"p8080-{job.id}")
    assert entered.status == 303
    base = entered.headers["Set-Cookie"].partition(";")[0]
    on = house.get("localhost", entered.headers["Location"], Cookie=base)
    way = urlsplit(on.headers["Location"])
    assert way.netloc == f"{host(job, 'p8080')}:{house.port}"
    last = house.get(host(job, "p8080"), f"{way.path}?{way.query}")
    assert last.headers["Location"] == "/tree"
    assert status(house, job, last.headers["Set-Cookie"].partition(";")[0]) == 200
    with house.database.read() as conn:
        entries = audit.page(conn, None, 20)
    assert any("workload.enter" in str(entry) and job.id in str(entry) for entry in entries)


def test_a_wrong_password_is_said_and_not_let_in(house: House) -> None:
    told = log_in_by_form(house, "ann", password="wrong", Accept_Language="en")
    assert told.status == 401
    assert "Name or password is wrong" in told.text
    assert "Set-Cookie" not in told.headers


def test_guessing_is_slowed_down(house: House) -> None:
    seen = {log_in_by_form(house, "ann", password=f"guess {n}").status for n in range(12)}
    assert 429 in seen


def test_a_given_password_is_changed_first(house: House) -> None:
    house.person("new", must_change=True)
    told = log_in_by_form(house, "new", Accept="text/html")
    assert told.status == 403
    assert "yard password" in told.text
    assert "Set-Cookie" not in told.headers


def test_the_login_form_cannot_be_sent_from_elsewhere(house: House) -> None:
    for origin in ("http://evil.localhost", "null", f"http://p8080-w123456789.localhost:{house.port}"):
        assert log_in_by_form(house, "ann", Origin=origin).status == 403


def test_logging_out_on_the_page_ends_everything(house: House, job: Workload) -> None:
    entered = log_in_by_form(house, "ann", f"p8080-{job.id}")
    base = entered.headers["Set-Cookie"].partition(";")[0]
    way = urlsplit(house.get("localhost", entered.headers["Location"], Cookie=base).headers["Location"])
    cookie = house.get(host(job, "p8080"), f"{way.path}?{way.query}").headers["Set-Cookie"].partition(";")[0]
    with open_websocket(house, job, cookie) as sock:
        origin = f"http://localhost:{house.port}"
        assert house.ask("POST", "localhost", "/.yard/logout", Cookie=base, Origin=origin).status == 200
        assert closes_within(sock, 5.0)
    assert house.get("localhost", "/.yard/login?to=" + f"p8080-{job.id}", Cookie=base).status == 200


def test_pages_of_ours_are_never_kept_framed_or_scripted(house: House) -> None:
    told = house.get("localhost", "/.yard/login?to=%22%3E%3Cscript%3E&next=%22%3E", Accept="text/html")
    assert "<script" not in told.text
    assert told.headers["Cache-Control"] == "no-store"
    assert told.headers["X-Frame-Options"] == "DENY"
    assert re.search(r"default-src 'none'.*frame-ancestors 'none'", told.headers["Content-Security-Policy"])


# --- use ----------------------------------------------------------------------------------------------------------


def test_work_in_it_is_noted_and_looking_is_not(house: House, job: Workload) -> None:
    with house.database.write() as conn:
        workplaces.add(conn, job.id)

    def used_at() -> float | None:
        with house.database.read() as conn:
            place = workplaces.get(conn, job.id)
        assert place is not None
        return place.used_at

    cookie = house.cookie("ann", job, "p8080")
    assert status(house, job, cookie) == 200
    time.sleep(1.5)
    assert used_at() is None
    with open_websocket(house, job, cookie) as sock:
        sock.sendall(b"a keystroke")
        wait_until(lambda: used_at() is not None)


# --- while the store is away --------------------------------------------------------------------------------------


def test_what_was_allowed_goes_on_while_the_store_cannot_be_asked(house: House, job: Workload) -> None:
    cookie = house.cookie("ann", job, "p8080")
    assert status(house, job, cookie) == 200
    with open_websocket(house, job, cookie) as sock:
        database = Path(house.context.config.data) / "gpuyard.db"
        hidden = [path.rename(path.with_name(f"hidden-{path.name}")) for path in database.parent.glob("gpuyard.db*")]
        database.mkdir()  # no database can be opened, or made anew, at its place
        house.database.close()
        time.sleep(3)
        sock.sendall(b"still here")
        assert sock.recv(100) == b"still here"
        assert status(house, job, cookie) == 200
        assert status(house, job, "yard_gate=another") == 500
        database.rmdir()
        for path in hidden:
            path.rename(path.with_name(path.name.removeprefix("hidden-")))
