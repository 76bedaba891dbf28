"""A terminal in the browser or by token: a real shell through the real broker, found again after a lost connection."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gateway.brokers import BrokerPlace
from tests.gateway.house import OWNER_SECRET, House, host, running, wait_until

from gpuyard.access import tokens
from gpuyard.access.actors import Scope
from gpuyard.domain.frames import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    TOO_BIG,
    FrameReader,
    Message,
    close_code,
    write_frame,
)
from gpuyard.domain.workload import Workload
from gpuyard.sdk.errors import NotAllowed, NotFound, YardApiError
from gpuyard.sdk.finding import Door
from gpuyard.sdk.shells import Ended, Shell, ShownOut, Way
from gpuyard.sdk.websocket import ConnectionLost, WebSocket
from gpuyard.store import audit, logins


class Desk:
    """A gateway, a broker, and Ann's running dev environment behind them."""

    def __init__(self, house: House, place: BrokerPlace) -> None:
        self.house, self.place = house, place
        for name in ("ann", "ben"):
            house.person(name)
        self.env = self.running_env("ann")
        self.opened: list[Shell | WebSocket] = []

    def close(self) -> None:
        for there in self.opened:
            there.detach() if isinstance(there, Shell) else there.close()

    def running_env(self, owner: str) -> Workload:
        env = self.house.workload(owner)
        assert env.attempt is not None
        self.place.replica(str(env.attempt.replicas[0].id))
        return env

    def token(self, user: str, scope: Scope = Scope.WRITE) -> str:
        with self.house.database.write() as conn:
            return tokens.make_token(conn, user, "t", scope, None, self.house.clock())[1]

    def shell(self, token: str, env: Workload | None = None, **more: object) -> Shell:
        door = Door(f"http://127.0.0.1:{self.house.port}")
        way = Way(door.url, {"Authorization": f"Bearer {token}"}, False, door.require_server)
        settings = {"replica": None, "argv": (), "rows": 24, "cols": 80} | more
        made = Shell(way, (env or self.env).id, **settings)  # type: ignore[arg-type]
        self.opened.append(made)
        return made


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    place = BrokerPlace(tmp_path / "data")
    try:
        with running(tmp_path / "data", place.client) as house:
            desk = Desk(house, place)
            yield desk
            desk.close()
    finally:
        place.close()


class Typist:
    """Types, and reads until something is shown."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.seen = b""
        self.end: Ended | ShownOut | None = None
        shell.attach()

    def until(self, text: bytes) -> None:
        while text not in self.seen:
            self._hear()

    def until_end(self) -> Ended | ShownOut:
        while self.end is None:
            self._hear()
        return self.end

    def _hear(self) -> None:
        for heard in self.shell.hear():
            if isinstance(heard, bytes):
                self.seen += heard
            else:
                self.end = heard

    def type(self, text: str) -> None:
        self.shell.type(text.encode())


def test_a_shell_shows_what_is_typed_and_tells_its_exit_code(desk: Desk) -> None:
    typist = Typist(desk.shell(desk.token("ann")))
    typist.type("echo sum $((40 + 2))\n")
    typist.until(b"sum 42")
    typist.type("exit 7\n")
    assert typist.until_end() == Ended(7)


def test_a_shell_opens_in_what_runs_now_right_after_a_restart(desk: Desk) -> None:
    token = desk.token("ann")
    assert Typist(desk.shell(token, argv=("true",))).until_end() == Ended(0)
    assert desk.env.attempt is not None
    before = desk.place.porters[str(desk.env.attempt.replicas[0].id)]
    again = desk.house.restart(desk.env)  # while it is still remembered what the last one led to
    assert again.attempt is not None
    before.close()
    desk.place.replica(str(again.attempt.replicas[0].id))
    assert Typist(desk.shell(token, argv=("true",))).until_end() == Ended(0)


def test_a_command_instead_of_the_shell(desk: Desk) -> None:
    typist = Typist(desk.shell(desk.token("ann"), argv=("sh", "-c", "stty size; exit 3"), rows=33, cols=101))
    assert typist.until_end() == Ended(3)
    assert b"33 101" in typist.seen


def test_who_types_while_the_command_ends_hears_its_end(desk: Desk) -> None:
    """As `yard shell NAME -- COMMAND` without a terminal does: the end of its input is typed as soon as it is there."""
    typist = Typist(desk.shell(desk.token("ann"), argv=("sh", "-c", "echo done; exit 3")))
    for _ in range(4):
        typist.type("\x04")
        time.sleep(0.1)
    assert typist.until_end() == Ended(3)
    assert b"done" in typist.seen


def test_a_new_size_reaches_the_shell(desk: Desk) -> None:
    typist = Typist(desk.shell(desk.token("ann")))
    typist.shell.resize(50, 132)
    typist.type("stty size\n")
    typist.until(b"50 132")


def test_a_lost_connection_finds_the_same_shell_with_all_it_showed(desk: Desk) -> None:
    shell = desk.shell(desk.token("ann"))
    typist = Typist(shell)
    typist.type("kept=$((6 * 7)); echo first\n")
    typist.until(b"first\r\n")
    shell.detach()
    again = Typist(shell)
    again.until(b"first\r\n")
    assert not shell.is_new
    again.type("echo it is $kept\n")
    again.until(b"it is 42")


def test_the_shell_is_found_again_when_the_gateway_was_replaced(desk: Desk, tmp_path: Path) -> None:
    shell = desk.shell(desk.token("ann"))
    typist = Typist(shell)
    typist.type("kept=42\n")
    with running(tmp_path / "data", desk.place.client) as another:
        elsewhere = desk.shell("")
        elsewhere._way = replace(shell._way, base=f"http://127.0.0.1:{another.port}")
        while shell.session is None:
            shell.hear()
        elsewhere.session = shell.session
        typist = Typist(elsewhere)
        typist.type("echo it is $kept\n")
        typist.until(b"it is 42")


def test_nobody_enters_another_ones_shell(desk: Desk) -> None:
    shell = desk.shell(desk.token("ann"))
    Typist(shell).type("true\n")
    while shell.session is None:
        shell.hear()
    with pytest.raises(NotFound):
        desk.shell(desk.token("ben")).attach()
    admins = desk.shell(OWNER_SECRET)
    admins.session = shell.session
    with pytest.raises(NotFound):
        admins.attach()
    admins.session = None
    admins.attach()


@pytest.mark.parametrize("token", ["", "yard_wrong", "x"])
def test_a_stranger_is_sent_away(desk: Desk, token: str) -> None:
    with pytest.raises(NotAllowed):
        desk.shell(token).attach()


def test_a_token_that_only_reads_opens_no_shell(desk: Desk) -> None:
    with pytest.raises(NotAllowed):
        desk.shell(desk.token("ann", Scope.READ)).attach()


def test_an_unknown_replica_is_not_found(desk: Desk) -> None:
    with pytest.raises(NotFound):
        desk.shell(desk.token("ann"), replica="worker-7").attach()


def test_a_command_that_makes_no_sense_is_refused(desk: Desk) -> None:
    shell = desk.shell(desk.token("ann"))
    shell._asked["argv"] = '{"a": 1}'
    with pytest.raises(YardApiError, match=r".") as refused:
        shell.attach()
    assert refused.value.status == 400


def test_a_revoked_token_closes_its_shell(desk: Desk) -> None:
    secret = desk.token("ann")
    typist = Typist(desk.shell(secret))
    with desk.house.database.write() as conn:
        token = logins.token_by_hash(conn, tokens.hash_secret(secret))
        assert token is not None
        logins.revoke_token(conn, token.id, time.time())
    assert typist.until_end() == ShownOut()


def test_an_entry_is_written_down_once(desk: Desk) -> None:
    shell = desk.shell(desk.token("ann"))
    Typist(shell).until(b"")
    while shell.session is None:
        shell.hear()
    shell.attach()
    with desk.house.database.read() as conn:
        entered = [entry for entry in audit.page(conn, None, 50) if "workload.enter" in str(entry)]
    assert len(entered) == 1
    assert "terminal" in str(entered[0])


def test_a_lost_broker_is_told_and_a_new_shell_can_be_had(desk: Desk) -> None:
    shell = desk.shell(desk.token("ann"))
    typist = Typist(shell)
    os.kill(desk.place.pid, signal.SIGKILL)
    with pytest.raises(ConnectionLost):
        typist.until_end()
    desk.place.process.wait()
    (desk.place.data / "run" / "broker.sock").unlink()
    desk.place.start()
    with pytest.raises(NotFound):
        shell.attach()
    shell.session = None
    again = Typist(shell)
    again.type("echo well $((1 + 1))\n")
    again.until(b"well 2")


# --- by browser ---------------------------------------------------------------------------------------------------


def browser(desk: Desk, cookie: str, origin: str | None = None) -> WebSocket:
    name = f"{host(desk.env, 'terminal')}:{desk.house.port}"
    headers = {"Host": name, "Cookie": cookie, "Origin": origin or f"http://{name}"}
    url = f"http://127.0.0.1:{desk.house.port}/.yard/terminal?rows=24&cols=80"
    socket = WebSocket.connect(url, headers, False, Door(url).require_server)
    desk.opened.append(socket)
    return socket


def until_lost(socket: WebSocket) -> int:
    """Reads to the end; tells what it was closed with."""
    closed = 0
    try:
        while True:
            for message in socket.receive():
                closed = close_code(message.payload) if message.kind == CLOSE else closed
    except ConnectionLost:
        return closed


def test_a_browser_with_a_cookie_gets_a_terminal(desk: Desk) -> None:
    socket = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    seen = b""
    socket.send(BINARY, b"echo sum $((40 + 2))\n")
    while b"sum 42" not in seen:
        seen += b"".join(message.payload for message in socket.receive() if message.kind == BINARY)
    socket.close()


def test_a_terminal_is_not_opened_from_another_page_nor_with_another_places_cookie(desk: Desk) -> None:
    cookie = desk.house.cookie("ann", desk.env, "terminal")
    for origin in ("http://evil.example", "null", f"http://localhost:{desk.house.port}"):
        with pytest.raises(NotAllowed):
            browser(desk, cookie, origin)
    with pytest.raises(NotAllowed):
        browser(desk, desk.house.cookie("ann", desk.env, "lab"))


def test_a_page_cannot_use_the_door_for_tokens(desk: Desk) -> None:
    headers = {"Authorization": f"Bearer {desk.token('ann')}", "Origin": "http://evil.example"}
    url = f"http://127.0.0.1:{desk.house.port}/.yard/api/terminal/{desk.env.id}?rows=1"
    with pytest.raises(NotAllowed):
        WebSocket.connect(url, headers, False, Door(url).require_server)


@pytest.mark.parametrize(
    "sent", [b"\xff\xff\xff\xff", b"\x81\x05hello", b"\x83\x80aaaa", b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
)
def test_what_is_no_frame_ends_the_connection_and_nothing_else(desk: Desk, sent: bytes) -> None:
    socket = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    socket._sock.sendall(sent)
    assert until_lost(socket) in (1002, 1009)
    desk.shell(desk.token("ann")).attach()


def test_a_text_that_is_not_understood_ends_the_connection(desk: Desk) -> None:
    socket = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    socket.send(TEXT, b"[]")
    assert until_lost(socket) == 1002


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"rows": ' * 50_000, b'{"rows": 1}', b"\xff"])
def test_texts_of_any_depth_are_understood_or_end_the_connection(desk: Desk, text: bytes) -> None:
    socket = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    socket.send(TEXT, text)
    assert until_lost(socket) == 1002


def test_a_message_in_millions_of_empty_pieces_ends_its_own_connection_and_keeps_nobody_waiting(desk: Desk) -> None:
    socket = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    with contextlib.suppress(OSError):  # it may be sent away before all is said
        socket._sock.sendall(b"\x02\x80abcd" + b"\x00\x80abcd" * 2_000_000)
    assert until_lost(socket) in (0, TOO_BIG)  # what it is told may be lost among what it still says
    typist = Typist(desk.shell(desk.token("ann")))
    typist.type("echo sum $((40 + 2))\n")
    typist.until(b"sum 42")


def test_pings_whose_answers_are_not_read_cost_no_memory_and_the_latest_is_answered(desk: Desk) -> None:
    socket = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    many = write_frame(PING, bytes(125), b"abcd") * 4000
    before = _rss()
    for _ in range(100):
        socket._sock.sendall(many)
    assert _rss() - before < 16 << 20, "of 50 MB of answers that nobody reads"
    socket._sock.sendall(write_frame(PING, b"the latest", b"abcd"))
    reader, data = FrameReader(masked=False), socket._early
    while Message(PONG, b"the latest") not in reader.take(data):
        data = socket._sock.recv(1 << 16)


def test_who_never_reads_does_not_fill_the_gateway(desk: Desk) -> None:
    slow = browser(desk, desk.house.cookie("ann", desk.env, "terminal"))
    slow.send(BINARY, b"yes 0123456789012345678901234567890123456789 | head -c 200000000; echo done\n")
    before = _rss()
    time.sleep(2)
    other = Typist(desk.shell(desk.token("ann")))
    other.type("echo sum $((40 + 2))\n")
    other.until(b"sum 42")
    assert _rss() - before < 64 << 20
    slow.close()


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_the_shell_ends_with_the_work(desk: Desk) -> None:
    typist = Typist(desk.shell(desk.token("ann")))
    desk.house.stop(desk.env)
    assert typist.until_end() == ShownOut()
    wait_until(lambda: True)
