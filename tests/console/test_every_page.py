"""Every page of every role, in both languages, wide and narrow, light and dark: it opens, fits, complains about
nothing, and can be used by those who do not see it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client

AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
OWN = "a long enough secret"
EVERYONE = ["/", "/envs", "/envs/new", "/jobs", "/jobs/new", "/ledger", "/account"]
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
        yield yard


@pytest.fixture(scope="module")
def works(yard: Platform) -> Iterator[list[str]]:
    """Ids of one that ended with hostile output, one that runs and one that waits, all of ann's."""
    with Client(data=yard.data) as owner:
        owner.create_group("vision", quota={"nvidia": 4})
        for name, role in (("ann", "member"), ("lea", "lead"), ("root1", "admin"), ("bob", "member")):
            owner.create_user(name, password=OWN, role=role, group=None if name == "bob" else "vision")
        with Client(yard.url, owner.create_token("pages", user="ann").token) as ann:
            hostile = ["printf", HOSTILE_LOG + "\\n%s\\n", HOSTILE]
            ended = ann.submit(name="ended", env={"X": HOSTILE}, command=hostile).wait()
            running = ann.submit(name="running", cards=3, command="echo on; exec sleep 600")
            yard.wait_for(running.id, "running")
            waiting = ann.submit(name="waiting", cards=4, command="true")
            yield [ended.id, running.id, waiting.id]


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
def test_every_page_opens_fits_complains_about_nothing_and_can_be_used_unseen(
    yard: Platform, works: list[str], visits: Callable[..., Visits], role: str
) -> None:
    """Wide, light and English, then narrow, dark and Chinese; every second page is opened the other way round. The
    admin's pages, which are all there are, are examined in both lights."""
    visit = visits(script=AXE)
    visit.page.goto(yard.url)
    found = []
    for dark in (False, True) if role == "root1" else ():
        visit.see(1280, dark=dark)
        found += examine(visit.page, "login")
    visit.enter(yard.url, role, OWN)
    looks = [seen_wide, seen_narrow]
    for path in pages_of(role, works):
        visit.page.goto(yard.url + path)
        for look in looks:
            name = f"page-{role}-%s{path.replace('/', '-')}".replace(works[0], "ended")
            found += [f"{path}: {fault}" for fault in look(visit, name)]
            if look is seen_wide and role == "root1":
                found += examine(visit.page, path)
                visit.see(1280, dark=True)
                found += examine(visit.page, f"{path} in the dark")
        looks.reverse()
    assert "\n".join(found) == ""


def seen_wide(visit: Visits, name: str) -> list[str]:
    visit.see(1280, dark=False)
    visit.speak("en")
    return seen(visit, name % "wide")


def seen_narrow(visit: Visits, name: str) -> list[str]:
    visit.see(400, dark=True)
    visit.speak("zh")
    return seen(visit, name % "narrow")


def seen(visit: Visits, name: str) -> list[str]:
    is_ready(visit.page)
    visit.picture(name)
    wide, hacked = overflow(visit.page), visit.page.evaluate("window.hacked")
    return [f"{wide} px too wide"] * (wide > 0) + [f"{hacked} was run"] * (hacked is not None)


def examine(page: Page, where: str) -> list[str]:
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
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
    visit = visits()
    visit.expected.append(re.compile("404"))
    visit.enter(yard.url, "bob", OWN, f"/jobs/{works[0]}")
    expect(visit.page.get_by_text(f"There is no job called `{works[0]}`")).to_be_visible()
    expect(visit.page.get_by_text("ended", exact=True)).to_have_count(0)
