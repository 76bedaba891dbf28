"""How much the console loads before its first page can be used, and how soon that and a large cluster are drawn."""

from __future__ import annotations

import statistics
import time

from playwright.sync_api import Page

from lab.browser import a_browser, a_page
from lab.lines import Line
from lab.platform import Connection, a_platform

DRAWN = "canvas[data-drawn]"
NODES, CARDS = 1000, 8
# When the page was drawn, on the clock of its own navigation.
DRAWN_AT = f"Number(document.querySelector('{DRAWN}').getAttribute('data-drawn'))"
LOADED = """performance.getEntriesByType('resource')
  .filter((one) => !one.name.includes('/api/'))
  .reduce((sum, one) => sum + one.encodedBodySize, performance.getEntriesByType('navigation')[0].encodedBodySize)"""
BOARD_HERE = (
    """performance.getEntriesByType('resource').find((one) => one.name.endsWith('/api/v1/board')).responseEnd"""
)


def console_first_page() -> list[Line]:
    with a_platform("--engine", "simulated", "--nodes", "20x8") as platform, a_browser() as browser:
        seconds, loaded = [], 0.0
        for _ in range(5):
            with a_page(browser, platform) as page:
                seconds.append(_open(page) / 1000)
                loaded = float(page.evaluate(LOADED))
    return [
        Line("console, gzipped bytes before the first page is usable", loaded / 1000, 450, "kB"),
        Line("console, overview interactive in Chromium (median of 5)", statistics.median(seconds), 1.5, "s"),
    ]


def console_large_cluster() -> list[Line]:
    """Until the picture is drawn once its data are here; and from the wish for a change until it is drawn."""
    with a_platform("--engine", "simulated", "--nodes", f"{NODES}x{CARDS}") as platform, a_browser() as browser:
        connection = platform.connect()
        for _ in range(200):
            connection.submit(command=["sleep", "3600"], cards=CARDS, replicas=4)
        _wait_until_running(connection, 200)
        with a_page(browser, platform) as page:
            whole = _open(page)
            drawing = whole - float(page.evaluate(BOARD_HERE))
            connection = platform.connect()  # the one of before may have been closed while the page was drawn
            node = str(connection.call("GET", "/nodes")["items"][-1]["name"])
            updates = [_update(connection, page, f"/nodes/{node}/{wish}") for wish in ("cordon", "uncordon") * 5]
    return [
        Line("console, 1,000 nodes x 8 cards drawn after their data came", drawing / 1000, 1.0, "s"),
        Line("console, 1,000 nodes x 8 cards, from navigation to drawn", whole / 1000, 3.0, "s"),
        Line("console, a change drawn after it was asked for (median of 10)", statistics.median(updates), 0.2, "s"),
    ]


def _open(page: Page) -> float:
    page.goto("/", wait_until="commit")
    page.wait_for_selector(DRAWN)
    return float(page.evaluate(DRAWN_AT))


def _update(connection: Connection, page: Page, change: str) -> float:
    page.wait_for_timeout(300)
    before = float(page.evaluate(DRAWN_AT))
    asked = float(page.evaluate("performance.now()"))
    connection.call("POST", change)
    while float(page.evaluate(DRAWN_AT)) <= before:
        page.wait_for_timeout(5)
    return (float(page.evaluate(DRAWN_AT)) - asked) / 1000


def _wait_until_running(connection: Connection, number: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if len(connection.call("GET", f"/workloads?state=running&limit={number}")["items"]) >= number:
            return
        time.sleep(0.2)
    raise TimeoutError("the work on the large cluster did not start")


MEASURES = (console_first_page, console_large_cluster)
