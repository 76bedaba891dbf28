"""Keeps the gateway and the broker running: starts what is not there, takes over what is, and tries again.

Both are children of nobody: they go on when the server ends or is killed, so that notebooks and shells do, and the next
server finds them by the locks they hold.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpuyard.gateway.config import (
    BROKER_LOCK,
    GATEWAY_LOCK,
    GatewayConfig,
    read_note,
    write_config,
)

LOOK_SECONDS = 1.0
SHORTEST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 60.0
WELL_SECONDS = 30.0  # who lived this long may be started again at once
LOG_BYTES = 8 << 20
_log = logging.getLogger(__name__)


@dataclass
class Kept:
    """One process that should be there."""

    name: str
    module: str
    lock: str
    child: subprocess.Popen[bytes] | None = None
    begun_at: float = 0.0
    wait_seconds: float = SHORTEST_WAIT_SECONDS
    not_before: float = field(default=0.0)


class GatewayKeeper:
    """Runs in a thread of the server until told to end. What it keeps does not end with it."""

    def __init__(self, config: GatewayConfig) -> None:
        self._config = config
        self._told_to_end = threading.Event()
        self._kept = (
            Kept("broker", "gpuyard.gateway.broker", BROKER_LOCK),
            Kept("gateway", "gpuyard.gateway.main", GATEWAY_LOCK),
        )

    def run(self) -> None:
        write_config(self._config)
        self._replace_one_told_otherwise()
        while not self._told_to_end.is_set():
            for kept in self._kept:
                try:
                    self._look_after(kept)
                except OSError as error:  # no process, no memory, no disk: the next round may have them
                    _log.warning("the %s could not be started: %s", kept.name, error)
            self._told_to_end.wait(LOOK_SECONDS)
        for kept in self._kept:
            if kept.child is not None and kept.child.poll() is None:
                kept.child.returncode = 0  # it goes on without us, and Popen need not warn of that

    def end(self) -> None:
        """One that has hardly begun, and has not said so yet, is not left behind: nobody would know of it."""
        self._told_to_end.set()
        for kept in self._kept:
            child, lock = kept.child, self._config.run_folder / kept.lock
            if child is not None and child.poll() is None and holder(lock) != child.pid:
                child.terminate()

    def _look_after(self, kept: Kept) -> None:
        now = time.monotonic()
        if kept.child is not None:
            code = kept.child.poll()
            if code is None:
                return
            self._note_end(kept, code, now)
        if holder(self._config.run_folder / kept.lock) is not None or now < kept.not_before:
            return
        kept.child, kept.begun_at = self._start(kept), now

    def _note_end(self, kept: Kept, code: int, now: float) -> None:
        """Longer each time it dies young, so that what cannot work does not keep the machine busy."""
        kept.child = None
        if now - kept.begun_at > WELL_SECONDS:
            kept.wait_seconds = SHORTEST_WAIT_SECONDS
        kept.not_before = now + kept.wait_seconds
        if code:
            seconds = kept.wait_seconds
            _log.warning("the %s ended with code %s; it is started again in %g s", kept.name, code, seconds)
        kept.wait_seconds = min(kept.wait_seconds * 2, LONGEST_WAIT_SECONDS)

    def _start(self, kept: Kept) -> subprocess.Popen[bytes]:
        log = self._config.folder / f"{kept.name}.log"
        if log.exists() and log.stat().st_size > LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", kept.module, "--data", str(self._config.folder)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                cwd="/",
                start_new_session=True,
            )

    def _replace_one_told_otherwise(self) -> None:
        """A gateway with other ports, or of another version, makes room for one as wanted. Shells stay."""
        lock = self._config.run_folder / GATEWAY_LOCK
        pid, note = holder(lock), read_note(self._config.folder)
        if pid is None or note is None or note.pid != pid or note.config == self._config.digest:
            return
        _log.info("the gateway is replaced: it was started with other settings")
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 10
        while holder(lock) == pid and time.monotonic() < deadline and not self._told_to_end.wait(0.05):
            pass


def holder(lock: Path) -> int | None:
    """Who holds this lock, by its own word; None when nobody does. 0: somebody who has not said yet."""
    try:
        with lock.open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                told = file.read().strip()
                return int(told) if told.isdigit() else 0
    except FileNotFoundError:
        pass
    return None
