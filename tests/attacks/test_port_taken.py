"""While the server is away anybody may listen on its port. Nobody tells a secret there, and it comes back all the
same."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.yard import Yard, wait_until

from gpuyard import Client
from gpuyard.engines.listening import PortTaken, close, listen
from gpuyard.sdk.errors import ServerUnreachable
from gpuyard.sdk.finding import Door
from gpuyard.sdk.login import PasswordSession
from gpuyard.sdk.websocket import WebSocket

STRANGER = 60123

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes as somebody else")


@dataclass
class Squatter:
    """A process of another user that listens, and tells how much was said to it."""

    line: Connection

    def heard(self) -> bytes:
        self.line.send("heard?")
        return bytes(self.line.recv())


@contextlib.contextmanager
def squatting(port: int, host: str = "127.0.0.1") -> Iterator[Squatter]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_squat, args=(host, port, theirs))
    process.start()
    try:
        assert ours.poll(30), "it does not listen"
        assert ours.recv() == "listening"
        yield Squatter(ours)
    finally:
        process.kill()
        process.join()
        ours.close()
        theirs.close()


def _squat(host: str, port: int, line: Connection) -> None:
    os.setresgid(STRANGER, STRANGER, STRANGER)
    os.setresuid(STRANGER, STRANGER, STRANGER)
    heard = bytearray()
    with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        line.send("listening")

        def take() -> None:
            while True:
                sock, _ = listener.accept()
                threading.Thread(target=hear, args=(sock,), daemon=True).start()

        def hear(sock: socket.socket) -> None:
            with sock:
                heard.extend(sock.recv(65536))

        threading.Thread(target=take, daemon=True).start()
        while line.recv():
            line.send(bytes(heard))


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard.fresh(tmp_path)
    yard.up("--simulate-cards", "1", "--gateway-port", "0", "--ssh-port", "0")
    yield yard
    yard.run("down", "--all")


def kill_server(yard: Yard) -> int:
    """Its port."""
    port, pid = urlsplit(yard.url).port, yard.pid
    assert port is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not _listens(port))
    return port


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


COMMANDS: dict[str, Callable[[Yard, str, str], tuple[int, str]]] = {
    "yard, by the data folder": lambda yard, url, token: _ran(yard, "ls"),
    "yard, by address and token": lambda yard, url, token: _ran(yard, "ls", YARD_URL=url, YARD_TOKEN=token),
    "dlc": lambda yard, url, token: _program(yard, "dlc", "get", "job", YARD_URL=url, YARD_TOKEN=token),
    "vcctl": lambda yard, url, token: _program(yard, "vcctl", "job", "list", YARD_URL=url, YARD_TOKEN=token),
    "yard login": lambda yard, url, token: _ran(
        yard, "login", url, "--name", "admin", "--password-stdin", stdin="secret\n", YARD_DATA=""
    ),
}


def _ran(yard: Yard, *arguments: str, stdin: str = "", **env: str) -> tuple[int, str]:
    ran = yard.run(*arguments, stdin=stdin, timeout=120, **env)
    return ran.code, ran.err


def _program(yard: Yard, name: str, *arguments: str, **env: str) -> tuple[int, str]:
    program = Path(sys.executable).parent / name
    done = subprocess.run(
        [str(program), *arguments],
        env=yard.environment(**env),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


@needs_root
def test_while_the_server_is_away_nobody_tells_a_secret_to_who_sits_on_its_port(yard: Yard) -> None:
    url, token = yard.url, "yard_" + "x" * 43
    with squatting(kill_server(yard)) as squatter:
        for client, command in COMMANDS.items():
            code, said = command(yard, url, token)
            assert code != 0, client
            assert str(STRANGER) in said, (client, said)
        with (
            Client(url, token, submit_patience_seconds=0) as client_of_sdk,
            pytest.raises(ServerUnreachable) as refused,
        ):
            client_of_sdk.submit(command="true")
        assert refused.value.code == "client.stranger"
        with PasswordSession(url, "en") as session, pytest.raises(ServerUnreachable):
            session.log_in("admin", "a password")
        with pytest.raises(ServerUnreachable):
            WebSocket.connect(f"{url}/.yard/api/terminal/x", {"Authorization": "x"}, False, Door(url).require_server)
        assert squatter.heard() == b""


@needs_root
def test_who_says_as_whom_the_server_runs_is_believed(yard: Yard) -> None:
    url = yard.url
    with squatting(kill_server(yard)) as squatter:
        with Client(door=Door(url, "yard_token", None, STRANGER)) as client, pytest.raises(ServerUnreachable):
            client.wire.send("/api/v1/anything", iter([b"x"]), 1)
        assert b"yard_token" in squatter.heard()
    ran = yard.run("ls", YARD_URL=url, YARD_TOKEN="yard_x", YARD_SERVER_USER="no-such-user")
    assert (ran.code, "no-such-user" in ran.err) == (2, True), ran


@needs_root
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_job_that_sits_on_the_servers_port_is_ended_when_the_server_comes_back(yard: Yard, host: str) -> None:
    port = urlsplit(yard.url).port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    code = (
        "import socket, time\n"
        "while True:\n"
        f"    try: listener = socket.create_server(({host!r}, {port}), family={int(family)}); break\n"
        "    except OSError: time.sleep(0.02)\n"
        "print('it is mine', flush=True)\n"
        "time.sleep(3600)\n"
    )
    job = yard.good("run", "--detach", "--cpu", "0.1", "--", "python3", "-c", code).split()[-1]
    yard.wait_for(job, "running")
    (log,) = (yard.data / "replicas").glob("*/1/*/log")
    os.kill(yard.pid, signal.SIGKILL)
    wait_until(lambda: "it is mine" in log.read_text())
    yard.good("up", "--detach", "--port", str(port), "--simulate-cards", "1", "--gateway-port", "0", "--ssh-port", "0")
    assert urlsplit(yard.url).port == port
    yard.wait_for(job, "failed")
    assert f"port {port}" in log.read_text()


def test_somebody_else_on_the_servers_port_is_named_and_left_alone(tmp_path: Path) -> None:
    yard = Yard.fresh(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ran = yard.run("up", "--detach", "--port", str(port), "--simulate-cards", "1")
        assert ran.code != 0
        assert f"port {port} is taken by pid {os.getpid()}" in ran.err
        assert _listens(port)


def test_what_is_asked_by_localhost_is_ours_on_both_families(tmp_path: Path) -> None:
    for listeners in (opened := listen("127.0.0.1", 0, tmp_path, sharers=2)):
        assert [listener.family for listener in listeners] == [socket.AF_INET, socket.AF_INET6]
    port = opened[0][0].getsockname()[1]
    assert {listener.getsockname()[1] for listeners in opened for listener in listeners} == {port}
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("::1", port), family=socket.AF_INET6)
    with pytest.raises(PortTaken, match=f"pid {os.getpid()}"):
        listen("::1", port, tmp_path)
    for listeners in opened:
        close(listeners)


def test_server_and_gateway_answer_on_both_families(yard: Yard) -> None:
    wait_until((yard.data / "gateway.json").exists)
    with Client(data=yard.data) as client:
        gateway = client.gateway().url
    assert gateway is not None
    for port in (urlsplit(yard.url).port, urlsplit(gateway).port):
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, port or 0), timeout=30) as sock:
                sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert sock.recv(9) == b"HTTP/1.1 ", (host, port)
