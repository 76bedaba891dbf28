"""Begins a replica at most once, whoever asks and however often, and tells the asker when it has begun."""

from __future__ import annotations

import os
import sys
import time

from . import record
from .supervise import Supervisor

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from typing import NoReturn

BEGUN, ALREADY, REFUSED, FAILED = 0, 3, 4, 5  # the starter's exit codes
_PATIENCE_SECONDS = 10.0


def main(folder: str) -> NoReturn:
    """The first process waits until the second has begun, and ends; the second belongs to nobody and goes on."""
    ears, mouth = os.pipe()
    if os.fork():
        os.close(mouth)
        answer = os.read(ears, 1)
        os._exit(answer[0] if answer else FAILED)
    os.close(ears)
    _begin(folder, mouth)


def _begin(folder: str, mouth: int) -> NoReturn:
    lock = _take_lock(folder)
    if lock is None or record.exists(folder, record.STATUS):
        _answer(mouth, ALREADY)
        os._exit(ALREADY)
    if record.exists(folder, record.TOMBSTONE):
        _answer(mouth, REFUSED)
        os._exit(REFUSED)
    request = record.read(folder, record.REQUEST)
    assert request is not None, "the engine writes the request before it starts a supervisor"
    supervisor = Supervisor(folder, request)
    supervisor.begin()
    _answer(mouth, BEGUN)
    supervisor.run()
    try:
        sys.stderr.flush()
    finally:  # on a full disk its last words are lost, not its job's
        os._exit(0)


def _take_lock(folder: str) -> int | None:
    """Somebody may hold it for a moment to look or to stop; a supervisor that holds it has begun, or is about to."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        lock = record.take_lock(folder)
        if lock is not None or record.exists(folder, record.STATUS) or time.monotonic() > until:
            return lock
        time.sleep(0.002)


def _answer(mouth: int, code: int) -> None:
    try:
        os.write(mouth, bytes([code]))
    except BrokenPipeError:  # the asker is gone; the replica has begun all the same
        return
    finally:
        os.close(mouth)
