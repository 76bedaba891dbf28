"""Brings a porter into the room of a job that runs, when somebody wants in. The job never waits for it."""

from __future__ import annotations

import _socket
import os
import signal

from ...inside import wire
from . import child, processes, record

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from typing import Any

_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM)


class Doorkeeper:
    def __init__(self, folder: str, request: dict[str, Any]) -> None:
        self._folder, self._request = folder, request
        self._view: list[int] = []
        self._porter = 0
        self._ears: _socket.socket | None = None

    def hand(self) -> _socket.socket | None:
        """What the job's first process gives its view of the machine through. None where it has none of its own."""
        if not self._request["room"]:
            return None
        self._ears, mouth = _socket.socketpair(
            _socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC
        )
        return mouth

    def take_view(self) -> None:
        """The job runs, so what it had to hand over lies here."""
        if self._ears is not None:
            try:
                _, self._view = wire.receive(self._ears)
            except (wire.Gone, wire.Malformed, OSError):
                self._view = []
            self._ears.close()
            self._ears = None

    def heed(self, *, job_runs: bool) -> None:
        """Look whether somebody wants in. A dev environment's first process is a porter already."""
        if not job_runs or not record.exists(self._folder, record.WANTED):
            return
        os.unlink(os.path.join(self._folder, record.WANTED))
        if self._request["argv"] and not self._porter and (self._view or not self._request["room"]):
            self._bring()

    def _bring(self) -> None:
        supervisor = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # none of them may meet the child before it is ready
        try:
            self._porter = os.fork()
            if self._porter == 0:
                child.become_porter(self._request, supervisor=supervisor, view=self._view)
        except OSError:  # no process can be made now; whoever wants in asks again
            self._porter = 0
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def note_ended(self, ended: dict[int, int]) -> None:
        if self._porter in ended:
            self._porter = 0

    def visitors(self) -> set[int]:
        """The porter, and all that was started through the door."""
        return {self._porter, *processes.descendants(self._porter)} if self._porter else set()

    def close(self) -> None:
        view, self._view = self._view, []
        wire.close_all(view)
