"""A dev environment in the browser: asked for, worked in inside the page, stopped and started again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import FrameLocator, expect
from tests.console.visits import PATIENCE_MS, Visits
from tests.images import stage
from tests.platforms import Platform, a_platform

pytestmark = pytest.mark.timeout(600)
OWN = "a long enough secret"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    if problem := stage.missing():
        pytest.skip(problem)
    folder = tmp_path_factory.mktemp("yard")
    with a_platform(folder, "container", "--simulate-cards", "8", with_toolbox=True) as yard:
        yard.load(stage.busybox_image())
        for language in ("en", "zh"):
            yard.good("user", "create", f"ann_{language}", "--password-stdin", stdin=OWN)
        yield yard


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
    cell.locator(".cm-content").click(timeout=PATIENCE_MS)
    visit.page.keyboard.insert_text("print('cell', 6 * 7)")
    visit.page.keyboard.press("Shift+Enter")
    expect(inside.locator(".jp-OutputArea-output").first).to_contain_text("cell 42", timeout=PATIENCE_MS)


def test_an_environment_is_made_worked_in_stopped_and_started(
    yard: Platform, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    visit.expected.append(re.compile(r"\.localhost:"))  # what JupyterLab says in its own frame is its own affair
    page, say = visit.page, visit.say
    visit.log_in(yard.url, f"ann_{language}", OWN, "/envs")
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
