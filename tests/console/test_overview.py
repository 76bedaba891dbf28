"""The overview: the cluster as a picture that follows what happens, and what concerns the one who looks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect
from tests.cli.yard import wait_until
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client

OWN = "a long enough secret"
LONG = {"YARD_SIM_SECONDS": "86400"}
NODES, CARDS = 20, 8


@dataclass
class Team:
    """Two people of two groups. Ann's training holds a whole node, another of hers waits for quota, and one can never
    start; bob's holds two cards."""

    yard: Platform
    url: str
    ann: Client
    bob: Client
    admin: Client


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with a_platform(tmp_path_factory.mktemp("yard"), "simulated", "--nodes", f"{NODES}x{CARDS}") as yard:
        url = str(json.loads((yard.data / "server.json").read_text())["url"])
        with Client(data=yard.data) as admin:
            people = {}
            for name, group, role in (
                ("ann", "vision", "member"),
                ("bob", "speech", "member"),
                ("ada", "vision", "admin"),
            ):
                if group not in {one.name for one in admin.groups()}:
                    admin.create_group(group, quota={"nvidia": 64, "memory": "900G"}, guarantees={"nvidia": 16})
                admin.create_user(name, password=OWN, group=group, role=role)
                people[name] = Client(url, token=admin.create_token("tests", user=name).token)
            admin.set_quota("vision", {"nvidia": 12}, user="ann")
            training = people["ann"].submit(name="training", command="x", cards=8, env=LONG)
            speech = people["bob"].submit(name="speech-model", command="x", cards=2, env=LONG)
            people["ann"].submit(name="too-large", command="x", cards=9)
            people["ann"].submit(name="waits", command="x", cards=8)
            for job in (training, speech):
                yard.wait_for(job.id, "running")
            failing = people["ann"].submit(name="broken", command="x", env={"YARD_SIM_EXIT": "3"}, retries=0)
            yard.wait_for(failing.id)
            yield Team(yard, url, people["ann"], people["bob"], admin)
            for client in people.values():
                client.close()


def tile(page: Page, name: str) -> str:
    return page.locator(f"[data-tile={name}] dd").inner_text()


def test_the_whole_is_counted_drawn_and_told_in_both_languages(
    team: Team, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(team.url, "ann", OWN)
    expect(page.locator("canvas[data-drawn]")).to_be_visible()
    expect(page.locator("[data-tile=used] dd")).to_have_text("10")
    assert tile(page, "nodes") == str(NODES)
    assert tile(page, "simulated") == str(NODES * CARDS)
    assert tile(page, "free") == str(NODES * CARDS - 10)
    expect(
        page.get_by_role("region", name=say("Queue", "队列")).first.get_by_role("link", name="waits")
    ).to_be_visible()
    attention = page.get_by_role("region", name=say("Needs your attention", "需要关注"))
    expect(attention.get_by_text(say("can never start as it is", "按现在的要求永远无法启动"))).to_be_visible()
    expect(attention.get_by_role("link", name="broken")).to_be_visible()
    quota = page.get_by_role("region", name=say("Quota", "配额")).first
    expect(quota.get_by_text(say("yours in vision", "你在 vision 组的限额"))).to_be_visible()
    expect(quota.get_by_text(say("8 of 12", "8 / 12"))).to_be_visible()
    visit.picture("overview")


def test_a_card_tells_whose_work_is_on_it_by_keyboard_and_leads_there(
    team: Team, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    page = visit.page
    visit.enter(team.url, "ann", OWN)
    picture = page.get_by_role("listbox")
    picture.focus()
    heard = page.locator("#card-marked")
    for _ in range(NODES * CARDS):
        if "training of ann" in heard.inner_text():
            break
        page.keyboard.press("ArrowDown")
    expect(heard).to_contain_text("training of ann")
    page.keyboard.press("Enter")
    visit.picture("overview-card")
    expect(page.get_by_role("link", name="training")).to_be_visible()
    page.keyboard.press("Tab")
    page.get_by_role("link", name="training").press("Enter")
    expect(page).to_have_url(re.compile("/jobs/"))


def test_somebody_elses_work_has_no_name_in_picture_table_and_queue(team: Team, visits: Callable[..., Visits]) -> None:
    visit = visits()
    page = visit.page
    visit.enter(team.url, "bob", OWN, "/?as=table")
    expect(page.get_by_role("link", name="speech-model")).to_be_visible()
    expect(page.get_by_text("somebody else's work").first).to_be_visible()
    expect(page.get_by_text("training")).to_have_count(0)
    expect(page.get_by_text("too-large")).to_have_count(0)
    visit.picture("overview-table")


def test_the_picture_follows_what_happens_without_a_reload(team: Team, visits: Callable[..., Visits]) -> None:
    visit = visits(dark=True)
    page = visit.page
    visit.enter(team.url, "bob", OWN, "/?by=health")
    expect(page.locator("[data-tile=used] dd")).to_have_text("10")
    canvas = page.locator("canvas[data-drawn]")
    drawn = str(canvas.get_attribute("data-drawn"))
    more = team.bob.submit(name="more", command="x", cards=4, env=LONG)
    expect(page.locator("[data-tile=used] dd")).to_have_text("14")
    expect(canvas).not_to_have_attribute("data-drawn", drawn)
    team.admin.cordon("sim-20")
    expect(page.locator("[data-tile=closed] dd")).to_have_text("8")
    visit.picture("overview-dark")
    more.stop()
    team.admin.uncordon("sim-20")
    expect(page.locator("[data-tile=used] dd")).to_have_text("10")
    wait_until(lambda: page.locator("[data-tile=closed]").count() == 0)


def test_an_owners_cards_stand_out_and_the_view_is_in_the_address(team: Team, visits: Callable[..., Visits]) -> None:
    visit = visits(width=400, height=800)
    page = visit.page
    visit.enter(team.url, "ada", OWN)
    ann = page.get_by_role("button", name="ann", exact=False).filter(has_text="ann 8")
    ann.click()
    expect(ann).to_have_attribute("aria-pressed", "true")
    visit.picture("overview-narrow")
    page.get_by_text("Use", exact=True).click()
    expect(page).to_have_url(f"{team.url}/?by=use")
    page.reload()
    expect(page.get_by_text("100%")).to_be_visible()
