"""The folder of the journal: its segments in order, and the bound on what they take."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_NAME = re.compile(r"(\d{8,})-(\d{1,11})\.journal\Z")
DAY = 86400.0


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    number: int
    begun: float  # whole seconds; what it says of itself first is exact
    path: Path

    @property
    def size(self) -> int:
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile by the one who writes
            return self.path.stat().st_size
        return 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that is kept, and how large a segment grows before the next is begun."""

    bytes: int = 1 << 30
    days: float = 90.0  # 0: no bound
    segment_bytes: int = 16 << 20
    segment_seconds: float = DAY
    spare_bytes: int = 256 << 20  # where less is left on the disk no segment is begun: the database comes first


def segments(folder: Path) -> list[Segment]:
    """The oldest first. Only files: a link, a pipe or a folder of such a name is nothing that was written here."""
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = _NAME.match(path.name)
        if match and _is_file(path):
            found.append(Segment(int(match[1]), float(match[2]), path))
    return sorted(found)


def _is_file(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def next_path(folder: Path, now: float) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = segments(folder)
    number = known[-1].number + 1 if known else 1
    return folder / f"{number:08d}-{max(0, int(now))}.journal"


def require_room(folder: Path, bounds: Bounds) -> None:
    if shutil.disk_usage(folder).free < bounds.spare_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def too_many(found: list[Segment], bounds: Bounds, now: float) -> Iterator[Segment]:
    """Those that have to go, the oldest first; never the newest. A segment is as old as the next one's beginning."""
    left = sum(segment.size for segment in found)
    for segment, following in pairwise(found):
        old = bounds.days > 0 and following.begun < now - bounds.days * DAY
        if left <= bounds.bytes and not old:
            return
        left -= segment.size
        yield segment


def keep_bounds(folder: Path, bounds: Bounds, now: float) -> None:
    for segment in list(too_many(segments(folder), bounds, now)):
        segment.path.unlink(missing_ok=True)
