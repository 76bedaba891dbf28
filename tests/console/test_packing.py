"""When work starts and ends, and the free cards that are not together, in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Locator, expect
from tests.console.test_every_page import AXE, examine, overflow
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client

OWN = "a long enough secret"
LONG = {"YARD_SIM_SECONDS": "86400"}
Pair = tuple[str, str]
START: Pair = ("Expected start", "预计启动")
END: Pair = ("Expected end", "预计结束")
UNKNOWN: Pair = ("Nobody can tell yet: .* ended here so far", "暂时无法预计：")
MOMENTS: Pair = (
    r"about .*\d\d:\d\d, nine times out of ten by .*\d\d:\d\d",
    r"约 .*\d\d:\d\d，九成可能不晚于 .*\d\d:\d\d",
)


@dataclass
class Scattered:
    """Three machines of four cards. On two of them one card each is in use by small work, on the third all are; all of
    it ends within hours. `large` waits for a machine of its own."""

    yard: Platform
    ann: Client
    ids: dict[str, str]


@pytest.fixture(scope="module")
def scattered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scattered]:
    with a_platform(tmp_path_factory.mktemp("yard"), "simulated", "--nodes", "3x4") as yard:
        yard.good("policy", "set", "defragment.after=0s", "defragment.min_run=0s")
        with Client(data=yard.data) as admin:
            admin.create_group("vision")
            for name, role in (("ann", "member"), ("ada", "admin")):
                admin.create_user(name, password=OWN, group="vision", role=role)
            with Client(yard.url, admin.create_token("tests", user="ann").token) as ann:
                scattered = Scattered(yard, ann, {})
                plant(scattered)
                yield scattered


def submit(scattered: Scattered, name: str, state: str = "running", **job: Any) -> str:
    id = scattered.ann.submit(name=name, command="x", cpu=1, env=LONG, **job).id
    scattered.yard.wait_for(id, state)
    return id


def stop(scattered: Scattered, id: str) -> None:
    scattered.ann.job(id).stop()
    scattered.yard.wait_for(id)


def plant(scattered: Scattered) -> None:
    one, two, three = [node.name for node in scattered.ann.nodes()]
    ids = scattered.ids
    for node in (one, two):
        filling = submit(scattered, "filling", cards=3, where={"nodes": [node]})
        ids[f"small-{node}"] = submit(scattered, f"small-{node}", cards=1, max_time="2h", preemptible=True)
        stop(scattered, filling)
    submit(scattered, "whole", cards=4, max_time="3h", where={"nodes": [three]})
    ids["large"] = submit(scattered, "large", "queued", cards=4, max_time="1h")


@pytest.fixture
def endless(scattered: Scattered) -> Iterator[str]:
    """Work that may run for ever, where too little has ended yet to know better."""
    id = submit(scattered, "endless", cards=1)
    yield id
    stop(scattered, id)


def row(visit: Visits, name: str) -> Locator:
    return visit.page.get_by_role("row").filter(has=visit.page.get_by_role("link", name=name, exact=True))


def test_the_list_and_a_jobs_page_tell_two_moments_of_each_start_and_end(
    scattered: Scattered, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    visit.enter(scattered.yard.url, "ann", OWN, "/jobs")
    starts = visit.say(r"starts ~.*\d\d:\d\d \(by .*\d\d:\d\d\)", r"约 .*\d\d:\d\d 启动（一般不晚于 .*\d\d:\d\d）")
    ends = visit.say(r"ends ~.*\d\d:\d\d \(by .*\d\d:\d\d\)", r"约 .*\d\d:\d\d 结束（一般不晚于 .*\d\d:\d\d）")
    expect(row(visit, "large")).to_contain_text(re.compile(starts))
    expect(row(visit, "small-sim-1")).to_contain_text(re.compile(ends))
    visit.picture("expected-list")
    for name, tab, what in (
        ("large", "overview", START),
        ("large", "why", START),
        ("small-sim-1", "overview", END),
    ):
        is_told(visit, scattered, scattered.ids[name], tab, what, MOMENTS)
        visit.picture(f"expected-{name}-{tab}")


def is_told(visit: Visits, scattered: Scattered, id: str, tab: str, what: Pair, told: Pair) -> None:
    visit.page.goto(f"{scattered.yard.url}/jobs/{id}?tab={tab}")
    panel = visit.page.get_by_role("tabpanel")
    expect(panel).to_contain_text(re.compile(visit.say(*what) + r"\s*" + visit.say(*told)))


def test_before_submitting_it_is_told_when_it_would_start(
    scattered: Scattered, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(scattered.yard.url, "ann", OWN, "/jobs/new")
    page.get_by_label(say("Command", "命令")).fill("python train.py")
    page.get_by_label(say("Cards", "加速卡"), exact=True).fill("4")
    outlook = page.get_by_label(say("What would happen now", "现在提交会怎样"))
    expect(outlook).to_contain_text(say("Would wait", "会排队等待"))
    expect(outlook).to_contain_text(re.compile(say("Expected start: ", "预计启动: ?") + say(*MOMENTS)))
    visit.picture("expected-preview")


def test_an_admin_sees_what_still_fits_who_waits_for_cards_together_and_the_moves_that_would_help(
    scattered: Scattered, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language, script=AXE)
    page, say = visit.page, visit.say
    visit.enter(scattered.yard.url, "ada", OWN, "/admin/nodes")
    page.get_by_text(say("Fragments", "碎片"), exact=True).click()
    expect(page).to_have_url(re.compile("view=fragments"))
    expect(page.locator("[data-tile=free] dd")).to_have_text("6")
    expect(page.locator("[data-tile=apart] dd")).to_have_text("1")
    expect(page.locator("[data-tile=mode] dd")).to_have_text(say("only proposed", "只提方案"))
    waits = page.locator("[data-apart=large]")
    expect(waits).to_contain_text(say("1 move of preemptible work would start it", "移动 1 个可中断的任务"))
    proposal = waits.get_by_role("table", name=say("Moves that would start large", "让 large 启动的移动方案"))
    (move,) = proposal.locator("tbody tr").all()
    expect(move.get_by_role("link", name=re.compile("^small-sim-[12]$"))).to_be_visible()
    assert {move.locator("code").first.inner_text(), move.locator("code").last.inner_text()} == {"sim-1", "sim-2"}
    for request, fit, stranded in (("1 nvidia", "6", "0"), ("4 nvidia", "0", "6")):
        told = page.locator(f"[data-request='{request}'] .number")
        assert (told.nth(1).inner_text(), told.nth(3).inner_text()) == (fit, stranded)
    where = page.get_by_role("region", name=say("Where they are", "分布")).get_by_role("row")
    expect(where.filter(has_text="sim-2")).to_contain_text("3")
    expect(where.filter(has_text="sim-3")).to_have_count(0)
    for word, meaning in (
        (say("No fit", "放不下"), say("not even one typical request fits", "连一个常见请求也放不下")),
        (say("Left over", "余下"), say("once as many of that request as fit are placed", "这种请求放满之后")),
    ):
        expect(page.get_by_role("columnheader", name=word, exact=True)).to_be_visible()
        expect(page.locator("p").filter(has_text=word).filter(has_text=meaning)).to_be_visible()
    assert "\n".join(seen(visit, dark=language == "zh")) == ""


def seen(visit: Visits, dark: bool) -> list[str]:
    """What is wrong with the page in this light, wide and on a phone."""
    look = "dark" if dark else "light"
    visit.see(400, dark=dark)
    too_wide = max(overflow(visit.page), table_cut_off(visit))
    visit.picture(f"fragments-phone-{look}")
    visit.see(1280, dark=dark)
    visit.picture(f"fragments-{look}")
    return [*examine(visit.page, look), *([f"{too_wide} px too wide"] if too_wide > 0 else [])]


def table_cut_off(visit: Visits) -> int:
    """By how many pixels the table of machines is wider than the place it has."""
    table = visit.page.locator(".where-table")
    expect(table.get_by_role("row").filter(has_text="sim-2")).to_be_visible()
    inside = "table => { const [own, all] = [table, table.querySelector('table')].map(e => e.getBoundingClientRect());"
    return int(table.evaluate(f"{inside} return Math.ceil(all.right - own.right); }}"))


def test_where_nobody_knows_the_list_says_nothing_and_a_job_says_why(
    scattered: Scattered, endless: str, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    visit.enter(scattered.yard.url, "ann", OWN, "/jobs")
    for name in ("endless", "large"):
        expect(row(visit, name)).to_be_visible()
        expect(row(visit, name)).not_to_contain_text(re.compile(r"\d\d:\d\d"))
    is_told(visit, scattered, endless, "overview", END, UNKNOWN)
    is_told(visit, scattered, scattered.ids["large"], "why", START, UNKNOWN)
    visit.picture("expected-unknown")


def test_moves_are_told_as_the_policy_has_them_and_once_they_are_made_nobody_waits_for_them(
    scattered: Scattered, visits: Callable[..., Visits]
) -> None:
    """The last: it changes who runs where."""
    visit = visits()
    page, yard = visit.page, scattered.yard
    yard.good("policy", "set", "defragment.mode=never")
    visit.enter(yard.url, "ada", OWN, "/admin/nodes?view=fragments")
    expect(page.locator("[data-tile=mode] dd")).to_have_text("never")
    expect(page.locator("[data-apart=large]")).to_contain_text("Nobody is moved, by policy")
    expect(page.get_by_role("table", name="Moves that would start large")).to_have_count(0)
    yard.good("policy", "set", "defragment.mode=move")
    yard.wait_for(scattered.ids["large"], "running")
    page.reload()
    expect(page.locator("[data-tile=mode] dd")).to_have_text("carried out")
    expect(page.get_by_text("Nobody waits only because free cards are not together.")).to_be_visible()
    visit.picture("fragments-none")
    yard.good("nodes", "cordon", "sim-3")
    page.reload()
    expect(page.get_by_text("1 machine with cards is left out: no new work goes there.")).to_be_visible()
