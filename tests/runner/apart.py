"""A worker's own view of the machine, so that what tests do there meets nobody and ends with them.

    the run ── guard ── first process ── worker ── whatever the tests start
               │        └ of a process namespace: takes in who loses its parent; all end with it
               └ ends with the run, and with it the first process: also when the run is killed

In there are a loopback and no other network, an empty /tmp, /run and /dev/shm, cgroups below one that carries the run's
name, and neither programs nor data of the machine's own gpuyard that could be written. As anybody but root there are no
namespaces: then one worker is where it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.runner.runs import CGROUPS

NEW_MOUNTS, NEW_CGROUPS, NEW_IPC, NEW_PROCESSES, NEW_NETWORK = 0x20000, 0x2000000, 0x8000000, 0x20000000, 0x40000000
READ_ONLY, BIND, REMOUNT, RECURSIVE, PRIVATE = 1, 0x1000, 0x20, 0x4000, 0x40000
DETACH = 2  # MNT_DETACH
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
UP_AND_RUNNING, SET_FLAGS = 0x41, 0x8914  # of an interface: IFF_UP | IFF_RUNNING, SIOCSIFFLAGS
NEVER_WRITTEN = ("/usr/local/bin", "/var/lib/gpuyard")
OWN_AND_EMPTY = ("/run", "/dev/shm", "/srv")
OWN_ON_DISK = ("/tmp", "/var/lib/containers", "/var/tmp")
WAY_OUT = "slirp4netns"  # the worker's network ends in this program, which asks the machine as anybody does

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Place:
    """Where a worker is."""

    folder: Path  # of the run's, on the machine
    name: str  # of the run
    keep: tuple[Path, ...]  # is seen inside, wherever it lies
    outside: bool = False  # has a way to the machine's network


def start(work: Callable[[], int], place: Place | None) -> int:
    """Does it in a process of its own, apart if there is a place for it. Returns the pid of what guards it: a SIGINT
    there reaches the work, a SIGKILL ends all that was started."""
    parent = os.getpid()
    if pid := os.fork():
        return pid
    code = 70
    try:
        os.setsid()  # a person's Ctrl-C is for the run, which tells its workers
        die_with_parent(parent)
        code = _guard(work, place) if place else work()
    finally:
        os._exit(code)


def is_possible(place: Place) -> bool:
    """Tried, since machines differ in what they permit."""
    if os.geteuid() != 0:
        return False
    return os.waitstatus_to_exitcode(os.waitpid(start(lambda: 0, place), 0)[1]) == 0


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    _check(_libc.prctl(DIE_WITH_PARENT, number, 0, 0, 0))
    if os.getppid() != parent:  # it had died before
        os.kill(os.getpid(), number)


def _guard(work: Callable[[], int], place: Place) -> int:
    _join_groups(place)
    open_way_out = _way_out() if place.outside else None  # begun before: what is begun later is inside
    _check(_libc.unshare(NEW_PROCESSES))
    seen, inside = socket.socketpair()
    first = os.fork()
    if first == 0:
        code = 70
        try:
            seen.close()
            code = _be_first(work, place, inside)
        finally:
            os._exit(code)
    inside.close()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(first, signal.SIGINT))
    if place.outside and seen.recv(1):
        if open_way_out:
            open_way_out(first)
        seen.send(b"!")
    return _wait_for(first)


def _be_first(work: Callable[[], int], place: Place, guard: socket.socket) -> int:
    _check(_libc.prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0))
    _check(_libc.unshare(NEW_MOUNTS | NEW_CGROUPS | NEW_IPC | NEW_NETWORK))
    _mount("none", "/", flags=RECURSIVE | PRIVATE)
    _show_own_machine(place)
    _bring_up("lo")
    if place.outside:
        guard.send(b"!")
        guard.recv(1)
    guard.close()
    worker = os.fork()
    if worker == 0:
        code = 70
        try:
            code = work()
        finally:
            os._exit(code)
    signal.signal(signal.SIGINT, lambda number, frame: os.kill(worker, signal.SIGINT))
    return _wait_for(worker)


def _wait_for(child: int) -> int:
    """Taking in whoever else ends meanwhile."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return code_of(status)


def code_of(status: int) -> int:
    """As shells tell it: 137 for who was killed."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


# --- what is seen there -------------------------------------------------------------------------------------------


def _show_own_machine(place: Place) -> None:
    where = os.getcwd()
    _mount("proc", "/proc", "proc")
    _show_own_groups()
    resolver = _content("/etc/resolv.conf")  # may be a link to where we put something else
    kept = {path: os.open(path, os.O_PATH) for path in place.keep}
    owned = {path: place.folder / path.strip("/").replace("/", "-") for path in OWN_ON_DISK if os.path.isdir(path)}
    for path, own in owned.items():
        own.mkdir()
        own.chmod(0o1777 if path.endswith("tmp") else 0o755)
    for path, own in sorted(owned.items(), reverse=True):  # /tmp last: there the others lie
        _mount(str(own), path, flags=BIND)
    for path in filter(os.path.isdir, OWN_AND_EMPTY):
        _mount("tmpfs", path, "tmpfs", "mode=1777" if path == "/dev/shm" else "mode=755")
    for path in filter(os.path.isdir, NEVER_WRITTEN):
        _mount(path, path, flags=BIND)
        _mount("none", path, flags=BIND | REMOUNT | READ_ONLY)
    for wanted, shown in kept.items():
        if any(wanted.is_relative_to(hidden) for hidden in (*OWN_ON_DISK, *OWN_AND_EMPTY)):
            wanted.mkdir(parents=True, exist_ok=True)
            _mount(f"/proc/self/fd/{shown}", str(wanted), flags=BIND | RECURSIVE)
        os.close(shown)
    os.makedirs("/run/lock", exist_ok=True)
    if resolver and not os.path.exists("/etc/resolv.conf"):
        Path(os.path.realpath("/etc/resolv.conf")).parent.mkdir(parents=True, exist_ok=True)
        Path(os.path.realpath("/etc/resolv.conf")).write_bytes(resolver)
    os.chdir(where)  # as it is seen now


def _content(path: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(path).read_bytes()
    return b""


def _bring_up(interface: str) -> None:
    with socket.socket() as asking:
        fcntl.ioctl(asking, SET_FLAGS, struct.pack("16sH22x", interface.encode(), UP_AND_RUNNING))


def _way_out() -> Callable[[int], object] | None:
    """A process that will be the way out of this process's network; None where the program for it is missing, and then
    the tests that need it say so."""
    if (program := shutil.which(WAY_OUT)) is None:
        return None
    (asked, ask), (ready, told), guard = os.pipe(), os.pipe(), os.getpid()
    if os.fork() == 0:
        try:
            die_with_parent(guard)
            os.set_inheritable(told, True)
            first = os.read(asked, 32).decode()
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(quiet, number)
            os.execv(program, [program, "--configure", "--mtu=1500", f"--ready-fd={told}", first, "tap0"])
        finally:
            os._exit(1)
    os.close(told)

    def open_to(first: int) -> None:
        os.write(ask, str(first).encode())
        os.read(ready, 1)  # or it has ended

    return open_to


# --- cgroups ------------------------------------------------------------------------------------------------------


def _is_unified() -> bool:
    return (CGROUPS / "cgroup.controllers").exists()


def _join_groups(place: Place) -> None:
    """A group below our own under every controller."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        top = _top_of(controllers)
        if top is None:
            continue
        group = Path(f"{top}{path.rstrip('/')}", place.name, place.folder.name)
        group.mkdir(parents=True, exist_ok=True)
        if "cpuset" in controllers.split(","):
            _copy_cpuset(group.parent)
            _copy_cpuset(group)
        group.joinpath("cgroup.procs").write_text("0")


def _top_of(controllers: str) -> Path | None:
    """Where they are seen: version 2 is at the top, or beside the others."""
    if not controllers:
        return next((top for top in (CGROUPS, CGROUPS / "unified") if (top / "cgroup.procs").exists()), None)
    name = controllers.removeprefix("name=")
    return next((CGROUPS / one for one in (name, *name.split(",")) if (CGROUPS / one / "cgroup.procs").exists()), None)


def _copy_cpuset(group: Path) -> None:
    """Version 1: nobody can be in a new group before it is told which processors and memory it has."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        group.joinpath(name).write_text(group.parent.joinpath(name).read_text())


def _show_own_groups() -> None:
    """The namespace's top is our own group. In version 2 a group that has groups with limits may have no members, so
    we go one further down."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        path, (system, source, options) = fields.split()[4], kind.split()[:3]
        if system in ("cgroup", "cgroup2"):
            _check(_libc.umount2(path.encode(), DETACH), path)
        if system == "cgroup2":
            _mount("cgroup2", path, "cgroup2")
        elif system == "cgroup":
            wanted = [one for one in options.split(",") if one not in ("rw", "ro", "clone_children", "xattr")]
            _mount(source, path, "cgroup", ",".join(["none"] * ("name=" in options) + wanted))
    if _is_unified():
        own = CGROUPS / "worker"
        own.mkdir()
        own.joinpath("cgroup.procs").write_text("0")


def cpu_seconds() -> float:
    """Used by all that was ever started here; 0 where nobody counts."""
    if os.getpid() > 2:  # not apart: others would be counted, too
        return 0.0
    with contextlib.suppress(OSError):
        return int((CGROUPS / "cpuacct" / "cpuacct.usage").read_text()) / 1e9
    with contextlib.suppress(OSError, ValueError):
        lines = (CGROUPS / "cpu.stat").read_text().split()
        return int(lines[lines.index("usage_usec") + 1]) / 1e6
    return 0.0


# --- the kernel ---------------------------------------------------------------------------------------------------


def _mount(source: str, target: str, kind: str = "", options: str = "", flags: int = 0) -> None:
    words = (source, target, kind)
    done = _libc.mount(*(word.encode() or None for word in words), ctypes.c_ulong(flags), options.encode() or None)
    _check(done, target)


def _check(code: int, what: str = "") -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
