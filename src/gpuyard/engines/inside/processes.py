"""Processes as /proc shows them from inside: who belongs to a session, who descends from whom."""

from __future__ import annotations

import os
import signal

_MOST_SPARED = 100  # of a thousand: so much rather than the porter do its children go when memory runs out


class Seen:
    """The living processes at one moment."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}
        self._sessions: dict[int, int] = {}
        for name in os.listdir("/proc"):
            fields = _stat_fields(name) if name.isdigit() else None
            if fields and fields[0] not in (b"Z", b"X"):
                self._parents[int(name)] = int(fields[1])
                self._sessions[int(name)] = int(fields[3])

    def of_session(self, session: int) -> list[int]:
        return [pid for pid, own in self._sessions.items() if own == session]

    def with_descendants(self, pids: list[int]) -> list[int]:
        found = set(pids)
        grown = True
        while grown:
            more = {pid for pid, parent in self._parents.items() if parent in found} - found
            found |= more
            grown = bool(more)
        return list(found)


def _stat_fields(name: str) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the state on: [0] state, [1] parent, [3] session."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].split()
    except OSError:  # it has just gone
        return None


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def send_to_group(leader: int, number: int) -> None:
    """To the group a child leads, or to the child alone while it has not made its group yet."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        send([leader], number)


def reap() -> dict[int, int]:
    """Collect children that have ended, our own and those left to us: pid -> exit code, minus n for signal n."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            ended[pid] = os.waitstatus_to_exitcode(status)


def as_shells_say(code: int) -> int:
    """128 and the signal's number for one that was killed."""
    return code if code >= 0 else 128 - code


def reap_all_below() -> None:
    """Orphans of the workload become our children, also where we are not its first process."""
    if os.getpid() == 1:
        return
    import ctypes  # only here: it would cost every container its memory

    zero, pr_set_child_subreaper = ctypes.c_ulong(0), 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, ctypes.c_ulong(1), zero, zero, zero)


def step_forward() -> None:
    """Said by a child of itself: when memory runs out, it goes before the porter does."""
    try:
        with open("/proc/self/oom_score_adj", "r+", encoding="ascii") as file:
            mine = int(file.read())
            file.seek(0)
            file.write(str(min(1000, mine + _MOST_SPARED)))
    except (OSError, ValueError):
        return


DEFAULTS = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGUSR1,
)
OURS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
