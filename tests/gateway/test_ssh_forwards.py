"""Forwarding over SSH: to the environment's own loopback, and nowhere else (A42)."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.gateway.ssh_house import SshHouse, wait_until
from tests.ports import a_port

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="needs the OpenSSH client")


@pytest.fixture(scope="module")
def echo() -> Iterator[int]:
    """A server on loopback that says everything again, and says when it was told that all is said."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_echo, args=(listener,), daemon=True).start()
        yield listener.getsockname()[1]


def _echo(listener: socket.socket) -> None:
    while True:
        try:
            taken, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_repeat, args=(taken,), daemon=True).start()


def _repeat(taken: socket.socket) -> None:
    with taken:
        try:
            while piece := taken.recv(65536):
                taken.sendall(piece)
            taken.sendall(b"END")
        except OSError:
            return


@contextmanager
def forwarding(house: SshHouse, key: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = house.command("ann+dev", key=key, options=[*options, "-N", "-o", "ExitOnForwardFailure=yes"])
    visit = house.start(command)
    try:
        yield visit
    finally:
        visit.kill()
        visit.communicate()


def say(port: int, data: bytes) -> bytes:
    """Say it all, then that it is all, and hear what comes back."""
    wait_until(lambda: is_open(port))
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sender = threading.Thread(target=_send, args=(sock, data))
        sender.start()
        heard = b""
        try:
            while piece := sock.recv(65536):
                heard += piece
        except ConnectionResetError:
            pass
        sender.join()
        return heard


def _send(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)


def is_open(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_port_of_the_own_loopback_is_forwarded(house: SshHouse, key: Path, echo: int, name: str) -> None:
    port = a_port()
    with forwarding(house, key, "-L", f"{port}:{name}:{echo}"):
        assert say(port, b"hello") == b"helloEND"


def test_a_forward_carries_much_both_ways_at_once(house: SshHouse, key: Path, echo: int) -> None:
    port, data = a_port(), os.urandom(20_000_000)
    with forwarding(house, key, "-L", f"{port}:localhost:{echo}"):
        assert say(port, data) == data + b"END"


def test_many_connections_go_through_one_forward(house: SshHouse, key: Path, echo: int) -> None:
    port = a_port()
    heard: list[bytes] = []
    with forwarding(house, key, "-L", f"{port}:localhost:{echo}"):
        say(port, b"first")
        threads = [threading.Thread(target=lambda: heard.append(say(port, b"x" * 100_000))) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert heard == [b"x" * 100_000 + b"END"] * 20


def test_a_dynamic_forward_reaches_loopback_and_nothing_else(house: SshHouse, key: Path, echo: int) -> None:
    port = a_port()
    with forwarding(house, key, "-D", str(port)) as visit:
        wait_until(lambda: is_open(port))
        assert socks(port, "localhost", echo, b"hi") == b"hi"
        for target in ("example.com", "10.0.0.1", "169.254.169.254", "0.0.0.0", own_address()):
            assert socks(port, target, 80, b"hi") == b""
        assert visit.poll() is None


def socks(port: int, host: str, target: int, data: bytes) -> bytes:
    """Through SOCKS5, by name."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall(b"\x05\x01\x00")
        assert sock.recv(2) == b"\x05\x00"
        sock.sendall(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + target.to_bytes(2, "big"))
        try:
            answer = sock.recv(10)
            if len(answer) < 2 or answer[1] != 0:
                return b""
            sock.sendall(data)
            return sock.recv(len(data))
        except ConnectionResetError:
            return b""


def own_address() -> str:
    """Of this machine, beyond loopback: it listens there, but it is not inside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))
            return str(sock.getsockname()[0])
        except OSError:
            return "192.0.2.1"


ELSEWHERE = [
    "example.com:80",
    "10.0.0.1:22",
    "169.254.169.254:80",
    "100.100.100.200:80",
    "0.0.0.0:8470",
    "127.0.0.2:80",
    "127.1:80",
    "2130706433:80",
    "0x7f000001:80",
    "localhost.:80",
    "localhost.localdomain:80",
    "ip6-localhost:80",
    "[::ffff:127.0.0.1]:80",
    "[::]:80",
    "localhost%00.example.com:80",
]


@pytest.mark.parametrize("target", ELSEWHERE)
def test_other_targets_are_refused_in_words(house: SshHouse, key: Path, target: str) -> None:
    refused = house.ssh("ann+dev", key=key, options=["-o", "LogLevel=INFO", "-W", target])
    assert refused.code == 255
    assert "Only ports of the environment's own localhost" in refused.err


def test_a_port_nobody_listens_on_is_refused_and_the_connection_stays(house: SshHouse, key: Path, echo: int) -> None:
    port, dead, nobody = a_port(), a_port(), a_port()
    with forwarding(house, key, "-L", f"{port}:localhost:{echo}", "-L", f"{dead}:localhost:{nobody}"):
        assert say(dead, b"hello") == b""
        assert say(port, b"hello") == b"helloEND"


def test_listening_for_the_visitor_is_refused_with_words(house: SshHouse, key: Path, echo: int) -> None:
    port = a_port()
    refused = house.ssh("ann+dev", "echo ran", key=key, options=["-R", f"{port}:localhost:{echo}"])
    assert refused.text == "ran\n"
    assert "ssh -R" in refused.err
    assert not is_open(port)
    strict = ["-R", f"{port}:localhost:{echo}", "-o", "ExitOnForwardFailure=yes"]
    assert house.ssh("ann+dev", "echo ran", key=key, options=strict).code == 255


def test_sockets_in_the_file_system_are_not_forwarded(house: SshHouse, key: Path, tmp_path: Path) -> None:
    """Neither the platform's own nor anybody's."""
    port = a_port()
    broker = house.folder / "run" / "broker.sock"
    with forwarding(house, key, "-L", f"{port}:{broker}") as visit:
        assert say(port, b"hello") == b""
        assert visit.poll() is None
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        with forwarding(house, key, "-R", f"{short}/sock:localhost:{port}") as visit:
            assert visit.wait(20) == 255
        assert not os.listdir(short)


def test_the_agent_is_not_forwarded(house: SshHouse, key: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        path = f"{short}/agent"
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.exists(path))
            options = ["-A", "-o", f"IdentityAgent={path}"]
            ran = house.ssh(
                "ann+dev", "echo agent=$SSH_AUTH_SOCK", key=key, options=options, env={"SSH_AUTH_SOCK": path}
            )
        finally:
            agent.terminate()
            agent.wait(20)
    assert ran.text == "agent=\n"


def test_x11_and_tunnels_are_not_forwarded(house: SshHouse, key: Path) -> None:
    for option in ("-X", "-Y"):
        assert house.ssh("ann+dev", "echo display=$DISPLAY", key=key, options=[option]).text == "display=\n"
    ran = house.ssh("ann+dev", "echo ran; ip -o link 2>/dev/null | grep -c tun9", key=key, options=["-w", "9:9"])
    assert "0" in ran.text or ran.code == 255


def test_a_visitor_opens_only_so_many_connections(house: SshHouse, key: Path, echo: int) -> None:
    port = a_port()
    taken: list[socket.socket] = []
    with forwarding(house, key, "-L", f"{port}:localhost:{echo}"):
        assert say(port, b"hello") == b"helloEND"
        try:
            for _ in range(140):
                sock = socket.create_connection(("127.0.0.1", port), timeout=20)
                taken.append(sock)
            works = sum(1 for sock in taken if _answers(sock))
        finally:
            for sock in taken:
                sock.close()
        assert works <= 128
        wait_until(lambda: say(port, b"again") == b"againEND")


def _answers(sock: socket.socket) -> bool:
    try:
        sock.sendall(b"x")
        return sock.recv(1) == b"x"
    except OSError:
        return False


def test_when_nobody_listens_words_come_in_the_language_of_the_visitor(house: SshHouse, key: Path) -> None:
    options: Sequence[str] = ["-o", "SendEnv=LANG", "-R", "0:localhost:1"]
    assert "不能" in house.ssh("ann+dev", "true", key=key, options=options, env={"LANG": "zh_CN.UTF-8"}).err
