"""Where things are kept that take long to get for the tests: outside the repository, for every clone on this machine.

Each is a folder named by what it is made of. It is made beside its place and gets its name when it is whole, so what
has the name may be used, whoever made it. Locks tell who makes or uses it; a process that is killed lets go of its own.
All of it may be deleted between runs, and is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

UNUSED_SECONDS = 24 * 3600.0  # so long older content stays: clones at two versions take turns


def _home() -> Path:
    chosen = os.environ.get("GPUYARD_TEST_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpuyard-tests"
    return Path(chosen).absolute() if chosen else usual


HOME = _home()
_used: dict[str, int] = {}  # the locks that this process holds until it ends


@dataclass(frozen=True)
class Entry:
    kind: str
    made_of: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind}-{hashlib.sha256(json.dumps(self.made_of).encode()).hexdigest()[:12]}"

    @property
    def place(self) -> Path:
        return HOME / self.name

    def taken(self) -> Path | None:
        """Its folder, which nobody removes while this process lives; None when there is none. Whoever is just making it
        is waited for."""
        if self.name in _used:
            return self.place
        with _locked(self.name, fcntl.LOCK_SH) as lock:
            if not self.place.is_dir():
                return None
            os.utime(lock.fileno())
            _used[self.name] = os.dup(lock.fileno())  # the same lock
        return self.place

    def made(self, fill: Callable[[Path], None]) -> Path:
        """The same, filled now if there is none: once, however many ask."""
        while (place := self.taken()) is None:
            with _locked(self.name, fcntl.LOCK_EX):
                if not self.place.is_dir():
                    self._make(fill)
        return place

    def _make(self, fill: Callable[[Path], None]) -> None:
        _remove_parts(self.name)
        part = _new_part(self.name)
        try:
            fill(part)
            part.rename(self.place)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def bytes_so_far(self) -> int:
        """Of what is being made; some of it goes while it is counted."""
        size = 0
        for folder, _, names in (found for part in _parts(self.name) for found in os.walk(part)):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    size += os.lstat(os.path.join(folder, name)).st_size
        return size


def sweep(kind: str) -> None:
    """Remove what killed makers left, and older content that nobody uses or has used for a day."""
    ours = re.compile(rf"\.?({re.escape(kind)}-[0-9a-f]{{12}})(\..*)?")
    names = {found[1] for path in HOME.iterdir() if (found := ours.fullmatch(path.name))}
    for name in names - _used.keys():
        with contextlib.suppress(BlockingIOError), _locked(name, fcntl.LOCK_EX | fcntl.LOCK_NB) as lock:
            _sweep_one(name, time.time() - os.fstat(lock.fileno()).st_mtime)


def _sweep_one(name: str, unused_seconds: float) -> None:
    """While nobody else can make or use it."""
    place = HOME / name
    if place.is_dir() and unused_seconds > UNUSED_SECONDS:
        place.rename(_new_part(name) / name)  # at once: who is killed while removing leaves nothing half there
    _remove_parts(name)
    if not place.is_dir():
        _lock_file(name).unlink(missing_ok=True)


def _lock_file(name: str) -> Path:
    return HOME / f".{name}.lock"


def _locked(name: str, how: int) -> IO[str]:
    """The open lock; closing it lets go. `BlockingIOError` when others hold it and one does not want to wait."""
    HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
    file = _lock_file(name)
    while True:
        lock = file.open("a", encoding="ascii")
        try:
            fcntl.flock(lock, how)
            if os.path.samestat(os.fstat(lock.fileno()), file.stat()):
                return lock
        except FileNotFoundError:
            pass
        except BlockingIOError:
            lock.close()
            raise
        lock.close()  # it was removed together with what it stood for


def _new_part(name: str) -> Path:
    """Never one that was there before: commands of a killed maker may still be writing into theirs."""
    part = Path(tempfile.mkdtemp(prefix=f".{name}.", suffix=".part", dir=HOME))
    part.chmod(0o755)
    return part


def _parts(name: str) -> list[Path]:
    return list(HOME.glob(f".{name}.*.part"))


def _remove_parts(name: str) -> None:
    for part in _parts(name):
        shutil.rmtree(part, ignore_errors=True)
