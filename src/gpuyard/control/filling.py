"""Replicas that write more on their machine's own disk than they may: told in time, then ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.seam import DiskUse

WARN_PART = 0.8
GRACE_SECONDS = 10.0  # at most: who fills the disk or keeps a card does not get an hour for it


@dataclass(frozen=True, slots=True)
class Filling:
    replica: ReplicaId
    reason: Reason
    ends: bool


class FillingWatch:
    """Remembers whom it has warned; a new control warns once more."""

    def __init__(self) -> None:
        self._warned: set[ReplicaId] = set()

    def due(self, uses: Mapping[ReplicaId, DiskUse]) -> list[Filling]:
        self._warned &= uses.keys()
        return [filling for id, use in sorted(uses.items()) if (filling := self._judge(id, use)) is not None]

    def _judge(self, id: ReplicaId, use: DiskUse) -> Filling | None:
        facts = {"used": use.used, "limit": use.allowed, "replica": id.short}
        if use.used > use.allowed:
            return Filling(id, because(Code.DISK_OVER, **facts), ends=True)
        if use.used <= WARN_PART * use.allowed:
            self._warned.discard(id)
            return None
        if id in self._warned:
            return None
        self._warned.add(id)
        return Filling(id, because(Code.DISK_SOON, **facts), ends=False)
