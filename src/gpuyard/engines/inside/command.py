"""The workload's own command: started with its output in the log, told to stop, and waited for."""

from __future__ import annotations

import os
import signal

from . import ending, preflight, processes, shipped, spawning

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .house import House

_LOOK_SECONDS = 0.1


class Command:
    def __init__(self, house: House, request: Mapping[str, Any]) -> None:
        self._house, self._request = house, request
        self._argv: list[str] = list(request["argv"])
        self._pid = 0
        self._code: int | None = None
        self._problem: dict[str, Any] | None = None
        self._report = -1
        self._kills_before = ending.oom_kills()
        self._look_at = 0.0

    def start(self) -> None:
        plan = spawning.Plan(self._argv, self._house.env, [self._house.cwd, "/"])  # the look before tells if it is gone
        plan.prepare = self._prepare
        try:
            if self._request.get("workdir"):
                os.makedirs(self._house.cwd, exist_ok=True)
            streams = self._streams()
            self._pid, self._report = spawning.fork(plan, streams)
        except spawning.CannotStart as problem:
            self._fail({"error": problem.kind, "detail": problem.detail})
            return
        except OSError as problem:
            self._fail({"error": "failed", "detail": str(problem)})
            return
        for stream in {*streams} - {1, 2}:
            os.close(stream)
        self._house.when_ended(self._pid, self._has_ended)
        self._house.loop.watch(self._report, self._hear_report)

    def _streams(self) -> list[int]:
        nothing, log = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), self._request.get("log")
        if log is None:
            return [nothing, 1, 2]
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return [nothing, output, output]

    def _prepare(self) -> None:
        """In the child, in the working folder, as the user."""
        _heed(preflight.check_folder(self._house.cwd))
        os.chdir(self._house.cwd)
        if self._request.get("workdir"):
            try:
                with open(self._request["workdir"], "rb") as folder:
                    shipped.unpack(folder)
            except shipped.ShippedProblem as problem:
                raise spawning.Unready({"error": "failed", "detail": str(problem)}) from problem
        _heed(preflight.check(self._argv, self._house.cwd, self._house.env.get("PATH", "")))

    def _hear_report(self) -> None:
        if self._report < 0:
            return
        report, self._report = self._report, -1
        self._house.loop.forget(report)
        try:
            told = spawning.read_report(report)
        finally:
            os.close(report)
        if told is not None:
            self._fail(told)

    def _fail(self, told: Mapping[str, Any]) -> None:
        self._problem = told.get("problem") or {"code": "launch_failed", "detail": told.get("detail", "")}
        if self._code is None:
            self._code = 127 if told.get("error") == "not_found" else 126

    def _has_ended(self, code: int) -> None:
        self._hear_report()  # its words may still lie in the pipe
        if self._code is None:
            self._code = code

    def is_over(self, now: float, kill_at: float | None) -> bool:
        """A shell that was the first process dies of the stop signal at once; the program it ran may be saving."""
        if self._code is None:
            return False
        if kill_at is None or now >= kill_at or self._code != -signal.SIGTERM or self._problem:
            return True
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        return not processes.Seen().of_session(self._pid)

    def signal(self, number: int) -> None:
        if self._pid and self._code is None:
            processes.send_to_group(self._pid, number)
            processes.send_to_group(self._pid, signal.SIGCONT)

    def code(self) -> int:
        assert self._code is not None
        return processes.as_shells_say(self._code)

    def end(self) -> dict[str, Any]:
        assert self._code is not None
        signalled = -self._code if self._code < 0 else None
        has_oom = self._code != 0 and not self._problem and ending.oom_kills() > self._kills_before
        return {"exit_code": self.code(), "signal": signalled, "oom": has_oom, "problem": self._problem}


def _heed(problem: dict[str, str] | None) -> None:
    if problem is not None:
        os.write(2, preflight.in_words(problem).encode("utf-8", "replace") + b"\n")
        raise spawning.Unready({"error": "unready", "problem": problem})
