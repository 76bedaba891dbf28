"""Folders of people and of groups on this machine, made when the first workload needs them. The same for every engine.

Who belongs to a group is not known here: that everybody in it may use everything in its folder is seen to by
`control.folders`, soon after the folder or the group has changed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from gpuyard.domain.errors import EngineError
from gpuyard.domain.people import NAME_RULE
from gpuyard.domain.places import SHARE, USER, Root
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.told import SmallFile

HOME_MODE, SHARE_MODE, PASSAGE_MODE = 0o700, 0o2770, 0o711
_ACCESS_LIST = "system.posix_acl_access"


def prepare_roots(roots: Sequence[Root]) -> None:
    """The folders above those of people and groups. They may be passed, not read; and nobody but root may put something
    else in the place of what is in them: containers are given paths."""
    for root in roots:
        for folder in (Path(root.outside), Path(root.outside) / USER, Path(root.outside) / SHARE):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(PASSAGE_MODE)
            if os.geteuid() == 0 and not _is_roots_own(folder):
                what = f"keep people's folders in {folder}: others than root can change it (chown root, chmod go-w)"
                raise EngineError(because(Code.ENGINE_CANNOT, engine="any", what=what))


def small_file(folder: Path, file: SmallFile) -> Path:
    """Where it lies: by what it says, so that what is told to a thousand replicas alike is there once."""
    said = hashlib.sha256(file.text.encode("utf-8", "surrogateescape")).hexdigest()
    return folder / f".told-{said[:32]}-{file.mode & 0o777:o}"


def write_small_file(path: Path, file: SmallFile, who: tuple[int, int] | None) -> None:
    """Once: a second launch says the same, and replacing it would pull it from under who is just being shown it."""
    if path.exists():
        return
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        out.write(file.text)
        out.flush()
        if who is not None:
            os.fchown(fd, *who)
        os.fchmod(fd, file.mode & 0o777)
    with contextlib.suppress(FileExistsError):
        os.link(part, path)
    part.unlink()


def _is_roots_own(folder: Path) -> bool:
    found = folder.stat()
    return found.st_uid == 0 and (not found.st_mode & 0o022 or bool(found.st_mode & stat.S_ISVTX))


def make_places(owner: str, uid: int, group: str, gid: int, roots: Sequence[Root]) -> None:
    """Below each root the owner's home and the group's share. Not as root all of it is the server's own user's.
    Raises OSError."""
    for name in (owner, group):
        if not NAME_RULE.fullmatch(name):  # checked at the door; here one that could leave its folder is worth an alarm
            raise EngineError(because(Code.ENGINE_CANNOT, engine="any", what=f"use the name {name!r} for a folder"))
    is_root = os.geteuid() == 0
    for root in roots:
        home = Path(root.home(owner))
        make_folder(home, HOME_MODE, (uid, uid) if is_root else None)
        if is_root and home.stat().st_uid != uid:
            raise PermissionError(f"{home} was left by an earlier user of that name; an admin has to move it away")
        make_folder(Path(root.share(group)), SHARE_MODE, (0, gid) if is_root else None)


def make_folder(path: Path, mode: int, owner: tuple[int, int] | None) -> None:
    """Made ready under another name and then moved into place, so that nobody meets it half done."""
    if path.is_symlink():
        raise NotADirectoryError(f"{path} is a link")
    if path.is_dir():
        return
    part = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    part.mkdir(mode=0o700)
    if owner:
        os.chown(part, *owner)
    part.chmod(mode)
    try:
        part.rename(path)
    except OSError:
        part.rmdir()
        if not path.is_dir():
            raise


def keeps_access_lists(roots: Sequence[Root]) -> bool:
    """Do the file systems of all roots know more than an owner and one group per file? Some NFS do not."""
    return all(_keeps_access_lists(root.outside) for root in roots)


def _keeps_access_lists(path: str) -> bool:
    try:
        os.getxattr(path, _ACCESS_LIST)
    except OSError as problem:
        return problem.errno not in (errno.ENOTSUP, errno.ENOSYS)
    return True
