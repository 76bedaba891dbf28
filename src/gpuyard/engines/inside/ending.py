"""The porter's own record of how the command ended, for whoever looks into the door folder afterwards."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False  # loading typing would cost every workload a part of its start
if TYPE_CHECKING:
    from typing import Any

END = "end.json"
_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")  # versions 2 and 1


def oom_kills() -> int:
    """How many processes the kernel has ended here because the memory was used up."""
    for path in _COUNTERS:
        try:
            with open(path, encoding="ascii") as file:
                found = dict(line.split() for line in file)
            return int(found["oom_kill"])
        except (OSError, ValueError, KeyError):
            continue
    return 0


def good() -> dict[str, Any]:
    return {"exit_code": 0, "signal": None, "oom": False, "problem": None}


def write(door: str, end: dict[str, Any]) -> None:
    """All or nothing. Where the folder does not take it, the exit code tells the most."""
    part = os.path.join(door, f".{END}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(part, flags, 0o600)
        try:
            os.write(fd, json.dumps(end).encode())
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(part, os.path.join(door, END))
    except OSError:
        return
