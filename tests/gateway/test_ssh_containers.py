"""SSH into containers: an image with nothing but busybox, and Debian. Everything ssh needs inside is the toolbox's."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.yard import wait_until
from tests.gateway.ssh_place import Place
from tests.images import stage
from tests.platforms import a_platform

pytestmark = [
    pytest.mark.timeout(1800),  # the first run on a machine builds the toolbox
    pytest.mark.skipif(bool(stage.missing("iptables", "ssh")), reason=stage.missing("iptables", "ssh")),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with a_platform(tmp_path_factory.mktemp("yard"), "container", with_toolbox=True) as platform:
        yield Place(platform)


@pytest.fixture(scope="module", params=["busybox", "debian"])
def env(request: pytest.FixtureRequest, place: Place) -> Iterator[str]:
    if request.param == "debian" and shutil.which("debootstrap") is None:
        pytest.skip("not installed: debootstrap")
    image = place.owner.load(stage.busybox_image() if request.param == "busybox" else stage.debian_image())
    place.ann.good("env", "create", request.param, "--image", image, "--cpu", "1", "--memory", "1G")
    yield request.param
    place.ann.good("env", "rm", "--yes", request.param)


def test_commands_run_inside_the_container(place: Place, env: str) -> None:
    ran = place.ssh("id -u; cat; echo oops >&2; exit 9", place=env, stdin="typed\n")
    assert (ran.returncode, ran.stdout, ran.stderr) == (9, "0\ntyped\n", "oops\n")


def test_a_terminal_is_inside_too(place: Place, env: str) -> None:
    ran = place.ssh("tty; echo $TERM", place=env, options=["-tt"])
    assert "/dev/pts/" in ran.stdout


def test_files_are_copied_although_the_image_has_no_program_for_it(place: Place, env: str, tmp_path: Path) -> None:
    source = tmp_path / "data.bin"
    source.write_bytes(os.urandom(3_000_000))
    for way in ([], ["-O"]):
        scp = ["scp", *way, *place.options(), "-P", str(place.port)]
        there = place.run([*scp, str(source), f"ann+{env}@127.0.0.1:copy"])
        assert there.returncode == 0, there.stderr
        back = place.run([*scp, f"ann+{env}@127.0.0.1:copy", str(tmp_path / "back")])
        assert back.returncode == 0, back.stderr
        assert (tmp_path / "back").read_bytes() == source.read_bytes()
    shell = " ".join(["ssh", *place.options(), "-p", str(place.port)])
    synced = place.run(["rsync", "-a", "-e", shell, f"{tmp_path}/", f"ann+{env}@127.0.0.1:synced/"])
    assert synced.returncode == 0, synced.stderr
    mine = place.ssh("ls -ln copy synced/data.bin", place=env)
    assert len(re.findall(r" 0 +0 +3000000 ", mine.stdout)) == 2, mine.stdout  # root inside, oneself outside


def test_a_port_of_the_container_is_forwarded_and_the_machines_own_is_not(place: Place, env: str) -> None:
    """The loopback that is reached is the container's."""
    box = '"${YARD_TOOLBOX:-/opt/yard}/bin/busybox"'
    server = f"mkdir -p web; echo inside > web/index.html; {box} httpd -p 127.0.0.1:8099 -h web"
    assert place.ssh(server, place=env).returncode == 0
    with socket.create_server(("127.0.0.1", 0)) as host:
        asked = place.ssh(place=env, options=["-W", "127.0.0.1:8099"], stdin="GET / HTTP/1.0\r\n\r\n")
        assert "inside" in asked.stdout, asked.stderr
        port = host.getsockname()[1]
        refused = place.ssh(place=env, options=["-W", f"127.0.0.1:{port}"])
        assert refused.returncode == 255
        host.settimeout(0.2)
        with pytest.raises(TimeoutError):
            host.accept()


def test_a_session_ends_with_its_environment(place: Place, env: str) -> None:
    visit = subprocess.Popen(place.command("echo in; cat", place=env), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert visit.stdout is not None
    assert visit.stdout.readline() == b"in\n"
    place.ann.good("env", "stop", env)
    assert visit.wait(60) != 0
    visit.communicate()
    wait_until(lambda: f"yard env start {env}" in place.ssh("true", place=env).stderr)
    place.ann.good("env", "start", env)
    assert place.ssh("echo again", place=env).stdout == "again\n"
