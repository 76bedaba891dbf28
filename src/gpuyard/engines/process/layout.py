"""Where things are in the data folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpuyard.domain.errors import EngineError
from gpuyard.domain.places import FIRST_ROOT, Root
from gpuyard.domain.reasons import Code, because
from gpuyard.domain.workload import ReplicaId

_SAFE_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9._@-]{0,127}$")
_REPLICA = re.compile(r"^([^-/]+)-(\d+)-([^-/]+)-(\d+)$")


@dataclass(frozen=True, slots=True)
class Layout:
    data: Path

    @property
    def run(self) -> Path:
        return self.data / "run"

    @property
    def live(self) -> Path:
        """One empty file per replica that may be alive: finding them does not cost a walk through all history."""
        return self.run / "live"

    @property
    def wake_socket(self) -> Path:
        return self.run / "wake.sock"

    def workload(self, workload: str) -> Path:
        return self.data / "replicas" / _safe(workload)

    def replica(self, id: ReplicaId) -> Path:
        return self.workload(id.workload) / str(id.attempt) / _safe(id.short)

    def beacon(self, id: ReplicaId) -> Path:
        """The folder in which a replica tells that its work is saved; its own, and the only thing in it is the file."""
        return self.replica(id) / "beacon"

    def door(self, id: ReplicaId) -> Path:
        """The folder in which a replica's porter listens; its own."""
        return self.replica(id) / "door"

    def live_mark(self, id: ReplicaId) -> Path:
        return self.live / str(id)

    @property
    def root(self) -> Root:
        """The first of the roots below which everyone finds their folders."""
        return Root(FIRST_ROOT, str(self.data / "files"))

    def home(self, owner: str) -> Path:
        return Path(self.root.home(_safe(owner)))

    def share(self, group: str) -> Path:
        return Path(self.root.share(_safe(group)))

    def prepare(self) -> None:
        """The folders above those of replicas."""
        self.data.mkdir(parents=True, exist_ok=True)
        for folder in (self.run, self.live, self.data / "replicas"):
            folder.mkdir(mode=0o700, exist_ok=True)

    def replicas_of(self, workload: str) -> list[ReplicaId]:
        """Every replica of every attempt that left a folder."""
        folders = self.workload(workload).glob("*/*")
        found = (read_id(f"{workload}-{folder.parent.name}-{folder.name}") for folder in folders)
        return [id for id in found if id is not None]

    def live_ids(self) -> list[ReplicaId]:
        return [id for name in os.listdir(self.live) if (id := read_id(name)) is not None]


def read_id(text: str) -> ReplicaId | None:
    """A replica's id from its text; None when it is none."""
    match = _REPLICA.match(text)
    if match is None:
        return None
    workload, attempt, role, index = match.groups()
    return ReplicaId(workload, int(attempt), role, int(index))


def _safe(name: str) -> str:
    """Names were checked at the door; here one that could leave its folder would be worth an alarm, not a path."""
    if not _SAFE_NAME.match(name):
        raise EngineError(because(Code.ENGINE_CANNOT, engine="process", what=f"use the name {name!r} for a folder"))
    return name
