"""Files of people and groups given to their new numbers. Done twice it does no harm: old and new numbers never meet."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpuyard.files import acl
from gpuyard.files.walking import go_through, opened, path_of

_KEEP = -1


def renumber(folder: Path, uids: Mapping[int, int], gids: Mapping[int, int]) -> int:
    """All that lies in it, links themselves included. Says how many entries could not be given. Raises OSError."""

    def visit(path: str, seen: os.stat_result) -> None:
        uid, gid = uids.get(seen.st_uid, _KEEP), gids.get(seen.st_gid, _KEEP)
        if (uid, gid) != (_KEEP, _KEEP):
            os.chown(path, uid, gid)
        if stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode):
            _rename_in_lists(path, uids, gids)

    with opened(folder) as top:
        return go_through(top, visit)


def give_home(folder: Path, uid: int) -> None:
    """The folder itself is its user's alone, also by its group."""
    with opened(folder) as top:
        os.chown(path_of(top), uid, uid)


def _rename_in_lists(path: str, uids: Mapping[int, int], gids: Mapping[int, int]) -> None:
    for which in (acl.ACCESS, acl.DEFAULT):
        try:
            now = acl.decode(os.getxattr(path, which))
        except OSError as problem:
            if problem.errno in (errno.ENODATA, errno.ENOTSUP, errno.ENOSYS):
                continue
            raise
        after = replace(
            now,
            users={uids.get(uid, uid): right for uid, right in now.users.items()},
            groups={gids.get(gid, gid): right for gid, right in now.groups.items()},
        )
        if after != now:
            os.setxattr(path, which, acl.encode(after))
