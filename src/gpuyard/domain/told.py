"""What a replica is told besides its command: variables, other names it is known by, and small files it can read.

Jobs that came through a front door expect what their own system gives: `MASTER_ADDR`, `/etc/volcano/worker.host`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

READ_BY_ALL, READ_BY_OWNER = 0o444, 0o400
KEYS_FOLDER = "/root/.ssh"
MAX_SMALL_FILES = 64
MAX_SMALL_BYTES = 256 * 1024
FIRST_OWN_PORT, OWN_PORTS = 10_000, 20_000  # below those that systems hand out by themselves


@dataclass(frozen=True, slots=True)
class SmallFile:
    """Shown read-only inside, at an absolute path. It belongs to whom the replica runs as."""

    path: str
    text: str
    mode: int = READ_BY_ALL


@dataclass(frozen=True, slots=True)
class Told:
    """`aliases` are other names under which all replicas of the same attempt find this one; the engine takes care."""

    env: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    files: tuple[SmallFile, ...] = ()
    keys: str = ""  # the folder where it looks for SSH keys that all replicas share


NOTHING = Told()


def own_port(attempt: str, number: int = 0) -> int:
    """Where the work of all shares one network: a port of this attempt, another for each of its numbers. The same
    whenever it is asked for; hardly ever that of another job, and another one when it is tried again."""
    first = int.from_bytes(hashlib.sha256(attempt.encode()).digest()[:4], "big")
    return FIRST_OWN_PORT + (first + number) % OWN_PORTS


_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]{1,255}){2,16}")
_ALIAS = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,250}[a-z0-9])?")
_SHOWN_BELOW = ("/etc/", "/root/")


def file_problem(path: str) -> str:
    """Why nothing can be shown at this path; empty when something can."""
    if not _PATH.fullmatch(path):
        return "it is not a whole path of plain names"
    return "" if path.startswith(_SHOWN_BELOW) else "files are shown below /etc and /root only"


def is_host_name(name: str) -> bool:
    return _ALIAS.fullmatch(name) is not None and ".." not in name
