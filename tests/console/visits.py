"""Somebody's browser, and what they do in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Page, expect

PATIENCE_MS = 60_000  # the machine may be busy
# A connection that was cut on purpose is told by the browser itself; whoever cuts it adds its own words here.
LOGGED_OUT = re.compile(r"status of 401 \(Unauthorized\).*/api/v1/whoami|/api/v1/whoami.*401")

# Work that starts in a container changes the machine's networks, and the browser, on the same machine, asks again.
NETWORK_CHANGED = re.compile(r"net::ERR_NETWORK_CHANGED")


@dataclass
class Visits:
    """One person's pages. Everything that a page complains about in the browser's console is kept."""

    page: Page
    language: str
    pictures: Path
    expected: list[re.Pattern[str]] = field(default_factory=lambda: [LOGGED_OUT, NETWORK_CHANGED])
    heard: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.heard.append(f"failed: {error}"))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where = message.location.get("url", "") if message.location else ""
            self.heard.append(f"{message.type}: {message.text} {where}")

    @property
    def complaints(self) -> Sequence[str]:
        return [one for one in self.heard if not any(known.search(one) for known in self.expected)]

    def say(self, en: str, zh: str) -> str:
        """The words of this person's language."""
        return zh if self.language == "zh" else en

    def log_in(self, url: str, name: str, password: str, path: str = "/") -> None:
        self.page.goto(url + path)
        self.page.get_by_label(self.say("Name", "用户名")).fill(name)
        self.page.get_by_label(self.say("Password", "密码"), exact=True).fill(password)
        self.page.get_by_role("button", name=self.say("Log in", "登录")).click()

    def enter(self, url: str, name: str, password: str, path: str = "/") -> None:
        """Logged in without the form, for all that is not about the login."""
        answer = self.page.request.post(url + "/api/v1/login", data={"name": name, "password": password})
        assert answer.ok, answer.text()
        self.page.goto(url + "/icon.svg")  # of the same origin, and no page that asks who one is
        self.page.evaluate("key => localStorage.setItem('yard.session', key)", answer.json()["session_key"])
        self.page.goto(url + path)

    def ask(self, path: str) -> Any:
        """An answer of the api, asked for as the open page does."""
        key = "{headers: {'X-Session-Key': localStorage.getItem('yard.session')}}"
        return self.page.evaluate(f"path => fetch(path, {key}).then(answer => answer.json())", path)

    def speak(self, language: str) -> None:
        """Choose another language on the open page."""
        if language == self.language:
            return
        self.page.get_by_role("banner").get_by_label(self.say("Language", "语言")).click()
        self.page.locator(".ant-select-item-option", has_text="中文" if language == "zh" else "English").click()
        self.language = language
        expect(self.page.locator("html")).to_have_attribute("lang", "zh-CN" if language == "zh" else "en")
        expect(self.page.locator(".ant-select-dropdown").locator("visible=true")).to_have_count(0)

    def see(self, width: int, height: int = 900, *, dark: bool) -> None:
        """The open page, in another window and another light."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        expect(self.page.locator("html")).to_have_attribute("data-look", "dark" if dark else "light")
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def is_inside(self) -> None:
        expect(self.page.get_by_role("navigation")).to_be_visible()

    def picture(self, name: str) -> None:
        self.pictures.mkdir(exist_ok=True)
        self.page.screenshot(path=self.pictures / f"{name}-{self.language}.png", full_page=True)
