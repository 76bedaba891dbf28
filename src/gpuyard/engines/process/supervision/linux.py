"""The few kernel calls that Python does not offer."""

from __future__ import annotations

import ctypes
import os
import struct

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x2000, 0x4000, 0x40000

_MNT_DETACH = 2
_FALLOC_FL_KEEP_SIZE, _FALLOC_FL_PUNCH_HOLE = 1, 2
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SYS_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_MAGICLINKS, _RESOLVE_IN_ROOT = 0x02, 0x10

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def prctl(option: int, argument: int) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero), "prctl")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def join(namespace: int) -> None:
    """Of whatever kind it is. A mount namespace brings its own root with it."""
    _check(_libc.setns(namespace, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    encode = os.fsencode
    result = _libc.mount(encode(source), encode(target), encode(kind), ctypes.c_ulong(flags), encode(data))
    _check(result, target)


def unmount(target: str) -> None:
    """From here; whoever uses it goes on doing so."""
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), target)


def punch_hole(fd: int, start: int, length: int) -> None:
    """Give the blocks back to the disk; the file's size and every offset in it stay."""
    mode = _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE
    _check(_libc.fallocate(fd, mode, ctypes.c_int64(start), ctypes.c_int64(length)), "fallocate")


def leave_keyring() -> None:
    """Begin a new session keyring: keys the server holds in the kernel are not the job's."""
    number = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
    if number is not None:  # where it fails, the kernel has no keyrings or does not let us use them
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING), None)


def use_rights_of(uid: int, gid: int) -> None:
    """From here on this thread, and only this one, meets the files of the world with a user's rights. It is for threads
    that end soon: the way back is not offered. To everybody else the thread stays what it was, so it cannot be hit."""
    number = {"x86_64": 116, "aarch64": 159}.get(os.uname().machine)
    if number is None:
        raise PermissionError(f"rights of one thread cannot be set on {os.uname().machine}")
    groups = (ctypes.c_uint32 * 1)(gid)
    _check(_libc.syscall(ctypes.c_long(number), ctypes.c_long(1), groups), "setgroups")  # libc's is for all threads
    for name, wanted in (("setfsgid", gid), ("setfsuid", uid)):
        call = getattr(_libc, name)
        call(wanted)
        if call(-1) != wanted:  # it tells only who one is
            raise PermissionError(f"{name} failed")


def open_in_root(root_fd: int, path: str, flags: int) -> int:
    """Open a path as if `root_fd` were the root of the world: neither `..` nor a link leads out of it."""
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS)
    call = _libc.syscall
    call.restype = ctypes.c_long
    result = call(ctypes.c_long(_SYS_OPENAT2), root_fd, os.fsencode(path) or b".", how, ctypes.c_size_t(len(how)))
    return _check(result, path)
