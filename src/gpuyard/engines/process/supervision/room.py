"""The private view of the machine that one replica gets: its own /dev, /tmp and /dev/shm, and nobody else's folders.

Entered as root by the process that will become the job, in a mount namespace of its own: nothing here is seen by others
or survives the last process. Everything that will be shown again is opened before anything is hidden, so it does not
matter how the hidden folders lie inside each other.
"""

from __future__ import annotations

import os
import stat

from .linux import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    MS_BIND,
    MS_MOVE,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
    open_in_root,
    unshare,
)

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from typing import Any

_PLAIN_NODES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_SYSTEM_FOLDERS = ("/run", "/var")
_MOST_ENTRIES = 1000  # a folder with more is not rebuilt entry by entry


class RoomProblem(Exception):
    """The room cannot be made as asked; the text is for the owner of the job."""


def enter(room: dict[str, Any], uid: int, gid: int) -> None:
    try:
        unshare(CLONE_NEWNS | CLONE_NEWIPC)
    except PermissionError as problem:
        raise RoomProblem(
            "the server is root without the right to give users a private view (CAP_SYS_ADMIN)"
        ) from problem
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    shown = [(keep["path"], _look(keep["path"]), keep["read_only"]) for keep in room["keeps"]]
    private_tmp, output = _look(room["tmp"]), _look(room["output"])
    texts = [(target, _look(source)) for source, target in room["texts"]]
    files = [(target, _look(source)) for source, target in room.get("files", ())]
    wanted = [(item, _look_as_user(item, uid, gid)) for item in room["mounts"]]
    places = [(item, _look(item["from"])) for item in room["places"]]
    for item in room["mounts"]:
        _check_place(item["at"], uid, gid)
    fresh: set[str] = set()
    if any(_first_existing(item["at"]) == "/" for item in (*room["mounts"], *room["places"])):
        _rebuild_root()
        fresh.add("/")
    _build_dev(room, output, uid, gid)
    _hide_meeting_places()
    for folder in ("/tmp", "/var/tmp"):  # noqa: S108
        _bind(private_tmp, folder, MS_NOSUID | MS_NODEV)
    _hide_and_show(room["covers"], shown)
    for item, fd in places:
        _show(fd, _clear_way(item["at"], fresh), item["read_only"], fresh)
    for item, fd in wanted:
        _show(fd, item["at"], item["read_only"], fresh)
    for target, fd in texts:
        _bind(fd, target, MS_RDONLY | MS_NOSUID | MS_NODEV)
    for target, fd in files:
        _show_file(fd, target, fresh)
    _hide_other_processes()


def _look(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)


def _look_as_user(item: dict[str, Any], uid: int, gid: int) -> int:
    """Find the folder with the user's own rights, and never outside the volume, whatever links lie in it."""
    root = _look(item["root"])
    _act_as(uid, gid)
    try:
        return open_in_root(root, item["path"], os.O_PATH | os.O_DIRECTORY)
    except OSError as problem:
        where = f"{item['volume']}:{item['path']}"
        raise RoomProblem(f"the folder {where} cannot be mounted at {item['at']}: {problem.strerror}") from problem
    finally:
        _act_as_root()
        os.close(root)


def _act_as(uid: int, gid: int) -> None:
    os.setgroups(sorted({gid, uid}))
    os.setegid(gid)
    os.seteuid(uid)


def _act_as_root() -> None:
    os.seteuid(0)
    os.setegid(0)


def _check_place(target: str, uid: int, gid: int) -> None:
    """To make the place, root shows a folder's entries anew. It does so only where the user could list them anyway, and
    where nobody but root could put something else in the way meanwhile."""
    _act_as(uid, gid)
    try:
        folder = "/"
        for name in target.strip("/").split("/"):
            _check_passage(target, folder)
            folder = os.path.join(folder, name)
            if not os.path.lexists(folder):
                return
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise RoomProblem(f"nothing can be mounted at {target}: {folder} is a link or a file")
    finally:
        _act_as_root()


def _check_passage(target: str, folder: str) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as problem:
        raise RoomProblem(f"nothing can be mounted at {target}: {folder} is not open to you") from problem
    found = os.fstat(fd)
    may_pass = os.access(f"/proc/self/fd/{fd}", os.X_OK, effective_ids=True)
    os.close(fd)
    if not may_pass:
        raise RoomProblem(f"nothing can be mounted at {target}: {folder} is not open to you")
    if found.st_uid != 0 or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RoomProblem(f"nothing can be mounted at {target}: others than root can change {folder}")


def _bind(fd: int, target: str, flags: int = 0) -> None:
    mount(f"/proc/self/fd/{fd}", target, flags=MS_BIND | MS_REC)
    if flags:
        mount("none", target, flags=MS_BIND | MS_REMOUNT | flags)


def _build_dev(room: dict[str, Any], output: int, uid: int, gid: int) -> None:
    plain = {name: (os.makedev(*number), _look(f"/dev/{name}")) for name, number in _PLAIN_NODES.items()}
    cards = [(path, os.stat(path).st_rdev, _look(path)) for path in room["devices"]]
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=1m,nr_inodes=1000")
    for name, (number, fd) in plain.items():
        _make_node(f"/dev/{name}", number, fd)
    for path, number, fd in cards:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _make_node(path, number, fd)
    for name, goal in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("ptmx", "pts/ptmx")):
        os.symlink(goal, f"/dev/{name}")
    for name in ("stdout", "stderr"):  # as a link to the log, `echo x > /dev/stderr` would truncate it
        _make_file(f"/dev/{name}")
        _bind(output, f"/dev/{name}")
    os.mkdir("/dev/pts")
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, f"newinstance,ptmxmode=0666,mode=0620,gid={gid}")
    os.mkdir("/dev/shm")  # noqa: S108
    size = max(room["shm"], 4096)
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777,size={size}")  # noqa: S108


def _make_node(path: str, number: int, fd: int) -> None:
    """A node of our own may be opened by the job whatever group the machine's node belongs to."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, number)
        os.chmod(path, 0o666)  # noqa: S103  only this replica sees it
    except PermissionError:  # root without the right to make nodes
        _make_file(path)
        _bind(fd, path)


def _make_file(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def _hide_meeting_places() -> None:
    """Folders of the system that anyone may write to, such as /run/lock: each replica gets an empty one of its own."""
    for folder in _SYSTEM_FOLDERS:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False) and _is_open_to_all(entry)]
        for path in found:
            mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=1m,nr_inodes=1000")


def _is_open_to_all(entry: os.DirEntry[str]) -> bool:
    try:
        return bool(entry.stat(follow_symlinks=False).st_mode & stat.S_IWOTH)
    except OSError:  # it has just gone
        return False


def _hide_and_show(covers: list[str], shown: list[tuple[str, int, bool]]) -> None:
    """From the outside in: cover a folder, or show again what lies below a covered one."""
    steps: list[tuple[str, int | None, bool]] = [(path, None, False) for path in covers]
    steps += shown
    for path, fd, read_only in sorted(steps, key=lambda step: (step[0].count("/"), step[1] is not None)):
        if fd is None:
            if os.path.isdir(path):
                mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m,nr_inodes=10000")
        elif not _is_visible(path, fd):
            _make_target(path, stat.S_ISDIR(os.fstat(fd).st_mode))
            _bind(fd, path, MS_NOSUID | MS_NODEV | (MS_RDONLY if read_only else 0))


def _is_visible(path: str, fd: int) -> bool:
    try:
        here = os.lstat(path)
    except OSError:
        return False
    there = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _make_target(path: str, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(path, 0o755, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
        _make_file(path)


def _first_existing(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _show(fd: int, target: str, read_only: bool, fresh: set[str]) -> None:
    _make_place(target, fresh)
    _bind(fd, target, MS_NOSUID | MS_NODEV | (MS_RDONLY if read_only else 0))


def _show_file(fd: int, target: str, fresh: set[str]) -> None:
    """Over the file that is there, or in a folder made for it. Of the machine's own folders only one that is root's and
    open to all is shown anew for that."""
    if not os.path.lexists(target):
        folder = os.path.dirname(target)
        existing = _first_existing(folder)
        if existing not in fresh and not _is_plain(existing):
            raise RoomProblem(
                f"no file can be shown at {target}: {existing} is not root's own, or has too many entries"
            )
        _make_place(folder, fresh)
        _make_file(target)
    _bind(fd, target, MS_RDONLY | MS_NOSUID | MS_NODEV)


def _make_place(target: str, fresh: set[str]) -> None:
    """A folder to mount on. Nothing is created on the machine's disks: the nearest folder there is gets rebuilt on a
    small tmpfs, with all its entries bound back, unless it is such a `fresh` one already."""
    existing = _first_existing(target)
    if existing == target:
        return
    if existing not in fresh:
        _rebuild(existing)
        fresh.add(existing)
    while existing != target:
        existing = os.path.join(existing, target[len(existing) :].lstrip("/").split("/")[0])
        os.mkdir(existing, 0o755)
        fresh.add(existing)


def _clear_way(target: str, fresh: set[str]) -> str:
    """Where everyone finds their folders they are shown whatever the machine has there. Beside what is open to all; a
    folder that is not, or in which somebody else could put something in the way, is covered as a whole."""
    top, _, rest = target.strip("/").partition("/")
    folder = os.path.realpath(f"/{top}")  # some systems have /mnt in /var
    place = os.path.join(folder, rest)
    for name in rest.split("/"):
        if not os.path.lexists(folder):
            break
        inner = os.path.join(folder, name)
        if folder not in fresh and (not _is_plain(folder) or (os.path.lexists(inner) and not _is_folder(inner))):
            mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m,nr_inodes=10000")
            fresh.add(folder)
        folder = inner
    return place


def _is_plain(folder: str) -> bool:
    """Root's own, listed and passed by all, and small enough to be rebuilt."""
    found = os.lstat(folder)
    is_open = found.st_mode & 0o5 == 0o5 and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return _is_folder(folder) and found.st_uid == 0 and is_open and len(os.listdir(folder)) <= _MOST_ENTRIES


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.lstat(path).st_mode)


def _rebuild(folder: str) -> None:
    entries = _entries(folder)
    as_it_was = os.stat(folder)
    rights = f"mode={stat.S_IMODE(as_it_was.st_mode):o},uid={as_it_was.st_uid},gid={as_it_was.st_gid}"
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"{rights},size=1m")
    _put_back(folder, entries)


def _rebuild_root() -> None:
    """A new root that is a tmpfs, with all of the old one bound back. /tmp, soon private, is where it is made."""
    entries = _entries("/")
    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m")  # noqa: S108
    os.mkdir("/tmp/tmp", 0o755)  # noqa: S108
    _put_back("/tmp", [entry for entry in entries if entry[0] != "tmp"])  # noqa: S108
    os.chdir("/tmp")  # noqa: S108
    mount("/tmp", "/", flags=MS_MOVE)  # noqa: S108
    os.chroot(".")
    os.chdir("/")


_Entry = tuple[str, "int | str", bool]  # a name, the thing itself or where a link leads, and whether it is a folder


def _entries(folder: str) -> list[_Entry]:
    """What they are is taken from the folder itself: one may be a NAS that no longer answers, and asking it would keep
    everybody's work from starting."""
    with os.scandir(folder) as entries:
        listed = list(entries)
    if len(listed) > _MOST_ENTRIES:
        raise RoomProblem(f"nothing can be mounted below {folder}: it has too many entries")
    found: list[_Entry] = []
    for entry in listed:
        if entry.is_symlink():
            found.append((entry.name, os.readlink(entry.path), False))
        else:
            found.append((entry.name, _look(entry.path), entry.is_dir(follow_symlinks=False)))
    return found


def _put_back(folder: str, entries: list[_Entry]) -> None:
    for name, thing, is_folder in entries:
        path = os.path.join(folder, name)
        if isinstance(thing, str):
            os.symlink(thing, path)
            continue
        _make_target(path, is_folder)
        _bind(thing, path)
        os.close(thing)


def _hide_other_processes() -> None:
    """Before Linux 5.8 this option would change /proc for the whole machine."""
    release = os.uname().release.split(".")
    if (int(release[0]), int(release[1])) >= (5, 8):
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2")
