"""JupyterLab and VS Code are started by the first visit, and until they answer the visitor is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.gateway.house import House, NearBroker, a_service, host, running, wait_until
from tests.gateway.programs import a_program

from gpuyard.domain.errors import NotFound
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import Kind, Workload

SLOW = """
import http.server, os, socket, socketserver, sys, time
time.sleep(float(sys.argv[1]))
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.path.encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def address_string(self): return ""
    def log_message(self, *words): pass
class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
Server(sys.argv[2], Page).serve_forever()
"""
FAILING = "import sys; sys.exit(7)"


@pytest.fixture(params=[False, True], ids=["by name", "by path"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with running(tmp_path_factory.mktemp("g"), paths=request.param) as there:
        there.person("ann")
        yield there


def place(house: House, env: Workload, what: str) -> tuple[str, str]:
    """Host and prefix of a visit."""
    return ("localhost", f"/i/{env.id}/{what}") if house.context.config.paths else (host(env, what), "")


def enter(house: House, env: Workload, what: str) -> str:
    name, prefix = place(house, env, what)
    code = house.code(house.log_in("ann")[0], env.id, what)
    told = house.get(name, f"{prefix}/.yard/enter?code={code}&next=/x")
    assert told.headers["Location"] == f"{prefix}/x"
    path = f"Path={prefix}/;"
    assert path in told.headers["Set-Cookie"]
    return str(told.headers["Set-Cookie"]).partition(";")[0]


def test_the_first_visit_starts_it_and_the_page_comes_by_itself(house: House) -> None:
    env = house.workload("ann", kind=Kind.ENV)
    house.recipes["lab"] = a_service(sys.executable, "-c", SLOW, "1.5")
    cookie, (name, prefix) = enter(house, env, "lab"), place(house, env, "lab")
    first = house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html", Accept_Language="zh")
    assert (first.status, first.headers["Refresh"]) == (503, "1")
    assert "正在启动" in first.text
    program = house.get(name, f"{prefix}/api", Cookie=cookie)
    assert (program.status, program.headers["Retry-After"]) == (503, "1")
    wait_until(lambda: house.get(name, f"{prefix}/", Cookie=cookie).status == 200)
    assert sum(call[0] == "serve" for call in house.broker.asked) <= 2
    assert house.get(name, f"{prefix}/tree", Cookie=cookie).text == f"{prefix}/tree", "its prefix is known to it"


def test_one_that_fails_says_so_and_is_tried_again(house: House) -> None:
    env = house.workload("ann", kind=Kind.ENV)
    house.recipes["lab"] = a_service(sys.executable, "-c", FAILING)
    cookie, (name, prefix) = enter(house, env, "lab"), place(house, env, "lab")

    def told() -> str:
        return house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html", Accept_Language="en").text

    wait_until(lambda: "exit code 7" in told())


def test_a_page_is_shown_by_what_runs_now_right_after_a_restart(house: House) -> None:
    env = house.workload("ann", kind=Kind.ENV)
    house.recipes["lab"] = a_service(sys.executable, "-c", SLOW, "0")
    cookie, (name, prefix) = enter(house, env, "lab"), place(house, env, "lab")
    wait_until(lambda: house.get(name, f"{prefix}/", Cookie=cookie).status == 200)
    house.get(name, f"{prefix}/", Cookie=cookie)
    house.restart(env)  # while it is still remembered where the page came from
    first = house.get(name, f"{prefix}/", Cookie=cookie)
    assert first.status == 200 or "cannot be entered" not in first.text
    wait_until(lambda: house.get(name, f"{prefix}/", Cookie=cookie).status == 200)


def test_without_a_toolbox_it_is_said(house: House) -> None:
    env = house.workload("ann", kind=Kind.ENV)
    for what in ("lab", "ide"):
        cookie, (name, prefix) = enter(house, env, what), place(house, env, what)
        for _ in range(3):  # it is not taken for something that starts
            told = house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html", Accept_Language="en")
            assert told.status == 503
            assert "yard toolbox build" in told.text


class WithoutPrograms(NearBroker):
    """Inside, nothing of the toolbox is to be seen."""

    async def serve(self, replica: str, user: str, name: str, argv: Sequence[str], *more: object) -> bool:
        raise NotFound(because(Code.NOT_FOUND, what="program", name=argv[0]))


def test_one_started_before_the_toolbox_was_built_is_to_be_started_again(tmp_path: Path) -> None:
    with running(tmp_path, WithoutPrograms(tmp_path)) as house:
        house.person("ann")
        env = house.workload("ann", kind=Kind.ENV)
        house.recipes["lab"] = a_service("/opt/yard/lib/ld.so")
        cookie, (name, prefix) = enter(house, env, "lab"), place(house, env, "lab")
        for language, again in (("en", "Start it again"), ("zh", "请重新启动")):
            told = house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html", Accept_Language=language)
            assert told.status == 503
            assert again in told.text
            assert f"yard env restart {env.spec.name}" in told.text


def test_one_that_fails_because_it_sees_an_older_toolbox_is_to_be_started_again(house: House) -> None:
    env = house.workload("ann", kind=Kind.ENV)
    current = Path(house.context.config.data) / "toolbox" / "current"
    current.mkdir(parents=True, exist_ok=True)
    os.utime(current, (house.clock() + 60, house.clock() + 60))
    house.recipes["lab"] = a_service(sys.executable, "-c", FAILING)
    cookie, (name, prefix) = enter(house, env, "lab"), place(house, env, "lab")

    def told() -> str:
        return house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html", Accept_Language="en").text

    try:
        wait_until(lambda: f"yard env restart {env.spec.name}" in told())
    finally:
        current.rmdir()


def test_a_program_is_told_in_letters_that_can_be_read(house: House) -> None:
    told = house.get("localhost", "/nothing", Accept_Language="zh")
    assert "这里什么也没有" in told.text
    assert told.headers["Content-Type"] == "application/json; charset=utf-8"


def test_jobs_have_no_notebooks(house: House) -> None:
    job = house.workload("ann", kind=Kind.JOB)
    cookie, (name, prefix) = enter(house, job, "lab"), place(house, job, "lab")
    assert house.get(name, f"{prefix}/", Cookie=cookie).status == 404


def test_without_a_built_console_the_terminal_is_a_smaller_one(tmp_path: Path) -> None:
    with running(tmp_path, built=str(tmp_path / "nothing")) as house:
        house.person("ann")
        env = house.workload("ann", kind=Kind.ENV)
        cookie, (name, prefix) = enter(house, env, "terminal"), place(house, env, "terminal")
        page = house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html")
        assert page.status == 200
        for file in ("plain_terminal.css", "plain_screen.js", "plain_terminal.js"):
            assert f"{prefix}/.yard/assets/{file}" in page.text
            assert house.get(name, f"{prefix}/.yard/assets/{file}").status == 200
        assert "xterm" not in page.text


def a_build(folder: Path) -> str:
    """The terminal's page and its files, beside others that are the console's."""
    files = {
        "terminal.html": '<html lang="en"><title>terminal</title><script src="/assets/terminal-a1.js"></script>',
        "assets/terminal-a1.js": "// terminal",
        "assets/terminal-a1.js.gz": "packed",
        "assets/index-b2.js": "// console",
    }
    (folder / "assets").mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return str(folder)


@pytest.mark.parametrize("paths", [False, True])
def test_the_terminal_page_and_its_files(tmp_path: Path, paths: bool) -> None:
    with running(tmp_path, paths=paths, built=a_build(tmp_path / "built")) as house:
        house.person("ann")
        env = house.workload("ann", kind=Kind.ENV)
        cookie, (name, prefix) = enter(house, env, "terminal"), place(house, env, "terminal")
        page = house.get(name, f"{prefix}/", Cookie=cookie, Accept="text/html", Accept_Language="zh")
        files = f"{prefix}/.yard/assets"
        assert page.status == 200
        title = f"<title>{env.spec.name}</title>"
        assert page.text == f'<html lang="zh-CN">{title}<script src="{files}/terminal-a1.js"></script>'
        assert house.get(name, f"{files}/terminal-a1.js").body == b"// terminal"
        packed = house.get(name, f"{files}/terminal-a1.js", Accept_Encoding="gzip, br")
        assert (packed.body, packed.headers["Content-Encoding"]) == (b"packed", "gzip")
        assert packed.headers["Content-Type"].startswith("text/javascript")
        for wrong in ("../../owner.token", "%2e%2e/owner.token", "index-b2.js", "terminal.html", "terminal-a1.js.gz"):
            assert house.get(name, f"{files}/{wrong}").status == 404
        stranger = house.get(name, f"{prefix}/", Accept="text/html")
        assert (stranger.status, "/.yard/login?to=terminal-" in stranger.headers["Location"]) == (303, True)


def test_by_path_programs_are_told_their_prefix_and_cookies_stay_below_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with a_program() as program, running(tmp_path_factory.mktemp("g"), paths=True) as house:
        house.person("ann")
        job = house.workload("ann", kind=Kind.JOB, ports={8080: program.port})
        cookie, (name, prefix) = enter(house, job, "p8080"), place(house, job, "p8080")
        assert house.get(name, f"{prefix}/a%2Fb?c", Cookie=cookie).status == 200
        assert program.last.startswith("GET /a%2Fb?c HTTP/1.1")
        assert program.header("X-Forwarded-Prefix") == [prefix]
        assert house.get(name, f"{prefix}/redirect", Cookie=cookie).headers["Location"] == f"{prefix}/there"
        told = house.get(name, f"{prefix}/cookies", Cookie=cookie)
        assert told.headers.get_all("Set-Cookie") == [f"session=1; Path={prefix}/", f"plain=2; Path={prefix}/"]
        assert house.get(name, prefix, Cookie=cookie).headers["Location"] == f"{prefix}/"
        assert house.get("localhost", prefix.replace(job.id, "w123456789") + "/", Cookie=cookie).status == 401


def test_paths_are_not_served_where_names_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("g")) as house:
        assert house.get("localhost", "/i/w123456789/p8080/").status == 404
