"""One's own account: the password, tokens that are shown once, keys, language and theme."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.console.visits import Visits
from tests.platforms import Platform

from gpuyard import Client

OWN, NEXT = "a long enough secret", "another long secret"


@pytest.fixture(scope="module")
def yard(machine: Platform) -> Platform:
    with Client(data=machine.data) as owner:
        for name in ("ann_en", "ann_zh", "carl"):
            owner.create_user(name, password=OWN)
    return machine


def test_a_token_is_shown_once_works_and_is_taken_back(
    yard: Platform, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(yard.url, f"ann_{language}", OWN, "/account?tab=tokens")
    page.get_by_label(say("What it is for", "用途")).fill("<b>nightly</b>")
    page.get_by_role("button", name=say("Make a token", "创建令牌")).click()
    secret = page.get_by_text(re.compile(r"^yard_[\w-]{20,}$")).inner_text()
    visit.picture("account-token")
    assert f"ann_{language}" in yard.as_user(secret).good("whoami")
    page.get_by_role("button", name=say("I have kept it", "我已保存")).click()
    expect(page.get_by_text(secret)).to_have_count(0)
    assert secret not in page.content()
    assert secret not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
    page.get_by_role("button", name=say("Revoke: <b>nightly</b>", "撤销: <b>nightly</b>")).click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile(say("^Revoke$", r"^撤\s?销$"))).click()
    expect(page.get_by_role("cell", name="<b>nightly</b>", exact=True)).to_have_count(0)
    assert yard.as_user(secret).run("whoami").code != 0


def test_a_key_that_is_none_is_refused_at_the_field_and_a_real_one_is_kept(
    yard: Platform, visits: Callable[..., Visits], tmp_path: Path, language: str
) -> None:
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ann@laptop", "-f", str(tmp_path / "key")]
    subprocess.run(made, check=True)
    visit = visits(language)
    visit.expected.append(re.compile("400"))
    page, say = visit.page, visit.say
    visit.enter(yard.url, f"ann_{language}", OWN, "/account?tab=keys")
    field = page.get_by_label(say("Public key", "公钥"))
    field.fill("ssh-rsa nonsense")
    page.get_by_role("button", name=say("Add the key", "添加密钥")).click()
    expect(page.locator(".ant-form-item-explain-error")).to_be_visible()
    expect(field).to_have_value("ssh-rsa nonsense")
    field.fill((tmp_path / "key.pub").read_text())
    page.get_by_role("button", name=say("Add the key", "添加密钥")).click()
    expect(page.get_by_role("cell", name="ann@laptop", exact=True)).to_be_visible()
    visit.picture("account-keys")
    page.get_by_role("button", name=say("Remove: ann@laptop", "删除: ann@laptop")).click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile(say("^Remove$", r"^删\s?除$"))).click()
    expect(page.get_by_role("cell", name="ann@laptop", exact=True)).to_have_count(0)


def test_a_browser_that_takes_itself_for_offline_still_reaches_the_platform(
    yard: Platform, visits: Callable[..., Visits]
) -> None:
    """Without the internet it does so; a platform on the same machine or in the same house is there all the same."""
    visit = visits()
    visit.enter(yard.url, "carl", OWN, "/account?tab=tokens")
    visit.page.evaluate("window.dispatchEvent(new Event('offline'))")
    visit.page.get_by_label("What it is for").fill("offline")
    visit.page.get_by_role("button", name="Make a token").click()
    visit.page.get_by_role("button", name="I have kept it").click()
    expect(visit.page.get_by_role("cell", name="offline", exact=True)).to_be_visible()


@pytest.mark.parametrize("moving", [True, False], ids=["moving", "still"])
def test_dialogs_come_and_go_with_and_without_motion(
    yard: Platform, visits: Callable[..., Visits], moving: bool
) -> None:
    visit = visits(moving=moving)
    visit.enter(yard.url, "carl", OWN, "/account?tab=tokens")
    visit.page.get_by_label("What it is for").fill(f"with motion {moving}")
    visit.page.get_by_role("button", name="Make a token").click()
    visit.page.get_by_role("button", name="I have kept it").click()
    visit.page.get_by_role("button", name=f"Revoke: with motion {moving}").click()
    dialog = visit.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    expect(visit.page.get_by_role("cell", name=f"with motion {moving}", exact=True)).to_be_visible()


def test_another_password_is_chosen_and_all_other_logins_end(yard: Platform, visits: Callable[..., Visits]) -> None:
    elsewhere, here = visits(), visits()
    for visit in (elsewhere, here):
        visit.expected.append(re.compile("401|400"))
        visit.enter(yard.url, "carl", OWN, "/account?tab=password")
        visit.is_inside()
    page = here.page
    for label, text in (("Present password", "wrong"), ("New password", NEXT), ("New password, once more", NEXT)):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("This is not your present password.")).to_be_visible()
    expect(page.get_by_label("New password", exact=True)).to_have_value(NEXT)
    page.get_by_label("Present password").fill(OWN)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("The password is changed.")).to_be_visible()
    here.picture("account-password")
    elsewhere.page.reload()
    expect(elsewhere.page.get_by_role("button", name="Log in")).to_be_visible()


def test_language_and_theme_are_kept_and_leaving_leads_to_the_login(
    yard: Platform, visits: Callable[..., Visits]
) -> None:
    visit = visits(width=400, height=800)
    page = visit.page
    visit.enter(yard.url, "ann_en", OWN, "/account")
    content = page.get_by_role("main")
    content.get_by_text("Dark", exact=True).click()
    content.get_by_text("中文", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("账号")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("账号")
    expect(page.locator("html")).to_have_attribute("data-look", "dark")
    visit.picture("account-narrow-dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    content.get_by_role("button", name="退出登录").click()
    expect(page.get_by_role("button", name=re.compile("登.?录"))).to_be_visible()
