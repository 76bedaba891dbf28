"""Takes away a folder that a user filled, however deep, odd or hostile: no link is followed, no depth is too deep."""

from __future__ import annotations

import os
import stat

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
        _empty(top)
    finally:
        os.close(top)
    os.rmdir(path)


def _empty(top: int) -> None:
    while names := os.listdir(top):
        for name in names:
            if _unlink(top, name):
                continue
            inner = _open_folder(top, name)
            try:
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


def _open_folder(parent: int, name: str) -> int:
    _open_up(parent, name)
    return os.open(name, _OPEN, dir_fd=parent)


def _open_up(parent: int, name: str) -> None:
    """A folder without rights for its own owner, which root does not notice."""
    mode = os.lstat(name, dir_fd=parent).st_mode
    if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
        os.chmod(name, 0o700, dir_fd=parent)
