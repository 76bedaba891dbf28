"""The broker: what the gateway gets through it, what it holds on to, and that no door harms it or leads elsewhere."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engines.places import IS_ROOT, PATIENCE_SECONDS, is_alive, wait_for
from tests.engines.porters import read_all, read_until
from tests.gateway.brokers import BrokerPlace, FalsePorter, Screen

from gpuyard.domain.errors import EngineError, NotFound, TooMany, Unavailable, YardError
from gpuyard.domain.reasons import Code
from gpuyard.engines.inside import wire
from gpuyard.gateway.broker_client import frame, size_frame

ENV = "wenv-1-main-0"
OTHER = "wother-1-main-0"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[BrokerPlace]:
    place = BrokerPlace(tmp_path / "data")
    yield place
    place.close()


@pytest.fixture
def false_porters() -> Iterator[list[FalsePorter]]:
    made: list[FalsePorter] = []
    yield made
    for porter in made:
        porter.close()


# --- programs and shells ------------------------------------------------------------------------------------------


async def _run(place: BrokerPlace, line: str, **more: Any) -> tuple[int, bytes]:
    ears, mouth = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    running = await place.client.run(ENV, "ann", line=line, fds=(nothing, mouth, mouth), **more)
    os.close(nothing)
    os.close(mouth)
    said = await asyncio.to_thread(read_all, ears)
    code = await running.wait()
    running.close()
    return code, said


def test_a_program_runs_inside_with_the_streams_given_and_tells_its_end(place: BrokerPlace) -> None:
    place.replica()
    assert place.do(_run(place, "echo hello $WHO; exit 3", env={"WHO": "ann"})) == (3, b"hello ann\n")
    assert place.do(_run(place, "kill -TERM $$")) == (-signal.SIGTERM, b"")


def test_a_program_is_sent_signals_and_ends_when_it_is_let_go(place: BrokerPlace) -> None:
    place.replica()

    async def try_it() -> None:
        ears, mouth = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        line = "trap 'echo heard' USR1; echo $$; while :; do sleep 0.05; done"
        running = await place.client.run(ENV, "ann", line=line, fds=(nothing, mouth, mouth))
        pid = int(os.read(ears, 100))
        running.signal(signal.SIGUSR1)
        read_until(ears, b"heard")
        running.close()
        wait_for(lambda: not is_alive(pid), "the end of the program")
        for fd in (ears, mouth, nothing):
            os.close(fd)

    place.do(try_it())


def test_one_who_lets_go_while_waiting_for_the_end_keeps_nobody_else_from_being_heard(place: BrokerPlace) -> None:
    """The number of its descriptor is free again, and somebody else's right after."""
    place.replica()

    async def try_it() -> None:
        loop, heard = asyncio.get_running_loop(), set[int]()
        with open(os.devnull, "r+b") as nothing:
            running = await place.client.run(ENV, "ann", line="cat", fds=(nothing.fileno(),) * 3)
            held = await place.client.run(ENV, "ann", line="sleep 1000", fds=(nothing.fileno(),) * 3)
        ended = asyncio.ensure_future(held.wait())
        await running.wait()  # by now the other is waited for as well
        held.close()
        others = {os.eventfd(1) for _ in range(10)}
        for fd in others:
            loop.add_reader(fd, heard.add, fd)
        with pytest.raises(asyncio.CancelledError):
            await ended
        async with asyncio.timeout(PATIENCE_SECONDS):
            while heard < others:
                await asyncio.sleep(0)
        running.close()
        for fd in others:
            loop.remove_reader(fd)
            os.close(fd)

    place.do(try_it())


def test_a_program_that_is_not_there_is_told_as_such(place: BrokerPlace) -> None:
    place.replica()
    with pytest.raises(NotFound) as refused:
        place.do(place.client.serve(ENV, "ann", "x", ["no-such-program"], {}))
    assert refused.value.reason.facts == {"what": "program", "name": "no-such-program"}


def test_a_shell_is_a_stream_with_a_size_and_an_end(place: BrokerPlace) -> None:
    place.replica()

    async def try_it() -> None:
        stream, running = await place.client.shell(ENV, "ann", rows=31, cols=99, modes={53: 0})
        os.set_blocking(stream, True)
        os.write(stream, b"stty size; stty -a | grep -o '.echo '\n")
        said = read_until(stream, b"-echo ")
        assert b"31 99" in said
        running.resize(12, 34)
        os.write(stream, b"while [ \"$(stty size)\" != '12 34' ]; do sleep 0.05; done; echo resized; exit 8\n")
        read_until(stream, b"resized\r\n")
        assert await running.wait() == 8
        os.close(stream)
        running.close()

    place.do(try_it())


def test_nothing_a_shell_says_is_lost_however_slowly_it_is_read(place: BrokerPlace) -> None:
    place.replica()

    async def try_it() -> None:
        stream, running = await place.client.shell(ENV, "ann", line="seq 1 200000; exit 0")
        os.set_blocking(stream, True)
        time.sleep(0.3)
        said = await asyncio.to_thread(read_all, stream)
        assert said.split() == [str(number).encode() for number in range(1, 200_001)]
        assert await running.wait() == 0
        running.close()

    place.do(try_it())


@pytest.mark.parametrize("let_go", ["stream", "running"])
def test_a_shell_that_is_let_go_of_ends(place: BrokerPlace, let_go: str) -> None:
    porter = place.replica()

    async def try_it() -> int:
        stream, running = await place.client.shell(ENV, "ann")
        os.set_blocking(stream, True)
        os.write(stream, b"echo pid'-'$$'-'\n")
        said = read_until(stream, b"-\r\n")
        os.close(stream) if let_go == "stream" else running.close()
        pid = int(said.rpartition(b"pid-")[2].split(b"-")[0])
        wait_for(lambda: not is_alive(pid), "the end of the shell")
        running.close() if let_go == "stream" else os.close(stream)
        return pid

    place.do(try_it())
    assert porter.ask({"do": "ping"}).message["ok"]


# --- terminals ----------------------------------------------------------------------------------------------------


def _terminal(place: BrokerPlace, **more: Any) -> tuple[str, bool, Screen]:
    session, is_new, sock = place.do(place.client.terminal(ENV, "ann", **more))
    place.given.append(sock)
    return session, is_new, Screen(sock)


def test_a_terminal_is_found_again_after_the_connection_was_lost(place: BrokerPlace) -> None:
    place.replica()
    session, is_new, screen = _terminal(place, rows=30, cols=90)
    assert is_new
    screen.sock.send(frame(b"d", b"mark=here; stty size; echo first\n"))
    screen.shows(b"30 90\r\nfirst")
    screen.sock.close()
    again, is_new, screen = _terminal(place, session=session, rows=20, cols=70)
    assert (again, is_new) == (session, False)
    screen.shows(b"first")
    screen.sock.send(frame(b"d", b"echo still-$mark; stty size\n"))
    screen.shows(b"still-here\r\n20 70")
    screen.sock.send(size_frame(11, 22) + frame(b"d", b"stty size; exit 4\n"))
    screen.shows(b"11 22")
    assert screen.ends() == {"code": 4}
    screen.sock.close()
    with pytest.raises(NotFound):
        place.do(place.client.terminal(ENV, "ann", session=session))


def test_what_is_typed_to_a_command_that_has_ended_does_not_cost_its_last_words(place: BrokerPlace) -> None:
    place.replica()
    session, _, screen = _terminal(place, argv=["sh", "-c", "echo last words; exit 3"])
    wait_for(lambda: _is_over(place, session), "the end of the command")
    for _ in range(2):
        screen.sock.send(frame(b"d", b"\x04"))
    screen.shows(b"last words")
    assert screen.ends() == {"code": 3}
    screen.sock.close()


def _is_over(place: BrokerPlace, session: str) -> bool:
    return session not in [held["session"] for held in place.do(place.client.terminals(ENV, "ann"))]


def test_all_who_are_attached_see_the_same(place: BrokerPlace) -> None:
    place.replica()
    session, _, one = _terminal(place)
    _, _, two = _terminal(place, session=session)
    assert place.do(place.client.terminals(ENV, "ann"))[0]["attached"] == 2
    one.sock.send(frame(b"d", b"echo to-both\n"))
    for screen in (one, two):
        screen.shows(b"to-both\r\n")
        screen.sock.close()


def test_nobody_gets_at_a_terminal_of_somebody_else_or_in_another_replica(place: BrokerPlace) -> None:
    place.replica()
    place.replica(OTHER)
    session, _, screen = _terminal(place)
    for replica, user in ((ENV, "bob"), (OTHER, "ann")):
        assert place.do(place.client.terminals(replica, user)) == []
        for wish in (
            place.client.terminal(replica, user, session=session),
            place.client.close_terminal(replica, user, session),
        ):
            with pytest.raises(NotFound):
                place.do(wish)
    assert [held["session"] for held in place.do(place.client.terminals(ENV, "ann"))] == [session]
    place.do(place.client.close_terminal(ENV, "ann", session))
    assert screen.ends() == {"code": None}
    screen.sock.close()


def test_one_who_does_not_read_gets_the_latest_and_costs_little(place: BrokerPlace, tmp_path: Path) -> None:
    place.replica()
    before, all_taken = place.own_memory(), tmp_path / "all-taken"
    script = f"seq 1 2000000; touch {shlex.quote(str(all_taken))}; echo the last; sleep 1000"  # nearly 17 MB
    _, _, slow = _terminal(place, argv=["sh", "-c", script])
    _, _, other = _terminal(place)
    other.sock.send(frame(b"d", b"echo quick\n"))
    other.shows(b"quick\r\n")
    wait_for(all_taken.exists, "the broker having taken everything")
    assert place.own_memory() < before + (4 << 20)
    slow.shows(b"the last")
    assert b"1999999\r\n2000000\r\nthe last" in slow.text
    assert len(slow.text) < 4 << 20, "what was queued for it, and what lay in its socket"
    for screen in (slow, other):
        screen.sock.close()


def test_a_person_has_only_so_many_terminals(place: BrokerPlace) -> None:
    place.replica()

    async def open_many() -> list[socket.socket]:
        return [(await place.client.terminal(ENV, "ann", argv=["sleep", "1000"]))[2] for _ in range(32)]

    place.given += place.do(open_many())
    with pytest.raises(TooMany):
        place.do(place.client.terminal(ENV, "ann"))
    place.given.append(place.do(place.client.terminal(ENV, "bob", argv=["sleep", "1000"]))[2])


def test_when_the_broker_is_killed_its_shells_end_and_the_workload_goes_on(place: BrokerPlace) -> None:
    porter = place.replica()
    _, _, screen = _terminal(place)
    screen.sock.send(frame(b"d", b"echo pid'-'$$'-'\n"))
    screen.shows(b"-\r\n")
    pid = int(screen.text.rpartition(b"pid-")[2].split(b"-")[0])
    place.process.kill()
    place.process.wait()
    wait_for(lambda: not is_alive(pid), "the end of the shell")
    screen.sock.close()
    with pytest.raises(Unavailable) as away:
        place.do(place.client.ping(ENV, "ann"))
    assert away.value.reason.code is Code.BROKER_AWAY
    (place.data / "run" / "broker.sock").unlink()
    place.start()
    place.do(place.client.ping(ENV, "ann"))
    assert porter.ask({"do": "ping"}).message["ok"]


# --- connections --------------------------------------------------------------------------------------------------


def test_a_port_of_the_loopback_is_reached_and_one_without_listener_is_told(place: BrokerPlace) -> None:
    place.replica()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with place.do(place.client.connect(ENV, "ann", port=port)) as here, server.accept()[0] as there:
            there.sendall(b"hello")
            wait_for(lambda: here.recv(10, socket.MSG_PEEK) == b"hello")
    with pytest.raises(Unavailable) as refused:
        place.do(place.client.connect(ENV, "ann", port=port))
    assert refused.value.reason.facts == {"what": "port", "name": str(port)}


def _enter_network_of_its_own() -> None:
    if ctypes.CDLL(None).unshare(0x40000000) < 0:
        os._exit(99)


@pytest.mark.skipif(not IS_ROOT or not Path("/sbin/ip").exists(), reason="needs a network of its own")
def test_a_port_is_that_of_the_workloads_own_network(place: BrokerPlace) -> None:
    place.replica(preexec_fn=_enter_network_of_its_own)
    assert place.do(_run(place, "/sbin/ip link set lo up"))[0] == 0
    with socket.create_server(("127.0.0.1", 0)) as outside:
        port = outside.getsockname()[1]
        with pytest.raises(Unavailable):
            place.do(place.client.connect(ENV, "ann", port=port))
        listen = f"import socket; s = socket.create_server(('127.0.0.1', {port})); c = s.accept()[0]; c.send(b'inside')"
        place.do(place.client.serve(ENV, "ann", "listener", [sys.executable, "-c", listen], {}))

        def is_reached() -> bool:
            try:
                with place.do(place.client.connect(ENV, "ann", port=port)) as sock:
                    sock.setblocking(True)
                    return sock.recv(10) == b"inside"
            except Unavailable:
                return False

        wait_for(is_reached, "the listener inside")


def test_a_socket_file_in_the_door_folder_is_reached_and_none_outside(place: BrokerPlace) -> None:
    porter = place.replica()
    listen = (
        "import socket; s = socket.socket(socket.AF_UNIX); s.bind('door/lab.sock'); s.listen(); "
        "s.accept()[0].send(b'lab')"
    )
    place.do(place.client.serve(ENV, "ann", "lab", [sys.executable, "-c", listen], {}, str(porter.folder)))

    def is_reached() -> bool:
        try:
            with place.do(place.client.connect(ENV, "ann", path="lab.sock")) as sock:
                sock.setblocking(True)
                return sock.recv(10) == b"lab"
        except Unavailable:
            return False

    wait_for(is_reached, "the lab")
    (porter.door / "link.sock").symlink_to(place.data / "run" / "broker.sock")
    for path in ("link.sock", "../../../../../run/broker.sock", str(place.data / "run" / "broker.sock"), "..", ""):
        with pytest.raises(YardError):
            place.do(place.client.connect(ENV, "ann", path=path))


# --- doors that lead elsewhere, and porters that misbehave --------------------------------------------------------


@pytest.mark.parametrize(
    "replica", ["wnone-1-main-0", "", "../../etc-1-a-0", "wenv-1-main-0/..", "wenv-1-main", "a-1-b-0\n"]
)
def test_a_replica_that_is_not_there_has_no_door(place: BrokerPlace, replica: str) -> None:
    place.replica()
    with pytest.raises(Unavailable) as closed:
        place.do(place.client.ping(replica, "ann"))
    assert closed.value.reason.code is Code.DOOR_CLOSED


def test_a_door_that_links_to_somebody_elses_is_closed(place: BrokerPlace) -> None:
    theirs = place.replica(OTHER)
    mine = place.make_door(ENV)
    (mine / "porter.sock").symlink_to(theirs.door / "porter.sock")
    with pytest.raises(Unavailable):
        place.do(place.client.ping(ENV, "ann"))
    (mine / "porter.sock").unlink()
    mine.rmdir()
    mine.symlink_to(theirs.door)
    with pytest.raises(Unavailable):
        place.do(place.client.ping(ENV, "ann"))


def test_a_door_where_a_stranger_listens_is_closed(place: BrokerPlace) -> None:
    place.replica()
    (place.folder(ENV) / "door.json").write_text(json.dumps({"uid": 1234567, "uids": 65536}))
    with pytest.raises(Unavailable) as closed:
        place.do(place.client.ping(ENV, "ann"))
    assert "somebody else" in closed.value.reason.facts["detail"]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"ok": 1}',
        b'{"ok": false}',
        b'{"ok": false, "error": "' + b"x" * 50_000 + b'"}',
        b"{" * 60_000,
    ],
)
def test_a_porter_that_talks_nonsense_is_told_as_a_failure(
    place: BrokerPlace, false_porters: list[FalsePorter], answer: bytes
) -> None:
    def talk(sock: socket.socket) -> None:
        sock.send(answer)
        sock.close()

    false_porters.append(FalsePorter(place.make_door(ENV), talk))
    before = place.open_descriptors()

    async def ask() -> list[object]:
        wishes = (place.client.ping, place.client.services, place.client.terminal)
        return list(await asyncio.gather(*(wish(ENV, "ann") for wish in wishes), return_exceptions=True))

    assert [type(answer) for answer in place.do(ask())] == [EngineError] * 3
    wait_for(lambda: place.open_descriptors() <= before, "nothing left open")


def test_a_porter_that_gives_other_things_than_asked_for_gets_nowhere(
    place: BrokerPlace, false_porters: list[FalsePorter]
) -> None:
    def give_a_file(sock: socket.socket) -> None:
        with open("/etc/hostname") as file:
            wire.send(sock, {"ok": True, "pid": 1}, [file.fileno()] * 3)

    false_porters.append(FalsePorter(place.make_door(ENV), give_a_file))
    before = place.open_descriptors()
    for wish in (
        place.client.connect(ENV, "ann", port=80),
        place.client.terminal(ENV, "ann"),
        place.client.shell(ENV, "ann"),
    ):
        with pytest.raises(EngineError):
            place.do(wish)
    wait_for(lambda: place.open_descriptors() <= before, "nothing left open")


def test_a_porter_that_never_answers_keeps_only_its_own_waiting(
    place: BrokerPlace, false_porters: list[FalsePorter]
) -> None:
    false_porters.append(FalsePorter(place.make_door(ENV), lambda sock: None))
    place.replica(OTHER)

    async def try_it() -> None:
        waiting = asyncio.create_task(place.client.ping(ENV, "ann"))
        await asyncio.sleep(0.1)
        await place.client.ping(OTHER, "bob")
        assert not waiting.done()
        with pytest.raises(EngineError):
            await waiting

    place.do(try_it())


def test_a_terminal_that_its_owner_makes_wait_stops_nobody_else(
    place: BrokerPlace, false_porters: list[FalsePorter]
) -> None:
    """He holds a duplicate, switches off that it never waits, and reads nothing of what is typed."""
    meddling: list[subprocess.Popen[bytes]] = []
    code = "import os, time\nwhile True: os.set_blocking(0, True); os.write(1, b'x'); time.sleep(0.01)"

    def give_and_keep(sock: socket.socket) -> None:
        master, inner = os.openpty()
        tty.setraw(inner)
        meddling.append(subprocess.Popen([sys.executable, "-c", code], stdin=master, stdout=inner))
        wire.send(sock, {"ok": True, "pid": 1}, [master])
        os.close(master)
        os.close(inner)

    false_porters.append(FalsePorter(place.make_door(ENV), give_and_keep))
    place.replica(OTHER)
    _, _, evil = _terminal(place)
    evil.shows(b"xxx")
    evil.sock.setblocking(True)
    evil.sock.sendall(frame(b"d", b"y" * 200_000))
    evil.sock.setblocking(False)

    def is_shut_out() -> bool:
        place.do(place.client.ping(OTHER, "bob"))
        evil.look()
        return evil.end is not None

    wait_for(is_shut_out, "the end of his terminal")
    with pytest.raises(Unavailable):
        place.do(place.client.terminal(ENV, "ann"))
    evil.sock.close()
    for process in meddling:
        process.kill()
        process.wait()


# --- the broker itself --------------------------------------------------------------------------------------------


def test_a_second_broker_leaves_the_first_alone(place: BrokerPlace) -> None:
    place.replica()
    second = subprocess.run([sys.executable, "-m", "gpuyard.gateway.broker", "--data", str(place.data)], check=False)
    assert second.returncode == 3
    assert (place.data / "run" / "broker.lock").read_text() == str(place.pid)
    place.do(place.client.ping(ENV, "ann"))


def test_its_socket_is_for_its_own_user_and_comes_back_when_removed(place: BrokerPlace) -> None:
    path = place.data / "run" / "broker.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    wait_for(path.exists, "the socket")
    place.replica()
    place.do(place.client.ping(ENV, "ann"))


def test_it_is_small(place: BrokerPlace) -> None:
    place.replica()
    place.do(place.client.ping(ENV, "ann"))
    assert place.own_memory() < 12 << 20
