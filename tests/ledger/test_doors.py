"""The ledger of a real platform, by API and by command; the server is killed in between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cli.yard import wait_until
from tests.platforms import Platform, a_platform

from gpuyard import Client

CARDS = 16


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("ledger"), "simulated", "--nodes", "2x8") as made:
        yield made


def total(told: dict[str, Any]) -> int:
    """The capacity, once every sum has been checked."""
    for sums in (told["total"], *told["items"]):
        assert sum(sums["buckets"].values()) == sums["capacity"]
        assert min(sums["buckets"].values()) >= 0
    assert sum(line["capacity"] for line in told["items"]) == told["total"]["capacity"]
    return int(told["total"]["capacity"])


def a_job(platform: Platform, *options: str, cards: str = "2") -> str:
    return platform.good("run", "--detach", "--cards", cards, *options, "--", "sleep", "100000").split()[0]


def ledger(platform: Platform, by: str = "day") -> dict[str, Any]:
    with Client(data=platform.data) as client:
        return client.ledger(by=by)


def has(platform: Platform, bucket: str) -> bool:
    return bool(ledger(platform)["total"]["buckets"][bucket] > 0)


def test_what_work_makes_of_cards_is_in_its_bucket_and_the_sums_hold_through_kills(platform: Platform) -> None:
    begun = time.time()
    wait_until(lambda: total(ledger(platform)) > 0, 30)
    a_job(platform)
    a_job(platform, "--env", "YARD_SIM_CARD_PERCENT=0", cards="7")
    wait_until(lambda: has(platform, "used") and has(platform, "idle"), 60)
    a_job(platform, cards="8")  # it waits: one machine has 6 left, the other 1
    wait_until(lambda: has(platform, "reserved") and has(platform, "fragmented"), 60)
    before = total(ledger(platform))
    for _ in range(2):
        platform.kill_server()
        time.sleep(1)
        platform.start_server()
        after = total(ledger(platform))
        assert after > before, "the time in which nobody looked is accounted for as well"
        before = after
    told = ledger(platform)
    most = CARDS * 1_000_000 * (time.time() - begun + 60)
    assert CARDS * 1_000_000 * 4 < total(told) <= most, "never more than there was time"


def test_capacity_grows_with_time_exactly_whoever_asks_for_it_by_what(platform: Platform) -> None:
    def milliseconds(told: dict[str, Any]) -> int:
        whole, rest = divmod(total(told), CARDS * 1000)
        assert rest == 0, "all cards have been there all the time"
        return whole

    spans = [milliseconds(ledger(platform, by)) for by in ("day", "node", "model", "day")]
    assert spans == sorted(spans)
    assert [line["name"] for line in ledger(platform, "node")["items"]] == ["sim-1", "sim-2"]
    assert [line["name"] for line in ledger(platform, "model")["items"]] == ["Simulated nvidia"]
    assert ledger(platform)["items"][-1]["name"] == datetime.now(UTC).date().isoformat()


def test_a_cordoned_machine_drains(platform: Platform) -> None:
    platform.good("nodes", "cordon", "sim-1")
    wait_until(lambda: has(platform, "draining"), 30)
    platform.good("nodes", "uncordon", "sim-1")


@pytest.mark.parametrize(
    ("language", "words"),
    [
        (
            "en",
            [
                "capacity",
                "100.0%",
                "blocked by quota",
                "given out, but idle",
                "closed for new work",
                "used",
                "CARD-HOURS",
                "FRAGMENTED",
            ],
        ),
        ("zh", ["总容量", "100.0%", "受配额阻挡", "已分配但闲置", "暂停分配", "异常", "已用", "卡时", "碎片"]),
    ],
)
def test_the_command_prints_a_waterfall_and_a_table(platform: Platform, language: str, words: list[str]) -> None:
    out = platform.good("ledger", "--since", "1d", "--by", "node", YARD_LANG=language)
    assert [word for word in words if word not in out] == []
    bars = [line.split("%")[-1] for line in out.splitlines() if line.count("%") == 1]
    assert len(bars) == 9
    assert bars[0].strip() == "█" * 40, "the capacity is the whole width"


def test_more_than_was_asked_for_is_said_to_be_more(platform: Platform) -> None:
    wait_until(lambda: total(ledger(platform)) > 0, 30)
    now = datetime.now(UTC)
    hour = now.replace(minute=0, second=0, microsecond=0)
    part = ("--since", (hour + (now - hour) / 3).isoformat(), "--until", (hour + (now - hour) / 2).isoformat())
    assert "this is more than" in platform.run("ledger", *part).err
    assert "以上范围更大" in platform.run("ledger", *part, YARD_LANG="zh").err
    told = platform.json("ledger", *part)
    assert told["since"] < told["asked_since"] < told["asked_until"] < told["until"]
    for whole in ((), ("--since", hour.isoformat())):
        assert "this is more than" not in platform.run("ledger", *whole).err


def test_both_ends_are_said_to_be_full_hours(platform: Platform) -> None:
    assert " ".join(platform.good("ledger", "--help").split()).count("full hours, and full days") == 2
    assert "".join(platform.good("ledger", "--help", YARD_LANG="zh").split()).count("按整小时计") == 2


def test_a_time_before_there_was_anything_has_no_cards(platform: Platform) -> None:
    told = platform.run("ledger", "--since", "2020-01-01", "--until", "2020-02-01")
    assert (told.code, told.out, "no cards" in told.err) == (0, "", True)
    empty = platform.json("ledger", "--since", "2020-01-01", "--until", "2020-02-01")
    assert (empty["total"]["capacity"], empty["items"]) == (0, [])


def test_the_days_are_said_to_be_those_of_utc(platform: Platform) -> None:
    assert "DAY (UTC)" in platform.good("ledger", "--since", "1d", TZ="Asia/Shanghai")
    assert "日期（UTC）" in platform.good("ledger", "--since", "1d", YARD_LANG="zh")


def test_a_time_that_is_yet_to_come_is_refused(platform: Platform) -> None:
    told = platform.run("ledger", "--since", "2130-01-01")
    assert (told.code, "in the future" in told.err) == (2, True), told
    assert "将来" in platform.run("ledger", "--since", "2130-01-01", YARD_LANG="zh").err
    assert platform.run("ledger", "--since", "1s").code == 0, "now is not the future, whatever the clocks differ by"


def test_a_time_that_cannot_be_read_is_refused_in_words(platform: Platform) -> None:
    assert platform.run("ledger", "--since", "yesterday-ish").code == 2
    assert platform.run("ledger", "--by", "moon").code == 2
    reversed_span = platform.run("ledger", "--since", "1h", "--until", "2h")
    assert (reversed_span.code, "--since 1h is not before --until 2h" in reversed_span.err) == (2, True)
