"""The overview and its news: who may see whose work, and pages that come back after a lost connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from tests.api.yard import Yard

from gpuyard.store import nodes

Event = tuple[str, dict[str, Any], str | None]


@contextmanager
def listening(client: httpx2.Client, last: str | None = None) -> Iterator[Iterator[Event]]:
    headers = {"Last-Event-ID": last} if last else {}
    with client.stream("GET", "/api/v1/live", headers=headers) as response:
        assert response.status_code == 200, response.read()
        yield events(response)


def events(response: httpx2.Response) -> Iterator[Event]:
    pending = b""
    for chunk in response.iter_raw():
        pending += chunk
        *blocks, pending = pending.split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if not line.startswith(b":"))
            if b"event" in fields:
                id = fields.get(b"id")
                yield fields[b"event"].decode(), json.loads(fields[b"data"]), id.decode() if id else None


def news_of(told: Iterator[Event], id: str) -> tuple[dict[str, Any], str | None]:
    """The first news that name this workload."""
    for name, data, seq in told:
        if name == "changed" and id in data["workloads"]:
            return data, seq
    raise AssertionError("the stream ended")


def submitted(client: httpx2.Client, **job: Any) -> str:
    answer = client.post("/api/v1/workloads", json={"command": "true", **job})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture(scope="module")
def ann(server: Yard) -> httpx2.Client:
    return server.person("ann")


@pytest.fixture(scope="module")
def bob(server: Yard) -> httpx2.Client:
    return server.person("bob")


def test_a_page_hears_of_ones_own_work_at_once_and_of_nobody_elses(
    server: Yard, ann: httpx2.Client, bob: httpx2.Client
) -> None:
    with listening(ann) as told:
        assert next(told)[0] == "hello"
        foreign = submitted(bob)
        mine = submitted(ann)
        heard: list[str] = []
        while mine not in heard:
            name, data, _ = next(told)
            assert name == "changed"
            heard += data["workloads"]
        assert foreign not in heard


def test_a_page_that_comes_back_hears_what_it_missed(server: Yard, ann: httpx2.Client) -> None:
    with listening(ann), listening(ann) as told:
        next(told)
        _, seen = news_of(told, submitted(ann))
        missed = submitted(ann)
        with listening(ann, seen) as again:
            assert next(again)[0] == "hello"
            news_of(again, missed)


def test_a_page_that_was_away_too_long_is_told_to_load_everything_again(server: Yard, ann: httpx2.Client) -> None:
    with listening(ann, "1") as told:
        assert next(told)[0] == "hello"
        assert next(told)[0] == "reload"


def test_the_board_shows_every_card_and_names_only_what_one_may_see(
    server: Yard, ann: httpx2.Client, bob: httpx2.Client
) -> None:
    id = submitted(ann, name="shown", cards=2)
    server.start(id)
    try:
        for client, name in ((ann, "shown"), (bob, None)):
            board = client.get("/api/v1/board").json()
            node = next(node for node in board["nodes"] if node["name"] == "node-1")
            assert len(node["cards"]) == 8
            known = board["works"].get(id)
            assert known is None or known["name"] == name
    finally:
        server.end(id)


def test_a_cordoned_machine_is_told_as_a_changed_row(server: Yard, ann: httpx2.Client) -> None:
    with listening(ann) as told:
        next(told)
        with server.database.write() as conn:
            nodes.set_cordoned(conn, "node-1", True)
        rows = next(data["nodes"] for name, data, _ in told if name == "changed" and data["nodes"])
        assert [(row["name"], row["state"]) for row in rows] == [("node-1", "cordoned")]
        with server.database.write() as conn:
            nodes.set_cordoned(conn, "node-1", False)


def test_the_line_is_numbered_and_foreign_work_in_it_has_no_name(
    server: Yard, ann: httpx2.Client, bob: httpx2.Client
) -> None:
    submitted(ann, cpu=8)  # would be started next; the others wait behind it
    mine, foreign = submitted(ann, name="waiting", cpu=8), submitted(bob, name="secret", cpu=8)
    line = {one["id"]: one for one in ann.get("/api/v1/queue", params={"limit": 500}).json()["items"]}
    assert line[mine]["name"] == "waiting"
    assert line[mine]["mine"]
    assert line[foreign]["name"] is None
    assert line[foreign]["owner"] is None
    assert line[mine]["position"] != line[foreign]["position"]
