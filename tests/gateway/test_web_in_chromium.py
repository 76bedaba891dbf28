"""The gateway's pages in a real browser, and a hostile page in one: what Chromium lets it do, and what we do not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from tests.gateway.brokers import BrokerPlace
from tests.gateway.house import PASSWORD, House, host, running, wait_until
from tests.gateway.programs import Program, a_program

from gpuyard.domain.workload import Kind, Workload
from gpuyard.gateway.web.assets import built_folder

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium"),
]
SECONDS = 30_000
# It may be gone again before anybody looks.
NOTICE_SHOWN = """() => { const notice = document.getElementById("notice"); new MutationObserver(() => {
    window.noticeShown ||= !notice.hidden; }).observe(notice, { attributes: true }); }"""
EVIL_PAGE = b"<!doctype html><title>evil</title><h1>evil</h1>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=SECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(SECONDS)
    yield context.new_page()
    context.close()


@dataclass
class Scene:
    """Ann's program and Ben's: Ben means ill, and Ann looks at his page while she is logged in to her own."""

    house: House
    anns: Program
    bens: Program
    ann: Workload
    ben: Workload

    def address(self, workload: Workload, owner: str, path: str = "/") -> str:
        code = self.house.code(self.house.log_in(owner)[0], workload.id, "p8080")
        return f"http://{host(workload, 'p8080')}:{self.house.port}/.yard/enter?code={code}&next={path}"

    def origin(self, workload: Workload) -> str:
        return f"http://{host(workload, 'p8080')}:{self.house.port}"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with a_program() as anns, a_program() as bens, running(tmp_path_factory.mktemp("gateway")) as house:
        house.person("ann")
        house.person("ben", admin=True)  # so that both may open both: what follows is the browser's and ours alone
        ann = house.workload("ann", kind=Kind.JOB, ports={8080: anns.port})
        ben = house.workload("ben", kind=Kind.JOB, ports={8080: bens.port})
        yield Scene(house, anns, bens, ann, ben)


# --- logging in ---------------------------------------------------------------------------------------------------


def test_a_visitor_logs_in_and_comes_to_the_page(scene: Scene, page: Page) -> None:
    page.goto(f"{scene.origin(scene.ann)}/asked?for=this")
    expect(page).to_have_title("Log in")
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password").fill("not it")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{scene.origin(scene.ann)}/asked?for=this")
    expect(page.locator("body")).to_contain_text("/asked")
    page.goto(f"http://localhost:{scene.house.port}/")
    expect(page.locator("body")).to_contain_text("logged in as ann")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator("body")).to_contain_text("logged out")
    wait_until(lambda: asks_for_a_login(page, f"{scene.origin(scene.ann)}/"))


def asks_for_a_login(page: Page, url: str) -> bool:
    """Soon after somebody has logged out, it is noticed everywhere."""
    page.goto(url)
    return page.title() == "Log in"


# --- a hostile page -----------------------------------------------------------------------------------------------


@pytest.fixture
def on_evil_page(scene: Scene, page: Page) -> Page:
    """Ann has been at her own place, and now looks at Ben's."""
    page.goto(scene.address(scene.ann, "ann"))
    expect(page.locator("body")).to_contain_text("path")
    page.goto(scene.address(scene.ben, "ben"))
    assert page.url.startswith(scene.origin(scene.ben))
    return page


def test_it_cannot_read_what_is_on_the_other_host(scene: Scene, on_evil_page: Page) -> None:
    for mode in ("cors", "same-origin"):
        script = "([u, mode]) => fetch(u, {mode, credentials: 'include'}).then(a => a.text()).catch(e => 'refused')"
        assert on_evil_page.evaluate(script, [f"{scene.origin(scene.ann)}/api/contents", mode]) == "refused"


def test_it_cannot_change_anything_there(scene: Scene, on_evil_page: Page) -> None:
    before = len(scene.anns.heads)
    script = """u => Promise.all(['POST', 'PUT', 'DELETE'].map(method => fetch(u, {method, mode: method == 'POST' ?
        'no-cors' : 'cors', credentials: 'include', body: 'x', headers: {'Content-Type': 'text/plain'}})
        .catch(e => null)))"""
    on_evil_page.evaluate(script, f"{scene.origin(scene.ann)}/changes")
    sent = [head for head in scene.anns.heads[before:] if not head.startswith(b"OPTIONS")]
    assert sent == []


def test_it_cannot_send_a_form_there(scene: Scene, on_evil_page: Page) -> None:
    before = len(scene.anns.heads)
    script = """u => { document.body.innerHTML = `<form method=post action="${u}"><input name=a value=b></form>`;
        document.forms[0].submit(); }"""
    on_evil_page.evaluate(script, f"{scene.origin(scene.ann)}/form")
    on_evil_page.wait_for_url(f"{scene.origin(scene.ann)}/form")
    assert [head for head in scene.anns.heads[before:] if head.startswith(b"POST")] == []


def test_it_cannot_open_a_websocket_there(scene: Scene, on_evil_page: Page) -> None:
    script = """u => new Promise(done => { const s = new WebSocket(u);
        s.onopen = () => done('open'); s.onerror = () => done('refused'); })"""
    there = scene.origin(scene.ann).replace("http:", "ws:")
    assert on_evil_page.evaluate(script, f"{there}/ws") == "refused"
    assert on_evil_page.evaluate(script, f"{scene.origin(scene.ben).replace('http:', 'ws:')}/ws") == "open"


def test_it_finds_no_cookie_and_no_page_of_ours_in_a_frame(scene: Scene, on_evil_page: Page) -> None:
    assert on_evil_page.evaluate("document.cookie") == ""
    script = """u => new Promise(done => { const f = document.createElement('iframe'); f.src = u; f.onload = () => {
        try { done(f.contentDocument ? f.contentDocument.body.innerText : 'closed'); } catch (e) { done('closed'); } };
        document.body.append(f); })"""
    login = f"http://localhost:{scene.house.port}/.yard/login"
    assert on_evil_page.evaluate(script, login) in ("closed", "")


# --- the terminal -------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[House, Workload]]:
    """By default without a built console."""
    built = built_folder("") if getattr(request, "param", "") == "built" else tmp_path / "nothing"
    if getattr(request, "param", "") == "built" and not (built / "terminal.html").is_file():
        pytest.skip("the console is not built: make web")
    place = BrokerPlace(tmp_path / "data")
    try:
        with running(tmp_path / "data", place.client, built=str(built)) as house:
            house.person("ann")
            env = house.workload("ann")
            assert env.attempt is not None
            place.replica(str(env.attempt.replicas[0].id))
            yield house, env
    finally:
        place.close()


def sit_down(desk: tuple[House, Workload], page: Page) -> Locator:
    """What is on the terminal's screen."""
    house, env = desk
    code = house.code(house.log_in("ann")[0], env.id, "terminal")
    page.goto(f"http://{host(env, 'terminal')}:{house.port}/.yard/enter?code={code}")
    page.locator("textarea").focus()
    return page.locator(".xterm-rows, .plain-rows")


@pytest.mark.timeout(1800)  # the first run on a machine builds the toolbox
@pytest.mark.parametrize("desk", ["built", "plain"], indirect=True)
def test_a_terminal_is_typed_into_and_finds_its_shell_again(desk: tuple[House, Workload], page: Page) -> None:
    house, rows = desk[0], sit_down(desk, page)
    expect(rows).to_contain_text("ready")
    page.keyboard.type("kept=$((6 * 7)); echo it is $kept\n")
    expect(rows).to_contain_text("it is 42")
    page.evaluate(NOTICE_SHOWN)
    for connection in list(house.web._connections):
        house.loop.call_soon_threadsafe(connection.transport.abort)
    page.wait_for_function("() => window.noticeShown")
    expect(page.locator("#notice")).to_be_hidden()
    page.keyboard.type("echo still $kept\n")
    expect(rows).to_contain_text("still 42")
    page.reload()
    expect(rows).to_contain_text("still 42")
    page.keyboard.type("exit\n")
    expect(page.locator("#notice")).to_contain_text("ended")


def wait_for_line(page: Page, *lines: str) -> None:
    """A line of the small terminal that says this, or one of these, and nothing else."""
    rows = "[...document.querySelectorAll('.plain-rows > div')]"
    page.wait_for_function(f"lines => {rows}.some(row => lines.includes(row.textContent.trim()))", arg=list(lines))


def test_the_small_terminal_shows_what_programs_write(desk: tuple[House, Workload], page: Page) -> None:
    rows = sit_down(desk, page)
    expect(rows).to_contain_text("ready")
    written = (
        r"\033[2J\033[H\033[31mred\033[0m 你好,world\033[2;5Hplaced\033[3;1Hgone\033[2K\rab\b\033[Pc"
        r"\033[5;1Hone\033[6;1Htwo\033[5;1H\033[Lnew\033[8;1H\033[6n"
    )
    page.keyboard.type(f"printf '{written}'; read answer\n")
    wait_for_line(page, "^[[8;1R")  # where the cursor is, as the terminal was asked and the shell shows it
    seen = [line.rstrip() for line in rows.inner_text().split("\n")]
    assert seen[:8] == ["red 你好,world", "    placed", "ac", "", "new", "one", "two", "^[[8;1R"]
    red = page.locator(".plain-rows span", has_text="red").first
    assert red.evaluate("span => span.style.color") == "rgb(205, 49, 49)"


def test_the_small_terminal_has_a_second_screen_a_past_and_the_size_of_its_window(
    desk: tuple[House, Workload], page: Page
) -> None:
    rows = sit_down(desk, page)
    expect(rows).to_contain_text("ready")
    page.keyboard.type("seq -f line-%g 200; stty size | cut -d ' ' -f 1\n")
    wait_for_line(page, "line-200")
    expect(page.locator(".plain-past")).to_contain_text("line-7")
    high = page.locator(".plain-rows > div").count()
    wait_for_line(page, str(high))
    page.keyboard.type("printf '\\033[?1049h\\033[Hother\\n'; read answer; printf '\\033[?1049l'\n")
    wait_for_line(page, "other")
    expect(rows).not_to_contain_text("line-200")
    page.keyboard.press("Enter")
    wait_for_line(page, "line-200")
    page.set_viewport_size({"width": 640, "height": 300})
    expect(page.locator(".plain-rows > div")).not_to_have_count(high)
    page.keyboard.type("clear; stty size | tr ' ' x\n")
    last = page.locator(".plain-rows > div").last
    low, wide = page.locator(".plain-rows > div").count(), len(last.text_content() or "")
    wait_for_line(page, f"{low}x{wide}")


def test_keys_that_are_no_letters_and_text_of_any_script_reach_the_shell(
    desk: tuple[House, Workload], page: Page
) -> None:
    rows = sit_down(desk, page)
    expect(rows).to_contain_text("ready")
    page.keyboard.type("cat -v\n")
    for key in ("ArrowUp", "Home", "Delete", "F5", "Control+ArrowLeft", "Alt+x", "Shift+Tab"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    wait_for_line(page, "^[[A^[[H^[[3~^[[15~^[[1;5D^[x^[[Z")
    page.keyboard.press("Control+c")
    wait_for_line(page, "ready", "^Cready")  # typed earlier, the answer would follow the prompt on its line
    page.keyboard.insert_text("echo x您x好x | tr -d x")
    page.keyboard.press("Enter")
    wait_for_line(page, "您好")
