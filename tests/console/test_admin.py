"""An admin's day: quotas changed live, work stopped in batches, nodes closed, people and rules looked after. And a
lead's, who sees what is theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.cli.yard import wait_until
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client
from gpuyard.sdk.job import Job

OWN = "a long enough secret"
LONG = {"YARD_SIM_SECONDS": "86400"}


@dataclass
class Team:
    yard: Platform
    url: str
    ann: Client
    admin: Client

    def jobs(self, names: list[str]) -> list[Job]:
        return [self.ann.submit(name=name, command="x", cards=1, env=LONG) for name in names]


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with a_platform(tmp_path_factory.mktemp("yard"), "simulated", "--nodes", "20x8") as yard:
        url = str(json.loads((yard.data / "server.json").read_text())["url"])
        with Client(data=yard.data) as admin:
            admin.create_group("vision", quota={"nvidia": 16}, guarantees={"nvidia": 4})
            admin.create_group("speech")
            for name, group, role in (
                ("ann", "vision", "member"),
                ("lea", "vision", "lead"),
                ("bob", "speech", "member"),
                ("ada", "speech", "admin"),
            ):
                admin.create_user(name, password=OWN, group=group, role=role)
            with Client(url, token=admin.create_token("tests", user="ann").token) as ann:
                yield Team(yard, url, ann, admin)


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    page.locator(".ant-select-item-option").filter(has_text=re.compile(f"^{re.escape(option)}$")).click()


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


def still(visit: Visits, name: str) -> None:
    """A picture after what comes in has come to rest."""
    # Not `wait_for_function`: what it runs in the page again and again, the page's own rules forbid.
    wait_until(lambda: bool(visit.page.evaluate("document.getAnimations().every(one => one.playState !== 'running')")))
    visit.picture(name)


def test_an_admin_changes_a_quota_live(team: Team, visits: Callable[..., Visits], language: str) -> None:
    team.admin.set_quota("vision", {"nvidia": 2}, guarantees={"nvidia": 2})
    jobs = team.jobs([f"q{n}" for n in range(4)])
    wait_until(lambda: [job.refresh().state for job in jobs].count("running") == 2)
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(team.url, "ada", OWN, "/admin/groups?group=vision")
    drawer = page.get_by_role("dialog")
    cards = say("NVIDIA cards", "NVIDIA 加速卡")
    limit = drawer.get_by_label(say(f"Limit of {cards}", f"{cards} 的限额"))
    expect(limit).to_have_value("2")
    expect(drawer.locator("[data-used=nvidia]")).to_contain_text("2")
    save = drawer.get_by_role("button", name=say("Save", "保存")).first
    expect(save).to_be_disabled()
    limit.fill("lots")
    visit.expected.append(re.compile("400"))
    save.click()
    expect(drawer.get_by_role("alert").first).to_be_visible()
    expect(limit).to_have_value("lots")
    limit.fill("3")
    save.click()
    expect(drawer.locator("[data-used=nvidia]")).to_contain_text("3")
    visit.picture("admin-quota")
    limit.fill("1")
    drawer.get_by_label(say(f"Guarantee of {cards}", f"{cards} 的保障")).fill("")
    save.click()
    expect(drawer.get_by_role("status").first).to_be_visible()  # more is in use than that
    assert [job.refresh().state for job in jobs].count("running") == 3, "what runs is left alone"
    for job in jobs:
        job.stop()


def test_an_admin_stops_many_at_once_and_is_told_of_each(
    team: Team, visits: Callable[..., Visits], language: str
) -> None:
    team.admin.set_quota("vision", {"nvidia": 16})
    names = [f"batch-{language}-{n}" for n in range(3)]
    jobs = team.jobs(names)
    for job in jobs:
        team.yard.wait_for(job.id, "running")
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(team.url, "ada", OWN, f"/admin/workloads?search=batch-{language}")
    expect(page.get_by_role("button", name=say("Stop", "停止"), exact=True)).to_be_disabled()
    for name in names:
        row(page, name).get_by_role("checkbox").check()
    page.get_by_role("button", name=say("Set priority", "设置优先级")).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("spinbutton").fill("640")
    dialog.get_by_role("button", name=say("Set priority", "设置优先级")).click()
    expect(dialog.get_by_text(say("3 done, 0 refused", "3 个成功，0 个被拒绝"))).to_be_visible()
    dialog.get_by_role("button", name=say("Close", "关闭")).last.click()
    expect(row(page, names[0])).to_contain_text("640")
    jobs[0].stop()
    team.yard.wait_for(jobs[0].id)
    for name in names[1:]:
        row(page, name).get_by_role("checkbox").check()
    page.get_by_role("button", name=say("Stop", "停止"), exact=True).click()
    lost = say(
        "2 run now on 2 cards: what they have not saved is lost.", "其中 2 个正在 2 张卡上运行：未保存的进度将丢失"
    )
    expect(dialog.get_by_text(lost)).to_be_visible()
    still(visit, "admin-batch-stop")
    dialog.get_by_role("button", name=say("Stop", "停止"), exact=True).click()
    expect(dialog.get_by_text(say("2 done, 0 refused", "2 个成功，0 个被拒绝"))).to_be_visible()
    still(visit, "admin-batch-results")
    for job in jobs:
        assert team.yard.wait_for(job.id)["state"] == "stopped"


def test_an_admin_closes_a_node_and_opens_it_again(team: Team, visits: Callable[..., Visits], language: str) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(team.url, "ada", OWN, "/admin/nodes")
    name = "sim-07"
    page.get_by_role("button", name=f"{say('Cordon', '暂停分配')}: {name}", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(say("What runs there goes on", "会继续"))).to_be_visible()
    still(visit, "admin-cordon")
    dialog.get_by_role("button", name=say("Cordon", "暂停分配")).click()
    expect(row(page, name)).to_contain_text(say("cordoned", "已暂停分配"))
    assert {node.name: node.state for node in team.admin.nodes()}[name] == "cordoned"
    page.get_by_role("button", name=f"{say('Uncordon', '恢复分配')}: {name}", exact=True).click()
    expect(row(page, name)).to_contain_text(say("ready", "正常"))


def test_a_node_shows_who_is_on_which_card_and_takes_labels(team: Team, visits: Callable[..., Visits]) -> None:
    (job,) = team.jobs(["on-a-card"])
    node = team.yard.wait_for(job.id, "running")["attempts"][-1]["replicas"][0]["node"]
    visit = visits()
    page = visit.page
    visit.enter(team.url, "ada", OWN, f"/admin/nodes?node={node}")
    cards = page.get_by_role("table", name=f"Cards of {node}")
    expect(cards.get_by_role("row").filter(has_text="on-a-card")).to_contain_text("ann")
    page.get_by_role("button", name=f"Labels of {node}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Add label").click()
    dialog.get_by_label("Label", exact=True).fill("bad key!")
    dialog.get_by_label("Value", exact=True).fill("north")
    visit.expected.append(re.compile("400"))
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_label("Value", exact=True)).to_have_value("north")
    dialog.get_by_label("Label", exact=True).fill("zone")
    dialog.get_by_role("button", name="Save").click()
    expect(row(page, node).first).to_contain_text("zone=north")
    visit.picture("admin-nodes")
    job.stop()


def test_someone_new_gets_a_password_that_is_shown_once(
    team: Team, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(team.url, "ada", OWN, "/admin/users")
    add = say("Add user", "添加用户")
    page.get_by_role("button", name=add).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(say("Name", "名称"), exact=True).fill("ann")
    visit.expected.append(re.compile("409"))
    dialog.get_by_role("button", name=add).click()
    expect(dialog.get_by_text(say("There is already a user called", "已经有同名的用户"))).to_be_visible()
    dialog.get_by_label(say("Name", "名称"), exact=True).fill(f"new{language}")
    dialog.get_by_label(say("Name", "名称"), exact=True).press("Enter")
    secret = dialog.locator("code")
    expect(secret).to_be_visible()
    password = secret.inner_text()
    still(visit, "admin-one-time-password")
    dialog.get_by_role("button", name=say("Done", "完成")).click()
    expect(page.get_by_text(password)).to_have_count(0)
    assert password not in page.evaluate("JSON.stringify([localStorage, sessionStorage, location.href])")
    expect(row(page, f"new{language}")).to_contain_text(say("has a one-time password", "使用一次性密码"))
    page.get_by_role("button", name=say(f"Actions for new{language}", f"new{language} 的操作")).click()
    page.get_by_role("menuitem", name=say("Disable", "停用")).click()
    dialog.get_by_role("button", name=say("Disable", "停用")).click()
    expect(row(page, f"new{language}")).to_contain_text(say("disabled", "已停用"))
    page.get_by_role("button", name=say(f"Actions for new{language}", f"new{language} 的操作")).click()
    page.get_by_role("menuitem", name=say("Remove", "删除")).click()
    dialog.get_by_role("button", name=say("Remove", "删除")).click()
    expect(row(page, f"new{language}")).to_have_count(0)
    visit.picture("admin-users")


def test_a_group_is_merged_after_a_look_at_what_comes_of_it(team: Team, visits: Callable[..., Visits]) -> None:
    team.admin.create_group("old-vision", quota={"nvidia": 4})
    visit = visits()
    page = visit.page
    visit.enter(team.url, "ada", OWN, "/admin/groups?group=old-vision")
    drawer = page.get_by_role("dialog").first
    choose(page, "Add a member", "bob")
    expect(drawer.get_by_role("button", name="Remove bob from the group")).to_be_visible()
    choose(page, "Into", "vision")
    drawer.get_by_role("button", name="Preview").click()
    expect(drawer.get_by_text("Joining vision: bob (1)")).to_be_visible()
    visit.picture("admin-merge")
    drawer.get_by_role("button", name="Merge", exact=True).click()
    page.get_by_role("dialog").last.get_by_role("button", name="Merge").click()
    expect(page).to_have_url(f"{team.url}/admin/groups?group=vision")
    assert "old-vision" not in {group.name for group in team.admin.groups()}


def test_a_policy_is_tried_before_it_is_set(team: Team, visits: Callable[..., Visits]) -> None:
    visit = visits()
    page = visit.page
    visit.enter(team.url, "ada", OWN, "/admin/policy")
    half_life = page.get_by_label("Past use counts half after")
    set_it = page.get_by_role("button", name="Set", exact=True)
    half_life.fill("soon")
    expect(set_it).to_be_disabled()
    visit.expected.append(re.compile("400"))
    page.get_by_role("button", name="Try", exact=True).click()
    expect(half_life.locator("..").get_by_role("alert")).to_be_visible()
    half_life.fill("3d")
    page.get_by_role("button", name="Try", exact=True).click()
    expect(page.get_by_role("status").get_by_text("Order · Past use counts half after")).to_be_in_viewport()
    visit.picture("admin-policy")
    set_it.click()
    page.get_by_role("dialog").get_by_role("button", name="Set", exact=True).click()
    wait_until(lambda: team.admin.policy()["order"]["half_life"] == "3d")
    page.get_by_text("YAML", exact=True).click()
    text = page.get_by_label("The whole policy as YAML")
    expect(text).to_contain_text("half_life: 3d")
    text.fill("order: [")
    expect(page.get_by_role("alert").filter(has_text="This is no YAML")).to_be_visible()
    expect(set_it).to_be_disabled()
    visit.picture("admin-policy-yaml")


def test_the_audit_trail_is_whole_and_searched(team: Team, visits: Callable[..., Visits], language: str) -> None:
    team.admin.cordon("sim-03")
    team.admin.uncordon("sim-03")
    visit = visits(language)
    page, say = visit.page, visit.say
    visit.enter(team.url, "ada", OWN, "/admin/audit")
    expect(page.get_by_text(say("lines are as they were written", "记录与写入时一致"))).to_be_visible()
    page.get_by_label(say("Object", "对象"), exact=True).fill("sim-03")
    page.get_by_label(say("Object", "对象"), exact=True).press("Enter")
    expect(page).to_have_url(re.compile("object=sim-03"))
    expect(page.get_by_role("row")).to_have_count(3 if language == "en" else 5)
    expect(row(page, say("cordoned a machine", "暂停分配")).first).to_contain_text("sim-03")
    visit.picture("admin-audit")


def test_a_lead_sees_their_group_divides_what_it_has_and_nothing_more(
    team: Team, visits: Callable[..., Visits]
) -> None:
    team.admin.set_quota("vision", {"nvidia": 16})
    (job,) = team.jobs(["led"])
    foreign = team.admin.submit(name="foreign", command="x", group="speech", env=LONG)
    visit = visits(width=400, height=800)
    page = visit.page
    visit.enter(team.url, "lea", OWN, "/admin/workloads")
    expect(row(page, "led").first).to_be_visible()
    expect(page.get_by_text("foreign")).to_have_count(0)
    visit.picture("admin-lead-workloads")
    page.goto(f"{team.url}/admin/groups?group=vision")
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_label("Limit of NVIDIA cards")).to_be_disabled()
    expect(drawer.get_by_text("Only an admin changes what the whole group has.")).to_be_visible()
    choose(page, "Member", "ann")
    drawer.get_by_label("Limit", exact=True).fill("99")
    visit.expected.append(re.compile("403"))
    drawer.get_by_role("button", name="Set", exact=True).click()
    expect(drawer.get_by_role("alert")).to_be_visible()
    drawer.get_by_label("Limit", exact=True).fill("5")
    drawer.get_by_role("button", name="Set", exact=True).click()
    expect(drawer.get_by_text("1 of 5")).to_be_visible()
    visit.picture("admin-lead-group")
    page.goto(f"{team.url}/admin/users")
    expect(page.get_by_text("Only admins see this page.")).to_be_visible()
    job.stop()
    foreign.stop()
