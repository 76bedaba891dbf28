"""A day's work in a real browser, through the gateway: a notebook cell in JupyterLab, an edited file run in VS Code's
terminal. In an image with nothing but busybox, and in Debian."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from tests.cli.yard import wait_until
from tests.images import stage
from tests.platforms import Platform, a_platform

pytestmark = [
    pytest.mark.timeout(1800),  # the first run on a machine builds the toolbox
    pytest.mark.skipif(bool(stage.missing("iptables", "chromium")), reason=stage.missing("iptables", "chromium")),
]

SECONDS = 60_000  # of patience with a page, in ms: the machine may be busy
RECONNECT_SECONDS = 240_000  # JupyterLab tries again by itself, at longer and longer intervals
OWNER = "admin"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "container", with_toolbox=True) as yard:
        yield yard


@pytest.fixture(scope="module", params=["busybox", "debian"])
def environment(request: pytest.FixtureRequest, yard: Platform) -> Iterator[str]:
    if request.param == "debian" and shutil.which("debootstrap") is None:
        pytest.skip("not installed: debootstrap")
    image = yard.load(stage.busybox_image() if request.param == "busybox" else stage.debian_image())
    yard.good("env", "create", request.param, "--image", image, "--cpu", "1", "--memory", "2G")
    yield request.param
    yard.good("env", "stop", request.param)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
    expect.set_options(timeout=SECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(SECONDS)
    yield context.new_page()
    context.close()


def address(yard: Platform, environment: str, what: str) -> str:
    return yard.good("env", "open", "--print", environment, what)


def home(yard: Platform) -> Path:
    return yard.data / "files" / "user" / OWNER


def own_file(yard: Platform, name: str, text: str) -> Path:
    file = home(yard) / name
    file.write_text(text)
    owner = home(yard).stat()
    os.chown(file, owner.st_uid, owner.st_gid)
    return file


def test_a_notebook_cell_is_run_in_jupyterlab(yard: Platform, environment: str, page: Page) -> None:
    open_notebook(yard, environment, page)
    run_cell(page, 0, "import os; print(6 * 7, os.getcwd())")
    expect(outputs(page).first).to_have_text(f"42 /mnt/user/{OWNER}\n", timeout=SECONDS)


def open_notebook(yard: Platform, environment: str, page: Page) -> None:
    """A new one, and nothing of what was open before."""
    page.goto(address(yard, environment, "lab") + "&next=/lab%3Freset")
    page.locator(".jp-LauncherCard[data-category=Notebook]", has_text="(toolbox)").click()
    expect(page.locator("#jp-bottom-panel")).to_contain_text("(toolbox) | Idle", timeout=SECONDS)


def run_cell(page: Page, number: int, code: str) -> None:
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").nth(number)
    cell.fill(code)
    expect(cell).to_contain_text(code)
    cell.press("Shift+Enter")


def outputs(page: Page) -> Locator:
    return page.locator(".jp-OutputArea-output")


@pytest.mark.parametrize("environment", ["busybox"], indirect=True)
def test_an_open_notebook_survives_the_servers_and_the_gateways_death(
    yard: Platform, environment: str, page: Page
) -> None:
    """The same page, the same kernel: nothing is opened anew."""
    open_notebook(yard, environment, page)
    run_cell(page, 0, "kept = 6 * 7; print('before', kept)")
    expect(outputs(page).last).to_have_text("before 42\n", timeout=SECONDS)
    yard.kill_server()
    run_cell(page, 1, "kept += 1; print('without', kept)")
    expect(outputs(page).last).to_have_text("without 43\n", timeout=SECONDS)
    yard.start_server()
    run_cell(page, 2, "kept += 1; print('after', kept)")
    expect(outputs(page).last).to_have_text("after 44\n", timeout=SECONDS)
    dismiss_lost_connections(page)
    killed = gateway_pid(yard)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: gateway_pid(yard) not in (0, killed), 60, lambda: "there is no new gateway")
    run_cell(page, 3, "kept += 1; print('again', kept)")
    expect(outputs(page).last).to_have_text("again 45\n", timeout=RECONNECT_SECONDS)
    expect(outputs(page)).to_have_count(4)
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def dismiss_lost_connections(page: Page) -> None:
    """JupyterLab asks every few seconds what runs, and says so when it cannot: by chance also in the second without a
    gateway. Whoever works there clicks it away and goes on."""
    dialog = page.locator(".jp-Dialog", has_text="Server Connection Error")
    page.add_locator_handler(dialog, lambda: dialog.get_by_role("button").last.click())


def gateway_pid(yard: Platform) -> int:
    note = yard.data / "gateway.json"
    return int(json.loads(note.read_text())["pid"]) if note.exists() else 0


def test_a_file_is_edited_and_run_in_vs_code(yard: Platform, environment: str, page: Page) -> None:
    script = own_file(yard, f"{environment}.sh", "")
    page.goto(address(yard, environment, "ide"))
    page.locator(".explorer-folders-view .monaco-list-row", has_text=script.name).dblclick()
    page.locator(".editor-instance .view-lines").first.click()
    page.keyboard.type("echo run in $(id -u):$0 >done-$1")
    page.keyboard.press("Control+s")
    wait_until(lambda: "run in" in script.read_text(), what=script.read_text)
    answer, picture = home(yard) / f"done-{environment}", yard.data.parent / "vs-code.png"
    line = f"sh {script.name} {environment}\n"
    wait_until(lambda: typed(page, line) and says(answer) != "", 60, lambda: seen(page, picture))
    assert says(answer) == f"run in 0:{script.name}\n"


def says(answer: Path) -> str:
    """Nothing while it is not there, or just being written."""
    return answer.read_text() if answer.exists() else ""


def typed(page: Page, line: str) -> bool:
    """Into the terminal; it may still be starting, then it is typed again. While VS Code is still getting ready it may
    miss the keys that open one, or open two: either will do, and nothing is typed where the editor has the keyboard."""
    terminals = page.locator(".terminal-wrapper.active .xterm-helper-textarea")
    if terminals.count() == 0:
        page.keyboard.press("Control+Shift+Backquote")  # a new one: it never hides one that is just coming
    is_there = terminals.evaluate_all("all => (all.at(-1)?.focus(), all.includes(document.activeElement))")
    if is_there:
        page.keyboard.type(line)
    page.wait_for_timeout(1500)
    return bool(is_there)


def seen(page: Page, picture: Path) -> str:
    page.screenshot(path=picture)
    return f"the terminal did not answer; see {picture}"


def test_the_address_in_the_browser_holds_no_secret(yard: Platform, environment: str, page: Page) -> None:
    page.goto(address(yard, environment, "lab"))
    page.wait_for_url(re.compile(r"/lab"))
    assert not re.search(r"code=|token=", page.url)
