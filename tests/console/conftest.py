"""The console in a real browser, on real platforms. Pictures of what was seen are kept in `screenshots/`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright
from tests.console.visits import PATIENCE_MS, Visits
from tests.platforms import Platform, a_platform

from gpuyard.console.serving import BUILT

PICTURES = Path(__file__).parents[2] / "screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Said aloud, and `make test` builds and installs what is missing."""
    here = Path(__file__).parent
    missing = "chromium is not installed" if shutil.which("chromium") is None else ""
    missing = missing or ("" if (BUILT / "index.html").is_file() else "the console is not built: make web")
    for item in items:
        if missing and here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="module")  # while it is open, an event loop runs that others would trip over
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        # As in people's browsers, pages inside others keep their own memory; Playwright by itself denies it to them.
        options.append("--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One platform for all that leave no more behind than people."""
    with a_platform(tmp_path_factory.mktemp("machine"), "process", "--simulate-cards", "8") as yard:
        yield yard


@pytest.fixture(params=["en", "zh"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rest(page: Page) -> None:
    """Somewhere quiet, before the end: a context whose page is just going somewhere may never close."""
    for _ in range(20):
        try:
            page.goto("about:blank")
        except Error as problem:
            if "interrupted by another navigation" not in str(problem):
                raise
        else:
            return


@pytest.fixture
def visits(browser: Browser) -> Iterator[Callable[..., Visits]]:
    """`visits("zh")` opens a browser of somebody who reads Chinese. At the end no page may have complained."""
    opened: list[tuple[BrowserContext, Visits]] = []

    def begin(
        language: str = "en",
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        moving: bool = False,
        script: Path | None = None,
    ) -> Visits:
        context = browser.new_context(
            locale="zh-CN" if language == "zh" else "en-GB",
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            # What grows and fades is at once where it belongs: a quick hand does not press beside it.
            reduced_motion="no-preference" if moving else "reduce",
            timezone_id="Asia/Shanghai",
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(PATIENCE_MS)
        if script is not None:  # which the page's own policy would not let in
            context.add_init_script(path=script)
        page: Page = context.new_page()
        visit = Visits(page, language, PICTURES)
        opened.append((context, visit))
        return visit

    yield begin
    complaints = [complaint for _, visit in opened for complaint in visit.complaints]
    for context, visit in opened:
        rest(visit.page)
        context.close()
    assert complaints == []
