"""An interactive job: its output is shown as it comes, and its end is the end of the program.

Ctrl-C leaves the job alone: it goes on, and `dlc stop job` stops it.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

from gpuyard.dialects.dlc import telling
from gpuyard.doors.asking import Server
from gpuyard.doors.dlc import asked
from gpuyard.doors.dlc.saying import warn
from gpuyard.sdk.errors import ServerUnreachable

LOOK_SECONDS = 0.3
PATIENCE_SECONDS = 600.0  # a server that is being restarted
INTERRUPTED = 130
QUEUING, RUNNING, SUCCEEDED = "Queuing", "Running", "Succeeded"


def watch(server: Server, job: str) -> int:
    try:
        return _watch(server, job)
    except KeyboardInterrupt:
        warn(f"Job {job} goes on; stop it with: dlc stop job {job}")
        return INTERRUPTED


def _watch(server: Server, job: str) -> int:
    said, shown = _Said(job), _Shown()
    while True:
        found = _patiently(server, job)
        status = telling.status(found)
        if status not in telling.ENDED:
            said.status(status)
            said.reason(found if status == QUEUING else {})
        elif status == SUCCEEDED or found["started_at"]:
            said.has_run()
        is_over = (said.ran or status in telling.ENDED) and shown.more(server, found)
        if status in telling.ENDED and is_over:
            said.status(status)
            return _exit_code(found, status)
        time.sleep(LOOK_SECONDS)


class _Said:
    """What was last said of a job: nothing is said twice."""

    def __init__(self, job: str) -> None:
        self._job, self._status, self._reason, self.ran = job, "", "", False

    def status(self, status: str) -> None:
        if status != self._status:
            print(f"Job {self._job} is [{status}]", flush=True)
        self._status, self.ran = status, self.ran or status == RUNNING

    def has_run(self) -> None:
        """Programs wait for this line; a short job may be over before it was seen running."""
        if not self.ran:
            self.status(RUNNING)

    def reason(self, job: dict[str, Any]) -> None:
        """Why it waits."""
        reason = str(job.get("reason") or "")
        if reason and reason != self._reason:
            warn(reason)
        self._reason = reason


def _exit_code(job: dict[str, Any], status: str) -> int:
    if status == SUCCEEDED:
        return 0
    code = job["exit_code"]
    return code if isinstance(code, int) and 0 < code < 256 else 1


def _patiently(server: Server, job: str) -> dict[str, Any]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return asked.job(server, job)
        except ServerUnreachable:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOOK_SECONDS)


class _Shown:
    """How much of the output of the first replica has been shown; every attempt has its own."""

    def __init__(self) -> None:
        self._attempt, self._offset = 0, 0

    def more(self, server: Server, job: dict[str, Any]) -> bool:
        """Show what is new. True when nothing more will come of this attempt."""
        attempt = int(job["attempt"])
        if attempt == 0:
            return True
        if attempt != self._attempt:
            self._attempt, self._offset = attempt, 0
        while True:
            try:
                piece = read_log(server, str(job["id"]), attempt=attempt, offset=self._offset)
            except ServerUnreachable:
                return False
            self._offset = piece.end
            sys.stdout.buffer.write(piece.data)
            sys.stdout.buffer.flush()
            if not piece.data:
                return piece.is_last


class Piece(NamedTuple):
    """Some of a log, the byte it begins with and the one after it; `is_last`: nothing more will come."""

    data: bytes
    start: int
    end: int
    is_last: bool


def read_log(server: Server, id: str, **params: Any) -> Piece:
    with server.stream(f"/workloads/{id}/logs", **params) as answer:
        data: bytes = answer.read()
        start, end, size = (int(answer.headers[f"X-Log-{name}"]) for name in ("Start", "End", "Size"))
        return Piece(data, start, end, answer.headers["X-Log-Ended"] == "true" and end >= size)
