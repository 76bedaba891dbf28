"""Starts a supervisor and waits for its word that the replica has begun."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from enum import Enum
from pathlib import Path

_SCRIPT = Path(__file__).with_name("supervisor.py")
_PATIENCE_SECONDS = 20.0


class Answer(Enum):
    BEGUN = 0
    ALREADY = 3  # somebody else began it, now or earlier
    REFUSED = 4  # it was stopped before it began
    FAILED = 5
    UNSURE = -1


def start(folder: Path) -> Answer:
    """In a session of its own with an empty environment: it takes nothing from the server, not even its terminal."""
    environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    with open(folder / "supervisor.err", "ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(_SCRIPT), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
    if not _has_ended(process.pid):
        process.kill()  # only the one that waits for the answer; a supervisor that has begun goes on
        process.wait()
        return Answer.UNSURE
    code = process.wait()
    return Answer(code) if code in (Answer.BEGUN.value, Answer.ALREADY.value, Answer.REFUSED.value) else Answer.FAILED


def _has_ended(pid: int) -> bool:
    """Wait without polling; `Popen.wait` with a timeout would sleep in steps of up to 50 ms."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(_PATIENCE_SECONDS * 1000))
    finally:
        os.close(fd)


def last_words(folder: Path) -> str:
    lines = (folder / "supervisor.err").read_bytes()[-2000:].decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it left no word"
