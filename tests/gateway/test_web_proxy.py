"""The proxy carries HTTP in all its ways, unchanged but for what must be changed, and without holding any of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.gateway.house import House, host, read_all, running, wait_until
from tests.gateway.programs import MEGABYTE, Program, a_program

from gpuyard.domain.workload import Kind, Workload


class Visitor:
    """Ann, who has a program on port 8080 of her job."""

    def __init__(self, house: House, program: Program) -> None:
        self.house, self.program = house, program
        house.person("ann")
        self.workload: Workload = house.workload("ann", kind=Kind.JOB, ports={8080: program.port})
        self.host = host(self.workload, "p8080")
        self.cookie = house.cookie("ann", self.workload, "p8080")

    def head(self, line: str, *more: str) -> bytes:
        lines = [line, f"Host: {self.host}:{self.house.port}", f"Cookie: {self.cookie}", *more, "", ""]
        return "\r\n".join(lines).encode()

    def get(self, path: str, **headers: str) -> object:
        return self.house.get(self.host, path, Cookie=self.cookie, **headers)


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    with a_program() as program, running(tmp_path_factory.mktemp("gateway")) as house:
        yield Visitor(house, program)


def test_a_page_inside_is_shown(ann: Visitor) -> None:
    told = ann.house.get(ann.host, "/a/b%2Fc%20d;e?x=%41&y", Cookie=ann.cookie)
    assert told.status == 200
    assert told.headers["X-Own"] == "yes"
    assert json.loads(told.body)["path"] == "/a/b%2Fc%20d;e"
    assert ann.program.last.startswith("GET /a/b%2Fc%20d;e?x=%41&y HTTP/1.1")


def test_the_program_finds_the_public_name_and_who_visits(ann: Visitor) -> None:
    ann.house.get(ann.host, "/", Cookie=ann.cookie)
    assert ann.program.header("Host") == [f"{ann.host}:{ann.house.port}"]
    assert ann.program.header("X-Forwarded-Host") == [f"{ann.host}:{ann.house.port}"]
    assert ann.program.header("X-Forwarded-For") == ["127.0.0.1"]
    assert ann.program.header("X-Forwarded-Proto") == ["http"]


def test_bodies_go_in_whole_with_a_length_and_in_chunks(ann: Visitor) -> None:
    origin = f"http://{ann.host}:{ann.house.port}"
    told = ann.house.ask("POST", ann.host, "/in", MEGABYTE * 3, Cookie=ann.cookie, Origin=origin)
    assert json.loads(told.body)["body"] == 3 * len(MEGABYTE)
    assert ann.program.bodies[-1] == MEGABYTE * 3
    told = ann.house.ask("POST", ann.host, "/in", iter([b"one", b"two" * 1000]), Cookie=ann.cookie, Origin=origin)
    assert ann.program.bodies[-1] == b"one" + b"two" * 1000
    assert told.status == 200


def test_answers_come_out_in_chunks_with_a_length_or_until_the_end(ann: Visitor) -> None:
    chunked = ann.house.get(ann.host, "/chunked", Cookie=ann.cookie)
    assert (chunked.body, chunked.headers["Content-Encoding"]) == (b"hello world", "br")
    assert ann.house.get(ann.host, "/until-close", Cookie=ann.cookie).body == b"all of it"
    assert ann.house.get(ann.host, "/big", Cookie=ann.cookie).body == MEGABYTE * 64
    hinted = ann.house.raw(ann.head("GET /early HTTP/1.1", "Connection: close"))
    assert hinted.startswith(b"HTTP/1.1 103")
    assert hinted.endswith(b"\r\n\r\nok")
    assert int(ann.house.ask("HEAD", ann.host, "/page", Cookie=ann.cookie).headers["Content-Length"]) > 10


def test_an_old_client_gets_a_plain_body(ann: Visitor) -> None:
    head = ann.head("GET /chunked HTTP/1.0")
    answer = ann.house.raw(head)
    assert answer.endswith(b"\r\n\r\nhello world")
    assert b"Transfer-Encoding" not in answer


def test_a_broken_answer_is_seen_to_be_broken(ann: Visitor) -> None:
    assert ann.house.get(ann.host, "/nonsense", Cookie=ann.cookie).status == 502
    assert ann.house.get(ann.host, "/both-lengths", Cookie=ann.cookie).status == 502
    assert ann.house.get(ann.host, "/hangs-up", Cookie=ann.cookie).status == 502
    answer = ann.house.raw(ann.head("GET /half HTTP/1.1"))
    assert answer.endswith(b"only this")


def test_what_follows_an_answer_is_not_taken_for_another(ann: Visitor) -> None:
    with ann.house.connect() as sock:
        sock.sendall(ann.head("GET /split HTTP/1.1"))
        seen = b""
        while not seen.endswith(b"ok"):
            seen += sock.recv(65536)
        sock.sendall(ann.head("GET /next HTTP/1.1", "Connection: close"))
        after = read_all(sock)
    assert b"secret" not in seen + after
    assert b'"/next"' in after


def test_requests_share_a_connection_one_after_the_other(ann: Visitor) -> None:
    before = ann.program.connections
    with ann.house.connect() as sock:
        sock.sendall(ann.head("GET /one HTTP/1.1") + ann.head("GET /two HTTP/1.1", "Connection: close"))
        answer = read_all(sock)
    assert answer.index(b'"/one"') < answer.index(b'"/two"')
    assert ann.program.connections <= before + 1


def test_cookies_stay_on_the_host_they_come_from_and_ours_are_ours(ann: Visitor) -> None:
    told = ann.house.get(ann.host, "/cookies", Cookie=f"{ann.cookie}; a=1; yard_session=secret; b=2")
    assert told.headers.get_all("Set-Cookie") == ["session=1; Path=/", "plain=2"]
    assert ann.program.header("Cookie") == ["a=1; b=2"]


def test_redirects_are_not_kept_by_browsers(ann: Visitor) -> None:
    told = ann.house.get(ann.host, "/redirect", Cookie=ann.cookie)
    assert (told.status, told.headers["Location"]) == (301, "/there")
    assert told.headers.get_all("Cache-Control") == ["no-store"]


def test_a_websocket_becomes_a_pipe(ann: Visitor) -> None:
    upgrade = ("Connection: keep-alive, Upgrade", "Upgrade: websocket", f"Origin: http://{ann.host}:{ann.house.port}")
    with ann.house.connect() as sock:
        sock.sendall(ann.head("GET /ws HTTP/1.1", *upgrade) + b"early")
        seen = b""
        while not seen.endswith(b"early"):
            seen += sock.recv(65536)
        assert seen.startswith(b"HTTP/1.1 101")
        sock.sendall(b"\x00\xff" * 50_000)
        back = b""
        while len(back) < 100_000:
            back += sock.recv(65536)
        assert back == b"\x00\xff" * 50_000
    wait_until(lambda: ann.program.open == 0 or ann.program.heads[-1] is not None)


def test_who_does_not_read_stops_the_program_and_not_the_gateway(ann: Visitor) -> None:
    with ann.house.connect() as slow:
        slow.sendall(ann.head("GET /big HTTP/1.1"))
        for _ in range(20):
            assert ann.house.get(ann.host, "/", Cookie=ann.cookie).status == 200
        seen = 0
        while seen < len(MEGABYTE) * 64:
            seen += len(slow.recv(1 << 20))


def test_nothing_listening_is_said_in_words(ann: Visitor) -> None:
    silent = ann.house.workload("ann", kind=Kind.JOB, ports={9090: 1})
    cookie = ann.house.cookie("ann", silent, "p9090")
    told = ann.house.get(host(silent, "p9090"), "/", Cookie=cookie, Accept="text/html", Accept_Language="zh")
    assert told.status == 502
    assert "9090" in told.text
    assert "端口" in told.text


def test_only_declared_ports_of_a_job_are_shown(ann: Visitor) -> None:
    cookie = ann.house.cookie("ann", ann.workload, "p22")
    assert ann.house.get(host(ann.workload, "p22"), "/", Cookie=cookie).status == 404


def test_a_dev_environment_shows_any_port_but_the_systems(ann: Visitor) -> None:
    env = ann.house.workload("ann", kind=Kind.ENV)
    ann.house.broker.ports[env.id, 5000] = ann.program.port
    cookie = ann.house.cookie("ann", env, "p5000")
    assert ann.house.get(host(env, "p5000"), "/", Cookie=cookie).status == 200
    cookie = ann.house.cookie("ann", env, "p22")
    assert ann.house.get(host(env, "p22"), "/", Cookie=cookie).status == 404
