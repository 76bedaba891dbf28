"""A process that runs the tests it is given, one file after the other, and sends what became of each."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import CallInfo
from tests.runner import crew
from tests.runner.apart import cpu_seconds
from tests.runner.runs import PREFIX, VARIABLE

INTERRUPTED = 2


class Sender:
    """Reports go to the run, in the form that pytest has for it."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config, self._line = config, line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(crew.Reported(told))


def work(session: pytest.Session, line: Connection, said: int, folder: Path) -> int:
    """Until there is no more to do. Its code is good however the tests end: that is told in reports."""
    sender = _set_up(session.config, line, said, folder)
    last: pytest.Item | None = None
    try:
        while (numbers := line.recv()) is not None:
            began, used = time.monotonic(), cpu_seconds()
            for position, number in enumerate(numbers):
                line.send(crew.Begun(number))
                last = session.items[number]
                # The session stands for "others come": what many files share stays, what this file alone had does not.
                following: Any = session.items[numbers[position + 1]] if position + 1 < len(numbers) else session
                last.config.hook.pytest_runtest_protocol(item=last, nextitem=following)
            line.send(crew.Done(time.monotonic() - began, cpu_seconds() - used))
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    finally:
        _tear_down(session, sender, last)
    return 0


def _set_up(config: pytest.Config, line: Connection, said: int, folder: Path) -> Sender:
    """Its own way to say things, since what was captured so far, and where to, belongs to the run; and its own folder,
    with a short name: addresses of sockets have little room."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    sys.stdout.flush()
    for number, what in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(what, number)
    capture.start_global_capturing()
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._given_basetemp = folder / os.environ[VARIABLE].removeprefix(PREFIX)
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    current: Any = threading.current_thread()
    current._set_native_id()  # Python 3.11 keeps the number from before the fork
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sender = Sender(config, line)
    config.pluginmanager.register(sender, "sender")
    return sender


def _tear_down(session: pytest.Session, sender: Sender, last: pytest.Item | None) -> None:
    """Of what all files shared, and of what nobody closed. What goes wrong is the last test's, as with pytest."""
    if last is None:
        return
    state: Any = session._setupstate
    for step in (lambda: state.teardown_exact(None), gc.collect):
        call = CallInfo.from_call(step, "teardown")
        report = pytest.TestReport.from_item_and_call(last, call)
        if report.failed:
            with contextlib.suppress(OSError):
                sender.pytest_runtest_logreport(report)
