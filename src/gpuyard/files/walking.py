"""Going through a folder that belongs to users, who may change it at the same moment.

No link is ever followed and nothing is opened that could make us wait: each entry is held by an open file that can do
nothing but name it (O_PATH), and is looked at and changed through that, never by its name again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_DEPTH = 200  # deeper ones stay as they are: each level keeps a file open

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

Visit = Callable[[str, os.stat_result], None]
"""Called with a path that means this very entry, whatever its name means by now, and with what it is."""


@contextmanager
def opened(path: str | Path, inside: int | None = None) -> Iterator[int]:
    """A folder, not a link to one."""
    folder = os.open(path, _FOLDER, dir_fd=inside)
    try:
        yield folder
    finally:
        os.close(folder)


def path_of(fd: int) -> str:
    return f"/proc/self/fd/{fd}"


def go_through(top: int, visit: Visit, *, is_over: Callable[[], bool] = lambda: False) -> int:
    """Visit the folder and everything below, folders before what is in them: what is made in one meanwhile finds it
    changed already. Entries that are gone meanwhile, or that somebody made so that they cannot be changed, keep
    nobody else's from being visited; says how many stayed as they were."""
    visit(path_of(top), os.fstat(top))
    waiting = [(os.dup(top), os.listdir(top))]
    stayed = 0
    try:
        while waiting and not is_over():
            folder, names = waiting[-1]
            if not names:
                waiting.pop()
                os.close(folder)
                continue
            inner, done = _visit_one(folder, names.pop(), visit, deeper=len(waiting) < MAX_DEPTH)
            stayed += not done
            if inner is not None:
                waiting.append((inner, _names(inner)))
    finally:
        for folder, _ in waiting:
            os.close(folder)
    return stayed


def _visit_one(folder: int, name: str, visit: Visit, *, deeper: bool) -> tuple[int | None, bool]:
    """The open folder when it is one to go on with, and whether all went well."""
    try:
        entry = os.open(name, _LOOK, dir_fd=folder)
    except OSError as problem:
        return None, isinstance(problem, FileNotFoundError)
    try:
        seen = os.fstat(entry)
        is_folder = stat.S_ISDIR(seen.st_mode)
        done = _visited(entry, seen, visit) and (deeper or not is_folder)
        return (_look_into(entry) if is_folder and deeper else None), done
    finally:
        os.close(entry)


def _visited(entry: int, seen: os.stat_result, visit: Visit) -> bool:
    try:
        visit(path_of(entry), seen)
    except OSError as problem:
        return isinstance(problem, FileNotFoundError)
    return True


def _look_into(entry: int) -> int | None:
    try:
        return os.open(path_of(entry), _FOLDER & ~os.O_NOFOLLOW)
    except OSError:
        return None


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it was removed meanwhile, or its disk does not answer
        return []
