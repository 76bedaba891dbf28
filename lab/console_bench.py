"""How smoothly long lists and long logs are looked at in the console, in headless Chromium."""

from __future__ import annotations

import time
from dataclasses import replace

from playwright.sync_api import Page

from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import State, StoryEvent, Workload
from gpuyard.store import workloads
from gpuyard.store.database import Database
from lab.browser import NAME, a_browser, a_page
from lab.lines import Line
from lab.platform import Connection, Platform, a_platform
from lab.stage import a_job

JOBS, BATCH = 10_000, 500
LINES, PER_SECOND, SECONDS = 1_000_000, 5000, 8
ROW = ".jobs-line"
LAST_LINE = ".log-line:last-child"

# The longest time between two frames while something goes on.
WATCH_FRAMES = """() => {
  window.longest = 0;
  let last = performance.now();
  const frame = (now) => {
    window.longest = Math.max(window.longest, now - last);
    last = now;
    window.watching = requestAnimationFrame(frame);
  };
  window.watching = requestAnimationFrame((now) => { last = now; frame(now); });
}"""
STOP_WATCHING = "() => { cancelAnimationFrame(window.watching); return window.longest; }"
# A screen in each frame, faster than anybody turns a wheel: to the end of all rows, and on as further pages come.
SCROLL = """async () => {
  const box = document.querySelector('.jobs-scroll');
  const until = performance.now() + 60000;
  let still = 0;
  while (performance.now() < until && still < 60) {
    const before = box.scrollTop;
    box.scrollBy(0, 900);
    await new Promise((done) => requestAnimationFrame(done));
    still = box.scrollTop === before ? still + 1 : 0;
  }
  return box.scrollHeight;
}"""
OPENED_AT = """() => new Promise((done) => {
  const drawn = () => requestAnimationFrame(() => done(performance.now()));
  const look = () => document.querySelector('.log-line') ? drawn() : setTimeout(look, 5);
  look();
})"""


def console_jobs() -> list[Line]:
    engine = ("--engine", "simulated", "--nodes", "4x8")
    with a_platform(*engine) as platform, a_browser() as browser, a_page(browser, platform) as page:
        _enter_jobs(platform)
        page.goto("/jobs?whose=all")
        page.wait_for_selector(ROW)
        page.wait_for_timeout(1000)
        page.evaluate(WATCH_FRAMES)
        height = float(page.evaluate(SCROLL))
        scrolling = float(page.evaluate(STOP_WATCHING))
        filtering = _filter(page)
    return [
        Line("console, rows scrolled through", height / 44, JOBS, "rows", at_most=False),
        Line("console, 10,000 jobs scrolled to the end, longest frame", scrolling, 100, "ms"),
        Line("console, 10,000 jobs filtered by name, longest frame", filtering, 100, "ms"),
    ]


def _filter(page: Page) -> float:
    page.evaluate(WATCH_FRAMES)
    for text, found in (("job-77", 111), ("job-7777", 1), ("", JOBS)):
        page.get_by_label("Search by name").fill(text)
        page.get_by_text("1 job" if found == 1 else f"{found} jobs", exact=True).wait_for()
    return float(page.evaluate(STOP_WATCHING))


def _enter_jobs(platform: Platform) -> None:
    """Ended ones, straight into the store: how they ran is not what is looked at."""
    database = Database.open(f"sqlite:///{platform.data / 'gpuyard.db'}")
    ended = [_ended(number) for number in range(JOBS)]
    for start in range(0, JOBS, BATCH):
        with database.write() as conn:
            for job in ended[start : start + BATCH]:
                story = [StoryEvent(job.submitted_at, because(Code.SUBMITTED, by=job.owner), State.QUEUED)]
                workloads.insert(conn, job, story)
    database.close()


def _ended(number: int) -> Workload:
    job = a_job(f"b{number:09d}", seconds=1)
    named = replace(job, owner=NAME, group="default", spec=replace(job.spec, name=f"job-{number}"))
    at = time.time() - JOBS + number
    return replace(named, state=State.STOPPED, submitted_at=at, ended_at=at, reason=because(Code.SUBMITTED, by=NAME))


def console_logs() -> list[Line]:
    with a_platform("--simulate-cards", "8") as platform, a_browser() as browser:
        connection = platform.connect()
        large = _written(connection)
        with a_page(browser, platform) as page:
            page.goto(f"/jobs/{large}")
            page.get_by_role("tab", name="Logs").wait_for()
            opened = _opening(page)
            whole = _reaches_the_beginning(page)
            late, longest, lines = _following(platform, page)
    return [
        Line("console, a log of 1,000,000 lines opened", opened / 1000, 1.0, "s"),
        Line("console, its beginning reached", whole, 1.0, "s"),
        Line(
            "console, a log that grows followed, lines per second", lines, PER_SECOND * 0.98, "lines/s", at_most=False
        ),
        Line("console, followed: behind the job", late, 1.0, "s"),
        Line("console, followed: longest frame", longest, 100, "ms"),
    ]


def _written(connection: Connection) -> str:
    command = f"seq -f 'step %.0f: the loss is 0.123456789 and falling, as it should' 1 {LINES}"
    id = connection.submit(command=["sh", "-c", command], cards=1)
    connection.wait(id, "succeeded", seconds=120)
    return id


def _opening(page: Page) -> float:
    """From the click until the last line is drawn."""
    begun = float(page.evaluate("performance.now()"))
    page.evaluate("document.querySelectorAll('[role=tab]').forEach((tab) => tab.textContent === 'Logs' && tab.click())")
    at = float(page.evaluate(OPENED_AT))
    page.get_by_text(f"step {LINES}: ").wait_for()
    return at - begun


def _reaches_the_beginning(page: Page) -> float:
    begun = time.perf_counter()
    page.get_by_role("button", name="To the beginning").click()
    page.get_by_text("step 1: ").wait_for()
    return time.perf_counter() - begun


FEED = """
import sys, time
begun, n = time.perf_counter(), 0
while n < {total}:
    until = int((time.perf_counter() - begun) * {rate})
    while n < min(until, {total}):
        n += 1
        print(f"line {{n}} at {{time.time():.3f}} the loss is 0.123456789 and falling")
    sys.stdout.flush()
    time.sleep(0.01)
time.sleep(30)
"""


def _following(platform: Platform, page: Page) -> tuple[float, float, float]:
    """How far the last line on the screen is behind the clock, the longest frame, and how many lines came a second."""
    connection = platform.connect()
    code = FEED.format(total=PER_SECOND * (SECONDS + 4), rate=PER_SECOND)
    id = connection.submit(command=["python3", "-c", code], cards=1)
    connection.wait(id, "running")
    page.goto(f"/jobs/{id}?tab=logs")
    page.wait_for_selector(".log-line")
    page.wait_for_timeout(1500)
    page.evaluate(WATCH_FRAMES)
    first, late, begun = _last_line(page)[0], 0.0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        page.wait_for_timeout(250)
        late = max(late, time.time() - _last_line(page)[1])
    seen = (_last_line(page)[0] - first) / (time.perf_counter() - begun)
    longest = float(page.evaluate(STOP_WATCHING))
    platform.connect().call("POST", f"/workloads/{id}/stop")
    return late, longest, seen


def _last_line(page: Page) -> tuple[int, float]:
    words = str(page.locator(LAST_LINE).text_content()).split()
    return int(words[1]), float(words[3])


MEASURES = (console_jobs, console_logs)
