"""The console as it is served: built files by their names, the page for every other address, and nothing else."""

from __future__ import annotations

import gzip
import http.client
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.api.yard import Yard

from gpuyard.console.serving import Console

PAGE = "<!doctype html><title>gpuyard</title>" + " " * 2000
SCRIPT = "console.log('yard');" * 200
FRAMES = "http://gateway.example:8471"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A build, beside a file that is nobody's business."""
    folder = tmp_path / "built"
    (folder / "assets").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("secret")
    for name, text in (("index.html", PAGE), ("assets/app-1a2b.js", SCRIPT), ("icon.svg", "<svg/>")):
        (folder / name).write_text(text)
    (folder / "assets/app-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    return folder


@pytest.fixture
def browser(built: Path) -> Iterator[TestClient]:
    server = Starlette(routes=[Route("/api/v1/whoami", lambda _: PlainTextResponse("behind"))])
    with TestClient(Console(server, frames=lambda: FRAMES, built=built)) as client:
        yield client


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/jobs/k4ab2c9x0z", "/envs/new", "/admin/groups?group=vision", "/nowhere"]
)
def test_every_address_of_the_application_is_the_page_asked_for_anew(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert answer.status_code == 200
    assert answer.text == PAGE
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


def test_files_named_by_what_is_in_them_are_kept_for_good(browser: TestClient) -> None:
    answer = browser.get("/assets/app-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert answer.text == SCRIPT
    assert "immutable" in answer.headers["cache-control"]
    assert "javascript" in answer.headers["content-type"]
    assert browser.get("/icon.svg").headers["cache-control"] == "no-cache"


def test_packed_files_go_only_to_those_who_can_unpack_them(browser: TestClient) -> None:
    packed = browser.get("/assets/app-1a2b.js", headers={"Accept-Encoding": "br, gzip"})
    whole = browser.get("/assets/app-1a2b.js", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in whole.headers
    assert packed.text == whole.text == SCRIPT
    assert int(packed.headers["content-length"]) < int(whole.headers["content-length"])
    assert packed.headers["vary"] == whole.headers["vary"] == "Accept-Encoding"


def test_a_file_of_another_version_is_not_answered_with_the_page(browser: TestClient) -> None:
    answer = browser.get("/assets/app-9z9z.js")
    assert answer.status_code == 404
    assert "<!doctype" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/assets/%2e%2e%2f%2e%2e%2fsecret.txt",
        "//secret.txt",
        "/assets/..\\..\\secret.txt",
        "/secret.txt%00.js",
        "/assets/app-1a2b.js.gz",
        "/assets",
        "/assets/",
    ],
)
def test_no_path_leads_out_of_the_build(browser: TestClient, path: str) -> None:
    answer = browser.get(path)
    assert "secret" not in answer.text
    assert answer.status_code == 404 or answer.text == PAGE


def test_a_link_out_of_the_build_made_later_is_not_followed(browser: TestClient, built: Path) -> None:
    browser.get("/")
    os.symlink(built.parent / "secret.txt", built / "later.txt")
    assert browser.get("/later.txt").text == PAGE


def test_the_page_runs_no_script_but_its_own_and_frames_only_the_gateway(browser: TestClient) -> None:
    policy = dict(
        rule.strip().partition(" ")[::2] for rule in browser.get("/").headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-src"] == FRAMES
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"


def test_the_api_is_left_to_the_server_behind(browser: TestClient) -> None:
    assert browser.get("/api/v1/whoami").text == "behind"
    assert browser.get("/api/v1/nowhere").status_code == 404
    assert browser.get("/api/v1/nowhere").text != PAGE


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_pages_are_only_for_reading(browser: TestClient, method: str) -> None:
    answer = browser.request(method, "/jobs")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_head_request_tells_the_same_without_the_page(browser: TestClient) -> None:
    answer = browser.head("/jobs")
    assert (answer.status_code, answer.content) == (200, b"")
    assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_without_a_build_the_page_says_how_to_get_one_and_comes_when_it_is_built(tmp_path: Path) -> None:
    built = tmp_path / "built"
    console = Console(Starlette(), frames=lambda: "", built=built)
    with TestClient(console) as browser:
        missing = browser.get("/jobs")
        assert missing.status_code == 503
        assert "make web" in missing.text
        assert "构建" in missing.text
        assert "frame-src 'none'" in missing.headers["content-security-policy"]
        built.mkdir()
        (built / "index.html").write_text(PAGE)
        assert browser.get("/jobs").text == PAGE


def test_a_new_build_is_served_without_a_restart_and_the_old_files_are_gone(browser: TestClient, built: Path) -> None:
    browser.get("/")
    (built / "assets/app-1a2b.js").unlink()
    (built / "assets/app-1a2b.js.gz").unlink()
    (built / "assets/app-3c4d.js").write_text("new")
    (built / "index.html").write_text("new page")
    later = (built / "index.html").stat().st_mtime_ns + 1_000_000_000
    os.utime(built / "index.html", ns=(later, later))
    assert browser.get("/").text == "new page"
    assert browser.get("/assets/app-3c4d.js").text == "new"
    assert browser.get("/assets/app-1a2b.js").status_code == 404


def test_a_file_taken_away_in_the_middle_of_a_build_is_told_and_breaks_nothing(
    browser: TestClient, built: Path
) -> None:
    browser.get("/")
    (built / "icon.svg").unlink()
    assert browser.get("/icon.svg").status_code == 503


def test_a_real_server_answers_every_address_but_the_apis_with_the_console(server: Yard) -> None:
    """Sent as it stands: a well-behaved client would tidy the path first."""
    host = server.url.removeprefix("http://")
    for path in ("/", "/jobs/x", "/../../../etc/passwd", "/assets/../../serving.py"):
        line = http.client.HTTPConnection(host, timeout=30)
        line.request("GET", path)
        answer = line.getresponse()
        body = answer.read()
        assert answer.status in (200, 404, 503), path
        assert b"root:" not in body
        assert b"import" not in body[:200] or b"<html" in body[:300]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        line.close()
