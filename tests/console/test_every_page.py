"""Every page of every role, in both languages, wide and narrow, light and dark: it opens, fits, complains about
nothing, and can be used by those who do not see it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.console.visits import PATIENCE_MS, Visits
from tests.platforms import Platform, a_platform

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
OWN = "a long enough secret"
EVERYONE = ["/", "/envs", "/envs/new", "/jobs", "/jobs/new", "/account"]
LEADS = ["/admin/workloads", "/admin/groups"]
ADMINS = ["/admin/nodes", "/admin/users", "/admin/policy", "/admin/audit"]
# Names, values and output that some page might take for markup.
HOSTILE = "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>{{7*7}}${7*7}javascript:alert(1)"
HOSTILE_LOG = (
    r"\033]0;title\007\033[31mred<script>window.hacked=1</script>\033[0m\033[2J"
    r"\033]8;;javascript:alert(1)\007x\033]8;;\007\342\200\256gnp.exe"
)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "process", "--simulate-cards", "8") as yard:
        yard.good("group", "create", "vision", "--quota", "nvidia=4")
        for name, role in (("ann", "member"), ("lea", "lead"), ("root1", "admin")):
            yard.good("user", "create", name, "--role", role, "--group", "vision", "--password-stdin", stdin=OWN)
        yield yard


@pytest.fixture(scope="module")
def works(yard: Platform) -> list[str]:
    """Ids of one that ended with hostile output, one that runs and one that waits, all of ann's."""
    token = json.loads(yard.good("token", "create", "pages", "--user", "ann", "-o", "json"))["token"]
    ann = yard.as_user(token)
    ended = ann.good(
        "run", "--detach", "--name", "ended", "--env", f"X={HOSTILE}", "--", "printf", HOSTILE_LOG + "\\n%s\\n", HOSTILE
    )
    ann.wait_for(ended)
    running = ann.good(
        "run", "--detach", "--name", "running", "--cards", "3", "--", "sh", "-c", "echo on; exec sleep 600"
    )
    ann.wait_for(running, "running")
    waiting = ann.good("run", "--detach", "--name", "waiting", "--cards", "4", "--", "true")
    ann.wait_for(waiting, "queued")
    return [ended, running, waiting]


def pages_of(role: str, works: list[str]) -> list[str]:
    places = [*EVERYONE, *(f"/jobs/{id}" for id in works)]
    if role in ("lea", "root1"):
        places += LEADS
    return places + ADMINS if role == "root1" else places


def is_ready(page: Page) -> None:
    expect(page.get_by_role("banner")).to_be_visible()  # the login has none
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def overflow(page: Page) -> int:
    """By how many pixels the page itself is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("role", ["ann", "lea", "root1"])
@pytest.mark.parametrize(("shape", "language"), [("wide", "en"), ("narrow", "zh")])
def test_every_page_opens_fits_and_complains_about_nothing(
    yard: Platform, works: list[str], visits: Callable[..., Visits], role: str, shape: str, language: str
) -> None:
    visit = visits(language, width=1280 if shape == "wide" else 400, dark=shape == "narrow")
    visit.log_in(yard.url, role, OWN)
    expect(visit.page.get_by_role("banner")).to_be_visible()
    too_wide = {}
    for path in pages_of(role, works):
        visit.page.goto(yard.url + path)
        is_ready(visit.page)
        if overflow(visit.page) > 0:
            too_wide[path] = overflow(visit.page)
        visit.picture(f"page-{role}-{shape}{path.replace('/', '-')}".replace(works[0], "ended"))
        assert visit.page.evaluate("window.hacked") is None
    assert too_wide == {}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(yard: Platform, works: list[str], browser: Browser, dark: bool) -> None:
    # The page's own policy lets no script in, this one included; so it is set aside for the examination.
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if dark else "light", locale="en-GB")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    visit = Visits(page, "en", Path("screenshots"))
    page.goto(yard.url)
    found = examine(page, "login")
    visit.log_in(yard.url, "root1", OWN)
    expect(page.get_by_role("banner")).to_be_visible()
    for path in pages_of("root1", works):
        page.goto(yard.url + path)
        is_ready(page)
        found += examine(page, path)
    context.close()
    assert "\n".join(found) == ""


def examine(page: Page, where: str) -> list[str]:
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    page.add_script_tag(path=AXE)
    answer: dict[str, Any] = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    serious = [one for one in answer["violations"] if one["impact"] in ("serious", "critical")]
    return [
        f"{where}: {one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in serious
        for node in one["nodes"]
    ]


def test_someone_elses_job_looks_like_none_at_all(
    yard: Platform, works: list[str], visits: Callable[..., Visits]
) -> None:
    yard.good("user", "create", "bob", "--password-stdin", stdin=OWN)
    visit = visits()
    visit.expected.append(re.compile("404"))
    visit.log_in(yard.url, "bob", OWN, f"/jobs/{works[0]}")
    expect(visit.page.get_by_role("alert").first).to_be_visible()
    expect(visit.page.get_by_text("ended", exact=True)).to_have_count(0)
