"""The console among strangers: two people at one screen, and hostile pages inside work that somebody looks at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Frame, Page, Route, expect
from tests.console.visits import PATIENCE_MS, Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client

OWN = "a long enough secret"
# What a page can try with the console around it, or in a window it opens itself. Each try says how it went.
TRIES = """async ([console_, live]) => {
  const tried = {};
  const sees = (name, look) => { try { tried[name] = String(look()); } catch { tried[name] = 'refused'; } };
  const asks = async (name, ask) => { try { tried[name] = String(await ask()); } catch { tried[name] = 'refused'; } };
  const loads = (tag, part, there) => new Promise((good, bad) => {
    const piece = Object.assign(document.createElement(tag), { onload: () => good('loaded'), onerror: bad });
    piece[part] = there;
    document.body.append(piece);
  });
  sees('reads the page around it', () => parent.document.body.innerText);
  sees('reads its memory', () => parent.localStorage.length);
  sees('reads its cookies', () => document.cookie.includes('yard_session') ? 'found' : 'refused');
  sees('leads it elsewhere', () => { top.location = 'about:blank'; return 'left'; });
  await asks('reads answers', () => fetch(console_ + live, {credentials: 'include'}).then(a => a.text()));
  await asks('learns which answers there are',
    () => fetch(console_ + live, {mode: 'no-cors', credentials: 'include'}).then(a => a.type));
  const sent = {method: 'POST', mode: 'no-cors', credentials: 'include'};
  await asks('changes something', () => fetch(console_ + '/api/v1/logout', sent).then(a => a.type));
  await asks('loads an answer as a script', () => loads('script', 'src', console_ + live));
  await asks('loads a picture', () => loads('img', 'src', console_ + '/icon.svg'));
  await asks('holds a window of it', async () => {
    const held = open(console_ + '/jobs');
    for (let n = 0; n < 50 && held && !held.closed; n += 1) await new Promise(done => setTimeout(done, 100));
    return held && !held.closed ? 'held' : 'refused';
  });
  return tried;
}"""
# Whoever's cookie is gone is asked to log in; that answer is told by the browser itself.
ENDED = re.compile(r"status of 401 \(Unauthorized\)|status of 404 \(Not Found\).*/api/v1/workloads/")


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "process", "--simulate-cards", "8") as yard:
        for name in ("ann", "ben"):
            yard.good("user", "create", name, "--password-stdin", stdin=OWN)
        yield yard


@pytest.fixture(scope="module")
def anns(yard: Platform) -> Iterator[Client]:
    with Client(data=yard.data) as owner, Client(yard.url, owner.create_token("outside", user="ann").token) as client:
        yield client


def test_who_logs_in_after_somebody_else_sees_nothing_of_theirs(
    yard: Platform, anns: Client, visits: Callable[..., Visits]
) -> None:
    job = anns.submit(name="anns-own-work", command="sleep 600")
    visit = visits()
    visit.expected.append(ENDED)
    page = visit.page
    visit.log_in(yard.url, "ann", OWN, f"/jobs/{job.id}")
    expect(page.get_by_role("heading", name="anns-own-work")).to_be_visible()
    page.context.clear_cookies()
    log_in_again(visit, "ben")
    expect(page.get_by_role("alert").filter(has_text="no job called")).to_be_visible()
    expect(page.get_by_text("anns-own-work")).to_have_count(0)
    job.stop()


def log_in_again(visit: Visits, name: str) -> None:
    """On the page that asks for it by itself, as soon as it hears that the login is over."""
    page = visit.page
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password", exact=True).fill(OWN)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("banner").get_by_role("button", name=name)).to_be_visible()


@pytest.fixture(scope="module")
def served(yard: Platform, anns: Client) -> Iterator[str]:
    """The id of a job that serves pages."""
    job = anns.submit(name="serves", command=["/usr/bin/python3", "-m", "http.server", "8080"], ports=[8080])
    yard.wait_for(job.id, "running")
    yield job.id
    job.stop()


def shown_in_the_console(yard: Platform, visit: Visits, job: str) -> Frame:
    """A page of that job, in the frame in which programs are shown: here the address of another is put into it."""

    def another(route: Route) -> None:
        wish = json.loads(route.request.post_data or "{}") | {"what": "p8080"}
        route.continue_(post_data=json.dumps(wish))

    page = visit.page
    page.route("**/api/v1/workloads/*/open", another)
    visit.log_in(at_localhost(yard), "ann", OWN, f"/jobs/{job}?tab=terminal")
    inside = page.frame_locator("iframe").locator("body")
    expect(inside).to_contain_text("Directory listing", timeout=PATIENCE_MS)
    return next(frame for frame in page.frames if frame.url.startswith("http://p8080-"))


def at_localhost(yard: Platform) -> str:
    """As a neighbour of the pages inside work: cookies are kept by host names."""
    return yard.url.replace("127.0.0.1", "localhost")


def refused_everything(tried: dict[str, str]) -> bool:
    return set(tried.values()) == {"refused"}


def test_a_page_inside_work_reaches_nothing_of_the_console_around_it(
    yard: Platform, served: str, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    frame = shown_in_the_console(yard, visit, served)
    tried = frame.evaluate(TRIES, [at_localhost(yard), "/api/v1/whoami"])
    assert refused_everything(tried), tried
    assert visit.page.url.startswith(at_localhost(yard))
    visit.page.reload()
    visit.is_inside()  # nobody was logged out
    visit.heard.clear()  # all that was refused was told by the browser


def test_a_page_inside_work_in_a_tab_of_its_own_reaches_nothing_of_the_console_either(
    yard: Platform, served: str, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    shown_in_the_console(yard, visit, served)
    with visit.page.context.expect_page() as opened:
        visit.page.get_by_role("button", name="Open in a new tab").click()
    tab: Page = opened.value
    expect(tab.locator("body")).to_contain_text("Directory listing", timeout=PATIENCE_MS)
    assert tab.evaluate("opener") is None
    tried = tab.evaluate(
        TRIES.replace("parent.", "opener.").replace("top.location", "opener.location"),
        [at_localhost(yard), "/api/v1/whoami"],
    )
    assert refused_everything(tried), tried
    visit.heard.clear()
