"""How the light programs speak with a server: whole answers, pieces, refusals, and what is no answer at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.api.yard import OWNER_SECRET, running

from gpuyard.doors.asking import Refusal, Server, in_path, own_words
from gpuyard.sdk.finding import Door


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[Server, list[bytes]]]:
    """A server that sends these bytes, one to each question, and keeps what it was asked."""
    listener, asked = socket.create_server(("127.0.0.1", 0)), []

    def serve() -> None:
        for answer in answers:
            try:
                peer, _ = listener.accept()
            except OSError:  # nobody came any more
                return
            with peer:
                asked.append(_question(peer))
                peer.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    door = Door(f"http://127.0.0.1:{listener.getsockname()[1]}", "secret")
    try:
        with Server(door) as server:
            yield server, asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _question(peer: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += peer.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")), 0)
    while len(body) < length:
        body += peer.recv(65536)
    return head + b"\r\n\r\n" + body


GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        GOOD + b'{"a":1}',
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\n{"a"\r\n3;x=y\r\n:1}\r\n0\r\nT: x\r\n\r\n',
        b'HTTP/1.0 200 OK\r\n\r\n{"a":1}',
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + GOOD + b'{"a":1}',
    ],
)
def test_an_answer_is_read_however_it_is_sent(answer: bytes) -> None:
    with answering(answer) as (server, asked):
        assert server.get("/x", mine=True, name=None, search="a b&c") == {"a": 1}
        assert asked[0].startswith(b"GET /api/v1/x?mine=true&search=a+b%26c HTTP/1.1\r\n")
        assert b"Authorization: Bearer secret" in asked[0]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n<p>",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n{}",
        "HTTP/1.1 ²00 OK\r\n\r\n{}".encode("latin-1"),
        b"HTTP/1.1 200 OK\r\n\r\n[1, 2]",
        b"HTTP/1.1 200 OK\r\n\r\nnull",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    ],
)
def test_what_is_no_answer_is_told_as_one(answer: bytes) -> None:
    with answering(answer) as (server, _), pytest.raises(Refusal) as refused:
        server.post("/x", {"a": 1})
    assert refused.value.code in ("client.unreachable", "client.odd_answer")


@pytest.mark.parametrize("body", [b'{"items":5}', b'{"items":[5]}', b"{}"])
def test_a_list_that_is_none_is_told_as_one(body: bytes) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n" + body) as (server, _), pytest.raises(Refusal) as refused:
        list(server.every("/workloads"))
    assert refused.value.code == "client.odd_answer"


def test_a_page_of_a_proxy_is_named_by_its_status() -> None:
    page = b"HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\n\r\n<html>"
    with answering(page) as (server, _), pytest.raises(Refusal) as refused:
        server.post_text("/workloads", "x")
    assert (refused.value.status, refused.value.message) == (413, "the server answered 413 Too Large")


def test_nobody_there_is_unreachable() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(Refusal) as refused:
        Server(Door(f"http://127.0.0.1:{port}")).get("/whoami")
    assert refused.value.status == 0
    assert f"127.0.0.1:{port}" in refused.value.message


def test_a_line_break_in_a_token_sends_nothing() -> None:
    with answering() as (server, _):
        server.door = Door(server.door.url, "a\r\nX: y")
        with pytest.raises(Refusal):
            server.get("/whoami")


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_would_lead_elsewhere_are_refused(name: str) -> None:
    with pytest.raises(Refusal):
        in_path(name)


def test_a_real_server_is_asked_and_its_refusals_are_told_in_the_doors_words(tmp_path: Path) -> None:
    with running(tmp_path) as yard, Server(Door(yard.url, OWNER_SECRET)) as server:
        made = [server.post("/workloads", {"command": "true", "name": f"n{number}"})["id"] for number in range(3)]
        assert {item["id"] for item in server.every("/workloads", limit=2)} == set(made)
        with pytest.raises(Refusal) as refused:
            server.post_text("/workloads", "kind=NoSuchKind\nname=a\ncommand=true\n", dialect="dlc")
        assert refused.value.status == 400
        assert own_words(refused.value) == refused.value.facts["text"]
        assert server.delete(f"/workloads/{made[0]}")["removed_at"]
        with server.stream(f"/workloads/{made[1]}/events") as answer:
            assert answer.getheader("content-type") == answer.headers["Content-Type"] == "application/json"
            assert b"story.submitted" in answer.read()
