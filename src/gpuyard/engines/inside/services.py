"""Programs that go on in the background under a name, one of each, such as the notebook server and the editor."""

from __future__ import annotations

import os
import re
import signal

from . import processes, spawning
from .house import BadRequest, text, texts

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .house import House

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}\Z")
_MOST_SERVICES = 16
_MOST_LOG_BYTES = 1 << 20


class Services:
    def __init__(self, house: House) -> None:
        self._house = house
        self._all: dict[str, Service] = {}

    def begin(self, message: Mapping[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
        name = text(message.get("name"), "name")
        if not _NAME.match(name):
            raise BadRequest("name has other signs than a-z, 0-9 and -")
        there = self._all.get(name)
        if there is not None and there.exit_code is None:
            tell({"ok": True, "pid": there.pid, "started": False})
            return
        if there is None and len(self._all) >= _MOST_SERVICES:
            raise spawning.CannotStart("too_many", f"there are {_MOST_SERVICES} services already")
        env = self._house.environment(message)
        plan = spawning.Plan(texts(message.get("argv"), "argv"), env, self._house.folders(message, env))
        self._all[name] = self._start(name, plan, tell)

    def _start(self, name: str, plan: spawning.Plan, tell: Callable[[dict[str, Any]], None]) -> Service:
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        output, mouth = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(output, False)
        try:
            pid, report = spawning.fork(plan, [nothing, mouth, mouth])
        except spawning.CannotStart:
            os.close(output)
            raise
        finally:
            os.close(nothing)
            os.close(mouth)
        service = Service(self._house, pid, ServiceLog(self._house, output, os.path.join(self._house.door, name)))
        self._house.loop.watch(report, lambda: self._hear_report(name, service, report, tell))
        self._house.when_ended(pid, service.has_ended)
        return service

    def _hear_report(self, name: str, service: Service, report: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self._house.loop.forget(report)
        try:
            problem = spawning.read_report(report)
        finally:
            os.close(report)
        if problem is None:
            tell({"ok": True, "pid": service.pid, "started": True})
            return
        if self._all.get(name) is service:
            del self._all[name]
        tell({"ok": False, "error": problem["error"], "detail": problem["detail"]})

    def told(self) -> dict[str, Any]:
        return {
            name: {"pid": service.pid, "running": service.exit_code is None, "exit_code": service.exit_code}
            for name, service in self._all.items()
        }

    def end_all(self) -> None:
        for service in self._all.values():
            if service.exit_code is None:
                processes.send_to_group(service.pid, signal.SIGTERM)

    def are_running(self) -> bool:
        return any(service.exit_code is None for service in self._all.values())


class Service:
    def __init__(self, house: House, pid: int, log: ServiceLog) -> None:
        self.pid, self._log = pid, log
        self.exit_code: int | None = None

    def has_ended(self, code: int) -> None:
        self.exit_code = processes.as_shells_say(code)


class ServiceLog:
    """What a service says, in two files that together stay small: the present one, and the one before."""

    def __init__(self, house: House, pipe: int, path: str) -> None:
        self._house, self._pipe, self._path = house, pipe, path
        self._written = 0
        self._rename()
        house.loop.watch(pipe, self._copy)

    def _copy(self) -> None:
        try:
            piece = os.read(self._pipe, 65536)
        except BlockingIOError:
            return
        if not piece:
            self._house.loop.forget(self._pipe)
            os.close(self._pipe)
            return
        if self._written + len(piece) > _MOST_LOG_BYTES // 2:
            self._rename()
        self._append(piece)

    def _append(self, piece: bytes) -> None:
        """On a full disk or in a closed folder it is lost; the service goes on."""
        self._written += len(piece)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(f"{self._path}.log", flags, 0o600)
        except OSError:
            return
        try:
            os.write(fd, piece)
        except OSError:
            return
        finally:
            os.close(fd)

    def _rename(self) -> None:
        self._written = 0
        try:
            os.rename(f"{self._path}.log", f"{self._path}.old.log")
        except OSError:  # there is none
            return
