"""A day's work in a real browser, through the gateway: a notebook cell in JupyterLab, an edited file run in VS Code's
terminal. In an image with nothing but busybox, and in Debian."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.cli.yard import Yard, wait_until
from tests.images import stage

from gpuyard.engines.container.service import OwnService
from gpuyard.images.toolbox.build import BuildFailed, Missing, build

pytestmark = [
    pytest.mark.timeout(1800),  # the first run on a machine builds the toolbox
    pytest.mark.skipif(bool(stage.missing("iptables", "chromium")), reason=stage.missing("iptables", "chromium")),
]

SECONDS = 60_000  # of patience with a page, in ms: the machine may be busy
OWNER = "admin"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    try:
        build(stage.CACHE, lambda what, facts: None)
    except (Missing, BuildFailed) as problem:
        pytest.skip(f"no toolbox on this machine: {problem}")
    folder = tmp_path_factory.mktemp("yard")
    (folder / "home").mkdir()
    (folder / "data").mkdir(mode=0o700)
    (folder / "data" / "toolbox").symlink_to(stage.CACHE / "toolbox")
    yard = Yard(folder / "home", folder / "data")
    yard.up("--engine", "container")
    yield yard
    for name in ("busybox", "debian"):
        yard.run("env", "rm", name, "--yes")
    yard.run("down", "--all")
    remove_all_containers(yard.data)


def remove_all_containers(data: Path) -> None:
    service = OwnService(data)
    command = ["podman", "rm", "--all", "--force", "--time", "0"]
    subprocess.run(command, env=os.environ | service.environment(), capture_output=True, timeout=120, check=True)
    service.end()


@pytest.fixture(scope="module", params=["busybox", "debian"])
def environment(request: pytest.FixtureRequest, yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "debian" and shutil.which("debootstrap") is None:
        pytest.skip("not installed: debootstrap")
    image = stage.busybox_image() if request.param == "busybox" else stage.debian_image()
    archive = tmp_path_factory.mktemp("image") / "image.tar"
    stage.podman("save", "--quiet", "--output", str(archive), image)
    yard.good("image", "load", str(archive))
    archive.unlink()
    yard.good("env", "create", request.param, "--image", image, "--cpu", "1", "--memory", "2G")
    yield request.param
    yard.good("env", "stop", request.param)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = shutil.which("chromium")
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


def address(yard: Yard, environment: str, what: str) -> str:
    return yard.good("env", "open", "--print", environment, what)


def home(yard: Yard) -> Path:
    return yard.data / "files" / "user" / OWNER


def own_file(yard: Yard, name: str, text: str) -> Path:
    file = home(yard) / name
    file.write_text(text)
    owner = home(yard).stat()
    os.chown(file, owner.st_uid, owner.st_gid)
    return file


def test_a_notebook_cell_is_run_in_jupyterlab(yard: Yard, environment: str, page: Page) -> None:
    page.goto(address(yard, environment, "lab"))
    page.locator(".jp-LauncherCard[data-category=Notebook]", has_text="(toolbox)").click()
    expect(page.locator("#jp-bottom-panel")).to_contain_text("(toolbox) | Idle", timeout=SECONDS)
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    cell.fill("import os; print(6 * 7, os.getcwd())")
    expect(cell).to_contain_text("os.getcwd()")
    cell.press("Shift+Enter")
    expect(page.locator(".jp-OutputArea-output").first).to_have_text(f"42 /mnt/user/{OWNER}\n", timeout=SECONDS)


def test_a_file_is_edited_and_run_in_vs_code(yard: Yard, environment: str, page: Page) -> None:
    script = own_file(yard, f"{environment}.sh", "")
    page.goto(address(yard, environment, "ide"))
    page.locator(".explorer-folders-view .monaco-list-row", has_text=script.name).dblclick()
    page.locator(".editor-instance .view-lines").click()
    page.keyboard.type("echo run in $(id -u):$0 >done-$1")
    page.keyboard.press("Control+s")
    wait_until(lambda: "run in" in script.read_text(), what=script.read_text)
    page.keyboard.press("Control+`")
    answer = home(yard) / f"done-{environment}"
    wait_until(lambda: typed(page, f"sh {script.name} {environment}\n") and answer.exists(), 60, lambda: seen(page))
    assert answer.read_text() == f"run in 0:{script.name}\n"


def typed(page: Page, line: str) -> bool:
    """Into the terminal; it may still be starting, then it is typed again."""
    page.locator(".terminal-wrapper.active .xterm-helper-textarea").focus()
    page.keyboard.type(line)
    page.wait_for_timeout(1500)
    return True


def seen(page: Page) -> str:
    picture = Path(tempfile.gettempdir()) / "yard-vs-code.png"
    page.screenshot(path=picture)
    return f"the terminal did not answer; see {picture}"


def test_the_address_in_the_browser_holds_no_secret(yard: Yard, environment: str, page: Page) -> None:
    page.goto(address(yard, environment, "lab"))
    page.wait_for_url(re.compile(r"/lab"))
    assert not re.search(r"code=|token=", page.url)
