"""Connections that never become requests cost the server little and are closed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gpuyard.api import wire
from gpuyard.api.wire import CarefulProtocol

LARGE = b"x" * (16 << 20)
LAST = b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Impatient(CarefulProtocol):
    """Gives a head half a second, and holds two large answers and a half for slow readers."""

    most_untaken = len(LARGE) * 5 // 2
    patience = 0.5


class Small(CarefulProtocol):
    """Has eight places."""

    most = staticmethod(lambda: 8)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(Impatient) as port:
        yield port


@contextmanager
def serving(protocol: type[CarefulProtocol]) -> Iterator[int]:
    async def answer(request: object) -> PlainTextResponse:
        return PlainTextResponse("fine")

    async def large(request: object) -> Response:
        return Response(LARGE)

    async def taken(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    app = Starlette(routes=[Route("/", answer), Route("/large", large), Route("/taken", taken, methods=["POST"])])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http=protocol, ws="none", log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def ask(port: int, *pieces: bytes) -> bytes:
    """Everything the server says until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
        except (ConnectionResetError, BrokenPipeError):
            return b""
        return rest(connection)


def rest(connection: socket.socket) -> bytes:
    said = bytearray()
    try:
        while chunk := connection.recv(65536):
            said += chunk
    except ConnectionResetError:
        return bytes(said)
    return bytes(said)


def asked_for_large(port: int) -> socket.socket:
    """An answer that has begun, and of which not more is taken."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(LAST)
    assert connection.recv(9) == b"HTTP/1.1 "
    return connection


def test_an_ordinary_request_is_answered(port: int) -> None:
    assert ask(port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").endswith(b"fine")


def test_two_requests_on_one_connection_are_answered(port: int) -> None:
    one = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert ask(port, one, last).count(b"fine") == 2


@pytest.mark.parametrize("beginning", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA: "])
def test_a_head_that_never_ends_is_not_waited_for(port: int, beginning: bytes) -> None:
    assert ask(port, beginning) == b""


@pytest.mark.parametrize("start", [b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\nA: "])
def test_an_endless_head_is_refused_long_before_it_fills_the_memory(port: int, start: bytes) -> None:
    said = ask(port, start, *[b"a" * 65536] * 64)
    assert said == b"" or b" 400 " in said.splitlines()[0]


def test_a_large_body_after_a_small_head_is_no_head(port: int) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n"
    assert b"405" in ask(port, head + b"x" * 1_000_000)


def test_a_body_that_drips_on_after_the_answer_holds_no_place(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=0.05) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                connection.sendall(b"x")
                if not connection.recv(65536):
                    return
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                return
    raise AssertionError("it is still waited for")


def test_answers_that_nobody_takes_do_not_fill_the_memory_and_those_who_read_get_theirs(port: int) -> None:
    slow = [asked_for_large(port) for _ in range(6)]
    try:
        assert ask(port, LAST).endswith(LARGE), "whoever reads is served all the same"
        whole = [rest(connection).endswith(LARGE) for connection in slow]
    finally:
        for connection in slow:
            connection.close()
    assert not whole[0], "the slowest had to go"
    assert whole[-1], "the last one was waited for"


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET / HT",
        b"POST /taken HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_who_takes_all_places_and_asks_nothing_loses_them_to_those_from_elsewhere(beginning: bytes) -> None:
    with serving(Small) as port, ExitStack() as stack:
        for _ in range(20):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            with suppress(ConnectionResetError, BrokenPipeError):
                one.sendall(beginning)
        other = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30, ("127.0.0.2", 0)))
        other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert rest(other).endswith(b"fine")


def test_half_of_the_open_files_are_kept_for_the_platform_itself() -> None:
    assert 0 < wire.most_connections() <= wire.MOST_CONNECTIONS
