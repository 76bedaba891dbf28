"""The life of the porter: open the door, start the command if there is one, serve, and end with the command's code."""

from __future__ import annotations

import json
import os
import signal
import time

from . import ending, processes
from .command import Command
from .door import Door
from .house import House
from .services import Services
from .sessions import Sessions

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from typing import Any, NoReturn

_TOLD_TO_STOP = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CALM_SECONDS, _BUSY_SECONDS = 2.0, 0.05
_PARTING_SECONDS = 5.0  # without a command, what was opened through the door gets so much time


def main(source: str) -> NoReturn:
    os._exit(Porter(_read(source)).run())


def _read(source: str) -> dict[str, Any]:
    """The request: a file's name, or `fd:N` for one that is open already."""
    opened = int(source[3:]) if source.startswith("fd:") else source
    with open(opened, encoding="utf-8", errors="surrogateescape") as file:
        request = json.load(file)
    assert isinstance(request, dict)
    return request


class Porter:
    def __init__(self, request: dict[str, Any]) -> None:
        self._house = House(request)
        self._grace = float(request.get("grace") or 0.0)
        self._sessions, self._services = Sessions(self._house), Services(self._house)
        self._door = Door(self._house, self._sessions, self._services)
        self._command = Command(self._house, request) if request.get("argv") else None
        self._told: list[int] = []  # signals that came and were not heeded yet
        self._kill_at: float | None = None  # set once it was told to stop
        self._bell = -1

    def run(self) -> int:
        self._listen_to_signals()
        processes.reap_all_below()
        self._door.sweep(time.monotonic())
        if self._command is not None:
            self._command.start()
        while not self._is_over(time.monotonic()):
            self._house.loop.turn(self._patience())
            self._house.tell_ended(processes.reap())
            self._heed_signals()
            self._house.loop.guard(self._sweep)
        ending.write(self._house.door, self._command.end() if self._command else ending.good())
        return self._command.code() if self._command else 0

    def _listen_to_signals(self) -> None:
        self._bell, mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, self._hear)
        for number in _TOLD_TO_STOP:
            signal.signal(number, self._hear)
        self._house.loop.watch(self._bell, self._empty_bell)

    def _empty_bell(self) -> None:
        os.read(self._bell, 4096)

    def _hear(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD and len(self._told) < 16:
            self._told.append(number)

    def _heed_signals(self) -> None:
        while self._told:
            number = self._told.pop(0)
            if self._kill_at is None:
                patience = self._grace if self._command else min(self._grace, _PARTING_SECONDS)
                self._kill_at = time.monotonic() + patience
                self._sessions.hang_up_all()
                self._services.end_all()
            if self._command is not None:
                self._command.signal(number)

    def _sweep(self) -> None:
        now = time.monotonic()
        self._door.sweep(now)
        self._sessions.sweep(now)

    def _patience(self) -> float:
        is_busy = self._kill_at is not None or self._sessions.are_ending() or self._door.is_waited_for()
        return _BUSY_SECONDS if is_busy else _CALM_SECONDS

    def _is_over(self, now: float) -> bool:
        if self._command is not None:
            return self._command.is_over(now, self._kill_at)
        if self._kill_at is None:
            return False
        return now >= self._kill_at or not (self._sessions.are_ending() or self._services.are_running())
