"""A socket whose last holder has to wait when closing it, for as long as its maker chose, sent to those who serve
everybody: whoever takes it in, or even throws it away unseen, would wait, and everybody with them."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.engines.places import wait_for
from tests.gateway.brokers import BrokerPlace, FalsePorter

from gpuyard.domain.errors import YardError
from gpuyard.engines.inside import wire
from gpuyard.gateway.broker import relays

ENV, OTHER = "wenv-1-main-0", "wother-1-main-0"
SLOW_SECONDS = 120
GOOD = b'{"ok": true, "pid": 1}'


class Slow:
    """Connections with much to deliver to somebody who never reads."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)

    def loaded(self) -> socket.socket:
        made = socket.create_connection(self._listener.getsockname())
        made.setblocking(False)
        try:
            while True:
                made.send(b"x" * 65536)
        except BlockingIOError:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SLOW_SECONDS))
            return made

    def send(self, sock: socket.socket, text: bytes, number: int = 1) -> None:
        """From here on only whoever receives it holds it; when that one was faster, it is a thread here that waits."""
        slow = self.loaded()
        with open(os.devnull) as other:
            try:
                socket.send_fds(sock, [text], [other.fileno()] * (number - 1) + [slow.fileno()])
            finally:
                threading.Thread(target=slow.close, daemon=True).start()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def slow() -> Iterator[Slow]:
    slow = Slow()
    yield slow
    slow.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[BrokerPlace]:
    place = BrokerPlace(tmp_path / "data")
    place.replica(OTHER)
    yield place
    place.close()


def serves_others(place: BrokerPlace) -> None:
    """Well within the time it would have to wait."""
    answers: list[bool] = []

    def ask() -> None:
        place.do(place.client.ping(OTHER, "bob"))
        answers.append(True)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    wait_for(lambda: bool(answers), "the broker's answer to somebody else")
    thread.join()


@pytest.mark.parametrize("number", [1, 3, 200], ids=["one", "a few", "many"])
def test_what_comes_with_an_answer_keeps_nobody_waiting(place: BrokerPlace, slow: Slow, number: int) -> None:
    porter = FalsePorter(place.make_door(ENV), lambda sock: slow.send(sock, GOOD, number))
    try:
        for wish in (place.client.ping(ENV, "ann"), place.client.terminal(ENV, "ann")):
            thread = threading.Thread(target=lambda wish=wish: _try(place, wish), daemon=True)
            thread.start()
            serves_others(place)
    finally:
        porter.close()
        slow.close()


def test_what_lies_unread_behind_an_answer_keeps_nobody_waiting(place: BrokerPlace, slow: Slow) -> None:
    def answer(sock: socket.socket) -> None:
        for _ in range(3):
            sock.send(GOOD)
            sock.send(b"")
            slow.send(sock, b"", 200)

    before = place.open_descriptors()
    porter = FalsePorter(place.make_door(ENV), answer)
    try:
        for _ in range(3):
            threading.Thread(target=lambda: _try(place, place.client.ping(ENV, "ann")), daemon=True).start()
            serves_others(place)
        wait_for(lambda: place.open_descriptors() <= before, "nothing left open")
    finally:
        porter.close()
        slow.close()


def test_what_is_left_by_a_porter_that_did_not_even_listen_keeps_nobody_waiting(place: BrokerPlace, slow: Slow) -> None:
    door = os.open(place.make_door(ENV), os.O_PATH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"/proc/self/fd/{door}/porter.sock")
        os.close(door)
        listener.listen(4)
        threading.Thread(target=lambda: _try(place, place.client.serve(ENV, "ann", "x", [], {})), daemon=True).start()
        sock, _ = listener.accept()
        with sock:
            slow.send(sock, b"", 3)
        serves_others(place)


def test_a_program_behind_a_socket_file_cannot_send_it_to_the_gateway(place: BrokerPlace, slow: Slow) -> None:
    with _listening(place.make_door(ENV) / "lab.sock") as listener:
        given = place.do(place.client.connect(ENV, "ann", path="lab.sock"))
        inside, _ = listener.accept()
        with given, inside:
            reads_at_once(given, inside, slow)


def test_on_older_systems_a_relay_takes_it_in_and_waits_alone(tmp_path: Path, slow: Slow) -> None:
    with _listening(tmp_path / "lab.sock") as listener:
        outside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        outside.connect(str(tmp_path / "lab.sock"))
        inside, _ = listener.accept()
        with relays.relayed(outside) as given, inside:
            given.setblocking(True)
            given.sendall(b"hello")
            assert inside.recv(100) == b"hello"
            reads_at_once(given, inside, slow)


def test_a_relay_ends_when_both_sides_have(tmp_path: Path) -> None:
    with _listening(tmp_path / "lab.sock") as listener:
        outside = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        outside.connect(str(tmp_path / "lab.sock"))
        inside, _ = listener.accept()
        with relays.relayed(outside) as given, inside:
            given.setblocking(True)
            inside.sendall(b"bye")
            inside.shutdown(socket.SHUT_WR)
            assert given.recv(100) == b"bye"
            assert given.recv(100) == b""
            given.shutdown(socket.SHUT_WR)
            assert inside.recv(100) == b""
            wait_for(lambda: outside.fileno() < 0, "the relay's end")


def reads_at_once(given: socket.socket, inside: socket.socket, slow: Slow) -> None:
    """What is sent along either does not go, or keeps nobody waiting who reads. What came before it is read first: a
    program that sends both in one breath may have to wait for its own words."""
    given.setblocking(True)
    inside.sendall(b"first")
    assert given.recv(100) == b"first"
    try:
        slow.send(inside, b"second")
    except PermissionError:
        inside.sendall(b"second")
    given.setblocking(False)
    looked: list[bytes | None] = []

    def look() -> None:
        for _ in range(20):
            try:
                looked.append(given.recv(100))
            except BlockingIOError:
                looked.append(None)
            time.sleep(0.01)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    wait_for(lambda: len(looked) == 20, "twenty looks")
    thread.join()
    assert b"".join(piece for piece in looked if piece) in (b"", b"second")


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH)
    listener.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)
    listener.listen(8)
    return listener


def _try(place: BrokerPlace, wish: object) -> None:
    try:
        place.do(wish)  # type: ignore[arg-type]
    except (YardError, wire.Gone, OSError):
        return
