"""The gateway and its broker are there while a server wants them, come back when they die, and outlive the server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.cli.yard import Yard
from tests.gateway.house import wait_until
from tests.ports import a_port

from gpuyard import Client
from gpuyard.access.owner import keep_owner_secret
from gpuyard.cli.processes import is_gone
from gpuyard.gateway.config import BROKER_LOCK, GATEWAY_LOCK, GatewayConfig, read_note
from gpuyard.gateway.keeping import GatewayKeeper, holder
from gpuyard.gateway.main import SILENT_SECONDS
from gpuyard.store.database import Database


@pytest.fixture
def config(tmp_path: Path) -> Iterator[GatewayConfig]:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    url = f"sqlite:///{data / 'gpuyard.db'}"
    Database.open(url).close()
    keep_owner_secret(data / "owner.token")
    yield GatewayConfig(str(data), url, port=0, ssh_port=0, hosts=("localhost", "127.0.0.1"))
    pids = [pid for pid in both(data) if pid]
    below = [int(pid) for one in pids for pid in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: all(map(is_gone, below)))
    shutil.rmtree(data)


def both(data: Path) -> tuple[int | None, int | None]:
    return holder(data / "run" / GATEWAY_LOCK), holder(data / "run" / BROKER_LOCK)


@contextmanager
def kept(config: GatewayConfig) -> Iterator[None]:
    keeper = GatewayKeeper(config)
    thread = threading.Thread(target=keeper.run)
    thread.start()
    try:
        yield
    finally:
        keeper.end()
        thread.join()


def answers(data: Path) -> bool:
    note = read_note(data)
    if note is None:
        return False
    try:
        with socket.create_connection(("127.0.0.1", note.port), timeout=5) as sock:
            sock.sendall(b"GET /.yard/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return sock.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def is_up(data: Path) -> bool:
    return all(both(data)) and answers(data)


def test_both_are_started_and_come_back_when_killed(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        gateway, broker = both(data)
        assert gateway
        assert broker
        before = read_note(data)
        os.kill(gateway, signal.SIGKILL)
        wait_until(lambda: both(data)[0] not in (gateway, None, 0) and told_by(data) == both(data)[0] and is_up(data))
        assert both(data)[1] == broker, "one does not take the other with it"
        after = read_note(data)
        assert before is not None
        assert after is not None
        assert (after.port, after.ssh_port) == (before.port, before.ssh_port), "open pages and editors look there"
        os.kill(broker, signal.SIGKILL)
        wait_until(lambda: both(data)[1] not in (broker, None, 0))


def told_by(data: Path) -> int | None:
    note = read_note(data)
    return note.pid if note is not None else None


def workers(data: Path) -> list[int]:
    pid = both(data)[0]
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_worker_that_dies_is_replaced_and_the_gateway_stays(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        gateway, before, note = both(data)[0], workers(data), read_note(data)
        assert note is not None
        assert note.ssh_port
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(workers(data)) == len(before) and not set(workers(data)) & set(before))
        wait_until(lambda: answers(data))
        wait_until(lambda: speaks_ssh(note.ssh_port or 0))
        assert both(data)[0] == gateway


def test_a_worker_that_hangs_is_replaced_and_nobody_waits_for_it_for_good(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        before = workers(data)
        for pid in before:
            os.kill(pid, signal.SIGSTOP)
        wait_until(
            lambda: len(workers(data)) == len(before) and not set(workers(data)) & set(before), SILENT_SECONDS + 20
        )
        wait_until(lambda: answers(data))


def speaks_ssh(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            return sock.recv(100).startswith(b"SSH-2.0-")
    except OSError:
        return False


def test_workers_end_with_the_one_who_started_them(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        gateway, before = both(data)[0], workers(data)
        assert gateway
        os.kill(gateway, signal.SIGKILL)
        wait_until(lambda: all(map(is_gone, before)))
        wait_until(lambda: is_up(data))


def test_they_go_on_without_the_server_and_the_next_one_takes_them_over(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        before = both(data)
    assert is_up(data)
    with kept(config):
        threading.Event().wait(2.5)
        assert both(data) == before
        assert is_up(data)


def test_a_gateway_with_other_settings_is_replaced_and_the_broker_stays(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        gateway, broker = both(data)
    with kept(replace(config, apps_domain="apps.example")):
        wait_until(lambda: both(data)[0] not in (gateway, None, 0) and is_up(data))
        note = read_note(data)
        assert note is not None
        assert note.domain == "apps.example"
        assert both(data)[1] == broker


def test_with_the_data_folder_gone_they_end_by_themselves(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
        pids = both(data)
    shutil.move(data, data.with_name("moved"))
    data.mkdir()
    wait_until(lambda: all(pid is not None and is_gone(pid) for pid in pids))


def test_told_to_end_it_ends_and_takes_its_note_along(config: GatewayConfig) -> None:
    data = config.folder
    with kept(config):
        wait_until(lambda: is_up(data))
    gateway, _ = both(data)
    assert gateway
    os.kill(gateway, signal.SIGTERM)
    wait_until(lambda: both(data)[0] is None)
    assert read_note(data) is None


# --- with a whole server ------------------------------------------------------------------------------------------

ECHO = """
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(65536)
        self.request.sendall(b"HTTP/1.1 101 Changed\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n")
        while piece := self.request.recv(65536):
            self.request.sendall(piece)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
Server(("127.0.0.1", %d), Echo).serve_forever()
"""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    (tmp_path / "home").mkdir()
    there = Yard(tmp_path / "home", tmp_path / "data")
    yield there
    there.run("down", "--all")


def open_websocket(url: str, port: int) -> socket.socket:
    """By the code in the address, as a browser would."""
    parts = urlsplit(url)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        head = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
        sock.sendall(head.encode())
        answer = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
    cookie = next(line for line in answer.split("\r\n") if line.startswith("Set-Cookie: "))[12:].partition(";")[0]
    lines = ["GET / HTTP/1.1", f"Host: {parts.netloc}", f"Origin: http://{parts.netloc}", f"Cookie: {cookie}"]
    sock = socket.create_connection(("127.0.0.1", port), timeout=20)
    sock.sendall("\r\n".join([*lines, "Connection: Upgrade", "Upgrade: websocket", "", ""]).encode())
    assert sock.recv(65536).startswith(b"HTTP/1.1 101")
    return sock


def test_an_open_connection_survives_the_end_and_the_return_of_the_server(yard: Yard) -> None:
    port = a_port()
    yard.up("--engine", "process")
    job = yard.data.parent / "job.yaml"
    job.write_text(json.dumps({"command": ["python3", "-c", ECHO % port], "ports": [{"number": port}]}))
    id = yard.good("submit", str(job))
    yard.wait_for(id, "running")
    wait_until(lambda: is_up(yard.data))
    note = read_note(yard.data)
    assert note is not None
    with Client(data=yard.data) as client:
        wait_until(lambda: _listens(port))
        sock = open_websocket(client.open(id, f"p{port}"), note.port)
    with sock:
        os.kill(yard.pid, signal.SIGKILL)
        sock.sendall(b"without a server")
        assert sock.recv(100) == b"without a server"
        (yard.data / "server.json").unlink()
        yard.up("--engine", "process")
        wait_until(lambda: is_up(yard.data))
        sock.sendall(b"with the next")
        assert sock.recv(100) == b"with the next"
        assert read_note(yard.data) == note, "the same gateway goes on"
    yard.run("stop", id)
    yard.wait_for(id)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_down_leaves_the_gateway_to_those_who_work_and_all_does_not(yard: Yard) -> None:
    yard.up("--engine", "process")
    yard.good("env", "create", "dev", "--cpu", "1", "--memory", "128M")
    wait_until(lambda: is_up(yard.data))
    done = yard.run("down")
    assert "1 dev environment" in done.err
    assert is_up(yard.data)
    yard.up("--engine", "process")
    yard.good("env", "rm", "dev", "--yes")
    wait_until(lambda: not any(job["state"] == "running" for job in yard.json("ls")))
    yard.run("down")
    assert both(yard.data) == (None, None)
