"""Who holds a device file open. One walk through /proc answers for all files at once."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass

_FIRST_USER_UID = 1000
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

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command}, user {_user(self.uid)})"


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
            holder = _describe(pid)
            if holder is not None and not _is_bystander(holder):
                found.setdefault(path, []).append(holder)
    return found


def _held_by(pid: int, names: set[str], wanted: dict[tuple[int, int], str]) -> set[str]:
    """Only links with the right last name are looked at closer: asking a file on a hung disk would hang."""
    folder = f"/proc/{pid}/fd"
    held: set[str] = set()
    try:
        numbers = os.listdir(folder)
    except OSError:  # gone, or not ours to look at
        return held
    for number in numbers:
        link = f"{folder}/{number}"
        try:
            goal = os.readlink(link)
            if os.path.basename(goal.removesuffix(" (deleted)")) in names:
                path = wanted.get(_identity(os.stat(link)))
                if path is not None:
                    held.add(path)
        except OSError:
            continue
    return held


def _key(path: str) -> tuple[int, int] | None:
    try:
        return _identity(os.stat(path))
    except OSError:
        return None


def _identity(found: os.stat_result) -> tuple[int, int]:
    if stat.S_ISCHR(found.st_mode):
        return -1, found.st_rdev
    return found.st_dev, found.st_ino


def _describe(pid: int) -> Holder | None:
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
