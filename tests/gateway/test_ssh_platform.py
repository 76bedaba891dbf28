"""SSH into a dev environment of a whole platform, and what of it lasts when the server goes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from tests.cli.yard import wait_until
from tests.gateway.ssh_place import Place
from tests.platforms import a_platform

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the OpenSSH client")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if os.geteuid() != 0:
        pytest.skip("without root there is only the admin, who has a one-time password here")
    with a_platform(tmp_path_factory.mktemp("yard"), "process") as platform:
        there = Place(platform)
        there.ann.good("env", "create", "dev")
        yield there


def test_an_environment_is_entered_as_its_owner_at_home(place: Place) -> None:
    ran = place.ssh("id -un; pwd; echo $HOME; exit 6")
    assert ran.returncode == 6, ran.stderr
    user, here, home = ran.stdout.split()
    assert (user, here) == ("ann", home)


def test_a_running_job_is_entered_by_its_id(place: Place) -> None:
    id = place.ann.good("run", "--detach", "--", "sleep", "300").split()[0]
    place.ann.wait_for(id, "running")
    ran = place.ssh("echo $YARD_WORKLOAD", place=id)
    assert ran.stdout == f"{id}\n", ran.stderr
    place.ann.run("stop", id)
    place.ann.wait_for(id)
    assert "not running" in place.ssh("true", place=id).stderr


def test_a_stopped_environment_says_so_and_is_entered_again_after_its_start(place: Place) -> None:
    place.ann.good("env", "create", "second")
    assert place.ssh("echo in", place="second").stdout == "in\n"
    place.ann.good("env", "stop", "second")
    wait_until(lambda: "yard env start second" in place.ssh("true", place="second").stderr)
    place.ann.good("env", "start", "second")
    assert place.ssh("echo in", place="second").stdout == "in\n"
    place.ann.good("env", "rm", "--yes", "second")


def test_a_session_outlives_the_server_and_new_ones_begin_without_it(place: Place) -> None:
    visit = subprocess.Popen(place.command("cat"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert visit.stdin is not None
        assert visit.stdout is not None
        visit.stdin.write(b"before\n")
        visit.stdin.flush()
        assert visit.stdout.readline() == b"before\n"
        place.owner.kill_server()
        visit.stdin.write(b"without\n")
        visit.stdin.flush()
        assert visit.stdout.readline() == b"without\n"
        assert place.ssh("echo new").stdout == "new\n"
        place.owner.start_server()
        visit.stdin.write(b"after\n")
        visit.stdin.flush()
        assert visit.stdout.readline() == b"after\n"
        assert place.ssh("echo newer").stdout == "newer\n"
    finally:
        visit.communicate(b"", timeout=20)
    assert visit.returncode == 0


def test_the_command_finds_the_door_by_itself(place: Place) -> None:
    told = place.ann.json("whoami")
    assert told["user"]["name"] == "ann"
    listed = place.ann.json("key", "ls")
    assert listed[0]["last_used_at"] is not None
