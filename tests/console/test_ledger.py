"""Where the cards' time went, in the browser: the waterfall, told apart by day, node and model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import expect
from tests.cli.yard import wait_until
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client

OWN = "a long enough secret"
LONG = {"YARD_SIM_SECONDS": "86400"}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """Work that uses its cards, work that does not, one that waits for a whole machine, and a closed machine."""
    with a_platform(tmp_path_factory.mktemp("yard"), "simulated", "--nodes", "3x8") as yard:
        with Client(data=yard.data) as admin:
            admin.create_group("vision")
            admin.create_user("ann", password=OWN, group="vision")
            with Client(yard.url, admin.create_token("ledger", user="ann").token) as ann:
                for cards, busy in ((5, "80"), (6, "0")):
                    env = {**LONG, "YARD_SIM_CARD_PERCENT": busy}
                    yard.wait_for(ann.submit(name=f"busy-{busy}", command="x", cards=cards, env=env).id, "running")
                admin.cordon(admin.nodes()[-1].name)
                ann.submit(name="waits", command="x", cards=8)
            wanted = ("used", "idle", "reserved", "fragmented", "draining")
            wait_until(lambda: all(admin.ledger()["total"]["buckets"][bucket] for bucket in wanted), 90)
        yield yard


def test_a_member_sees_where_the_time_of_all_cards_went(
    yard: Platform, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(yard.url, "ann", OWN)
    page.get_by_role("navigation").get_by_role("link", name=say("Card time", "卡时去向")).click()
    expect(page.get_by_role("heading", level=1, name=say("Card time", "卡时去向"))).to_be_visible()
    heading = say("From all cards to those that worked", "从全部加速卡到真正工作的部分")
    waterfall = page.get_by_role("table", name=heading)
    expect(waterfall).to_be_visible()
    names = [line.split("\n")[0] for line in waterfall.locator("tbody th").all_inner_texts()]
    assert names == (
        ["全部加速卡", "异常", "暂停分配", "空闲", "受配额阻挡", "预留", "碎片", "已分配但闲置", "已用"]
        if language == "zh"
        else [
            *("All cards", "Unhealthy", "Closed for new work", "Free", "Blocked by quota", "Reserved", "Fragmented"),
            *("Given out, but idle", "Used"),
        ]
    )
    expect(waterfall.locator("[data-bucket=capacity] .number").last).to_have_text("100.0 %")
    expect(waterfall.locator("[data-bucket=unhealthy] .number").last).to_have_text("0.0 %")
    visit.picture("ledger")


def test_the_parts_hang_below_each_other_and_end_where_use_begins(
    yard: Platform, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    visit.enter(yard.url, "ann", OWN, "/ledger?period=day")
    bars = visit.page.locator(".ledger-waterfall [data-bucket] .ledger-bar > span")
    expect(bars.first).to_be_visible()
    hours = visit.page.locator(".ledger-waterfall [data-bucket] td:nth-child(2)").all_inner_texts()
    all_of_it, *shown = [float(text.replace(",", "")) for text in hours]
    assert abs(sum(shown) - all_of_it) <= 0.005 * (len(shown) + 1) + 1e-9, "what is shown sums to all, but for rounding"
    boxes = [box for box in (bar.bounding_box() for bar in bars.all()) if box is not None]
    whole, *parts = boxes
    for above, below in pairwise(parts):
        assert abs(below["x"] + below["width"] - above["x"]) <= 2.5, "each ends where the one above begins"
    assert abs(parts[0]["x"] + parts[0]["width"] - whole["x"] - whole["width"]) <= 2
    assert abs(parts[-1]["x"] - whole["x"]) <= 2, "what is used begins with the whole"


def test_the_choices_are_kept_in_the_address(yard: Platform, visits: Callable[..., Visits], language: str) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(yard.url, "ann", OWN, "/ledger")
    page.get_by_text(say("24 hours", "24 小时"), exact=True).click()
    page.get_by_text(say("Node", "节点"), exact=True).click()
    expect(page.locator("[data-line]")).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/ledger\?period=day&by=node$"))
    page.reload()
    expect(page.locator("[data-line=sim-1]")).to_be_visible()
    page.get_by_text(say("Model", "型号"), exact=True).click()
    expect(page.locator("[data-line]")).to_have_count(1)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_a_phone(yard: Platform, visits: Callable[..., Visits], language: str, dark: bool) -> None:
    visit = visits(language, width=400, dark=dark)
    visit.enter(yard.url, "ann", OWN, "/ledger?by=node")
    expect(visit.page.locator("[data-line=sim-1]")).to_be_visible()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400
    visit.picture(f"ledger-phone-{'dark' if dark else 'light'}")
    visit.see(1280, dark=dark)
    visit.picture(f"ledger-{'dark' if dark else 'light'}")
