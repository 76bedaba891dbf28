"""Jobs in the browser: written, explained, changed, watched, searched, cloned, and stopped in numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.cli.yard import Yard, wait_until
from tests.console.visits import Visits
from tests.platforms import Platform, a_platform

from gpuyard import Client, Job

OFTEN = "sample_seconds = 0.5\n"
PASSWORD = "a long enough secret"
# Every line is a progress bar, a colour or a number; one of them tries to be more than text.
TALK = """
for n in $(seq 1 400); do echo "step $n of 400"; done
printf '\\033[1;31mloss is falling\\033[0m\\n'
printf 'download 10%%\\rdownload 100%%\\n'
echo '<img src=x onerror=alert(1)><script>alert(2)</script>'
printf '\\033]8;;javascript:alert(3)\\033\\\\a link that is none\\033]8;;\\033\\\\\\n'
echo "the value is $NASTY"
echo finished
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("jobs"), "process", "--simulate-cards", "8", settings=OFTEN) as yard:
        yield yard


@pytest.fixture(scope="module")
def owner(yard: Platform) -> Iterator[Client]:
    with Client(data=yard.data) as client:
        client.create_user("ada", password=PASSWORD)
        yield client


@pytest.fixture(scope="module")
def work(yard: Platform, owner: Client) -> Iterator[Client]:
    """What ada does outside of the browser."""
    with Client(yard.url, owner.create_token("outside", user="ada").token) as client:
        yield client


@pytest.fixture
def ada(yard: Platform, work: Client, visits: Callable[..., Visits], language: str) -> Visits:
    return entered(yard, visits(language))


def entered(yard: Yard, visit: Visits) -> Visits:
    visit.enter(yard.url, "ada", PASSWORD, "/jobs")
    expect(visit.page.get_by_role("heading", level=1, name=visit.say("Jobs", "任务"))).to_be_visible()
    return visit


@pytest.fixture
def six_cards_taken(yard: Platform, owner: Client) -> Iterator[Job]:
    job = owner.submit(name="long", command="sleep 600", cards=6)
    yard.wait_for(job.id, "running")
    yield job
    job.stop()
    job.wait()


def write_job(visit: Visits, command: str, cards: str, name: str) -> None:
    page, say = visit.page, visit.say
    page.get_by_label(say("Command", "命令")).fill(command)
    page.get_by_label(say("Name", "名称"), exact=True).fill(name)
    page.get_by_label(say("Cards", "加速卡"), exact=True).fill(cards)


def no_sideways(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_what_does_not_fit_is_explained_changed_run_read_searched_and_cloned(
    yard: Platform, ada: Visits, six_cards_taken: Job, language: str
) -> None:
    page, say = ada.page, ada.say
    page.get_by_role("link", name=say("New job", "新建任务")).first.click()
    write_job(ada, TALK, "4", "talk")
    page.get_by_text(say("More choices", "更多选项")).click()
    page.get_by_role("button", name=say("Add a variable", "添加变量")).click()
    page.get_by_label(say("Name of variable 1", "第 1 个变量名")).fill("NASTY")
    page.get_by_label(say("Value of variable 1", "第 1 个变量值")).fill("<b onclick='alert(4)'>\"bold\": {}</b>")
    expect(page.get_by_text(say("Would wait", "会排队等待"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile(say("^Change: ", "^更改: "))).first).to_be_visible()
    ada.picture("job-preview-waits")
    page.get_by_role("button", name=say("Submit", "提交"), exact=True).click()

    page.get_by_role("tab", name=say("Why", "原因")).click()
    offer = page.get_by_role("button", name=re.compile(say("^Do this: .*2 cards", "^就这样改: .*2 张卡"))).first
    expect(offer).to_be_visible()
    ada.picture("job-why")
    waiting = page.url
    offer.click()
    expect(page).not_to_have_url(waiting)
    expect(page.get_by_text(say("succeeded", "成功")).first).to_be_visible()

    page.get_by_role("tab", name=say("Logs", "日志")).click()
    log = page.get_by_role("log")
    expect(log.get_by_text("finished", exact=True)).to_be_visible()
    expect(log.get_by_text("<img src=x onerror=alert(1)><script>alert(2)</script>")).to_be_visible()
    expect(log.get_by_text("download 100%", exact=True)).to_be_visible()
    expect(log.get_by_text("a link that is none", exact=True)).to_be_visible()
    expect(log.get_by_text("the value is <b onclick='alert(4)'>\"bold\": {}</b>", exact=True)).to_be_visible()
    assert log.locator("img, script, a, b").count() == 0
    assert log.get_by_text("loss is falling").evaluate("e => getComputedStyle(e).fontWeight") == "650"
    ada.picture("job-logs")

    page.get_by_label(say("Search the log", "搜索日志")).fill("STEP 17 of")
    page.get_by_role("button", name=say("Previous match", "上一个")).click()
    expect(log.locator(".here")).to_have_text("step 17 of 400")
    page.reload()
    expect(page.get_by_role("tab", name=say("Logs", "日志"))).to_have_attribute("aria-selected", "true")

    page.get_by_role("link", name=say("Clone with changes", "复制并修改")).click()
    expect(page.get_by_label(say("Command", "命令"))).to_have_value(re.compile("loss is falling"))
    expect(page.get_by_label(say("Cards", "加速卡"), exact=True)).to_have_value("2")
    expect(page.get_by_text(say("Starts now on", "会立即在"))).to_be_visible()
    ada.picture("job-clone")


def test_an_offer_taken_before_submitting_starts_the_job_at_once(
    yard: Platform, ada: Visits, six_cards_taken: Job
) -> None:
    page, say = ada.page, ada.say
    page.goto(yard.url + "/jobs/new")
    write_job(ada, "echo hello", "4", "fits")
    page.get_by_role("button", name=re.compile(say("^Change: .*2 cards", "^更改: .*2 张卡"))).first.click()
    expect(page.get_by_label(say("Cards", "加速卡"), exact=True)).to_have_value("2")
    expect(page.get_by_text(say("Starts now on", "会立即在"))).to_be_visible()
    page.get_by_role("tab", name="YAML").click()
    expect(page.get_by_label(say("Job file", "任务文件"))).to_contain_text("cards: 2")
    page.get_by_role("button", name=say("Submit", "提交"), exact=True).click()
    expect(page.get_by_text(say("succeeded", "成功")).first).to_be_visible()


def write_instead(page: Page, editor: Locator, text: str) -> None:
    """As at a keyboard: all of it is chosen, and written over. The browser's own choice may come too late."""
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def test_a_mistake_in_yaml_is_told_at_its_line_and_nothing_is_created(
    yard: Platform, work: Client, ada: Visits
) -> None:
    page, say = ada.page, ada.say
    ada.expected.append(re.compile("status of 400|status of 422"))
    before = len(list(work.jobs()))
    page.goto(yard.url + "/jobs/new?as=yaml")
    editor = page.get_by_label(say("Job file", "任务文件"))
    write_instead(page, editor, "command: echo hello\ncrads: 1\n")
    expect(page.locator(".cm-lint-marker-error")).to_be_visible()
    expect(page.get_by_label(say("What would happen now", "现在提交会怎样"))).to_contain_text(say("line 2", "第 2 行"))
    page.get_by_role("button", name=say("Submit", "提交"), exact=True).click()
    expect(page.get_by_text(say("What you wrote is kept.", "已填写的内容会保留。"))).to_be_visible()
    expect(editor).to_contain_text("crads: 1")
    ada.picture("job-yaml-mistake")
    assert len(list(work.jobs())) == before
    write_instead(page, editor, "command: echo hello\ncards: many\n")
    page.get_by_role("tab", name=say("Form", "表单")).click()
    expect(page.get_by_label(say("Cards", "加速卡"), exact=True)).to_have_value("many")
    expect(page.locator("#job-cards-hint[role=alert]")).to_be_visible()


def test_what_is_being_typed_as_yaml_is_not_lost_when_its_help_comes_late(yard: Platform, ada: Visits) -> None:
    page, say = ada.page, ada.say
    held: list[Route] = []
    page.route("**/api/v1/schema/job.json", lambda route: held.append(route))
    page.goto(yard.url + "/jobs/new?as=yaml")
    editor = page.get_by_label(say("Job file", "任务文件"))
    write_instead(page, editor, "command: echo ")
    outlook = page.get_by_label(say("What would happen now", "现在提交会怎样"))
    expect(outlook).to_contain_text(say("Starts now", "会立即在"))
    assert held
    with page.expect_response("**/api/v1/schema/job.json"):
        held.pop().continue_()
    page.keyboard.type("hello")
    expect(editor).to_have_text("command: echo hello")
    page.keyboard.type("\nca")
    expect(page.get_by_role("option", name="cards", exact=True)).to_be_visible()  # the help is there


def test_many_are_stopped_at_once_and_filters_survive_a_reload(work: Client, ada: Visits, language: str) -> None:
    page, say = ada.page, ada.say
    names = [f"sweep-{language}-{number}" for number in range(5)]
    jobs = [work.submit(name=name, command="sleep 600", cards=1) for name in [*names, f"other-{language}"]]
    page.get_by_label(say("Search by name", "按名称搜索")).fill(f"SWEEP-{language}")
    expect(page.get_by_role("row")).to_have_count(6)
    page.get_by_role("checkbox", name=say("Select all that are loaded", "选择全部已加载")).check()
    ada.picture("jobs-list")
    page.get_by_role("toolbar").get_by_role("button", name=say("Stop", "停止")).click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text(say("What they have not saved is lost", "未保存的工作会丢失"))
    question.get_by_role("button", name=say("Stop", "停止")).click()
    expect(page.get_by_role("cell", name=say("stopped", "已停止"), exact=True)).to_have_count(5)
    page.reload()
    expect(page.get_by_role("row")).to_have_count(6)
    expect(page.get_by_label(say("Search by name", "按名称搜索"))).to_have_value(f"SWEEP-{language}")
    assert work.job(jobs[-1].id).state not in ("stopped", "stopping")
    jobs[-1].stop()


def test_a_job_is_paused_resumed_and_shared_from_its_page(yard: Platform, ada: Visits) -> None:
    page, say = ada.page, ada.say
    page.goto(yard.url + "/jobs/new")
    write_job(ada, "echo begun; sleep 600", "1", "steady")
    page.get_by_role("button", name=say("Submit", "提交"), exact=True).click()
    expect(page.get_by_text(say("running", "运行中")).first).to_be_visible()
    page.get_by_role("button", name=say("Copy link", "复制链接")).click()
    wait_until(lambda: page.evaluate("navigator.clipboard.readText()") == page.url)
    for verb in (("Pause", "暂停"), ("Stop", "停止")):
        page.get_by_role("button", name=say(*verb), exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name=say(*verb)).click()
        done = {"Pause": ("paused", "已暂停"), "Stop": ("stopped", "已停止")}[verb[0]]
        expect(page.get_by_text(say(*done)).first).to_be_visible()
    page.get_by_role("tab", name=say("Timeline", "时间线")).click()
    expect(page.get_by_role("list", name=say("Timeline", "时间线")).get_by_role("listitem")).not_to_have_count(0)
    ada.picture("job-timeline")


def test_every_page_of_jobs_fits_a_narrow_screen(yard: Platform, work: Client, visits: Callable[..., Visits]) -> None:
    visit = entered(yard, visits(width=400, height=800))
    page = visit.page
    job = work.submit(name="narrow", command=["echo", "x" * 300], cards=1).wait()
    pages = ["/jobs?whose=all", "/jobs/new", "/jobs/new?as=yaml"]
    looks = [("light", "en"), ("dark", "zh")]
    for path in [*pages, *(f"/jobs/{job.id}?tab={tab}" for tab in ("overview", "why", "logs"))]:
        page.goto(yard.url + path)
        for look, language in looks:
            visit.see(400, 800, dark=look == "dark")
            visit.speak(language)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            expect(page.locator("main [aria-busy=true]")).to_have_count(0)
            visit.picture(f"narrow-{look}-{re.sub(r'[^a-z]+', '-', path.replace(job.id, 'id')).strip('-')}")
            assert no_sideways(page), (path, look)
        looks.reverse()


def test_a_terminal_leads_into_a_running_replica(work: Client, yard: Platform, visits: Callable[..., Visits]) -> None:
    visit = visits()
    page = visit.page
    job = work.submit(name="inside", command="cd /tmp; sleep 600", cards=1)
    yard.wait_for(job.id, "running")
    visit.enter(yard.url, "ada", PASSWORD, f"/jobs/{job.id}")
    page.get_by_role("tab", name="Terminal").click()
    expect(page).to_have_url(re.compile("tab=terminal"))
    inside = page.frame_locator("iframe.inside-frame")
    expect(inside.locator(".xterm-rows")).to_contain_text(re.compile("[#$]"))
    inside.locator(".xterm-helper-textarea").focus()
    page.keyboard.insert_text("echo $YARD_ROLE-$((40 + 2))-$YARD_INDEX")
    page.keyboard.press("Enter")
    expect(inside.locator(".xterm-rows")).to_contain_text("worker-42-0")
    visit.picture("job-terminal")
    job.stop()
    expect(page.get_by_text("stopped").first).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("A terminal opens while it runs.")


def test_usage_charts_show_what_a_job_uses_and_the_list_how_far_it_is(
    work: Client, yard: Platform, visits: Callable[..., Visits]
) -> None:
    visit = visits()
    page = visit.page
    command = 'sleep 1; echo 120 >"$YARD_BEACON"; while :; do :; done'
    job = work.submit(name="busy", command=command, cards=2, cpu=1, preemptible=True)
    yard.wait_for(job.id, "running")
    visit.enter(yard.url, "ada", PASSWORD, f"/jobs/{job.id}?tab=usage")
    cores = page.locator("section", has=page.get_by_role("img", name="Cores used"))
    expect(cores.locator("canvas")).to_be_visible()
    expect(cores).to_contain_text(re.compile(r"highest: (0\.[0-9]*[1-9]|[1-9])"))  # on a busy machine it gets little
    memory = page.locator("section", has=page.get_by_role("img", name="Memory used"))
    expect(memory).to_contain_text(re.compile(r"highest: [1-9][0-9.]* [kKMG]"))
    visit.picture("job-usage")
    page.goto(yard.url + "/jobs?search=busy")
    expect(page.get_by_role("row").filter(has_text="busy")).to_contain_text("step 120")
    job.stop()
