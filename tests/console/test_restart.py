"""The server is killed and comes back under an open page: it says so, recovers by itself, and loses nothing typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform
from tests.ports import same_ports

OWN = "a long enough secret"


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    options = ("--simulate-cards", "8", *same_ports())
    with a_platform(tmp_path_factory.mktemp("yard"), "process", *options) as yard:
        yard.good("user", "create", "ann", "--password-stdin", stdin=OWN)
        yield yard


def test_a_half_filled_form_survives_the_death_of_the_server(
    yard: Platform, visits: Callable[..., Visits], language: str
) -> None:
    visit = visits(language)
    visit.expected.append(re.compile(r"ERR_|net::|50[0-9]"))  # the browser tells of every connection that was cut
    page, say = visit.page, visit.say
    visit.enter(yard.url, "ann", OWN, "/envs/new")
    page.locator("#env-name").fill(f"kept_{language}")
    page.locator("#env-memory").fill("1")
    outlook = page.get_by_role("region", name=say("What will happen", "创建后会怎样"))
    expect(outlook).to_contain_text(say("It starts now", "会立即在"))
    yard.kill_server()
    notice = page.get_by_text(say("The connection to the server is lost.", "与服务器的连接已断开"))
    expect(notice).to_be_visible()
    page.locator("#env-cpu").fill("0")  # one goes on typing meanwhile
    visit.picture("restart-lost")
    yard.start_server()
    expect(notice).to_be_hidden()
    expect(page.locator("#env-name")).to_have_value(f"kept_{language}")
    expect(page.locator("#env-cpu")).to_have_value("0")
    expect(page.locator("#env-memory")).to_have_value("1")
    page.get_by_role("button", name=re.compile(say("^Create$", r"^创\s?建$"))).click()
    expect(page.locator("h1 .state")).to_have_text(say("running", "运行中"))
    yard.good("env", "rm", "--yes", visit.ask("/api/v1/envs")["items"][0]["id"])
