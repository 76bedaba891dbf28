"""Logs: read by offset, followed live, complete to the last byte."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.yard import PASSWORD, Yard, wait_until

from gpuyard.api.following import whole_characters
from gpuyard.domain.lifecycle import StopAsked
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Cause, Life, Seen
from gpuyard.store import workloads


@dataclass
class Event:
    name: str
    data: Any
    id: str | None


def read_events(response: httpx2.Response) -> Iterator[Event]:
    pending = b""
    for chunk in response.iter_raw():
        pending += chunk
        *blocks, pending = pending.split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
            if fields:
                id = fields.get(b"id")
                yield Event(fields[b"event"].decode(), json.loads(fields[b"data"]), id.decode() if id else None)


@contextmanager
def following(
    client: httpx2.Client, id: str, headers: dict[str, str] | None = None, **query: Any
) -> Iterator[Iterator[Event]]:
    with client.stream("GET", f"/api/v1/workloads/{id}/logs/follow", params=query, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield read_events(response)


def to_the_end(client: httpx2.Client, id: str, **query: Any) -> list[Event]:
    with following(client, id, **query) as events:
        told = list(events)
    assert told[-1].name == "end"
    return told[:-1]


def text_of(events: list[Event]) -> str:
    return "".join(event.data["text"] for event in events if event.name == "log")


def started(yard: Yard, client: httpx2.Client, **job: Any) -> str:
    answer = client.post("/api/v1/workloads", json={"command": "true", **job})
    assert answer.status_code == 201, answer.text
    id = str(answer.json()["id"])
    yard.start(id)
    return id


@pytest.fixture(scope="module")
def ann(server: Yard) -> httpx2.Client:
    return server.person("ann")


# --- reading ------------------------------------------------------------------------------------------------------


def read_log(client: httpx2.Client, id: str, **query: Any) -> httpx2.Response:
    answer = client.get(f"/api/v1/workloads/{id}/logs", params=query)
    assert answer.status_code == 200, answer.text
    return answer


def test_a_log_is_read_whole_after_the_end(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    server.log_path(id).write_bytes(b"hello\nworld\n")
    server.end(id)
    answer = read_log(ann, id)
    assert answer.text == "hello\nworld\n"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert [answer.headers[f"x-log-{name}"] for name in ("start", "end", "size", "ended")] == ["0", "12", "12", "true"]


def test_a_log_is_read_in_pieces_that_fit_together(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    content = "进度 ▇▇▇ 50%\r进度 ▇▇▇▇ 60%\n".encode() * 50 + b"\xff\xfe\x00binary\n"
    server.log_path(id).write_bytes(content)
    server.end(id)
    whole, offset = "", 0
    while True:
        answer = read_log(ann, id, offset=offset, limit=97)
        assert int(answer.headers["x-log-start"]) == offset
        whole += answer.text
        offset = int(answer.headers["x-log-end"])
        if offset >= int(answer.headers["x-log-size"]):
            break
    assert whole == content.decode("utf-8", "replace")


@pytest.mark.parametrize(("tail", "text"), [(0, ""), (1, "four"), (2, "three\nfour"), (99, "one\ntwo\nthree\nfour")])
def test_a_tail_is_the_last_lines(server: Yard, ann: httpx2.Client, tail: int, text: str) -> None:
    id = started(server, ann)
    server.log_path(id).write_bytes(b"one\ntwo\nthree\nfour")
    server.end(id)
    assert read_log(ann, id, tail=tail).text == text


def test_a_dropped_middle_is_skipped_and_its_place_told(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    path = server.log_path(id)
    path.write_bytes(b"head" + b"\0" * 1000 + b"tail")
    path.with_name("log.gap").write_text('{"from": 4, "to": 1004}')
    server.end(id)
    assert read_log(ann, id).text == "head"
    second = read_log(ann, id, offset=4)
    assert (second.text, second.headers["x-log-start"]) == ("tail", "1004")
    told = to_the_end(ann, id)
    assert [(e.name, e.data["from"], e.data["to"]) for e in told] == [
        ("log", 0, 4),
        ("gap", 4, 1004),
        ("log", 1004, 1008),
    ]


def test_bytes_are_read_as_they_are_with_the_place_of_the_gap(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    path = server.log_path(id)
    path.write_bytes("é".encode() + b"\xff" + b"\0" * 1000 + "末".encode())
    path.with_name(path.name + ".gap").write_text('{"from": 3, "to": 1003}')
    first = read_log(ann, id, raw=True, limit=1)
    assert (first.content, first.headers["x-log-end"], first.headers["x-log-gap"]) == (b"\xc3", "1", "3-1003")
    rest = read_log(ann, id, raw=True, offset=1004)
    assert (rest.content, rest.headers["x-log-start"]) == ("末".encode()[1:], "1004")


def test_a_log_is_downloaded_whole_and_says_where_its_middle_was(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    path = server.log_path(id)
    path.write_bytes(b"head" + b"\0" * 1000 + b"tail\xff")
    path.with_name(path.name + ".gap").write_text('{"from": 4, "to": 1004}')
    answer = ann.get(f"/api/v1/workloads/{id}/logs/download")
    assert answer.content == b"head\n[... 1000 bytes ...]\ntail\xff"
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert f"-{id}-worker-0-1.log" in answer.headers["content-disposition"]


def test_each_attempt_and_replica_has_its_own_log(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann, replicas=2, retries=1)
    for attempt in (1, 2):
        for index in (0, 1):
            server.log_path(id, attempt, index=index).write_text(f"attempt {attempt} replica {index}")
    now = server.clock()
    bad = Seen(Life.ENDED, 1, Cause.EXIT, because(Code.EXIT_CODE, exit_code=1, replica="worker-0"), now, now)
    server.end(id, bad)
    assert read_log(ann, id).text == "attempt 1 replica 0"
    assert server.workload(id).state == "queued"
    server.start(id)
    assert read_log(ann, id).text == "attempt 2 replica 0"
    assert read_log(ann, id, replica="worker-1").text == "attempt 2 replica 1"
    first = read_log(ann, id, attempt=1, replica="worker-1")
    assert (first.text, first.headers["x-log-ended"]) == ("attempt 1 replica 1", "true")
    assert read_log(ann, id).headers["x-log-ended"] == "false"
    assert text_of(to_the_end(ann, id, attempt=1)) == "attempt 1 replica 0"


def test_what_there_is_not_is_not_found(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    for query in ("replica=worker-1", "replica=ps-0", "replica=../../etc/passwd", "attempt=2", "attempt=0"):
        for path in ("logs", "logs/follow"):
            assert ann.get(f"/api/v1/workloads/{id}/{path}?{query}").status_code == 404
    for query in ("attempt=x", "offset=-1", "tail=-1", "limit=0", f"offset={2**60}"):
        assert ann.get(f"/api/v1/workloads/{id}/logs?{query}").status_code == 400
    assert ann.get(f"/api/v1/workloads/{id}/logs/follow", headers={"Last-Event-ID": "x"}).status_code == 400


def test_who_names_the_wrong_replica_or_attempt_is_told_which_there_are(server: Yard, ann: httpx2.Client) -> None:
    def said(id: str, query: str, path: str = "logs") -> str:
        return str(ann.get(f"/api/v1/workloads/{id}/{path}?{query}").json()["error"]["message"])

    alone = started(server, ann)
    assert "its only replica is worker-0." in said(alone, "replica=worker0")
    assert "it has attempt 1 only." in said(alone, "attempt=4")
    assert "it has attempt 1 only." in said(alone, "attempt=4", "usage")
    roles = {"worker": {"replicas": 2, "command": "true"}, "ps": {"replicas": 40, "command": "true"}}
    several = ann.post("/api/v1/workloads", json={"roles": roles}).json()["id"]
    assert "its replicas are worker-0, worker-1, ps-0 ... ps-39." in said(several, "replica=worker-2")
    assert "it has not been started yet" in said(several, "attempt=1")


def test_a_log_that_is_not_there_yet_is_empty(server: Yard, ann: httpx2.Client) -> None:
    id = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
    answer = read_log(ann, id)
    assert (answer.text, answer.headers["x-log-size"], answer.headers["x-log-ended"]) == ("", "0", "false")


# --- following ----------------------------------------------------------------------------------------------------


def test_a_follower_sees_everything_in_order_and_then_the_end(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    path = server.log_path(id)
    written = b""

    def write() -> None:
        nonlocal written
        with path.open("ab", buffering=0) as log:
            for number in range(200):
                line = f"step {number} 第 {number} 步\n".encode()
                half = number % len(line)
                log.write(line[:half])
                log.write(line[half:])
                written += line
        server.end(id)

    writer = threading.Thread(target=write)
    with following(ann, id) as events:
        writer.start()
        told = list(events)
    writer.join()
    assert told[-1].name == "end"
    assert text_of(told) == written.decode()
    position = 0
    for event in told[:-1]:
        assert event.data["from"] == position
        position = event.data["to"]
        assert event.id == str(position)
    assert position == len(written)


def test_a_line_is_seen_while_the_job_runs(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    with following(ann, id) as events:
        server.log_path(id).write_bytes(b"still running\n")
        assert next(events).data["text"] == "still running\n"
    assert server.workload(id).state == "running"


def test_cut_anywhere_and_resumed_the_log_is_whole(server: Yard, ann: httpx2.Client) -> None:
    """With connections dropped at random, and with offsets in the middle of nowhere."""
    chance = random.Random(7)
    content = "".join(chance.choice("ab\n\r→进度\U0001f600") for _ in range(60_000)).encode() + b"\xe4\xb8"
    id = started(server, ann)
    server.log_path(id).write_bytes(content)
    server.end(id)
    whole, position, ended = "", 0, False
    for attempt in range(1000):
        by_header = {"headers": {"Last-Event-ID": str(position)}} if attempt % 2 else {"offset": position}
        with following(ann, id, **by_header) as events:
            for _ in range(chance.randint(1, 2)):
                event = next(events)
                if event.name == "end":
                    ended = True
                    break
                assert event.data["from"] == position
                whole += event.data["text"]
                position = event.data["to"]
        if ended:
            break
    assert ended
    assert whole == content.decode("utf-8", "replace")


def test_what_waits_is_followed_from_its_start_on(server: Yard, ann: httpx2.Client) -> None:
    id = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
    told: list[Event] = []

    def follow() -> None:
        told.extend(to_the_end(ann, id))

    follower = threading.Thread(target=follow)
    follower.start()
    server.start(id)
    server.log_path(id).write_bytes(b"at last\n")
    server.end(id)
    follower.join(30)
    assert text_of(told) == "at last\n"


def test_what_ends_in_the_queue_has_an_empty_log(server: Yard, ann: httpx2.Client) -> None:
    id = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
    with following(ann, id) as events:
        server.step(id, StopAsked("ann"))
        assert [event.name for event in events] == ["end"]


def test_a_follower_stays_with_its_attempt_when_there_is_a_new_one(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann, retries=1)
    server.log_path(id).write_bytes(b"first try\n")
    with following(ann, id) as events:
        assert next(events).data["text"] == "first try\n"
        now = server.clock()
        server.end(
            id, Seen(Life.ENDED, 1, Cause.EXIT, because(Code.EXIT_CODE, exit_code=1, replica="worker-0"), now, now)
        )
        server.start(id)
        assert [event.name for event in events] == ["end"]


def test_a_follower_begins_at_the_tail_when_asked(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    server.log_path(id).write_bytes(b"one\ntwo\nthree\n")
    server.end(id)
    assert text_of(to_the_end(ann, id, tail=1)) == "three\n"
    assert to_the_end(ann, id, tail=0) == []


def test_a_log_truncated_by_its_job_does_not_break_the_follower(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    path = server.log_path(id)
    path.write_bytes(b"x" * 1000)
    with following(ann, id) as events:
        assert next(events).data["to"] == 1000
        path.write_bytes(b"")
        time.sleep(0.5)
        path.write_bytes(b"anew\n")
        assert next(events).data["text"] == "anew\n"
        server.end(id)
        assert [event.name for event in events] == ["end"]


def test_the_end_does_not_come_before_the_last_byte(server: Yard, ann: httpx2.Client) -> None:
    """Jobs that die at once: the log is complete in what a follower sees, every time."""
    for number in range(20):
        id = ann.post("/api/v1/workloads", json={"command": "true"}).json()["id"]
        with following(ann, id) as events:
            server.start(id)
            server.log_path(id).write_text(f"hi {number}")
            server.end(id)
            assert text_of(list(events)) == f"hi {number}"


def test_someone_who_is_put_out_hears_no_more(fresh: Yard) -> None:
    eve = fresh.person("eve")
    id = started(fresh, eve)
    fresh.log_path(id).write_bytes(b"before\n")
    with following(eve, id) as events, fresh.owner as owner:
        assert next(events).data["text"] == "before\n"
        owner.patch("/api/v1/users/eve", json={"active": False})
        assert list(events) == []


def test_logging_out_ends_the_session_streams(fresh: Yard) -> None:
    fresh.person("lia")
    with fresh.client() as browser:
        told = browser.post("/api/v1/login", json={"name": "lia", "password": PASSWORD}).json()
        browser.headers["X-Session-Key"] = told["session_key"]
        id = started(fresh, browser)
        with following(browser, id) as events:
            browser.post("/api/v1/logout")
            assert list(events) == []


def test_streams_end_when_the_server_does_and_say_no_end(fresh: Yard) -> None:
    with fresh.person("una") as una:
        id = started(fresh, una)
        with following(una, id) as events:
            fresh.stopping[0] = True
            assert list(events) == []


def test_only_so_many_follow_at_once_and_places_come_back(fresh: Yard) -> None:
    cid, dia = fresh.person("cid"), fresh.person("dia")
    id, other = started(fresh, cid), started(fresh, dia)
    opened = [cid.stream("GET", f"/api/v1/workloads/{id}/logs/follow") for _ in range(4)]
    responses = [stream.__enter__() for stream in opened]
    assert [response.status_code for response in responses] == [200] * 4
    refused = cid.get(f"/api/v1/workloads/{id}/logs/follow")
    assert refused.status_code == 429
    assert refused.headers["retry-after"]
    with following(dia, other):
        pass
    for stream in opened:
        stream.__exit__(None, None, None)

    def room_again() -> bool:
        with cid.stream("GET", f"/api/v1/workloads/{id}/logs/follow") as response:
            return bool(response.status_code == 200)

    wait_until(room_again)


def test_a_reader_that_never_reads_costs_no_memory(fresh: Yard) -> None:
    """A 200 MB log, and a client that asks for it and then reads nothing."""
    with fresh.person("ned") as ned:
        id = started(fresh, ned)
        with fresh.log_path(id).open("wb") as log:
            for _ in range(200):
                log.write(b"x" * 99 + b"\n" + b"y" * (1 << 20))
        fresh.end(id)
        host, port = fresh.url.removeprefix("http://").split(":")
        token = ned.headers["Authorization"]
        before = psutil.Process().memory_info().rss
        with socket.create_connection((host, int(port))) as lazy:
            ask = f"GET /api/v1/workloads/{id}/logs/follow HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}\r\n\r\n"
            lazy.sendall(ask.encode())
            most = 0
            for _ in range(20):
                time.sleep(0.1)
                most = max(most, psutil.Process().memory_info().rss - before)
                assert ned.get("/healthz").status_code == 200
            assert lazy.recv(100).startswith(b"HTTP/1.1 200")
        assert most < 20 << 20


def test_a_busy_reader_of_a_large_log_costs_little_memory(fresh: Yard) -> None:
    with fresh.person("gil") as gil:
        id = started(fresh, gil)
        with fresh.log_path(id).open("wb") as log:
            for _ in range(50):
                log.write(b"x" * (1 << 20))
        fresh.end(id)
        before, most, size = psutil.Process().memory_info().rss, 0, 0
        with gil.stream("GET", f"/api/v1/workloads/{id}/logs/follow") as response:
            for number, chunk in enumerate(response.iter_raw()):
                size += len(chunk)
                if number % 100 == 0:
                    most = max(most, psutil.Process().memory_info().rss - before)
        assert size > 50 << 20
        assert most < 20 << 20


def test_other_peoples_logs_are_not_found(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    with server.person("spy") as spy:
        assert spy.get(f"/api/v1/workloads/{id}/logs").status_code == 404
        assert spy.get(f"/api/v1/workloads/{id}/logs/follow").status_code == 404


def test_a_deleted_workload_ends_its_stream(server: Yard, ann: httpx2.Client) -> None:
    id = started(server, ann)
    server.log_path(id).write_bytes(b"short\n")
    server.end(id)
    with following(ann, id) as events, server.database.write() as conn:
        workloads.delete_ended_before(conn, server.clock() + 1, 1000)
        assert next(events).data["text"] == "short\n"


# --- characters ---------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.binary(max_size=40), st.lists(st.integers(1, 8), max_size=20))
def test_cut_at_whole_characters_the_pieces_read_like_the_whole(data: bytes, cuts: list[int]) -> None:
    text, rest = "", data
    for cut in cuts:
        length = whole_characters(rest[:cut]) or (0 if len(rest) > 4 else len(rest))
        text += rest[:length].decode("utf-8", "replace")
        rest = rest[length:]
    assert text + rest.decode("utf-8", "replace") == data.decode("utf-8", "replace")
