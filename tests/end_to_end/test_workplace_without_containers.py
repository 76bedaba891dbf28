"""A dev environment on the process engine: JupyterLab and VS Code come from the toolbox there, too."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from tests.cli.yard import wait_until
from tests.images import stage
from tests.platforms import Platform, a_platform

pytestmark = [
    pytest.mark.timeout(1800),  # the first run on a machine builds the toolbox
    pytest.mark.skipif(bool(stage.missing()), reason=stage.missing()),
]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with a_platform(tmp_path_factory.mktemp("yard"), "process", with_toolbox=True) as yard:
        yard.good("env", "create", "dev", "--cpu", "1", "--memory", "2G")
        yield yard


def visit(address: str, path: str | None = None, cookie: str = "") -> http.client.HTTPResponse:
    """Names below localhost are this machine, whatever its resolver says."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 80, timeout=60)
    headers = {"Host": parts.netloc, "Cookie": cookie, "Accept": "text/html"}
    connection.request("GET", f"{parts.path}?{parts.query}" if path is None else path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


@pytest.mark.parametrize(("what", "path"), [("lab", "/lab"), ("ide", "/?folder=/tmp")])
def test_it_is_opened_in_the_browser(yard: Platform, what: str, path: str) -> None:
    address = yard.good("env", "open", "--print", "dev", what)
    cookie = (visit(address).getheader("Set-Cookie") or "").split(";")[0]
    assert cookie
    wait_until(lambda: visit(address, path, cookie).status == 200, 60, lambda: f"{what} did not answer")


def test_the_toolbox_is_shown_to_jobs_and_cannot_be_changed(yard: Platform) -> None:
    line = "/opt/yard/bin/python3 -I -c 'import jupyterlab; print(6 * 7)'; touch /opt/yard/x 2>&1 | tail -c 22"
    assert yard.good("run", "--", "sh", "-c", line).splitlines()[-2:] == ["42", "Read-only file system"]


def test_sudo_says_that_there_is_no_root(yard: Platform) -> None:
    done = yard.run("run", "--", "/opt/yard/shims/sudo", "id")
    assert done.code != 0
    assert "there is no root in this workload" in done.out + done.err
