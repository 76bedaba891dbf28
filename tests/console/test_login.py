"""The way in: the first login, the first password, and a session that ends."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect
from tests.console.visits import Visits
from tests.platforms import Platform

from gpuyard import Client

OWN = "a long enough secret"


def test_someone_new_chooses_a_password_before_anything_else(
    machine: Platform, visits: Callable[..., Visits], language: str
) -> None:
    with Client(data=machine.data) as owner:
        given = str(owner.create_user(f"new{language}").password)
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.log_in(machine.url, f"new{language}", given)
    page.get_by_label(say("The password you were given", "你收到的密码")).fill(given)
    page.get_by_label(say("New password", "新密码"), exact=True).fill("short")
    page.get_by_label(say("New password, once more", "再次输入新密码")).fill(OWN)
    page.get_by_role("button", name=say("Use this password", "使用此密码")).click()
    expect(page.get_by_text(say("The two are different.", "两次输入不一致。"))).to_be_visible()
    page.get_by_label(say("New password", "新密码"), exact=True).fill(OWN)
    visit.picture("first-password")
    page.get_by_role("button", name=say("Use this password", "使用此密码")).click()
    visit.is_inside()


def test_a_wrong_password_is_told_and_what_was_typed_stays(machine: Platform, visits: Callable[..., Visits]) -> None:
    visit = visits()
    visit.expected.append(re.compile("401"))
    visit.log_in(machine.url, "nobody", "wrong password")
    expect(visit.page.get_by_role("alert")).to_be_visible()
    expect(visit.page.get_by_label("Name")).to_have_value("nobody")
    visit.picture("wrong-password")
