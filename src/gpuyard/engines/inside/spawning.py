"""From a fork of the porter to a program: session, streams, terminal, folder, exec, and word of what went wrong."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import termios

from . import processes

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

_KINDS = {errno.ENOENT: "not_found", errno.ENOTDIR: "not_found", errno.EACCES: "denied", errno.EPERM: "denied"}
_KINDS |= {errno.EAGAIN: "too_many", errno.ENOMEM: "too_many", errno.EMFILE: "too_many", errno.ENFILE: "too_many"}


class CannotStart(Exception):
    """It did not start. `kind` is one of the door's error words."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


class Plan:
    """A program to be started."""

    def __init__(self, argv: list[str], env: dict[str, str], folders: Sequence[str]) -> None:
        self.argv, self.env = argv, env
        self.folders = folders  # the first that can be entered is where it starts
        self.has_terminal = False
        self.prepare: Callable[[], None] | None = None  # called in the child, in its folder; may raise


def fork(plan: Plan, streams: Sequence[int]) -> tuple[int, int]:
    """The child's number, and a pipe: closed without a word once the program runs, otherwise `read_report` tells."""
    report, mouth = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.pthread_sigmask(signal.SIG_BLOCK, processes.OURS)  # none of them may meet the child before it is ready
    try:
        pid = os.fork()
        if pid == 0:
            os.set_blocking(mouth, True)
            _become(plan, streams, mouth)
    except OSError as problem:
        os.close(report)
        raise as_refusal(problem) from problem
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, processes.OURS)
        os.close(mouth)
    return pid, report


def as_refusal(problem: OSError) -> CannotStart:
    text = f"{problem.strerror}: {problem.filename}" if problem.filename else str(problem.strerror)
    return CannotStart(_KINDS.get(problem.errno or 0, "failed"), text)


def read_report(report: int) -> dict[str, Any] | None:
    """What kept it from starting, or None when it runs. To be asked once the pipe is ready."""
    text = os.read(report, 65536)
    if not text:
        return None
    told = json.loads(text)
    assert isinstance(told, dict)
    return told


def _become(plan: Plan, streams: Sequence[int], mouth: int) -> NoReturn:
    told: dict[str, Any]
    try:
        _prepare(plan, streams)
        os.execvpe(plan.argv[0], plan.argv, plan.env)  # noqa: S606
    except Unready as problem:
        told = problem.told
    except OSError as problem:
        refusal = as_refusal(problem)
        where = "" if problem.filename else f"{plan.argv[0]}: "
        told = {"error": refusal.kind, "detail": f"{where}{refusal.detail}"[:500]}
    except Exception as problem:  # the last process that can tell why
        told = {"error": "failed", "detail": f"{type(problem).__name__}: {problem}"[:500]}
    os.write(mouth, json.dumps(told).encode())
    os._exit(127 if told.get("error") == "not_found" else 126)


class Unready(Exception):
    """Raised by a plan's `prepare`: the program must not be started, for the reason told."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(str(told))
        self.told = told


def _prepare(plan: Plan, streams: Sequence[int]) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in processes.DEFAULTS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
    if plan.has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    processes.step_forward()
    _enter_first(plan.folders)
    if plan.prepare is not None:
        plan.prepare()


def _enter_first(folders: Sequence[str]) -> None:
    for number, folder in enumerate(folders, 1):
        try:
            os.chdir(folder)
            return
        except OSError:
            if number == len(folders):
                raise
