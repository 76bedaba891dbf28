"""Visitors of the gateway who take time and memory instead of data: nobody else is to notice them."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.house import House, NearBroker, host, running, wait_until

PIECE = 64 * 1024
MUCH = 32 * 1024 * 1024


class SlowBroker(NearBroker):
    """A workload whose porter does not answer."""

    async def terminal(self, replica: str, user: str, **asked: Any) -> tuple[str, bool, socket.socket]:
        self.asked.append(("terminal", replica, user))
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    with running(folder, SlowBroker(folder)) as house:
        house.person("ann")
        yield house


def test_a_body_that_trickles_in_is_not_waited_for_ever(house: House) -> None:
    """By somebody nobody knows: the login form is open to all."""
    head = f"POST /.yard/login HTTP/1.1\r\nHost: localhost:{house.port}\r\nOrigin: http://localhost:{house.port}\r\n"
    silent, trickling = house.connect(), house.connect()
    for sock in (silent, trickling):
        sock.sendall(f"{head}Content-Length: 1000\r\n\r\nname=".encode())
        sock.setblocking(False)
    closed: set[socket.socket] = set()
    deadline = time.monotonic() + 25
    while len(closed) < 2:
        assert time.monotonic() < deadline, "they are still there"
        closed |= {sock for sock in (silent, trickling) if is_closed(sock)}
        if trickling not in closed:
            try:
                trickling.send(b"x")
            except OSError:
                closed.add(trickling)
        time.sleep(0.2)
    for sock in (silent, trickling):
        sock.close()


def test_what_is_said_before_a_terminal_is_there_is_not_kept_without_end(house: House) -> None:
    env = house.workload("ann")
    cookie, name = house.cookie("ann", env, "terminal"), f"{host(env, 'terminal')}:{house.port}"
    lines = [
        "GET /.yard/terminal HTTP/1.1",
        f"Host: {name}",
        f"Origin: http://{name}",
        f"Cookie: {cookie}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]
    with house.connect() as sock:
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        wait_until(lambda: bool(house.broker.asked))
        taken = 0
        sock.settimeout(2)
        try:
            while taken < MUCH:
                taken += sock.send(b"x" * PIECE)
        except OSError:  # sent away, or no longer listened to
            pass
        assert taken < MUCH
    wait_until(lambda: house.get("localhost", "/.yard/health").status == 200)


def is_closed(sock: socket.socket) -> bool:
    try:
        return sock.recv(1000) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
