"""What a replica is told besides its command: variables, other names it is known by, and small files it can read.

Jobs that came through a front door expect what their own system gives: `MASTER_ADDR`, `/etc/volcano/worker.host`.
"""

from __future__ import annotations

from dataclasses import dataclass

READ_BY_ALL, READ_BY_OWNER = 0o444, 0o400
MAX_SMALL_FILES = 64
MAX_SMALL_BYTES = 256 * 1024


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


NOTHING = Told()
