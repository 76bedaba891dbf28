"""Takes away a folder that a user filled, however deep, odd or hostile: no link is followed, no depth is too deep.

Whoever still holds one of the folders open may change it meanwhile. As root, each folder is taken from its owner before
it is looked into; what was lost to somebody faster is looked at again, for a bounded number of rounds.
"""

from __future__ import annotations

import errno
import os
import stat

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_ROUNDS = 100_000  # one round for each level of depth
_LOST_RACES = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.ELOOP))


def remove_tree(path: str) -> None:
    """Nothing happens when it is not there. Inner folders are lifted to the top one by one, so that neither recursion
    nor the number of open files grows with the depth of the tree."""
    try:
        top = os.open(path, _OPEN)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        os.unlink(path)
        return
    try:
        _take_over(top)
        _empty(top)
    finally:
        os.close(top)
    os.rmdir(path)


def _empty(top: int) -> None:
    for _ in range(_MOST_ROUNDS):
        names = os.listdir(top)
        if not names:
            return
        for name in names:
            try:
                _remove(top, name)
            except OSError as problem:
                if problem.errno not in _LOST_RACES:
                    raise


def _remove(top: int, name: str) -> None:
    if _unlink(top, name):
        return
    _open_up(top, name)
    inner = os.open(name, _OPEN, dir_fd=top)
    try:
        _take_over(inner)
        for inside in os.listdir(inner):
            if not _unlink(inner, inside):
                _open_up(inner, inside)
                os.rename(inside, os.urandom(12).hex(), src_dir_fd=inner, dst_dir_fd=top)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _unlink(folder: int, name: str) -> bool:
    """False when it is a folder."""
    if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True


def _take_over(folder: int) -> None:
    """From here on nobody but root changes what is in it, whoever holds it open."""
    if os.geteuid() != 0:
        return
    try:
        os.fchown(folder, 0, 0)
        os.fchmod(folder, 0o700)
    except PermissionError:  # a disk of another machine, where this root is not root
        return


def _open_up(parent: int, name: str) -> None:
    """A folder may be closed even to its own owner. Root need not care, and must not: the rights to be changed are
    those of the folder that was looked at, never of what lies under its name a moment later."""
    if os.geteuid() == 0:
        return
    folder = os.open(name, _LOOK, dir_fd=parent)
    try:
        if os.fstat(folder).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{folder}", 0o700)
    finally:
        os.close(folder)
