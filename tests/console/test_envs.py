"""A dev environment in the browser: asked for, worked in inside the page, stopped and started again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import FrameLocator, expect
from tests.cli.yard import wait_until
from tests.console.visits import PATIENCE_MS, Visits
from tests.images import stage
from tests.platforms import Platform, a_platform

from gpuyard import Client
from gpuyard.sdk.workplaces import Env

pytestmark = pytest.mark.timeout(600)
OWN = "a long enough secret"
OFTEN = "sample_seconds = 0.5\n"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    if problem := stage.missing():
        pytest.skip(problem)
    folder = tmp_path_factory.mktemp("yard")
    with a_platform(folder, "container", "--simulate-cards", "8", with_toolbox=True, settings=OFTEN) as yard:
        yard.load(stage.busybox_image())
        with Client(data=yard.data) as owner:
            for name in ("ann_en", "ann_zh", "ann"):
                owner.create_user(name, password=OWN)
        yield yard


@pytest.fixture(scope="module")
def ann(yard: Platform) -> Iterator[Client]:
    """What ann does outside of the browser."""
    with Client(data=yard.data) as owner, Client(yard.url, owner.create_token("outside", user="ann").token) as ann:
        yield ann


@pytest.fixture(scope="module")
def work(ann: Client) -> Env:
    """One of hers that runs."""
    return ann.create_env("work", image=stage.busybox_image(), cpu=1, memory="2G", cards=1).wait(timeout=120)


EDITOR = ".editor-instance :is(.native-edit-context, textarea.inputarea)"  # where keys go, in either of its ways


def frame(visit: Visits, what: str) -> FrameLocator:
    return visit.page.frame_locator(f'iframe[title^="{what}"]')


def ask_for_one(visit: Visits, name: str) -> None:
    """With one card and an image that is here; what will happen is said beside it."""
    page, say = visit.page, visit.say
    page.get_by_role("main").get_by_role("link", name=say("New environment", "新建环境")).first.click()
    page.locator("#env-name").fill(name)
    page.get_by_label(say("Image", "镜像")).click()
    page.locator(".ant-select-item-option", has_text="yard-busybox").click()
    outlook = page.get_by_role("region", name=say("What will happen", "创建后会怎样"))
    expect(outlook).to_contain_text(say("It starts now", "会立即在"), timeout=PATIENCE_MS)
    page.locator("#env-cpu").fill("1")
    page.locator("#env-memory").fill("1")
    page.locator("#env-cards").fill("1")
    expect(outlook).to_contain_text(say("It starts now", "会立即在"), timeout=PATIENCE_MS)
    visit.picture("env-new")
    page.get_by_role("button", name=re.compile(say("^Create$", r"^创\s?建$"))).click()


def is_in_state(visit: Visits, en: str, zh: str) -> None:
    expect(visit.page.locator("h1 .state")).to_have_text(visit.say(en, zh), timeout=PATIENCE_MS)


def type_in_terminal(visit: Visits, line: str, shows: str) -> None:
    inside = frame(visit, visit.say("Terminal", "终端"))
    inside.locator(".xterm-helper-textarea").focus()
    expect(inside.locator(".xterm-rows")).to_contain_text(re.compile("[#$]"), timeout=PATIENCE_MS)
    visit.page.keyboard.insert_text(line)
    visit.page.keyboard.press("Enter")
    expect(inside.locator(".xterm-rows")).to_contain_text(shows, timeout=PATIENCE_MS)


def run_a_cell(visit: Visits) -> None:
    inside = frame(visit, "Lab")
    inside.locator('.jp-LauncherCard[data-category="Notebook"]').first.click(timeout=PATIENCE_MS)
    expect(inside.locator("#jp-bottom-panel")).to_contain_text("| Idle", timeout=PATIENCE_MS)
    cell = inside.locator(".jp-Notebook .jp-CodeCell").first
    cell.locator(".cm-content").focus(timeout=PATIENCE_MS)  # the foot of the page may lie over it
    visit.page.keyboard.insert_text("print('cell', 6 * 7)")
    visit.page.keyboard.press("Shift+Enter")
    expect(inside.locator(".jp-OutputArea-output").first).to_contain_text("cell 42", timeout=PATIENCE_MS)


def test_an_environment_is_made_worked_in_stopped_and_started(
    yard: Platform, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    visit.expected.append(re.compile(r"\.localhost:"))  # what JupyterLab says in its own frame is its own affair
    page, say = visit.page, visit.say
    visit.enter(yard.url, f"ann_{language}", OWN, "/envs")
    expect(page.get_by_text(say("You have no dev environment yet", "你还没有开发环境"))).to_be_visible()
    visit.picture("envs-none")
    ask_for_one(visit, "dev")
    is_in_state(visit, "running", "运行中")
    visit.picture("env-about")
    page.get_by_role("tab", name=say("Terminal", "终端")).click()
    type_in_terminal(visit, "echo 您好-$((40 + 2))", "您好-42")
    visit.picture("env-terminal")
    page.get_by_role("tab", name="Lab").click()
    expect(page).to_have_url(re.compile(r"/envs/dev\?tab=lab$"))
    run_a_cell(visit)
    visit.picture("env-lab")
    page.get_by_role("tab", name=say("SSH and editors", "SSH 与编辑器")).click()
    expect(page.get_by_text(re.compile(rf"^ssh -p \d+ ann_{language}\+dev@"))).to_be_visible()
    visit.picture("env-connect")
    page.get_by_role("tab", name=say("About", "概况")).click()
    page.get_by_role("button", name=re.compile(say("poweroff Stop$", r"poweroff 停\s?止$"))).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(say("Its cards become free", "释放加速卡"))
    dialog.get_by_role("button", name=re.compile(say("^Stop$", r"^停\s?止$"))).click()
    is_in_state(visit, "stopped", "已停止")
    expect(page.get_by_role("tab", name=re.compile("Lab"))).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name=re.compile(say("Start$", r"启\s?动$"))).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(say("Without cards", "不使用加速卡")).click()
    dialog.get_by_role("button", name=re.compile(say("^Start$", r"^启\s?动$"))).click()
    is_in_state(visit, "running", "运行中")
    expect(page.get_by_role("main")).to_contain_text(say("no cards", "无加速卡"))
    page.get_by_role("button", name=re.compile(say("Remove$", r"删\s?除$"))).click()
    expect(page.get_by_role("dialog")).to_contain_text(say("What is installed in it is lost", "其中安装的内容会丢失"))
    page.get_by_role("dialog").get_by_role("button", name=re.compile(say("^Remove$", r"^删\s?除$"))).click()
    expect(page).to_have_url(re.compile("/envs$"))


def test_a_file_is_edited_in_vs_code_inside_the_page(yard: Platform, work: Env, visits: Callable[..., Visits]) -> None:
    home = yard.data / "files" / "user" / "ann"
    script = home / "hello.sh"
    script.write_text("")
    os.chown(script, home.stat().st_uid, home.stat().st_gid)
    visit = visits()
    visit.expected.append(re.compile(r"\.localhost:|vscode"))  # what VS Code says in its own frame is its own affair
    visit.enter(yard.url, "ann", OWN, "/envs/work")
    visit.page.get_by_role("tab", name="IDE").click()
    expect(visit.page).to_have_url(re.compile(r"/envs/work\?tab=ide$"))
    inside = frame(visit, "IDE")
    inside.locator(".explorer-folders-view .monaco-list-row", has_text=script.name).dblclick()
    wait_until(lambda: is_edited(visit, script, "echo edited inside the page"), what=script.read_text)
    visit.picture("env-ide")


def is_edited(visit: Visits, script: Path, text: str) -> bool:
    """Into the open file, by the keyboard alone: panels may lie over it. While it gets ready it is typed again."""
    frame(visit, "IDE").locator(EDITOR).first.focus()
    for key in ("Control+a", *text, "Control+s"):
        visit.page.keyboard.press(key if key != " " else "Space")
    visit.page.wait_for_timeout(1500)
    return text in script.read_text()


def test_usage_charts_show_what_an_environment_uses(
    yard: Platform, ann: Client, work: Env, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    page = visit.page
    visit.enter(yard.url, "ann", OWN, "/envs/work?tab=terminal")
    type_in_terminal(visit, "while :; do :; done & echo begun-$((1 + 1))", "begun-2")
    page.get_by_role("tab", name="Usage").click()
    cores = page.locator("section", has=page.get_by_role("img", name="Cores used"))
    expect(cores.locator("canvas")).to_be_visible()
    expect(cores).to_contain_text(re.compile(r"Now: (0\.[1-9]|[1-9])"))  # at rest it is a hundredth
    memory = page.locator("section", has=page.get_by_role("img", name="Memory used"))
    expect(memory).to_contain_text(re.compile(r"highest: [1-9][0-9.]* [KMG]"))
    visit.picture("env-usage")


def test_timer_and_idle_time_are_changed_while_it_runs(
    yard: Platform, ann: Client, work: Env, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    page = visit.page
    visit.enter(yard.url, "ann", OWN, "/envs/work")
    page.get_by_role("button", name="Stop in one hour").click()
    expect(page.get_by_text("Its timer stops it at")).to_be_visible()
    first = datetime.fromisoformat(str(ann.env("work").stop_at))
    page.get_by_role("button", name="One hour more").click()
    wait_until(lambda: datetime.fromisoformat(str(ann.env("work").stop_at)) - first == timedelta(hours=1))
    choose(visit, "Stop when nobody uses it for", "30 minutes")
    wait_until(lambda: ann.env("work").idle_seconds == 1800)
    visit.picture("env-timer")
    page.get_by_role("button", name="No timer").click()
    expect(page.get_by_text("No timer is set.")).to_be_visible()
    choose(visit, "Stop when nobody uses it for", "Never")
    wait_until(lambda: (ann.env("work").idle_seconds, ann.env("work").stop_at) == (None, None))


def choose(visit: Visits, label: str, option: str) -> None:
    visit.page.get_by_label(label).click()
    visit.page.locator(".ant-select-item-option", has_text=re.compile(f"^{option}$")).click()


def test_a_restart_with_other_resources_goes_on_when_the_page_is_closed(
    yard: Platform, ann: Client, work: Env, visits: Callable[..., Visits]
) -> None:
    attempt = ann.env("work").attempt
    visit = visits()
    page = visit.page
    visit.enter(yard.url, "ann", OWN, "/envs/work")
    page.get_by_role("button", name="Restart").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("What is installed and all files stay.")
    dialog.locator("#again-cards").fill("2")
    dialog.locator("#again-memory").fill("1")
    visit.picture("env-restart")
    dialog.get_by_role("button", name="Restart").click()
    expect(page.get_by_text("Restarting: it is stopped, then started again.")).to_be_visible()
    page.goto("about:blank")
    wait_until(lambda: (now := ann.env("work")).state == "running" and now.attempt > attempt, 120)
    page.goto(yard.url + "/envs/work")
    is_in_state(visit, "running", "运行中")
    expect(page.get_by_role("main")).to_contain_text("2 cards")
    env = ann.env("work")
    assert (env.cards, env.memory) == (2, 1 << 30)


def test_an_offered_change_is_taken_in_the_form_and_starts_it(
    yard: Platform, ann: Client, work: Env, visits: Callable[..., Visits]
) -> None:
    image = stage.busybox_image()
    hog = ann.create_env("hog", image=image, cpu=0.1, memory="256M", cards=8 - int(ann.env("work").cards) - 2).wait()
    visit = visits()
    page = visit.page
    visit.enter(yard.url, "ann", OWN, "/envs/new")
    page.locator("#env-name").fill("fits")
    page.get_by_label("Image").fill(image)
    page.locator("#env-cpu").fill("0")
    page.locator("#env-memory").fill("1")
    page.locator("#env-cards").fill("4")
    outlook = page.get_by_role("region", name="What will happen")
    expect(outlook).to_contain_text("It would wait")
    visit.picture("env-offers")
    outlook.get_by_role("button", name=re.compile("^Use this: .*2 cards")).first.click()
    expect(page.locator("#env-cards")).to_have_value("2")
    expect(outlook).to_contain_text("It starts now")
    page.get_by_role("button", name="Create", exact=True).click()
    is_in_state(visit, "running", "运行中")
    assert ann.env("fits").cards == 2
    for env in (hog, ann.env("fits")):
        env.remove()
