"""A replica's cgroup: how much it may use, who is in it, and how to end all of them at once. Versions 1 and 2.

A group is described by plain data, so that it can be written into the request and found again by any later process:
`{"version": 1, "dirs": {"freezer": ..., "memory": ...}}` or `{"version": 2, "dirs": {"unified": ...}}`.
"""

from __future__ import annotations

import errno
import os
import signal
import time

from . import processes

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from typing import Any

PARENT = "gpuyard"
_V1_CONTROLLERS = ("freezer", "pids", "memory", "cpu", "cpuacct")
_V2_CONTROLLERS = ("memory", "pids", "cpu")
_NO_LIMIT = 1 << 62


class Group:
    """One cgroup. What differs between the versions is in the two classes below."""

    def __init__(self, dirs: dict[str, str]) -> None:
        self.dirs = dirs

    def make(self, memory: int, pids: int, cpu_milli: int) -> None:
        """Create it with its limits. Memory and processes are hard; cpu is a weight, so that idle cores are used."""
        raise NotImplementedError

    def kill(self) -> bool:
        """Kill everybody in it. True once it is empty."""
        raise NotImplementedError

    def free_cpu(self) -> None:
        """Lift its limit of cpu time: also who dies needs some, and thousands would share a fraction of a core."""
        raise NotImplementedError

    def oom_kills(self) -> int:
        raise NotImplementedError

    def usage(self) -> tuple[float, int, int]:
        """Seconds of cpu, bytes of memory that cannot simply be dropped, number of processes."""
        raise NotImplementedError

    def join(self) -> None:
        """Put the calling process, and all it will fork, into the group."""
        for folder in self.dirs.values():
            _put(folder, "cgroup.procs", "0")

    def pids(self) -> list[int]:
        return [int(line) for line in _lines(next(iter(self.dirs.values())), "cgroup.procs")]

    def remove(self) -> bool:
        """Take the folders away. False while the kernel still holds one."""
        left = [folder for folder in self.dirs.values() if not _remove(folder)]
        return not left


class GroupV1(Group):
    def make(self, memory: int, pids: int, cpu_milli: int) -> None:
        for folder in self.dirs.values():
            os.makedirs(folder, exist_ok=True)
        if "memory" in self.dirs and memory:
            _put(self.dirs["memory"], "memory.limit_in_bytes", str(memory))
            _put_if_there(self.dirs["memory"], "memory.memsw.limit_in_bytes", str(memory))
        if "pids" in self.dirs and pids:
            _put(self.dirs["pids"], "pids.max", str(pids))
        if "cpu" in self.dirs and cpu_milli:
            _put(self.dirs["cpu"], "cpu.shares", str(_shares(cpu_milli)))

    def kill(self) -> bool:
        """Freeze, so that nobody forks while we read the list; a thawed process finds its SIGKILL waiting."""
        if not self.pids():
            return True
        freezer = self.dirs["freezer"]
        if not _put_if_there(freezer, "freezer.state", "FROZEN"):
            return True
        for _ in range(20):
            if _lines(freezer, "freezer.state") != ["FREEZING"]:
                break
            time.sleep(0.001)
        processes.send(self.pids(), signal.SIGKILL)
        _put_if_there(freezer, "freezer.state", "THAWED")
        return not self.pids()

    def free_cpu(self) -> None:
        if "cpu" in self.dirs:
            _put_if_there(self.dirs["cpu"], "cpu.cfs_quota_us", "-1")

    def oom_kills(self) -> int:
        return _table(self.dirs.get("memory"), "memory.oom_control").get("oom_kill", 0)

    def usage(self) -> tuple[float, int, int]:
        cpu = _number(self.dirs.get("cpuacct"), "cpuacct.usage") / 1e9
        memory = _number(self.dirs.get("memory"), "memory.usage_in_bytes")
        cache = _table(self.dirs.get("memory"), "memory.stat").get("total_inactive_file", 0)
        return cpu, max(0, memory - cache), len(self.pids())


class GroupV2(Group):
    @property
    def folder(self) -> str:
        return self.dirs["unified"]

    def make(self, memory: int, pids: int, cpu_milli: int) -> None:
        parent = os.path.dirname(self.folder)
        os.makedirs(parent, exist_ok=True)
        for level in (os.path.dirname(parent), parent):
            _put(level, "cgroup.subtree_control", " ".join(f"+{name}" for name in _V2_CONTROLLERS))
        os.makedirs(self.folder, exist_ok=True)
        if memory:
            _put(self.folder, "memory.max", str(memory))
            _put_if_there(self.folder, "memory.swap.max", "0")
        if pids:
            _put(self.folder, "pids.max", str(pids))
        if cpu_milli:
            _put(self.folder, "cpu.weight", str(_weight(cpu_milli)))

    def kill(self) -> bool:
        if not self.pids():
            return True
        if not _put_if_there(self.folder, "cgroup.kill", "1"):  # before Linux 5.14
            _put_if_there(self.folder, "cgroup.freeze", "1")
            processes.send(self.pids(), signal.SIGKILL)
            _put_if_there(self.folder, "cgroup.freeze", "0")
        return not self.pids()

    def free_cpu(self) -> None:
        _put_if_there(self.folder, "cpu.max", "max")

    def oom_kills(self) -> int:
        return _table(self.folder, "memory.events").get("oom_kill", 0)

    def usage(self) -> tuple[float, int, int]:
        cpu = _table(self.folder, "cpu.stat").get("usage_usec", 0) / 1e6
        cache = _table(self.folder, "memory.stat").get("inactive_file", 0)
        return cpu, max(0, _number(self.folder, "memory.current") - cache), len(self.pids())


def open_group(description: dict[str, Any]) -> Group:
    return (GroupV2 if description["version"] == 2 else GroupV1)(description["dirs"])


def find_parent(root: str, own_path: str) -> dict[str, Any] | None:
    """Where this machine lets us make groups, or None. On version 1 below our own group, so that a server that is
    itself limited keeps its jobs within that limit; on version 2, where a group with processes cannot have limited
    children, at the top."""
    try:
        if os.path.exists(os.path.join(root, "cgroup.controllers")):
            return _parent_v2(root)
        return _parent_v1(root, own_path)
    except OSError:
        return None


def _parent_v2(root: str) -> dict[str, Any] | None:
    offered = " ".join(_lines(root, "cgroup.controllers")).split()
    if not set(_V2_CONTROLLERS) <= set(offered):
        return None
    parent = os.path.join(root, PARENT)
    os.makedirs(parent, exist_ok=True)
    return {"version": 2, "dirs": {"unified": parent}} if os.access(parent, os.W_OK) else None


def _parent_v1(root: str, own_path: str) -> dict[str, Any] | None:
    own = own_groups(own_path)
    dirs = {}
    for controller in _V1_CONTROLLERS:
        top = os.path.join(root, controller)
        if not os.path.isdir(top):
            continue
        nested = top + own.get(controller, "/").rstrip("/")
        parent = os.path.join(nested if os.path.isdir(nested) else top, PARENT)
        os.makedirs(parent, exist_ok=True)
        if os.access(parent, os.W_OK):
            dirs[controller] = parent
    return {"version": 1, "dirs": dirs} if "freezer" in dirs else None


def own_groups(own_path: str) -> dict[str, str]:
    """Controller -> our own group's path; version 2 is under the empty name."""
    with open(own_path, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(":", 2) for line in file]
    return {name: path for _, names, path in lines for name in names.split(",")}


def below(parent: dict[str, Any], name: str) -> dict[str, Any]:
    return {"version": parent["version"], "dirs": {key: os.path.join(top, name) for key, top in parent["dirs"].items()}}


def names_below(parent: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    for top in parent["dirs"].values():
        found |= {entry.name for entry in os.scandir(top) if entry.is_dir(follow_symlinks=False)}
    return found


def memory_limit(root: str, own_path: str) -> int | None:
    """The least memory limit that holds for this process itself, from its own group up."""
    own = own_groups(own_path)
    unified = os.path.exists(os.path.join(root, "cgroup.controllers"))
    top, name = (root, "memory.max") if unified else (os.path.join(root, "memory"), "memory.limit_in_bytes")
    path = own.get("" if unified else "memory", "/")
    limits = []
    while True:
        text = "".join(_lines(top + path.rstrip("/"), name))
        if text.isdigit() and int(text) < _NO_LIMIT:
            limits.append(int(text))
        if path in ("/", ""):
            return min(limits, default=None)
        path = os.path.dirname(path)


def _shares(cpu_milli: int) -> int:
    return max(2, min(262_144, cpu_milli * 1024 // 1000))


def _weight(cpu_milli: int) -> int:
    """Version 2's 1..10000 for version 1's 2..262144, as every container runtime maps them."""
    return 1 + (_shares(cpu_milli) - 2) * 9999 // 262_142


def _put(folder: str, name: str, value: str) -> None:
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, value.encode())
    finally:
        os.close(fd)


def _put_if_there(folder: str, name: str, value: str) -> bool:
    """False when there is no such file, or the group has just been removed."""
    try:
        _put(folder, name, value)
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENODEV):
            raise
        return False
    return True


def _lines(folder: str | None, name: str) -> list[str]:
    """The lines of a control file; none when the group is gone."""
    if folder is None:
        return []
    try:
        with open(os.path.join(folder, name), encoding="ascii", errors="replace") as file:
            return file.read().split("\n")[:-1]
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENODEV, errno.EACCES):
            raise
        return []


def _number(folder: str | None, name: str) -> int:
    text = "".join(_lines(folder, name))
    return int(text) if text.isdigit() else 0


def _table(folder: str | None, name: str) -> dict[str, int]:
    pairs = [line.split() for line in _lines(folder, name)]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _remove(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
