"""The card ledger by the api: who may see it, what is covered, and how it is told apart."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from tests.api.yard import Yard

from gpuyard.api import views
from gpuyard.domain.ledger import BUCKETS, DAY, HOUR, Account, Amounts, Bucket, Cards, Page, Span
from gpuyard.store import ledger, schema

A, B = Cards("node-a", "A100"), Cards("node-b", "H20")


def instant(milliseconds: int) -> str:
    return views.instant(milliseconds / 1000)


def amounts(**buckets: int) -> Amounts:
    values = tuple(buckets.get(bucket.value, 0) for bucket in BUCKETS)
    return Amounts(sum(values), values)


def fill(server: Yard) -> int:
    """Two days of hours, and what is known since a quarter of an hour ago. Returns the present hour."""
    now = int(server.clock() * 1000)
    hour = now - now % HOUR
    sums = {}
    for number in range(1, 49):
        span = Span(hour - number * HOUR, 1)
        sums[span, A] = amounts(used=6000, free=2000).times(HOUR)
        sums[span, B] = amounts(idle=500, unhealthy=500).times(HOUR)
    known: dict[Cards, Account | None] = {A: Account(hour, amounts(used=8000)), B: Account(hour, amounts(free=1000))}
    with server.database.write() as conn:
        old = ledger.accounts(conn)
        ledger.write(conn, Page({}, dict.fromkeys(old)))
        conn.execute(sa.delete(schema.ledger))
        ledger.write(conn, Page(sums, known))
    return hour


def ask(server: Yard, **params: Any) -> dict[str, Any]:
    answer = server.owner.get("/api/v1/ledger", params=params)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    for sums in (told["total"], *told["items"]):
        assert sum(sums["buckets"].values()) == sums["capacity"]
    return told


def test_sums_are_told_by_day_node_and_model_and_always_add_up(server: Yard) -> None:
    hour = fill(server)
    told = {by: ask(server, by=by) for by in ("day", "node", "model")}
    lasted = int(server.clock() * 1000) - hour
    for one in told.values():
        assert abs(one["total"]["capacity"] - 9000 * (48 * HOUR + lasted)) < 9000 * 60_000
        assert sum(line["capacity"] for line in one["items"]) == one["total"]["capacity"]
    assert [line["name"] for line in told["node"]["items"]] == ["node-a", "node-b"]
    assert [line["name"] for line in told["model"]["items"]] == ["A100", "H20"]
    assert len(told["day"]["items"]) in (3, 4)
    assert told["model"]["items"][1]["buckets"]["idle"] == 500 * 48 * HOUR


def test_only_the_hours_asked_for_are_told(server: Yard) -> None:
    hour = fill(server)
    since, until = instant(hour - 3 * HOUR + 5000), instant(hour - HOUR)
    told = ask(server, since=since, until=until)
    assert told["total"]["capacity"] == 9000 * 2 * HOUR
    assert (told["since"], told["until"]) == (instant(hour - 3 * HOUR), until)
    assert (told["asked_since"], told["asked_until"]) == (since, until)


def test_the_buckets_come_in_the_order_in_which_capacity_is_lost(server: Yard) -> None:
    fill(server)
    order = list(ask(server)["total"]["buckets"])
    assert (order[0], order[-1]) == ("unhealthy", "used")
    assert set(order) == {bucket.value for bucket in Bucket}


def test_every_member_may_see_it_and_nobody_without_a_login(server: Yard) -> None:
    fill(server)
    server.group("ledgers")
    member = server.person("mia-ledger", group="ledgers", scope="read")
    assert member.get("/api/v1/ledger", params={"by": "node"}).status_code == 200
    assert server.client().get("/api/v1/ledger").status_code == 401


def test_a_time_without_a_zone_and_an_unknown_key_are_refused(server: Yard) -> None:
    wrong = (
        "2026-11-01T00:00:00",
        "soon",
        "3600.0",
        "2026-06-31T00:00Z",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-12:00",
    )
    for params in (*({"since": one} for one in wrong), *({"until": one} for one in wrong), {"by": "moon"}):
        assert server.owner.get("/api/v1/ledger", params=params).status_code in (400, 422), params
    assert ask(server, since=instant(DAY), until=instant(2 * DAY))["items"] == []
