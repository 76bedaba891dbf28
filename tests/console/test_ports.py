"""A job's own server on another port of the console's host. Cookies know no ports, so it is sent the console's: it must
get nothing with it, neither by itself nor by a page in the same browser. And the console goes on as one expects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect
from tests.cli.yard import wait_until
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform
from tests.ports import a_port

from gpuyard import Client, Job

OWN = "a long enough secret"
# What the job runs: a page for everybody, and with every cookie that a visitor brings it asks the console itself.
THIEF = r"""
import http.client, json, re, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

own, console = int(sys.argv[1]), int(sys.argv[2])
WISHES = [("GET", "/api/v1/whoami", None), ("GET", "/api/v1/workloads", None), ("GET", "/api/v1/users", None),
          ("GET", "/api/v1/live", None), ("GET", "/api/v1/audit", None), ("POST", "/api/v1/backup", None),
          ("POST", "/api/v1/tokens", {"name": "stolen", "scope": "admin"}), ("POST", "/api/v1/logout", None),
          ("POST", "/api/v1/workloads", {"command": "true"})]
stolen = {}

def ask(cookie, key, method, path, body):
    link = http.client.HTTPConnection("127.0.0.1", console)
    head = {"Cookie": cookie, "Content-Type": "application/json", "X-CSRF-Token": key, "X-Session-Key": key}
    link.request(method, path, json.dumps(body), {name: value for name, value in head.items() if value})
    answer = link.getresponse()
    told = answer.read1(2000).decode("utf-8", "replace")
    link.close()
    return [method + " " + path, answer.status, told]

def tried(cookie):
    keys = ["", "null", cookie.partition("yard_session=")[2].partition(";")[0]]
    keys += re.findall('"([^"]{20,})"', ask(cookie, "", "GET", "/api/v1/whoami", None)[2])  # whatever may be one
    return [ask(cookie, key, *wish) for key in keys for wish in WISHES]

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        cookie = self.headers.get("Cookie", "")
        if "yard_session" in cookie and cookie not in stolen:
            stolen[cookie] = tried(cookie)
        told = self.path == "/stolen"
        body = json.dumps(stolen) if told else "<!doctype html><h1>A page of a job</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if told else "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

ThreadingHTTPServer(("127.0.0.1", own), Page).serve_forever()
"""
# What its page tries in the visitor's browser. Each try says how it went.
TRIES = """async (console_) => {
  const tried = {};
  const asks = async (name, ask) => { try { tried[name] = String(await ask()); } catch { tried[name] = 'refused'; } };
  const with_ = {credentials: 'include'};
  const key = {headers: {'X-Session-Key': 'a guess'}};
  await asks('reads its memory', () => localStorage.getItem('yard.session') ?? 'refused');
  await asks('reads the cookie', () => document.cookie.includes('yard_session') ? 'found' : 'refused');
  await asks('reads answers', () => fetch(console_ + '/api/v1/whoami', with_).then(a => a.text()));
  await asks('brings a key', () => fetch(console_ + '/api/v1/whoami', {...with_, ...key}).then(a => a.text()));
  await asks('hears the news', () => new Promise((good, bad) => {
    const source = new EventSource(console_ + '/api/v1/live', {withCredentials: true});
    source.onopen = () => { source.close(); good('heard'); };
    source.onerror = () => { source.close(); bad(); };
  }));
  await asks('looks into a frame of it', () => new Promise((good) => {
    const frame = Object.assign(document.createElement('iframe'), {src: console_ + '/'});
    frame.onload = () => { try { good(frame.contentWindow.localStorage.length); } catch { good('refused'); } };
    document.body.append(frame);
  }));
  await asks('looks into a window of it', async () => {
    const held = open(console_ + '/account');
    for (let n = 0; n < 50 && held && !held.closed; n += 1) await new Promise(done => setTimeout(done, 100));
    return held && !held.closed ? held.localStorage.length : 'refused';
  });
  return tried;
}"""


@dataclass(frozen=True)
class Thief:
    """The job's server, as it is reached from outside."""

    url: str

    def stolen(self) -> dict[str, list[list[Any]]]:
        with urlopen(self.url + "/stolen") as answer:
            return dict(json.load(answer))


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "process", "--simulate-cards", "8") as yard:
        yard.good("user", "create", "ada", "--role", "admin", "--password-stdin", stdin=OWN)
        yard.good("user", "create", "ben", "--password-stdin", stdin=OWN)
        yield yard


@pytest.fixture(scope="module")
def owner(yard: Platform) -> Iterator[Client]:
    with Client(data=yard.data) as owner:
        yield owner


@pytest.fixture(scope="module")
def thief(yard: Platform, owner: Client) -> Iterator[Thief]:
    port = a_port()
    command = ["/usr/bin/python3", "-c", THIEF, str(port), yard.url.rpartition(":")[2]]
    job = owner.submit(name="thief", command=command)
    found = Thief(f"http://127.0.0.1:{port}")

    def answers() -> bool:
        try:
            return found.stolen() == {}
        except OSError:
            return False

    wait_until(answers, 60)
    yield found
    job.stop()


@pytest.fixture(scope="module")
def said(yard: Platform, owner: Client) -> Job:
    """A job that has said something."""
    return owner.submit(name="says", command="echo what was said").wait()


def test_a_server_on_another_port_is_sent_the_cookie_and_gets_nothing_with_it(
    yard: Platform, owner: Client, thief: Thief, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    visit.log_in(yard.url, "ada", OWN)
    visit.is_inside()
    tokens = len(owner.tokens(user="ada"))
    tab = visit.page.context.new_page()
    tab.goto(thief.url)
    tried = tab.evaluate(TRIES, yard.url)
    assert set(tried.values()) == {"refused"}, tried
    [(cookie, answers)] = thief.stolen().items()
    assert "yard_session=" in cookie  # it did come there
    assert [(what, status) for what, status, _ in answers if status != 401] == []
    assert all("refused." in text for _, _, text in answers)
    assert len(owner.tokens(user="ada")) == tokens
    tab.goto(yard.url + "/api/v1/whoami")  # led there by a link, with the cookie
    assert "refused.cookie_alone" in tab.locator("body").inner_text()
    tab.close()
    visit.page.reload()
    visit.is_inside()  # and nobody was logged out


def test_reload_tabs_deep_links_and_logout_go_on_as_before(
    yard: Platform, said: Job, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    page, there = visit.page, f"{yard.url}/jobs/{said.id}"
    visit.log_in(yard.url, "ada", OWN, f"/jobs/{said.id}")
    expect(page.get_by_role("heading", name="says")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="says")).to_be_visible()
    other = page.context.new_page()
    other.goto(there)
    expect(other.get_by_role("heading", name="says")).to_be_visible()
    log_out(other, "ada")
    for tab in (other, page):  # all of them, by themselves
        expect(tab.get_by_role("button", name="Log in")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    other.goto(yard.url)
    fill_in(other, "ada")
    expect(page.get_by_role("heading", name="says")).to_be_visible()  # where it was asked for before
    log_out(other, "ada")
    fill_in(other, "ben")
    expect(other.get_by_role("banner").get_by_role("button", name="ben")).to_be_visible()
    expect(page.get_by_role("banner").get_by_role("button", name="ben")).to_be_visible()
    expect(page.get_by_role("heading", name="says")).to_have_count(0)
    visit.expected.append(re.compile(r"status of 404 \(Not Found\).*/api/v1/workloads/"))  # another's is like none
    other.close()


def log_out(tab: Page, name: str) -> None:
    tab.get_by_role("banner").get_by_role("button", name=name).click()
    tab.get_by_role("menuitem", name="Log out").click()


def fill_in(tab: Page, name: str) -> None:
    tab.get_by_label("Name").fill(name)
    tab.get_by_label("Password", exact=True).fill(OWN)
    tab.get_by_role("button", name="Log in").click()


def test_a_log_is_followed_and_downloaded_by_the_page_itself(
    yard: Platform, said: Job, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    visit.enter(yard.url, "ada", OWN, f"/jobs/{said.id}?tab=logs")
    expect(visit.page.get_by_text("what was said")).to_be_visible()
    with visit.page.expect_download() as saved:
        visit.page.get_by_role("button", name="Download").click()
    assert saved.value.suggested_filename == f"says-{said.id}-worker-0-1.log"
    assert saved.value.path().read_text() == "what was said\n"
