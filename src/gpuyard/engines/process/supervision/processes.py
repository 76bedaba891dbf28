"""Processes as /proc shows them: who is alive, who belongs to whom, and how to end all of them."""

from __future__ import annotations

import os
import signal

MARKER = "YARD_REPLICA"  # every job carries it in its environment: how strays are found where there are no cgroups


def stat_fields(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the state on: [0] state, [1] parent, [19] start time."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def start_time(pid: int) -> int | None:
    """When it started, in ticks since boot. Together with the pid it names a process for good. None: dead."""
    fields = stat_fields(pid)
    if not fields or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def is_alive(pid: int, started: int) -> bool:
    return start_time(pid) == started


def boot_id(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> list[int]:
    """Every living process below `root`. Below a sub-reaper that is everything its children ever forked."""
    children: dict[int, list[int]] = {}
    for pid in all_pids():
        fields = stat_fields(pid)
        if fields and fields[0] not in (b"Z", b"X"):
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, [])]
        found += level
    return found


def marked(replica: str) -> list[int]:
    """Every living process whose environment names this replica."""
    wanted = f"{MARKER}={replica}".encode()
    return [pid for pid in all_pids() if wanted in environment(pid) and start_time(pid) is not None]


def environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # gone, or not ours to look at
        return []


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def end_tree(root: int) -> bool:
    """Kill everything below `root`. True once nothing is left. Stopping them first keeps a fork bomb from winning."""
    pids = descendants(root)
    send(pids, signal.SIGSTOP)
    send(pids, signal.SIGKILL)
    return not pids


def end_marked(replica: str) -> bool:
    pids = marked(replica)
    send(pids, signal.SIGSTOP)
    send(pids, signal.SIGKILL)
    return not pids


def reap() -> dict[int, int]:
    """Collect children that have ended: pid -> wait status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
