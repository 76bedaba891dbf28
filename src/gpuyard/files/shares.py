"""The shared folders of groups, as far as people and not engines change them: one moved into another.

What lies in them belongs to users, who may change it at the same moment: no link is ever followed, and only what
already belonged to the group is given to the other.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuyard.domain.people import NAME_RULE

log = logging.getLogger(__name__)

MODE = 0o2770
MAX_DEPTH = 200  # deeper ones stay as they are: each level keeps a file open

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LISTS = (errno.ENOTSUP, errno.ENOSYS)


class ShareNotMoved(Exception):
    """Why a shared folder stays where it is. Nothing was changed."""


class Shares:
    """The folders below `root`, one per group, made by the engine on first use or here."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def fold_in(self, source: str, target: str, gids: tuple[int, int], *, in_use: bool) -> bool:
        """Move the source's folder to TARGET/SOURCE and give it from the first group number to the second.

        Work that runs goes on with the folder it has; while there is some (`in_use`) its number keeps its rights there.
        False: this server has no shared folders. Raises ShareNotMoved.
        """
        if not self.root.is_dir():
            return False
        if not NAME_RULE.fullmatch(source) or not NAME_RULE.fullmatch(target):
            raise ShareNotMoved("odd name")
        old, new = gids
        try:
            with _opened(self.root) as root:
                _make(root, source, old)
                _make(root, target, new)
                with _opened(source, root) as folder, _opened(target, root) as place:
                    keeps = in_use and _is_root() and old != new
                    if keeps and not _has_access_lists(folder):
                        raise ShareNotMoved("work still uses it, and this file system keeps no access lists")
                    _move(root, source, place)
                    if _is_root() and old != new:
                        _give(folder, old, new, keeps=keeps)
        except OSError as error:
            raise ShareNotMoved(error.strerror or str(error)) from error
        return True


def _is_root() -> bool:
    return os.geteuid() == 0


@contextmanager
def _opened(path: str | Path, inside: int | None = None) -> Iterator[int]:
    folder = os.open(path, _FOLDER, dir_fd=inside)
    try:
        yield folder
    finally:
        os.close(folder)


def _make(root: int, name: str, gid: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=root)
    except FileExistsError:
        return
    with _opened(name, root) as folder:
        if _is_root():
            os.fchown(folder, 0, gid)
        os.fchmod(folder, MODE)


def _move(root: int, source: str, place: int) -> None:
    """In one step. Whatever has the name in the target already stays."""
    try:
        os.stat(source, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, source, src_dir_fd=root, dst_dir_fd=place)
        return
    raise ShareNotMoved("the other share has something of that name already")


# --- whose it is --------------------------------------------------------------------------------------------------


def _give(top: int, old: int, new: int, *, keeps: bool) -> None:
    """Everything below, from one group number to the other. A folder is given before it is looked into, so that what
    is made in it meanwhile belongs to the new one by itself. Entries that are gone meanwhile, or that somebody made so
    that they cannot be given, keep nobody else's from being given."""
    _give_one(top, old, new, keeps=keeps)
    waiting = [(os.dup(top), os.listdir(top))]
    stayed = 0
    try:
        while waiting:
            folder, names = waiting[-1]
            if not names:
                waiting.pop()
                os.close(folder)
                continue
            try:
                inner = _look_into(folder, names.pop(), old, new, keeps=keeps, deeper=len(waiting) < MAX_DEPTH)
            except FileNotFoundError:
                continue
            except OSError:
                stayed += 1
                continue
            if inner is not None:
                waiting.append((inner, os.listdir(inner)))
    finally:
        for folder, _ in waiting:
            os.close(folder)
    if stayed:
        log.warning("%d entries of a shared folder could not wholly be given to group number %d", stayed, new)


def _look_into(folder: int, name: str, old: int, new: int, *, keeps: bool, deeper: bool) -> int | None:
    """Give one entry; the open folder when it is one to go on with."""
    entry = os.open(name, _LOOK, dir_fd=folder)
    try:
        mode = os.fstat(entry).st_mode
        if stat.S_ISLNK(mode):
            return None
        _give_one(entry, old, new, keeps=keeps)
        return os.open(f"/proc/self/fd/{entry}", _FOLDER & ~os.O_NOFOLLOW) if stat.S_ISDIR(mode) and deeper else None
    finally:
        os.close(entry)


def _give_one(entry: int, old: int, new: int, *, keeps: bool) -> None:
    """By its open file, not by its name: the name may mean something else by now."""
    seen = os.fstat(entry)
    if seen.st_gid != old:
        return
    path = f"/proc/self/fd/{entry}"
    os.chown(path, -1, new)
    if keeps and (stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode)):
        _let_in(path, seen, old)


# --- access lists: the group number that running work has keeps its rights ----------------------------------------

_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 0x01, 0x04, 0x08, 0x10, 0x20
_NOBODY = 0xFFFFFFFF
_VERSION, _ENTRY = 2, struct.Struct("<HHI")  # as the kernel keeps them: tag, rights, who


def _has_access_lists(folder: int) -> bool:
    try:
        os.getxattr(folder, _ACCESS)
    except OSError as error:
        return error.errno not in _NO_LISTS
    return True


def _let_in(path: str, seen: os.stat_result, gid: int) -> None:
    """Beside whoever may use it already, with the rights that the file's own group has."""
    rights = _rights(path) or _rights_by_mode(seen.st_mode)
    group = rights[_GROUP, _NOBODY]
    rights[_NAMED_GROUP, gid] = group
    rights.setdefault((_MASK, _NOBODY), group)
    entries = sorted((tag, who, right) for (tag, who), right in rights.items())
    written = struct.pack("<I", _VERSION) + b"".join(_ENTRY.pack(tag, right, who) for tag, who, right in entries)
    os.setxattr(path, _ACCESS, written)
    if stat.S_ISDIR(seen.st_mode):
        os.setxattr(path, _DEFAULT, written)


def _rights(path: str) -> dict[tuple[int, int], int]:
    try:
        written = os.getxattr(path, _ACCESS)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return {}
    return {(tag, who): right for tag, right, who in _ENTRY.iter_unpack(written[4:])}


def _rights_by_mode(mode: int) -> dict[tuple[int, int], int]:
    return {(_USER, _NOBODY): mode >> 6 & 7, (_GROUP, _NOBODY): mode >> 3 & 7, (_OTHER, _NOBODY): mode & 7}
