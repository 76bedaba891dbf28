"""A real browser, headless, for benchmarks of the console: somebody who is logged in and looks at pages."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from playwright.sync_api import Browser, Page, sync_playwright

from gpuyard.console.serving import BUILT
from lab.needs import LeftOut, program
from lab.platform import Platform

NAME, PASSWORD = "looker", "a long enough secret"
PATIENCE_MS = 120_000


@contextlib.contextmanager
def a_browser() -> Iterator[Browser]:
    chromium = program("chromium", "chromium")
    if not (BUILT / "index.html").exists():
        raise LeftOut("the console is not built (`make web`; needs Node 20 or newer)")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def a_page(browser: Browser, platform: Platform, admin: bool = True) -> Iterator[Page]:
    """Logged in, with nothing in its cache, and nothing loaded yet."""
    connection = platform.connect()
    if not any(user["name"] == NAME for user in connection.call("GET", "/users")["items"]):
        role = "admin" if admin else "member"
        connection.call("POST", "/users", {"name": NAME, "password": PASSWORD, "role": role})
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB", base_url=url(platform))
    context.set_default_timeout(PATIENCE_MS)
    try:
        answer = context.request.post("/api/v1/login", data={"name": NAME, "password": PASSWORD})
        if not answer.ok:
            raise RuntimeError(answer.text())
        key, origin = json.dumps(answer.json()["session_key"]), json.dumps(url(platform))
        context.add_init_script(f"if (location.origin === {origin}) localStorage.setItem('yard.session', {key})")
        yield context.new_page()
    finally:
        context.close()


def url(platform: Platform) -> str:
    return f"http://127.0.0.1:{platform.port}"
