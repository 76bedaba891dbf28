"""The first steps: from the login to a finished example in three clicks, and never again once closed."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect
from tests.console.visits import PATIENCE_MS, Visits
from tests.platforms import Platform

from gpuyard import Client

OWN = "a long enough secret"


def person(machine: Platform, name: str) -> None:
    with Client(data=machine.data) as owner:
        owner.create_user(name, password=OWN)


def steps(visit: Visits) -> Locator:
    return visit.page.get_by_role("region", name=visit.say("Your first job", "运行第一个任务"))


def test_three_clicks_lead_from_the_login_to_a_finished_example(
    machine: Platform, visits: Callable[..., Visits], language: str
) -> None:
    name = f"first_{language}"
    person(machine, name)
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.log_in(machine.url, name, OWN)  # the first click
    shown = steps(visit)
    visit.picture("tour-begin")
    shown.get_by_role("button", name=say("Run an example", "运行示例")).click()  # the second
    expect(shown.get_by_label(say("Output of the example", "示例的输出"))).to_contain_text(
        "step 1 of 5", timeout=PATIENCE_MS
    )
    expect(shown).to_contain_text(say("That was a whole job", "这就是一个完整的任务"), timeout=PATIENCE_MS)
    expect(shown.get_by_label(say("Output of the example", "示例的输出"))).to_contain_text("done: this was example")
    visit.picture("tour-done")
    shown.get_by_role("link", name=say("See all about it", "查看任务详情")).click()  # the third
    expect(page).to_have_url(re.compile("/jobs/"))
    page.go_back()
    steps(visit).get_by_role("button", name=say("Close", "关闭")).click()
    expect(steps(visit)).to_have_count(0)
    page.reload()
    visit.is_inside()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(steps(visit)).to_have_count(0)


def test_who_wants_none_of_it_is_not_asked_again(machine: Platform, visits: Callable[..., Visits]) -> None:
    person(machine, "knows")
    visit = visits(width=400, height=800)
    visit.enter(machine.url, "knows", OWN)
    steps(visit).get_by_role("button", name="Not now").click()
    expect(steps(visit)).to_have_count(0)
    visit.page.reload()
    expect(visit.page.get_by_role("heading", level=1)).to_be_visible()
    expect(steps(visit)).to_have_count(0)
