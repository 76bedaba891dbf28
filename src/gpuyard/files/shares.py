"""The shared folders of groups: who may use them, and one moved into another.

Everybody in the group may use everything made in its folder, whatever engine and umask made it: access lists name each
member (decision 0011). What lies in them belongs to users, who may change it at the same moment: no link is ever
followed, and only what belongs to the group already is touched.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from gpuyard.domain.people import NAME_RULE
from gpuyard.files import acl
from gpuyard.files.acl import AccessList
from gpuyard.files.marks import Marks
from gpuyard.files.walking import go_through, opened, path_of

log = logging.getLogger(__name__)

BY_NUMBER = 0o2770  # what is made in it has the group's number
BY_NAME = 0o770  # where lists name the members: without the group's number, which a container cannot change or pass on
SURELY_NAMED = 20  # every file system with lists has room for so many; otherwise it is the disk that is full
NO_LIMIT = 1 << 31
_NO_LISTS = (errno.ENOTSUP, errno.ENOSYS)
_LIST_TOO_LONG = (errno.ENOSPC, errno.E2BIG, errno.EDQUOT)


class ShareNotMoved(Exception):
    """Why a shared folder stays where it is."""


class Shares:
    """The folders below each root, one per group, made by the engine on first use or here."""

    def __init__(self, root: Path, *further: Path) -> None:
        self.roots: Sequence[Path] = (root, *further)
        self._marks = Marks(root.parent / ".shares.json")
        self._one_at_a_time = threading.Lock()  # an entry's list is read, changed and written

    # --- who may use them -----------------------------------------------------------------------------------------

    def without_lists(self) -> list[Path]:
        """The roots whose file system keeps no access lists: there a share is its group's by number alone."""
        return [root for root in self.roots if root.is_dir() and not _has_lists(root)]

    def open_to(self, group: str, gid: int, members: Collection[int]) -> bool:
        """Make the group's folders their members', and nobody else's, at once. Says whether there is something left to
        be gone through in them. Raises OSError."""
        left = False
        for root in self.roots:
            if root.is_dir() and NAME_RULE.fullmatch(group):
                if self._open_top(root, group, gid, members):
                    self._marks.forget(str(root / group))
                left = left or self._marks.get(str(root / group)) != _mark(gid, members)
        return left

    def go_through(self, group: str, gid: int, members: Collection[int], *, is_over: Callable[[], bool]) -> None:
        """Everything in the group's folders too. Interrupted, it is to be done again: `open_to` says so."""
        for root in self.roots:
            share = root / group
            if not share.is_dir() or self._marks.get(str(share)) == _mark(gid, members):
                continue
            with opened(root) as folder, opened(group, folder) as top:
                stayed = self._open_all(top, gid, members, is_over) if _has_lists(top) else 0
            if is_over():
                return
            self._marks.put(str(share), _mark(gid, members))
            log.info("the share of %s in %s is now its %d members'", group, root, len(members))
            if stayed:
                log.warning("%d entries of it could not wholly be given to them", stayed)

    def _open_top(self, root: Path, group: str, gid: int, members: Collection[int]) -> bool:
        with opened(root) as folder:
            _make(folder, group, gid)
            with opened(group, folder) as top:
                seen = os.fstat(top)
                if (seen.st_uid, seen.st_gid) != (0, gid):
                    os.fchown(top, 0, gid)
                has_lists = _has_lists(top)
                mode = BY_NAME if has_lists else BY_NUMBER
                if seen.st_mode & 0o7770 != mode:
                    os.fchmod(top, mode)
                return has_lists and self._name_members(root / group, path_of(top), gid, members)

    def _name_members(self, share: Path, top: str, gid: int, members: Collection[int]) -> bool:
        """Of more members than this file system's lists can name none is named, and the folder is open to whoever gets
        near it: the members, to whom it is shown, and nobody else as long as the folder above is closed."""
        known_as_too_many = int(self._marks.get(_too_many(share)) or NO_LIMIT)
        if len(members) < known_as_too_many:
            try:
                return _write_both(top, acl.open_to(gid, members))
            except OSError as error:
                if error.errno not in _LIST_TOO_LONG or len(members) < SURELY_NAMED:
                    raise
            log.warning("the group of %s has too many members (%d) for this file system to name", share, len(members))
            self._marks.put(_too_many(share), str(len(members)))
        return _write_both(top, acl.open_to_all(gid)) if _is_closed(share.parent) else False

    def _open_all(self, top: int, gid: int, members: Collection[int], is_over: Callable[[], bool]) -> int:
        whole = _read(path_of(top), acl.DEFAULT) or acl.open_to(gid, members)

        def shared(now: AccessList) -> AccessList:
            return acl.shared_with_all(now, gid) if whole.other else acl.shared_with(now, gid, members)

        def visit(path: str, seen: os.stat_result) -> None:
            is_folder = stat.S_ISDIR(seen.st_mode)
            if not is_folder and not stat.S_ISREG(seen.st_mode):
                return
            with self._one_at_a_time:
                now = _read(path, acl.ACCESS) or acl.of_mode(seen.st_mode)
                if seen.st_gid != gid and gid not in now.groups:
                    return  # moved in from elsewhere: its rights are its own
                if is_folder and seen.st_mode & stat.S_ISGID:
                    os.chmod(path, stat.S_IMODE(seen.st_mode) & ~stat.S_ISGID)
                _write(path, acl.ACCESS, shared(now))
                if is_folder:
                    default = _read(path, acl.DEFAULT)
                    _write(path, acl.DEFAULT, shared(default) if default else whole)

        return go_through(top, visit, is_over=is_over)

    # --- one moved into another -----------------------------------------------------------------------------------

    def fold_in(self, source: str, target: str, gids: tuple[int, int], *, in_use: bool) -> bool:
        """Move the source's folder to TARGET/SOURCE and give it from the first group number to the second.

        Work that runs goes on with the folder it has; while there is some (`in_use`) its number keeps its rights there.
        False: this server has no shared folders. Raises ShareNotMoved.
        """
        if not self.roots[0].is_dir():
            return False
        if not NAME_RULE.fullmatch(source) or not NAME_RULE.fullmatch(target):
            raise ShareNotMoved("odd name")
        for root in self.roots:
            if root is self.roots[0] or (root / source).is_dir():
                self._fold_in_one(root, source, target, gids, in_use=in_use)
        return True

    def _fold_in_one(self, root: Path, source: str, target: str, gids: tuple[int, int], *, in_use: bool) -> None:
        old, new = gids
        try:
            with opened(root) as above:
                _make(above, source, old)
                _make(above, target, new)
                with opened(source, above) as folder, opened(target, above) as place:
                    keeps = in_use and _is_root() and old != new
                    if keeps and not _has_lists(folder):
                        raise ShareNotMoved("work still uses it, and this file system keeps no access lists")
                    _move(above, source, place)
                    if _is_root() and old != new:
                        self._give_all(folder, old, new, keeps=keeps)
        except OSError as error:
            raise ShareNotMoved(f"{root}: {error.strerror or error}") from error
        for group in (source, target):
            self._marks.forget(str(root / group))

    def _give_all(self, top: int, old: int, new: int, *, keeps: bool) -> None:
        """What belonged to the one group, by its number or by its list, belongs to the other."""

        def visit(path: str, seen: os.stat_result) -> None:
            if stat.S_ISLNK(seen.st_mode):
                return
            with self._one_at_a_time:
                if seen.st_gid == old:
                    os.chown(path, -1, new)
                if stat.S_ISDIR(seen.st_mode) or stat.S_ISREG(seen.st_mode):
                    _give_lists(path, seen, old, new, keeps=keeps)

        stayed = go_through(top, visit)
        if stayed:
            log.warning("%d entries of a shared folder could not wholly be given to group number %d", stayed, new)


def _give_lists(path: str, seen: os.stat_result, old: int, new: int, *, keeps: bool) -> None:
    access = _read(path, acl.ACCESS)
    named = access is not None and old in access.groups
    if not named and not (keeps and seen.st_gid == old):
        return
    rights = acl.given(access or acl.of_mode(seen.st_mode), old, new, keeps=keeps)
    _write(path, acl.ACCESS, rights)
    if stat.S_ISDIR(seen.st_mode):
        default = _read(path, acl.DEFAULT)
        _write(path, acl.DEFAULT, acl.given(default, old, new, keeps=keeps) if default else rights)


def _mark(gid: int, members: Collection[int]) -> str:
    said = f"{gid}:{','.join(str(uid) for uid in sorted(members))}"
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _too_many(share: Path) -> str:
    return f"{share} has too many members"


def _is_closed(folder: Path) -> bool:
    """To strangers on this machine, who cannot pass some folder above."""
    return any(not above.stat().st_mode & stat.S_IXOTH for above in (folder, *folder.parents))


def _is_root() -> bool:
    return os.geteuid() == 0


def _make(root: int, name: str, gid: int) -> None:
    try:
        os.mkdir(name, 0o700, dir_fd=root)
    except FileExistsError:
        return
    with opened(name, root) as folder:
        if _is_root():
            os.fchown(folder, 0, gid)
        os.fchmod(folder, BY_NUMBER)


def _move(root: int, source: str, place: int) -> None:
    """In one step. Whatever has the name in the target already stays."""
    try:
        os.stat(source, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, source, src_dir_fd=root, dst_dir_fd=place)
        return
    raise ShareNotMoved("the other share has something of that name already")


# --- access lists on disk -----------------------------------------------------------------------------------------


def _has_lists(entry: int | Path) -> bool:
    try:
        os.getxattr(entry, acl.ACCESS)
    except OSError as error:
        return error.errno not in _NO_LISTS
    return True


def _read(path: str, which: str) -> AccessList | None:
    try:
        return acl.decode(os.getxattr(path, which))
    except OSError as error:
        if error.errno not in (errno.ENODATA, *_NO_LISTS):
            raise
        return None


def _write(path: str, which: str, rights: AccessList) -> bool:
    """Says whether that changed anything."""
    written = acl.encode(rights)
    try:
        if os.getxattr(path, which) == written:
            return False
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
    os.setxattr(path, which, written)
    return True


def _write_both(path: str, rights: AccessList) -> bool:
    changed = _write(path, acl.ACCESS, rights)
    return _write(path, acl.DEFAULT, rights) or changed
