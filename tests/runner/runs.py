"""A run has a name, and all it makes carries it: its folder, its cgroups, what its processes find in their environment.

A run is gone when nobody holds its lock, however it ended. The next run clears after those that are gone, and only
after them: two runs on one machine never meet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PREFIX = "yard-run-"
VARIABLE = "GPUYARD_TEST_RUN"
CGROUPS = Path("/sys/fs/cgroup")
PATIENCE_SECONDS = 60.0
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


@dataclass(frozen=True)
class Run:
    name: str
    folder: Path
    lock: int  # an open file, locked as long as the run lives

    def end(self) -> None:
        """Nothing of it is left. Its lock goes last: until then nobody else clears."""
        clear(self.name, self.folder)
        os.unlink(_lock_of(self.folder))
        os.close(self.lock)


def home() -> Path:
    """Where the folders of runs are."""
    return Path(tempfile.gettempdir()).resolve()


def begin() -> Run:
    while True:
        name = PREFIX + "".join(secrets.choice(_LETTERS) for _ in range(5))
        folder = home() / name
        if folder.exists() or (lock := _locked(_lock_of(folder), make=True)) is None:
            continue
        folder.mkdir(mode=0o711)  # people in containers go through it, and see nothing
        os.environ[VARIABLE] = name
        return Run(name, folder, lock)


def clear_gone() -> list[str]:
    """After all runs of ours that are gone. Returns their names."""
    cleared = []
    for found in sorted(home().glob(f"{PREFIX}*.lock")):
        folder = found.with_suffix("")
        if not _is_own(found) or (lock := _locked(found, make=False)) is None:
            continue
        clear(folder.name, folder)
        found.unlink(missing_ok=True)
        os.close(lock)
        cleared.append(folder.name)
    return cleared


def clear(name: str, folder: Path) -> None:
    """All that carries this name."""
    deadline, spared = time.monotonic() + PATIENCE_SECONDS, _our_own_line()
    while pids := _processes_of(name, folder) - spared:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of the run {name} do not end: {pids}")
        time.sleep(0.02)
    for mounted in sorted(_mounts_below(folder), reverse=True):
        subprocess.run(["umount", mounted], check=True, capture_output=True)  # or what is shown there would be removed
    for group in groups_of(name):
        _remove_group(group, deadline)
    for place in (folder, *Path("/dev/shm").glob(f"{name}-*")):
        shutil.rmtree(place, onerror=_open_and_again)


def _lock_of(folder: Path) -> Path:
    return folder.with_suffix(".lock")


def _locked(path: Path, *, make: bool) -> int | None:
    """The open and locked file, or None when somebody else has it, or took it away meanwhile."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT | os.O_EXCL if make else 0), 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(file).st_ino:
            return file
    except OSError:
        pass
    os.close(file)
    return None


def _is_own(path: Path) -> bool:
    """Anybody may write where the folders are."""
    with contextlib.suppress(OSError):
        known = path.lstat()
        return stat.S_ISREG(known.st_mode) and known.st_uid == os.geteuid()
    return False


# --- what carries the name ----------------------------------------------------------------------------------------


def _processes_of(name: str, folder: Path) -> set[int]:
    """By their cgroup, their environment, or what they were started with."""
    marks = (f"{VARIABLE}={name}".encode(), os.fsencode(folder))
    found = {pid for group in groups_of(name) for pid in _members(group)}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) not in found:
            with contextlib.suppress(OSError):
                place = Path(entry.path)
                told = place.joinpath("environ").read_bytes() + place.joinpath("cmdline").read_bytes()
                if (
                    any(mark in told for mark in marks)
                    and place.joinpath("stat").read_text().rpartition(") ")[2][0] != "Z"
                ):
                    found.add(int(entry.name))
    return found


def _our_own_line() -> set[int]:
    """Ourselves and those who started us: a run that clears after itself has the name, too."""
    line, pid = set(), os.getpid()
    while pid > 0 and pid not in line:
        line.add(pid)
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
        except OSError:
            break
    return line


def groups_of(name: str) -> list[Path]:
    """Its cgroups, one under every controller."""
    return [Path(top, inner) for top, folders, _ in os.walk(CGROUPS) for inner in folders if inner == name]


def _members(group: Path) -> Iterator[int]:
    for top, _, _ in os.walk(group):
        with contextlib.suppress(OSError):
            yield from map(int, Path(top, "cgroup.procs").read_text().split())


def _remove_group(group: Path, deadline: float) -> None:
    """The kernel keeps a group for a moment after its last member is gone."""
    for top, _, _ in os.walk(group, topdown=False):
        while os.path.isdir(top):
            try:
                os.rmdir(top)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [place for place in places if Path(place).is_relative_to(folder)]


def _open_and_again(function: object, path: str, problem: object) -> None:
    """A test may have closed a folder to itself; what cannot be removed even so stays for the next run."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
