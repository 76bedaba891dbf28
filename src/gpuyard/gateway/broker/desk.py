"""Those who come from the gateway, each with one request, and what becomes of it."""

from __future__ import annotations

import errno
import os
import socket
import time

from gpuyard.engines.inside import wire
from gpuyard.engines.inside.loop import WRITE
from gpuyard.gateway.broker import doors
from gpuyard.gateway.broker.alarm import Alarm
from gpuyard.gateway.broker.calls import LOST, Call
from gpuyard.gateway.broker.shells import Shell
from gpuyard.gateway.broker.terminals import Terminal, Terminals, read_size

TYPE_CHECKING = False  # loading typing costs the broker memory
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gpuyard.engines.inside.loop import Loop

_MOST_VISITS = 2048
MOST_RUNS_PER_USER, MOST_TERMINALS_PER_USER = 64, 32
_ASKING_SECONDS, _CONNECT_SECONDS = 10.0, 5.0
_MOST_NETWORKS, _NETWORK_SECONDS = 256, 5.0
_LOOPBACKS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_NO_TERMINAL = {"ok": False, "error": "failed", "detail": "no terminal came"}
_PASSED_ON = ("argv", "line", "env", "cwd", "name", "rows", "cols", "term")


class Refused(Exception):
    """The asker is told why, in the door's own words."""

    def __init__(self, error: str, detail: str) -> None:
        super().__init__(detail)
        self.error, self.detail = error, detail


class Desk:
    def __init__(self, loop: Loop, data: str) -> None:
        self.loop, self.data = loop, data
        self.alarm = Alarm()
        self.terminals = Terminals(loop, MOST_TERMINALS_PER_USER)
        self.networks = Networks()
        self._visits: set[Visit] = set()

    def receive(self, sock: socket.socket) -> None:
        if len(self._visits) >= _MOST_VISITS:
            sock.close()
            return
        self._visits.add(Visit(self, sock))

    def forget(self, visit: Visit) -> None:
        self._visits.discard(visit)

    def runs_of(self, user: str) -> int:
        return sum(visit.is_run_of(user) for visit in self._visits)

    def sweep(self, now: float) -> None:
        for visit in list(self._visits):
            self.loop.guard(_sweeping(visit, now))
        self.terminals.sweep(now)
        self.networks.sweep(now)

    def is_busy(self) -> bool:
        return any(visit.is_waiting() for visit in self._visits) or self.terminals.is_busy()


class Networks:
    """The networks of replicas that were connected to a moment ago."""

    def __init__(self) -> None:
        self._all: dict[str, tuple[int, float]] = {}

    def find(self, replica: str) -> int | None:
        found = self._all.get(replica)
        return found[0] if found else None

    def keep(self, replica: str, network: int) -> None:
        """It is ours to close from here on."""
        before = self._all.pop(replica, None)
        if before:
            os.close(before[0])
        self._all[replica] = (network, time.monotonic() + _NETWORK_SECONDS)

    def sweep(self, now: float) -> None:
        for replica, (network, until) in list(self._all.items()):
            if now >= until or len(self._all) > _MOST_NETWORKS:
                del self._all[replica]
                os.close(network)


def _sweeping(visit: Visit, now: float) -> Callable[[], None]:
    return lambda: visit.sweep(now)


class Visit:
    """One connection from the gateway."""

    def __init__(self, desk: Desk, sock: socket.socket) -> None:
        self._desk, self._sock = desk, sock
        self._until = time.monotonic() + _ASKING_SECONDS
        self._call: Call | None = None
        self._connecting: Connecting | None = None
        self._has_asked = False
        self._user = self._replica = ""
        self._fds: list[int] = []
        self._is_run = False
        self._shell: Shell | None = None
        self._end: dict[str, int | None] | None = None
        sock.setblocking(False)
        desk.loop.watch(sock.fileno(), self._listen)

    def is_run_of(self, user: str) -> bool:
        return self._is_run and self._user == user

    def is_waiting(self) -> bool:
        return self._connecting is not None or (self._call is not None and self._call.is_waiting())

    def sweep(self, now: float) -> None:
        if not self._has_asked and now > self._until:
            self.close()
        elif self._call is not None:
            self._call.sweep(now)
        if self._connecting is not None:
            self._connecting.sweep(now)
        if self._shell is not None:
            self._shell.sweep(now)

    # --- being asked ----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            message, fds = wire.receive(self._sock)
        except BlockingIOError:
            return
        except wire.Malformed as problem:
            self._answer({"ok": False, "error": "bad_request", "detail": str(problem)})
            return
        except (wire.Gone, OSError):
            self.close()
            return
        if self._has_asked:
            wire.close_all(fds)
            self._heed_more(message)
            return
        self._has_asked, self._fds = True, fds
        try:
            self._heed(message)
        except Refused as problem:
            self._answer({"ok": False, "error": problem.error, "detail": problem.detail})
        except doors.Closed as problem:
            self._answer({"ok": False, "error": "closed", "detail": str(problem)})
        except Exception:
            self.close()  # whatever it was, nobody stays at the desk for ever
            raise

    def _heed_more(self, message: dict[str, Any]) -> None:
        """While its command runs, the asker may send signals, and a shell another size."""
        if self._call is not None and self._is_run and type(message.get("signal")) is int:
            self._call.say({"signal": message["signal"]})
        if self._shell is not None and "rows" in message:
            self._shell.resize(message)

    def _heed(self, message: dict[str, Any]) -> None:
        user, replica, wish = message.get("user"), message.get("replica"), message.get("do")
        if not isinstance(user, str) or not user or not isinstance(replica, str):
            raise Refused("bad_request", "user and replica are needed")
        self._user, self._replica = user, replica
        wishes: dict[object, Callable[[dict[str, Any]], None]] = {
            "ping": self._pass_on,
            "services": self._pass_on,
            "serve": self._pass_on,
            "run": self._run,
            "shell": self._open_shell,
            "connect": self._connect,
            "terminal": self._terminal,
            "terminals": self._list_terminals,
            "close": self._close_terminal,
        }
        if not isinstance(wish, str) or wish not in wishes:
            raise Refused("bad_request", "nothing that can be done")
        wishes[wish](message)

    def _ask_inside(self, message: dict[str, Any], answered: Callable[[dict[str, Any], list[int]], None]) -> None:
        if self._desk.alarm.is_blamed(self._replica):
            raise doors.Closed("what came out of it kept others waiting")
        door = doors.Door(self._desk.data, self._replica)
        if self._call is not None:
            self._call.close()
        self._call = Call(self._desk.loop, door, message, self._fds, answered)
        self._call.sweep(time.monotonic())

    def _pass_on(self, message: dict[str, Any]) -> None:
        def answered(answer: dict[str, Any], fds: list[int]) -> None:
            wire.close_all(fds)
            self._answer(_told(answer))

        self._ask_inside(_inner(message), answered)

    def _run(self, message: dict[str, Any]) -> None:
        if self._desk.runs_of(self._user) >= MOST_RUNS_PER_USER:
            raise Refused("too_many", f"{MOST_RUNS_PER_USER} commands run already")
        self._is_run = True

        def answered(answer: dict[str, Any], fds: list[int]) -> None:
            wire.close_all(fds)
            self._close_fds()
            told = _told(answer)
            if not told["ok"] or self._call is None:
                self._answer(told)
                return
            self._call.stay(self._answer)
            self._say(told)

        self._ask_inside(_inner(message), answered)

    def _open_shell(self, message: dict[str, Any]) -> None:
        if self._desk.runs_of(self._user) >= MOST_RUNS_PER_USER:
            raise Refused("too_many", f"{MOST_RUNS_PER_USER} commands run already")
        self._is_run = True
        modes = _read_modes(message.get("modes"))

        def answered(answer: dict[str, Any], fds: list[int]) -> None:
            told, call = _told(answer), self._call
            if not told["ok"] or call is None or len(fds) != 1 or not doors.is_terminal(fds[0]):
                wire.close_all(fds)
                self._answer(told if not told["ok"] else _NO_TERMINAL)
                return
            shell = Shell(self._desk.loop, self._desk.alarm, fds[0], self._replica, self._shell_is_over)
            self._shell = shell
            shell.set_up(modes)
            call.stay(self._shell_has_ended)
            self._say(told, [shell.theirs.fileno()])
            shell.theirs.close()

        self._ask_inside(_inner(message), answered)

    def _shell_has_ended(self, end: dict[str, int | None]) -> None:
        self._end = end
        if self._shell is not None:
            self._shell.finish()

    def _shell_is_over(self) -> None:
        """All it said was passed on, or the asker let go of the stream."""
        self._shell = None
        self._answer(self._end or LOST)

    # --- connections ----------------------------------------------------------------------------------------------

    def _connect(self, message: dict[str, Any]) -> None:
        path, port = message.get("path"), message.get("port")
        if isinstance(path, str):
            self._connect_to_file(path)
        elif type(port) is int and 1 <= port <= 65535:
            self._connect_to_port(port)
        else:
            raise Refused("bad_request", "neither port nor path")

    def _connect_to_port(self, port: int) -> None:
        """In the network the porter shows us. It stays the same for as long as the replica lives."""
        network = self._desk.networks.find(self._replica)
        if network is None:
            self._ask_inside({"do": "net"}, lambda answer, fds: self._take_network(port, answer, fds))
        else:
            self._connect_in(port, network)

    def _take_network(self, port: int, answer: dict[str, Any], fds: list[int]) -> None:
        if answer.get("ok") is not True or len(fds) != 1 or not doors.is_network(fds[0]):
            wire.close_all(fds)
            self._answer(_told(answer if answer.get("ok") is not True else {"ok": False}))
            return
        self._desk.networks.keep(self._replica, fds[0])
        self._connect_in(port, fds[0])

    def _connect_to_file(self, path: str) -> None:
        try:
            sock = doors.Door(self._desk.data, self._replica).open_file(path)
        except doors.NotYet as problem:
            raise Refused("refused", str(problem)) from problem
        self._give(sock)

    def _connect_in(self, port: int, network: int) -> None:
        """With a socket of our own."""
        try:
            self._connecting = Connecting(self._desk.loop, os.dup(network), port, self._connected)
            self._connecting.begin()
        except PermissionError:  # we may not enter it: ours is not root's broker, and everybody here is one user
            self._connecting = None
            self._ask_inside({"do": "connect", "port": port}, self._given)

    def _connected(self, sock: socket.socket | None, code: int) -> None:
        self._connecting = None
        if sock is not None:
            self._give(sock)
            return
        error = "refused" if code in (errno.ECONNREFUSED, errno.ENETUNREACH, errno.EADDRNOTAVAIL) else "failed"
        self._answer({"ok": False, "error": error, "detail": os.strerror(code)})

    def _given(self, answer: dict[str, Any], fds: list[int]) -> None:
        try:
            is_good = answer.get("ok") is True and len(fds) == 1 and doors.is_stream(fds[0])
            told = _told(answer if is_good or answer.get("ok") is not True else {"ok": False})
            self._answer(told, fds if is_good else [])
        finally:
            wire.close_all(fds)

    def _give(self, sock: socket.socket) -> None:
        with sock:
            self._answer({"ok": True}, [sock.fileno()])

    # --- terminals ------------------------------------------------------------------------------------------------

    def _terminal(self, message: dict[str, Any]) -> None:
        session = message.get("session")
        try:
            rows, cols = read_size(message)
        except (TypeError, ValueError) as problem:
            raise Refused("bad_request", "rows and cols are numbers") from problem
        if session is not None:
            terminal = self._own(session)
            terminal.resize(rows, cols)
            self._attach(terminal, is_new=False)
            return
        if not self._desk.terminals.has_room_for(self._user):
            raise Refused("too_many", f"{MOST_TERMINALS_PER_USER} terminals are open already")
        is_kept = message.get("keep") is not False
        inner = _inner(message) | {"do": "shell", "rows": rows, "cols": cols}
        self._ask_inside(inner, lambda answer, fds: self._terminal_opened(is_kept, answer, fds))

    def _terminal_opened(self, is_kept: bool, answer: dict[str, Any], fds: list[int]) -> None:
        told, call = _told(answer), self._call
        if not told["ok"] or call is None or len(fds) != 1 or not doors.is_terminal(fds[0]):
            wire.close_all(fds)
            self._answer(told if not told["ok"] else _NO_TERMINAL)
            return
        self._call = None  # it is the terminal's from here on
        terminal = Terminal(self._desk.loop, self._desk.alarm, fds[0], call, replica=self._replica, is_kept=is_kept)
        self._desk.terminals.add(self._user, self._replica, terminal)
        self._attach(terminal, is_new=True)

    def _attach(self, terminal: Terminal, *, is_new: bool) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._answer({"ok": True, "session": terminal.id, "new": is_new}, [theirs.fileno()])
        terminal.attach(ours)

    def _list_terminals(self, message: dict[str, Any]) -> None:
        found = self._desk.terminals.of(self._user, self._replica)
        told = [{"session": held.id, "since": held.since, "attached": held.attached} for held in found]
        self._answer({"ok": True, "sessions": told})

    def _close_terminal(self, message: dict[str, Any]) -> None:
        self._own(message.get("session")).close()
        self._answer({"ok": True})

    def _own(self, session: object) -> Terminal:
        found = self._desk.terminals.find(self._user, self._replica, session) if isinstance(session, str) else None
        if found is None:
            raise Refused("not_found", "there is no such terminal")
        return found

    # --- answering ------------------------------------------------------------------------------------------------

    def _say(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        if self._sock.fileno() < 0:
            return
        try:
            wire.send(self._sock, message, fds or [])
        except (wire.Gone, OSError):  # it has gone, or does not listen
            self.close()

    def _answer(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """The last word of this visit."""
        self._say(message, fds)
        self.close()

    def _close_fds(self) -> None:
        fds, self._fds = self._fds, []
        wire.close_all(fds)

    def close(self) -> None:
        if self._sock.fileno() >= 0:
            self._desk.loop.forget(self._sock.fileno())
            self._sock.close()
            self._desk.forget(self)
        self._close_fds()
        open_ends = (self._call, self._connecting, self._shell)
        self._call = self._connecting = self._shell = None
        for open_end in open_ends:
            if open_end is not None:
                open_end.close()


def _inner(message: dict[str, Any]) -> dict[str, Any]:
    return {"do": message["do"]} | {name: message[name] for name in _PASSED_ON if name in message}


def _read_modes(told: object) -> dict[int, int]:
    """JSON has only texts for keys."""
    if not isinstance(told, dict):
        return {}
    return {int(key): value for key, value in told.items() if key.isdecimal() and type(value) is int}


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """What this broker says itself passes; what came through the door is cleaned."""
    return answer if answer.get("error") == "closed" else doors.cleaned(answer)


class Connecting:
    """A connection to a loopback port, 127.0.0.1 first, then ::1. `done` gets the socket, or None and the reason."""

    def __init__(self, loop: Loop, network: int, port: int, done: Callable[[socket.socket | None, int], None]) -> None:
        self._loop, self._network, self._port, self._done = loop, network, port, done
        self._targets = list(_LOOPBACKS)
        self._until = time.monotonic() + _CONNECT_SECONDS
        self._sock: socket.socket | None = None
        self._first_code = 0

    def begin(self) -> None:
        """Raises PermissionError where that network is closed to us."""
        try:
            self._next()
        except PermissionError:
            self.close()
            raise
        except OSError as problem:
            self._fail(problem.errno or errno.EINVAL)

    def sweep(self, now: float) -> None:
        if now > self._until:
            self._fail(errno.ETIMEDOUT)

    def _next(self) -> None:
        family, address = self._targets.pop(0)
        sock = doors.loopback_socket(self._network, family)
        self._sock = sock
        code = sock.connect_ex((address, self._port))
        if code == errno.EINPROGRESS:
            self._loop.watch(sock.fileno(), self._is_decided, WRITE)
        else:
            self._decide(code)

    def _is_decided(self) -> None:
        assert self._sock is not None
        self._loop.forget(self._sock.fileno())
        self._decide(self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _decide(self, code: int) -> None:
        assert self._sock is not None
        if code == 0:
            sock, self._sock = self._sock, None
            self.close()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._done(sock, 0)
            return
        self._sock.close()
        self._sock = None
        self._first_code = self._first_code or code
        if not self._targets:
            self._fail(self._first_code)
            return
        try:
            self._next()
        except OSError:  # there is no ::1
            self._fail(self._first_code)

    def _fail(self, code: int) -> None:
        self.close()
        self._done(None, self._first_code or code)

    def close(self) -> None:
        if self._sock is not None:
            self._loop.forget(self._sock.fileno())
            self._sock.close()
            self._sock = None
        if self._network >= 0:
            os.close(self._network)
            self._network = -1
