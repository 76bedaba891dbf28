"""What is written into a replica's folder, so that it is whole at every moment and read by whoever comes later.

request.json   what to run; written once by the engine
lock           held by the supervisor for its whole life
status.json    exists from the moment the replica has begun; its end, once written, never changes
tombstone      it was stopped before it began: it never will
stop           the engine asks it to end
door.json      whose processes may listen at its door; written once by the engine
door.want      somebody wants in, and a porter is to be brought
log, log.gap   its output, and which middle part of it was dropped
"""

from __future__ import annotations

import _thread
import fcntl
import json
import os
import time

TYPE_CHECKING = False  # loading typing would cost every replica a tenth of its start
if TYPE_CHECKING:
    from typing import Any

DOOR, WANTED = "door.json", "door.want"
REQUEST, LOCK, STATUS, TOMBSTONE, STOP, LOG, GAP = (
    "request.json",
    "lock",
    "status.json",
    "tombstone",
    "stop",
    "log",
    "log.gap",
)
STARTING, RUNNING, ENDED = "starting", "running", "ended"

# How it ended, as far as the record is concerned. The engine puts it into the domain's words.
GOOD, EXITED, SIGNALLED, OOM, STOPPED, LAUNCH, LOST, REBOOTED = (
    "good",
    "exited",
    "signalled",
    "oom",
    "stopped",
    "launch",
    "lost",
    "rebooted",
)


def write(folder: str, name: str, data: dict[str, Any], *, durable: bool = True) -> None:
    """Write all or nothing. `durable` also outlives a power cut."""
    part = os.path.join(folder, f".{name}.{os.getpid()}.{_thread.get_ident()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        left = json.dumps(data).encode("utf-8", "surrogateescape")
        while left:  # a disk that is almost full takes only a part, and says so the next time
            left = left[os.write(fd, left) :]
        if durable:
            os.fsync(fd)
    except OSError:
        os.unlink(part)
        raise
    finally:
        os.close(fd)
    os.rename(part, os.path.join(folder, name))
    if durable:
        sync_folder(folder)


def sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read(folder: str, name: str) -> dict[str, Any] | None:
    """None when it is not there; empty when it is there and cannot be read, as after a power cut."""
    try:
        with open(os.path.join(folder, name), "rb") as file:
            data = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def exists(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))


def bury(folder: str) -> bool:
    """Leave a mark that it must never begin; the caller holds the lock. False when it has begun."""
    if exists(folder, STATUS):
        return False
    write(folder, TOMBSTONE, {"at": time.time()})
    return True


def take_lock(folder: str) -> int | None:
    """The folder's lock, or None while somebody else holds it. Closing the descriptor lets go."""
    fd = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def is_locked(folder: str) -> bool:
    """Whether somebody holds the lock, asked in a way that two askers do not take each other for the holder."""
    try:
        fd = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
