"""Who holds a device file open. One walk through /proc answers for all files at once."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from gpuyard.domain.workload import ReplicaId

_FIRST_USER_UID = 1000
_MOST_FILES = 100_000  # of one process; more than any job may open, so none hides behind the rest
# Services that keep every card open and use none: monitoring and the driver's own. They count only as such when they do
# not run as an ordinary user, so that nobody hides behind their names (which the kernel cuts at 15 characters).
_BYSTANDERS = frozenset(
    (
        "nvidia-persiste",
        "nvidia-powerd",
        "nvidia-smi",
        "nv-hostengine",
        "dcgm-exporter",
        "nvtop",
        "Xorg",
        "npu-smi",
        "dmp_daemon",
        "log-daemon",
    )
)


@dataclass(frozen=True, slots=True)
class Holder:
    pid: int
    command: str
    uid: int
    replica: ReplicaId | None = None  # whose process it is, where it is known to be of work of ours

    def __str__(self) -> str:
        of = f" of {self.replica.workload} ({self.replica.short})" if self.replica is not None else ""
        return f"pid {self.pid} ({self.command}, user {_user(self.uid)}){of}"


def find_holders(paths: Iterable[str]) -> dict[str, list[Holder]]:
    """path -> processes that have it open. A device is known by its number, wherever its node lies."""
    wanted = {key: path for path in paths if (key := _key(path)) is not None}
    names = {os.path.basename(path) for path in wanted.values()}
    found: dict[str, list[Holder]] = {}
    if not wanted:
        return found
    own = os.getpid()
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        for path in _held_by(pid, names, wanted) if pid != own else ():
            holder = describe(pid)
            if holder is not None and not _is_bystander(holder):
                found.setdefault(path, []).append(holder)
    return found


def _held_by(pid: int, names: set[str], wanted: dict[tuple[int, int], str]) -> set[str]:
    """Only links whose name may be meant are looked at closer: asking a file on a hung disk would hang."""
    held: set[str] = set()
    try:
        folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # gone, or not ours to look at
        return held
    try:
        for number in os.listdir(folder)[:_MOST_FILES]:
            path = _held_at(folder, number, names, wanted)
            if path is not None:
                held.add(path)
    except OSError:
        return held
    finally:
        os.close(folder)
    return held


def _held_at(folder: int, number: str, names: set[str], wanted: dict[tuple[int, int], str]) -> str | None:
    """A file whose mount is gone, with the room in which it was opened, has lost its name: the link says `/`."""
    try:
        goal = os.readlink(number, dir_fd=folder)
        if goal != "/" and goal.rpartition("/")[2].removesuffix(" (deleted)") not in names:
            return None
        return wanted.get(_identity(os.stat(number, dir_fd=folder)))
    except OSError:
        return None


def _key(path: str) -> tuple[int, int] | None:
    try:
        return _identity(os.stat(path))
    except OSError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    if stat.S_ISCHR(found.st_mode):
        return -1, found.st_rdev
    return found.st_dev, found.st_ino


def describe(pid: int) -> Holder | None:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return Holder(pid, file.read().strip(), os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        return None


def _is_bystander(holder: Holder) -> bool:
    return holder.uid < _FIRST_USER_UID and holder.command in _BYSTANDERS


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
