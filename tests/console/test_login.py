"""The way in: the first login, the first password, and a session that ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

OWN = "a long enough secret"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "process", "--simulate-cards", "8") as yard:
        yield yard


def test_someone_new_chooses_a_password_before_anything_else(
    yard: Platform, visits: Callable[..., Visits], language: str
) -> None:
    given = json.loads(yard.good("user", "create", f"new{language}", "-o", "json"))["password"]
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.log_in(yard.url, f"new{language}", given)
    page.get_by_label(say("The password you were given", "你收到的密码")).fill(given)
    page.get_by_label(say("New password", "新密码"), exact=True).fill("short")
    page.get_by_label(say("New password, once more", "再次输入新密码")).fill(OWN)
    page.get_by_role("button", name=say("Use this password", "使用此密码")).click()
    expect(page.get_by_text(say("The two are different.", "两次输入不一致。"))).to_be_visible()
    page.get_by_label(say("New password", "新密码"), exact=True).fill(OWN)
    visit.picture("first-password")
    page.get_by_role("button", name=say("Use this password", "使用此密码")).click()
    visit.is_inside()


def test_a_wrong_password_is_told_and_what_was_typed_stays(yard: Platform, visits: Callable[..., Visits]) -> None:
    visit = visits()
    visit.expected.append(re.compile("401"))
    visit.log_in(yard.url, "nobody", "wrong password")
    expect(visit.page.get_by_role("alert")).to_be_visible()
    expect(visit.page.get_by_label("Name")).to_have_value("nobody")
    visit.picture("wrong-password")
