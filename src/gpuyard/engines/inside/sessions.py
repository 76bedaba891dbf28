"""Shells and commands that somebody outside holds on to. When they let go, nothing of the session stays behind."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import time

from . import processes, spawning
from .house import BadRequest, number, text

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .house import House

    Tell = Callable[[dict[str, Any], Sequence[int]], None]

MOST_SESSIONS = 64
_HANG_UP_SECONDS = 5.0
_LOOK_SECONDS = 0.2


class Sessions:
    """All there are, and those that were left and are being ended."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._live: set[Session] = set()
        self._left: dict[int, float] = {}  # session -> when it is killed
        self._look_at = 0.0

    def open_shell(self, message: Mapping[str, Any], tell: Tell) -> Session:
        env = self._house.environment(message, text(message.get("term") or "xterm-256color", "term"))
        size = [number(message.get(name, usual), name, 1, 10_000) for name, usual in (("rows", 24), ("cols", 80))]
        plan = spawning.Plan(self._house.program(message, env), env, self._house.folders(message, env))
        plan.has_terminal = True
        self._check_room()
        try:
            terminal, inner = os.openpty()
        except OSError as problem:
            raise spawning.CannotStart("too_many", f"no terminal is left: {problem.strerror}") from problem
        try:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            return self._begin(plan, [inner] * 3, [terminal], tell)
        except BaseException:
            os.close(terminal)
            raise
        finally:
            os.close(inner)

    def run(self, message: Mapping[str, Any], streams: Sequence[int], tell: Tell) -> Session:
        if len(streams) != 3:
            raise BadRequest("a command comes with three descriptors")
        env = self._house.environment(message)
        plan = spawning.Plan(self._house.program(message, env), env, self._house.folders(message, env))
        self._check_room()
        return self._begin(plan, streams, [], tell)

    def _check_room(self) -> None:
        if len(self._live) + len(self._left) >= MOST_SESSIONS:
            raise spawning.CannotStart("too_many", f"there are {MOST_SESSIONS} sessions already")

    def _begin(self, plan: spawning.Plan, streams: Sequence[int], given: list[int], tell: Tell) -> Session:
        pid, report = spawning.fork(plan, streams)
        session = Session(self._house, self, pid, given, tell)
        self._live.add(session)
        self._house.loop.watch(report, lambda: session.hear_report(report))
        self._house.when_ended(pid, session.has_ended)
        return session

    def forget(self, session: Session) -> None:
        self._live.discard(session)

    def hang_up(self, session: Session) -> None:
        if session in self._live:
            self._live.discard(session)
            self._left[session.pid] = time.monotonic() + _HANG_UP_SECONDS
            self._signal(processes.Seen(), session.pid, signal.SIGHUP)

    def hang_up_all(self) -> None:
        for session in list(self._live):
            self.hang_up(session)

    def are_ending(self) -> bool:
        return bool(self._left)

    def sweep(self, now: float) -> None:
        """Forget the sessions of which nothing is left, and kill what had its time."""
        if not self._left or now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        seen = processes.Seen()
        for pid, kill_at in list(self._left.items()):
            if not seen.of_session(pid):
                del self._left[pid]
            elif now >= kill_at:
                self._signal(seen, pid, signal.SIGKILL)

    def _signal(self, seen: processes.Seen, session: int, sent: int) -> None:
        members = seen.of_session(session) or [session]  # it may not have made its session yet
        processes.send(members, sent)
        processes.send(members, signal.SIGCONT)


class Session:
    """One shell or command, as long as its asker stays."""

    def __init__(self, house: House, all: Sessions, pid: int, given: list[int], tell: Tell) -> None:
        self._house, self._all, self.pid, self._tell = house, all, pid, tell
        self._given = given  # ours until they are handed over
        self._runs = False
        self._code: int | None = None

    def hear_report(self, report: int) -> None:
        self._house.loop.forget(report)
        try:
            problem = spawning.read_report(report)
        finally:
            os.close(report)
        given, self._given = self._given, []
        try:
            if problem is not None:
                self._all.forget(self)
                self._tell({"ok": False, "error": problem["error"], "detail": problem["detail"]}, ())
                return
            self._tell({"ok": True, "pid": self.pid}, given)
        finally:
            for fd in given:
                os.close(fd)
        self._runs = True
        if self._code is not None:
            self.has_ended(self._code)

    def has_ended(self, code: int) -> None:
        """What it left in the background on purpose goes on; the asker knows the rest."""
        self._code = code
        if self._runs:
            self._all.forget(self)
            signalled = -code if code < 0 else None
            self._tell({"ended": processes.as_shells_say(code), "signal": signalled}, ())

    def hear(self, message: Mapping[str, Any]) -> None:
        if "signal" in message and self._code is None:
            processes.send_to_group(self.pid, number(message["signal"], "signal", 1, 64))

    def leave(self) -> None:
        """The asker has gone."""
        self._all.hang_up(self)
