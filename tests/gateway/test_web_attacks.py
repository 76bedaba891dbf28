"""What somebody with bad intentions sends: none of it reaches a program inside in a form it was not meant in."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.gateway.house import House, host, read_all, running, wait_until
from tests.gateway.programs import Program, a_program

from gpuyard.domain.workload import Kind, Workload


class Scene:
    """Ann and Ben, each with a program of their own, and a stranger."""

    def __init__(self, house: House, anns: Program, bens: Program) -> None:
        self.house, self.anns, self.bens = house, anns, bens
        for name in ("ann", "ben"):
            house.person(name)
        self.ann: Workload = house.workload("ann", kind=Kind.JOB, ports={8080: anns.port})
        self.ben: Workload = house.workload("ben", kind=Kind.JOB, ports={8080: bens.port})
        self.ann_cookie = house.cookie("ann", self.ann, "p8080")
        self.ben_cookie = house.cookie("ben", self.ben, "p8080")

    @property
    def host(self) -> str:
        return f"{host(self.ann, 'p8080')}:{self.house.port}"

    def head(self, line: str, *more: str, host: str | None = None) -> bytes:
        lines = [line, f"Host: {self.host if host is None else host}", f"Cookie: {self.ann_cookie}", *more, "", ""]
        return "\r\n".join(lines).encode("latin-1")

    def raw(self, data: bytes) -> bytes:
        return self.house.raw(data, seconds=3)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with a_program() as anns, a_program() as bens, running(tmp_path_factory.mktemp("gateway")) as house:
        yield Scene(house, anns, bens)


SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
CORPUS = {
    "length and chunks": ("POST / HTTP/1.1", ["Content-Length: 4", "Transfer-Encoding: chunked"], "0\r\n\r\n"),
    "two lengths": ("POST / HTTP/1.1", ["Content-Length: 0", "Content-Length: 40"], ""),
    "the same length twice": ("POST / HTTP/1.1", ["Content-Length: 0", "Content-Length: 0"], ""),
    "a length list": ("POST / HTTP/1.1", ["Content-Length: 0, 40"], ""),
    "a length with a sign": ("POST / HTTP/1.1", ["Content-Length: +5"], ""),
    "a length in other digits": ("POST / HTTP/1.1", ["Content-Length: 0x10"], ""),
    "a negative length": ("POST / HTTP/1.1", ["Content-Length: -1"], ""),
    "a blank before the colon": ("POST / HTTP/1.1", ["Transfer-Encoding : chunked"], ""),
    "an unknown coding": ("POST / HTTP/1.1", ["Transfer-Encoding: xchunked"], ""),
    "two codings": ("POST / HTTP/1.1", ["Transfer-Encoding: chunked, identity"], ""),
    "chunked twice": ("POST / HTTP/1.1", ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], ""),
    "chunked in HTTP/1.0": ("POST / HTTP/1.0", ["Transfer-Encoding: chunked"], "0\r\n\r\n"),
    "a coding after a tab": ("POST / HTTP/1.1", ["Transfer-Encoding: \x0bchunked"], ""),
    "a folded header": ("GET / HTTP/1.1", ["X-A: 1", " folded: 2"], ""),
    "a folded coding": ("POST / HTTP/1.1", ["Transfer-Encoding:", " chunked"], ""),
    "a bare line feed": ("GET / HTTP/1.1", ["X-A: 1\nX-B: 2"], ""),
    "a bare carriage return": ("GET / HTTP/1.1", ["X-A: 1\rX-B: 2"], ""),
    "a zero byte": ("GET / HTTP/1.1", ["X-A: 1\x002"], ""),
    "a zero byte in a name": ("GET / HTTP/1.1", ["X\x00A: 1"], ""),
    "a header without a name": ("GET / HTTP/1.1", [": 1"], ""),
    "a header without a colon": ("GET / HTTP/1.1", ["hello"], ""),
    "a second host": ("GET / HTTP/1.1", ["Host: other.localhost"], ""),
    "a space in the path": ("GET / x HTTP/1.1", [], ""),
    "a line feed in the path": ("GET /\nX: HTTP/1.1", [], ""),
    "no version": ("GET /", [], ""),
    "an unknown version": ("GET / HTTP/2.0", [], ""),
    "a strange version": ("GET / HTTP/1.1x", [], ""),
    "a small method": ("get / HTTP/1.1", [], ""),
    "another host in the address": ("GET http://169.254.169.254/latest HTTP/1.1", [], ""),
    "only an authority": ("CONNECT 127.0.0.1:22 HTTP/1.1", [], ""),
    "a star": ("OPTIONS * HTTP/1.1", [], ""),
    "a trace": ("TRACE / HTTP/1.1", [], ""),
    "an upgrade with a body": (
        "GET / HTTP/1.1",
        ["Connection: upgrade", "Upgrade: websocket", "Content-Length: 3"],
        "",
    ),
}


@pytest.mark.parametrize("name", CORPUS)
def test_what_can_be_read_in_two_ways_is_refused_and_goes_nowhere(scene: Scene, name: str) -> None:
    line, more, body = CORPUS[name]
    before = len(scene.anns.heads)
    answer = scene.raw(scene.head(line, *more) + body.encode() + SMUGGLED.encode())
    assert answer.split(b" ")[1] in (b"400", b"405", b"501")
    assert b"Connection: close" in answer
    assert answer.count(b"HTTP/1.1 ") == 1, "nothing after it was read as a request"
    assert len(scene.anns.heads) == before


@pytest.mark.parametrize(
    "body",
    ["5\r\nhello\r\n0\r\n\rX", "5\r\nhelloX\r\n0\r\n\r\n", "zz\r\n", "-1\r\n", "5;a=\x00\r\nhello\r\n", "5\nhello\n"],
)
def test_chunks_that_are_not_chunks_are_not_passed_on(scene: Scene, body: str) -> None:
    origin = f"Origin: http://{scene.host}"
    answer = scene.raw(scene.head("POST /in HTTP/1.1", origin, "Transfer-Encoding: chunked") + body.encode())
    assert not answer.startswith(b"HTTP/1.1 200")


def test_a_chunked_body_is_written_anew_inside(scene: Scene) -> None:
    body = b"5;ext=1\r\nhello\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n"
    more = (f"Origin: http://{scene.host}", "Transfer-Encoding: chunked", "Connection: close")
    assert scene.raw(scene.head("POST /in HTTP/1.1", *more) + body).startswith(b"HTTP/1.1 200")
    assert scene.anns.bodies[-1] == b"hello"
    assert "6.6.6.6" not in scene.anns.last


def test_a_huge_head_is_refused(scene: Scene) -> None:
    answer = scene.raw(scene.head("GET / HTTP/1.1", "X-A: " + "a" * 70_000))
    assert answer.startswith(b"HTTP/1.1 431")
    assert scene.raw(b"GET /" + b"a" * 100_000).startswith(b"HTTP/1.1 431")


def test_a_slow_head_is_not_waited_for_ever(scene: Scene) -> None:
    with scene.house.connect() as sock:
        sock.sendall(b"GET / HTTP/1.1\r\nHost: ")
        sock.settimeout(15)
        assert sock.recv(100) == b""


def test_nothing_of_the_visitors_own_words_about_himself_is_believed(scene: Scene) -> None:
    lies = ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https", "X-Real-IP: 6.6.6.6"]
    lies += ["Forwarded: for=6.6.6.6", "X_Forwarded_For: 6.6.6.6", "X-Forwarded-User: root", "X-Forwarded-Prefix: /x"]
    scene.raw(scene.head("GET /lies HTTP/1.1", *lies, "Connection: close"))
    assert "6.6.6.6" not in scene.anns.last
    assert "evil" not in scene.anns.last
    assert "root" not in scene.anns.last
    assert scene.anns.header("X-Forwarded-For") == ["127.0.0.1"]
    assert scene.anns.header("X-Forwarded-Prefix") == []


def test_headers_named_in_connection_stay_here_but_not_the_ones_we_need(scene: Scene) -> None:
    named = "Connection: close, X-Secret, host, x-forwarded-for, cookie"
    scene.raw(
        scene.head("GET /hop HTTP/1.1", named, "X-Secret: 1", "TE: trailers", "Keep-Alive: 9", "Proxy-Authorization: x")
    )
    assert scene.anns.header("X-Secret") == []
    assert scene.anns.header("TE") == scene.anns.header("Keep-Alive") == scene.anns.header("Proxy-Authorization") == []
    assert scene.anns.header("Host") == [scene.host]
    assert scene.anns.header("X-Forwarded-For") == ["127.0.0.1"]


def test_an_upgrade_to_anything_but_a_websocket_is_not_passed_on(scene: Scene) -> None:
    more = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA")
    scene.raw(scene.head("GET /h2c HTTP/1.1", *more))
    assert scene.anns.header("Upgrade") == scene.anns.header("HTTP2-Settings") == []


def test_a_token_of_the_platform_is_not_given_to_programs(scene: Scene) -> None:
    scene.raw(scene.head("GET /auth HTTP/1.1", "Authorization: Bearer yard_abcdef", "Connection: close"))
    assert "yard_" not in scene.anns.last
    scene.raw(scene.head("GET /auth HTTP/1.1", "Authorization: token of-jupyter", "Connection: close"))
    assert scene.anns.header("Authorization") == ["token of-jupyter"]


# --- hosts and targets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "localhost.evil.example",
        "169.254.169.254",
        "p8080-xx.localhost",
        "a.b.localhost",
        "",
        "..",
        "[::1",
    ],
)
def test_other_names_are_not_served(scene: Scene, name: str) -> None:
    answer = scene.raw(scene.head("GET / HTTP/1.1", host=name))
    assert answer.split(b" ")[1] in (b"421", b"400")


def test_there_is_no_way_to_name_a_target(scene: Scene) -> None:
    for path in ("/i/127.0.0.1/p22/", f"/i/{scene.ann.id}/p22/", "/proxy/http://127.0.0.1/", "//169.254.169.254/"):
        assert (
            scene.raw(scene.head(f"GET {path} HTTP/1.1", "Connection: close", host="localhost")).split(b" ")[1]
            == b"404"
        )
    asked = [call for call in scene.house.broker.asked if call[0] == "connect"]
    assert {call[3] for call in asked} <= {8080}


def test_nobody_reaches_another_ones_program_by_cookie_or_host(scene: Scene) -> None:
    house, before = scene.house, len(scene.anns.heads)
    name = host(scene.ann, "p8080")
    assert house.get(name, "/").status == 401
    assert house.get(name, "/", Cookie=scene.ben_cookie).status == 401
    ben_for_ann = house.cookie("ben", scene.ann, "p8080")
    assert house.get(name, "/", Cookie=ben_for_ann).status == 404
    assert len(scene.anns.heads) == before


def test_a_connection_inside_is_never_shared_between_people(scene: Scene) -> None:
    """Programs may remember who logged in on a connection; and no proxy of ours keeps a cookie jar."""
    house = scene.house
    house.person("ada", admin=True)
    admins = house.cookie("ada", scene.ann, "p8080")
    name = host(scene.ann, "p8080")
    connections = scene.anns.connections
    assert house.get(name, "/cookies", Cookie=scene.ann_cookie).status == 200
    assert house.get(name, "/after", Cookie=admins).status == 200
    assert scene.anns.header("Cookie") == []
    assert scene.anns.connections > connections
    assert house.get(name, "/api/contents").status == 401


def test_one_connection_can_ask_for_many_hosts_and_is_judged_each_time(scene: Scene) -> None:
    with scene.house.connect() as sock:
        sock.sendall(scene.head("GET /mine HTTP/1.1"))
        assert sock.recv(65536).startswith(b"HTTP/1.1 200")
        bens = f"{host(scene.ben, 'p8080')}:{scene.house.port}"
        sock.sendall(scene.head("GET /yours HTTP/1.1", "Connection: close", host=bens))
        assert read_all(sock).startswith(b"HTTP/1.1 401")


# --- other origins ------------------------------------------------------------------------------------------------

STRANGERS = ["http://evil.example", "null", "http://evil.localhost", "", "http://localhost"]


@pytest.mark.parametrize("origin", STRANGERS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_is_changed_from_another_page(scene: Scene, method: str, origin: str) -> None:
    before = len(scene.anns.heads)
    headers = {"Origin": origin} if origin else {}
    told = scene.house.ask(method, host(scene.ann, "p8080"), "/", b"x", Cookie=scene.ann_cookie, **headers)
    assert told.status == 403
    assert len(scene.anns.heads) == before


@pytest.mark.parametrize("origin", STRANGERS)
def test_no_websocket_is_opened_from_another_page(scene: Scene, origin: str) -> None:
    more = ["Connection: Upgrade", "Upgrade: websocket", *([f"Origin: {origin}"] if origin else [])]
    assert scene.raw(scene.head("GET /ws HTTP/1.1", *more, "Sec-Fetch-Site: same-origin")).startswith(b"HTTP/1.1 403")


def test_a_form_on_a_page_that_hides_its_address_still_works(scene: Scene) -> None:
    headers = {"Origin": "null", "Sec_Fetch_Site": "same-origin"}
    told = scene.house.ask("POST", host(scene.ann, "p8080"), "/", b"x", Cookie=scene.ann_cookie, **headers)
    assert told.status == 200


# --- taking more than one's share ---------------------------------------------------------------------------------


def test_one_person_has_only_so_many_at_a_time_and_others_go_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("gateway")
    with a_program() as anns, a_program() as bens, running(folder, most_per_user=4) as house:
        scene = Scene(house, anns, bens)
        more = ["Connection: Upgrade", "Upgrade: websocket", f"Origin: http://{scene.host}"]
        open_ones = []
        for _ in range(4):
            sock = house.connect()
            sock.sendall(scene.head("GET /ws HTTP/1.1", *more))
            assert sock.recv(65536).startswith(b"HTTP/1.1 101")
            open_ones.append(sock)
        assert scene.raw(scene.head("GET /ws HTTP/1.1", *more)).startswith(b"HTTP/1.1 429")
        assert house.get(host(scene.ben, "p8080"), "/", Cookie=scene.ben_cookie).status == 200
        for sock in open_ones:
            sock.close()
        wait_until(lambda: scene.raw(scene.head("GET / HTTP/1.1", "Connection: close")).startswith(b"HTTP/1.1 200"))


def test_ending_with_open_connections_takes_seconds(tmp_path_factory: pytest.TempPathFactory) -> None:
    with a_program() as anns, a_program() as bens:
        with running(tmp_path_factory.mktemp("gateway")) as house:
            scene = Scene(house, anns, bens)
            stream = house.connect()
            stream.sendall(scene.head("GET /endless HTTP/1.1"))
            assert stream.recv(100)
        with stream, suppress(ConnectionResetError):  # it has no end of its own
            while stream.recv(65536):
                pass


def test_a_client_that_goes_away_takes_the_program_s_connection_with_it(scene: Scene) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", scene.house.port)
    headers = {"Host": scene.host, "Cookie": scene.ann_cookie}
    before = scene.anns.open
    connection.request("GET", "/endless", headers=headers)
    answer = connection.getresponse()
    answer.read(6)
    assert isinstance(connection.sock, socket.socket)
    answer.close()
    connection.close()
    wait_until(lambda: scene.anns.open <= before)
