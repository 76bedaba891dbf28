"""Visitors who have not shown who they are: so many from one address, whoever else comes from there or elsewhere."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.gateway.house import House, host, running, wait_until
from tests.gateway.programs import a_program

from gpuyard.gateway.strangers import Proxies, Strangers
from gpuyard.store import audit

MOST = 8


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with running(tmp_path, per_address=MOST) as house:
        house.person("ann")
        yield house


def come(house: House, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", house.port), timeout=10, source_address=(address, 0))


def is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1000) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def asked(sock: socket.socket, house: House, path: str = "/.yard/health", **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: {headers.pop('Host', 'localhost')}:{house.port}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    sock.settimeout(10)
    sock.sendall("\r\n".join([*lines, "", ""]).encode())
    return sock.recv(65536)


@contextlib.contextmanager
def crowd(house: House, address: str, count: int) -> Iterator[list[socket.socket]]:
    there = [come(house, address) for _ in range(count)]
    try:
        yield there
    finally:
        for sock in there:
            sock.close()


def test_one_address_does_not_fill_the_gateway(house: House) -> None:
    with crowd(house, "127.0.0.2", MOST + 5) as silent:
        wait_until(lambda: sum(map(is_closed, silent)) == 5)
        with come(house, "127.0.0.3") as other:
            assert asked(other, house).startswith(b"HTTP/1.1 200 ")
    wait_until(lambda: _gets_in(house, "127.0.0.2"))


def _gets_in(house: House, address: str) -> bool:
    with come(house, address) as sock:
        try:
            return asked(sock, house).startswith(b"HTTP/1.1 200 ")
        except OSError:
            return False


def test_who_has_shown_who_they_are_is_no_longer_counted(house: House) -> None:
    with a_program() as program, contextlib.ExitStack() as stack:
        env = house.workload("ann", ports={8080: program.port})
        cookie = house.cookie("ann", env, "p8080")
        known = []
        for _ in range(3 * MOST):
            sock = stack.enter_context(come(house, "127.0.0.4"))
            assert asked(sock, house, "/", Host=host(env, "p8080"), Cookie=cookie).startswith(b"HTTP/1.1 200 ")
            known.append(sock)
        assert not any(map(is_closed, known))


def test_a_wrong_cookie_shows_nothing(house: House) -> None:
    env = house.workload("ann", ports={8080: 1})
    with contextlib.ExitStack() as stack:
        for _ in range(MOST):
            sock = stack.enter_context(come(house, "127.0.0.2"))
            told = asked(sock, house, "/", Host=host(env, "p8080"), Cookie="yard_gate=guessed")
            assert told.startswith(b"HTTP/1.1 401 ")
        one_more = stack.enter_context(come(house, "127.0.0.2"))
        wait_until(lambda: is_closed(one_more))


# --- behind a proxy -----------------------------------------------------------------------------------------------


def test_a_trusted_proxy_is_not_one_visitor_and_its_word_is_believed(tmp_path: Path) -> None:
    with running(tmp_path, per_address=MOST, proxies=("127.0.0.9", "10.0.0.0/8")) as house:
        house.person("ann")
        with crowd(house, "127.0.0.9", 2 * MOST) as there:
            for sock in there:
                assert asked(sock, house).startswith(b"HTTP/1.1 200 ")
        for address, told, counted_as in (
            ("127.0.0.9", "6.6.6.6, 203.0.113.7", "203.0.113.7"),
            ("127.0.0.9", "203.0.113.8, 10.1.2.3", "203.0.113.8"),
            ("127.0.0.9", "nonsense", "127.0.0.9"),
            ("127.0.0.2", "203.0.113.9", "127.0.0.2"),
        ):
            with come(house, address) as sock:
                log_in_wrongly(sock, house, told)
            assert last_address(house) == counted_as


def log_in_wrongly(sock: socket.socket, house: House, told: str) -> None:
    body, base = "name=ann&password=wrong", f"localhost:{house.port}"
    lines = ["POST /.yard/login HTTP/1.1", f"Host: {base}", f"Origin: http://{base}", f"X-Forwarded-For: {told}"]
    sock.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode())
    assert sock.recv(65536).startswith(b"HTTP/1.1 401 ")


def last_address(house: House) -> str:
    """From where the last failed login came, by the trail."""
    with house.database.read() as conn:
        found = [entry for entry in audit.page(conn, None, 50) if entry.action == "session.begin"]
    return max(found, key=lambda entry: entry.id).address


def test_counting_comes_out_even() -> None:
    strangers = Strangers(10, 3, Proxies(["::1"]))
    for _ in range(3):
        assert strangers.come("2001:db8::1")
    assert not strangers.come("2001:db8::2"), "neighbours in IPv6 are one"
    assert all(strangers.come("::1") for _ in range(7))
    assert not strangers.come("192.0.2.1"), "all together are too many"
    strangers.go("2001:db8::1")
    assert strangers.come("192.0.2.1")
    assert not strangers.come("192.0.2.1")
    for address in ("192.0.2.1", "2001:db8::3", "2001:db8::4", *["::1"] * 7):
        strangers.go(address)
    assert all(strangers.come("192.0.2.1") for _ in range(3))
