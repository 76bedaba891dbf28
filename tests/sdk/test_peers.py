"""Whose process is at the other end: asked of the kernel in two ways, which have to agree."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest
from tests.attacks.test_port_taken import STRANGER, needs_root, squatting
from tests.ports import a_port

from gpuyard.sdk.peers import End, OtherEnd, Stranger, by_question, by_tables, require_user

Way = Callable[[socket.socket], OtherEnd | None]


def _by_question(sock: socket.socket) -> OtherEnd | None:
    return by_question(sock.family, *_ends(sock))


def _by_tables(sock: socket.socket) -> OtherEnd | None:
    return by_tables(*_ends(sock))


def _ends(sock: socket.socket) -> tuple[End, End]:
    return End(*sock.getsockname()[:2]), End(*sock.getpeername()[:2])


ways = pytest.mark.parametrize("way", [_by_question, _by_tables])


@ways
@pytest.mark.parametrize(("listens", "asked"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")])
def test_who_listens_and_who_took_it_are_known(way: Way, listens: str, asked: str) -> None:
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::") as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((asked, port)) as sock:
            assert way(sock) == OtherEnd((os.geteuid(),), 0) or os.geteuid() != 0
            taken, _ = listener.accept()
            with taken:
                assert way(sock) == OtherEnd((os.geteuid(),), os.geteuid())


@ways
def test_that_nobody_listens_any_more_is_known(way: Way) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        taken, _ = listener.accept()
        listener.close()
        with taken:
            found = way(sock)
            assert found is not None
            assert found.listening == ()
            with pytest.raises(ConnectionRefusedError, match="any more"):
                require_user(sock, {os.geteuid()})


@needs_root
@ways
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_stranger_is_known(way: Way, host: str) -> None:
    port = a_port()
    with squatting(port, host), socket.create_connection((host, port)) as sock:
        found = way(sock)
        assert found is not None
        assert found.listening == (STRANGER,)
        with pytest.raises(Stranger, match=str(STRANGER)):
            require_user(sock, {os.geteuid()})
        require_user(sock, {STRANGER})


@needs_root
def test_a_connection_that_a_stranger_took_is_known_though_the_server_listens_by_now() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        pid = os.fork()
        if pid == 0:
            os.setresuid(STRANGER, STRANGER, STRANGER)
            taken, _ = listener.accept()
            taken.send(b"x")
            taken.recv(1)
            os._exit(0)
        assert sock.recv(1) == b"x"
        for way in (_by_question, _by_tables):
            assert way(sock) == OtherEnd((0,), STRANGER)
        with pytest.raises(Stranger):
            require_user(sock, {0})
        sock.send(b"x")
        os.waitpid(pid, 0)
