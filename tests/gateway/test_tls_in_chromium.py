"""A real browser over https: its cookies are Secure and of one host, its WebSockets go over TLS, and plain addresses
lead to the right ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from tests.gateway.brokers import BrokerPlace
from tests.gateway.house import PASSWORD, House, host, running
from tests.gateway.tls import make_certificate

from gpuyard.domain.workload import Workload

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="not installed: chromium"),
]
SECONDS = 30_000


def test_someone_logs_in_and_works_in_a_terminal(tmp_path: Path) -> None:
    place = BrokerPlace(tmp_path / "data")
    try:
        with running(tmp_path / "data", place.client, certificate=make_certificate(tmp_path)) as house:
            house.person("ann")
            env = house.workload("ann")
            assert env.attempt is not None
            place.replica(str(env.attempt.replicas[0].id))
            in_a_browser(house, env)
    finally:
        place.close()


def in_a_browser(house: House, env: Workload) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(ignore_https_errors=True)  # nobody trusts a certificate of one's own
        context.set_default_timeout(SECONDS)
        page = context.new_page()
        sockets: list[str] = []
        page.on("websocket", lambda socket: sockets.append(socket.url))
        come_by_plain_http(house, env, page)
        page.locator("textarea").focus()
        page.keyboard.type("echo sum $((40 + 2))\n")
        expect(page.locator(".xterm-rows, .plain-rows")).to_contain_text("sum 42", timeout=SECONDS)
        assert sockets
        assert all(address.startswith(f"wss://{host(env, 'terminal')}:") for address in sockets)
        kept = [cookie for cookie in context.cookies() if "yard_gate" in str(cookie.get("name"))]
        assert {str(cookie.get("domain")) for cookie in kept} == {"localhost", host(env, "terminal")}
        for cookie in kept:
            assert str(cookie.get("name")).startswith("__Host-")
            assert (cookie.get("secure"), cookie.get("httpOnly"), cookie.get("path")) == (True, True, "/")
        browser.close()


def come_by_plain_http(house: House, env: Workload, page: Page) -> None:
    page.goto(f"http://{host(env, 'terminal')}:{house.port}/")
    assert page.url.startswith(f"https://localhost:{house.port}/.yard/login?to=terminal-")
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"https://{host(env, 'terminal')}:{house.port}/")
