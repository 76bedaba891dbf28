"""Inside the console's pages: who may show what, with which cookies, and what never comes along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.house import House, host, running
from tests.gateway.programs import Program, a_program
from tests.gateway.tls import make_certificate

from gpuyard.domain.workload import Kind, Workload
from gpuyard.gateway.web.framing import consoles, partitioned, policy_without_ancestors
from gpuyard.gateway.web.heads import read_answer
from gpuyard.gateway.web.rewriting import Route, head_outside

FRAME = {"Sec_Fetch_Dest": "iframe", "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
SHOWN = "frame-ancestors 'self' http://127.0.0.1:8470 http://localhost:8470"


def with_console(folder: Path, url: str = "http://127.0.0.1:8470") -> Path:
    (folder / "server.json").write_text(json.dumps({"url": url, "pid": 1}))
    return folder


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with a_program() as there:
        yield there


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with running(with_console(tmp_path)) as there:
        there.person("ann")
        yield there


@pytest.fixture
def job(house: House, program: Program) -> Workload:
    return house.workload("ann", kind=Kind.JOB, ports={8080: program.port})


def entered_in_a_frame(house: House, job: Workload) -> str:
    code = house.code(house.log_in("ann")[0], job.id, "p8080")
    told = house.get(host(job, "p8080"), f"/.yard/enter?code={code}", **FRAME)
    assert told.status == 303
    return str(told.headers["Set-Cookie"])


def test_a_visit_is_shown_by_the_console_only_whatever_the_program_says(house: House, job: Workload) -> None:
    cookie = house.cookie("ann", job, "p8080")
    told = house.get(host(job, "p8080"), "/framing", Cookie=cookie)
    policies = told.headers.get_all("Content-Security-Policy")
    assert policies == ["script-src 'self'; report-uri /r, img-src *", SHOWN]
    assert "X-Frame-Options" not in told.headers


def test_pages_of_the_gateway_at_a_visit_are_shown_by_the_console_too(house: House, job: Workload) -> None:
    told = house.get(host(job, "p8080"), "/.yard/enter?code=wrong", Accept="text/html")
    assert told.headers["Content-Security-Policy"].endswith(SHOWN)
    assert "X-Frame-Options" not in told.headers


def test_inside_the_console_the_gateway_speaks_the_language_chosen_there(house: House, job: Workload) -> None:
    name, code = host(job, "p8080"), house.code(house.log_in("ann")[0], job.id, "p8080")
    told = house.get(name, f"/.yard/enter?code={code}&words=zh", Accept_Language="en", **FRAME)
    chosen = next(cookie for cookie in told.headers.get_all("Set-Cookie", []) if cookie.startswith("yard_words="))
    assert "SameSite=None; Secure; Partitioned" in chosen
    cookie = chosen.partition(";")[0]
    page = house.get(name, "/.yard/enter?code=wrong", Accept="text/html", Accept_Language="en", Cookie=cookie)
    assert b'lang="zh-CN"' in page.body
    other = house.get(
        name, "/.yard/enter?code=wrong", Accept="text/html", Accept_Language="en", Cookie="yard_words=<x>"
    )
    assert b'lang="en"' in other.body


def test_where_a_password_is_typed_is_shown_by_nobody(house: House) -> None:
    told = house.get("localhost", "/.yard/login", Accept="text/html")
    assert told.headers["Content-Security-Policy"].endswith("frame-ancestors 'none'")
    assert told.headers["X-Frame-Options"] == "DENY"


def test_a_way_in_inside_the_console_is_a_cookie_for_that_surrounding(house: House, job: Workload) -> None:
    cookie = entered_in_a_frame(house, job)
    assert cookie.startswith("yard_framed=")
    assert cookie.endswith("HttpOnly; SameSite=None; Secure; Partitioned")
    assert house.get(host(job, "p8080"), "/", Cookie=cookie.partition(";")[0]).status == 200


def test_with_tls_it_is_bound_to_its_host(tmp_path: Path, program: Program) -> None:
    with running(tmp_path, certificate=make_certificate(tmp_path)) as house:
        house.person("ann")
        cookie = entered_in_a_frame(house, house.workload("ann", ports={8080: program.port}))
        assert cookie.startswith("__Host-yard_framed=")


def test_under_a_name_without_tls_it_is_a_plain_cookie(tmp_path: Path, program: Program) -> None:
    with running(tmp_path, apps_domain="apps.example") as house:
        house.person("ann")
        job = house.workload("ann", ports={8080: program.port})
        code = house.code(house.log_in("ann")[0], job.id, "p8080")
        told = house.get(f"p8080-{job.id}.apps.example", f"/.yard/enter?code={code}", **FRAME)
        assert told.headers["Set-Cookie"].endswith("HttpOnly; SameSite=Lax")


def test_a_programs_cookies_are_for_the_same_surrounding(house: House, job: Workload) -> None:
    framed = entered_in_a_frame(house, job).partition(";")[0]
    told = house.get(host(job, "p8080"), "/cookies", Cookie=framed)
    ending = "; SameSite=None; Secure; Partitioned"
    assert told.headers.get_all("Set-Cookie") == [f"session=1; Path=/{ending}", f"plain=2{ending}"]
    outside = house.get(host(job, "p8080"), "/cookies", Cookie=house.cookie("ann", job, "p8080"))
    assert outside.headers.get_all("Set-Cookie") == ["session=1; Path=/", "plain=2"]


def test_a_visit_that_is_over_says_so_instead_of_asking_for_a_password(house: House, job: Workload) -> None:
    told = house.get(host(job, "p8080"), "/", Accept="text/html", **FRAME)
    assert (told.status, "Location" in told.headers) == (401, False)
    assert "Open it again" in told.text


def test_pieces_are_not_loaded_by_pages_of_other_sites(house: House, job: Workload) -> None:
    framed = entered_in_a_frame(house, job).partition(";")[0]
    name = host(job, "p8080")
    assert house.get(name, "/", Cookie=framed, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert house.get(name, "/", Cookie=framed, **FRAME).status == 200
    assert house.get(name, "/", Cookie=framed, Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors").status == 200


@pytest.mark.parametrize("session", ["yard_session", "__Host-yard_session"])
def test_the_consoles_own_cookie_never_reaches_a_program_by_path(
    tmp_path: Path, program: Program, session: str
) -> None:
    """Cookies know no ports: with one name for both, browsers send the console's along."""
    with running(tmp_path, paths=True) as house:
        house.person("ann")
        job = house.workload("ann", kind=Kind.JOB, ports={8080: program.port})
        prefix = f"/i/{job.id}/p8080"
        code = house.code(house.log_in("ann")[0], job.id, "p8080")
        gate = house.get("localhost", f"{prefix}/.yard/enter?code={code}").headers["Set-Cookie"].partition(";")[0]
        told = house.get("localhost", f"{prefix}/", Cookie=f"own=1; {session}=secret; {gate}")
        assert told.status == 200
        assert program.header("Cookie") == ["own=1"]


@pytest.mark.parametrize("framed", [True, False])
def test_a_program_cannot_make_browsers_forget_the_login_of_the_console(framed: bool) -> None:
    """They would forget the cookies of all names below the same domain."""
    said = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nClear-Site-Data: "cookies"\r\nX-Own: 1'
    told = head_outside(read_answer(said), Route(b"https", b"127.0.0.1"), (), framed=framed)
    assert b"clear-site-data" not in told.lower()
    assert b"X-Own: 1" in told


def test_no_password_is_asked_for_over_the_pages_of_the_console() -> None:
    answer = read_answer(b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="gpuyard"')
    inside = head_outside(answer, Route(b"https", b"127.0.0.1"), (), framed=True)
    assert b"www-authenticate" not in inside.lower()
    alone = head_outside(answer, Route(b"https", b"127.0.0.1"), ())
    assert b"www-authenticate" in alone.lower()


def test_the_console_is_known_by_all_its_names() -> None:
    assert consoles("https://10.0.0.5:8470", frozenset({"*"})) == ["https://*:8470"]
    assert consoles("http://127.0.0.1:1", frozenset({"yard", "[::1]"})) == ["http://127.0.0.1:1", "http://yard:1"]
    for strange in ("", "nothing", "ftp://x:1", "http://[", "http://x;y:1"):
        assert consoles(strange, frozenset()) == []


def test_of_a_policy_only_the_ancestors_are_taken() -> None:
    assert policy_without_ancestors(b"frame-ancestors 'self'; report-uri /x") == b"report-uri /x"
    assert policy_without_ancestors(b"Frame-Ancestors *, frame-ancestors") == b""
    assert policy_without_ancestors(b"sandbox allow-scripts;;") == b"sandbox allow-scripts"


def test_a_cookie_says_once_where_it_is_sent() -> None:
    assert partitioned(b"a=b; samesite=Strict; Secure; Path=/") == b"a=b; Path=/; SameSite=None; Secure; Partitioned"
