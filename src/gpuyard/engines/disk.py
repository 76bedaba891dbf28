"""Whether a machine's disk has room for new work."""

from __future__ import annotations

import os
from pathlib import Path

from gpuyard.domain.cluster import NodeState
from gpuyard.domain.resources import GIB

RESERVE_BYTES = 5 * GIB
_MOST_PART = 20  # a small disk keeps no more than this part of it back
_AGAIN = 1.25  # and so much of the reserve has to be free until new work is let in again: no to and fro


class Disk:
    """The disk of the data folder: what it has left decides whether anything new starts."""

    def __init__(self, folder: Path, reserve_bytes: int = RESERVE_BYTES) -> None:
        self._folder = folder
        self._reserve = reserve_bytes
        self._was_full = False

    def is_nearly_full(self) -> bool:
        found = os.statvfs(self._folder)
        reserve = min(self._reserve, found.f_blocks * found.f_frsize // _MOST_PART)
        wanted = reserve * _AGAIN if self._was_full else reserve
        self._was_full = found.f_bavail * found.f_frsize < wanted
        return self._was_full

    def state(self) -> NodeState:
        """Of a machine that is otherwise well."""
        return NodeState.DISK_FULL if self.is_nearly_full() else NodeState.READY
