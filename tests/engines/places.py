"""What the tests of engines share: a place with an engine in it, ways to ask for work, and patience."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gpuyard.devices.probe import DeviceProbe
from gpuyard.domain.cluster import Allotment, CardShare
from gpuyard.domain.errors import EngineUnsure
from gpuyard.domain.resources import MIB
from gpuyard.domain.workload import Life, ReplicaId, Seen
from gpuyard.engines.process.engine import ProcessEngine
from gpuyard.engines.process.supervision import record
from gpuyard.engines.seam import HeldCard, LaunchRequest

UID, GID = 310_001, 310_001
IS_ROOT = os.geteuid() == 0
MOST_READ = 64 * MIB
PATIENCE_SECONDS = 60.0


def replica(number: int = 0, *, workload: str = "waaaaaaaaa", attempt: int = 1) -> ReplicaId:
    return ReplicaId(workload, attempt, "worker", number)


def wait_for(condition: Callable[[], object], what: str = "it") -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.01)


class Place:
    """An engine on a data folder of its own, and ways to ask it for work. `engine` may be replaced, as a restarted
    server does."""

    engine: Any  # an Engine that also keeps logs
    node: str
    owner: str
    uid, gid = (UID, GID) if IS_ROOT else (0, 0)
    image: str | None = None

    def request(
        self,
        id: ReplicaId,
        *command: str,
        memory: int = 256 * MIB,
        shm: int = 32 * MIB,
        cards: Sequence[int] = (),
        env: Sequence[tuple[str, str]] = (),
        owner: str = "",
        uid: int | None = None,
        **more: Any,
    ) -> LaunchRequest:
        shares = tuple(CardShare(index, 1000) for index in cards)
        uid = self.uid if uid is None else uid
        return LaunchRequest(
            id=id,
            owner=owner or self.owner,
            uid=uid,
            gid=self.gid if uid else 0,
            group="vision",
            command=command,
            env=tuple(env),
            allotment=Allotment(self.node, 1000, memory, shm, "nvidia" if cards else "", shares),
            grace_seconds=5.0,
            **({"image": self.image} | more),
        )

    def launch(self, script: str, id: ReplicaId | None = None, **more: Any) -> ReplicaId:
        """As control does it: when nobody knows what came of it, it is asked for again."""
        id = id or replica()
        request, until = self.request(id, "sh", "-c", script, **more), time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.engine.launch(request)
                return id
            except EngineUnsure:
                assert time.monotonic() < until
                time.sleep(0.2)

    def look(self, id: ReplicaId) -> Seen:
        seen: Seen = self.engine.observe({id: None})[id]
        return seen

    def run(self, script: str, id: ReplicaId | None = None, **more: Any) -> tuple[Seen, str]:
        """From the start to the end: how it ended, and its whole log."""
        return self.ended(self.launch(script, id, **more))

    def ended(self, id: ReplicaId) -> tuple[Seen, str]:
        wait_for(lambda: self.look(id).life is Life.ENDED, f"the end of {id}")
        return self.look(id), self.log(id)

    def log(self, id: ReplicaId) -> str:
        """Its beginning, which is all of it but for a flood: that is bounded on disk, and still as long as it was."""
        path: Path = self.engine.log_path(id)
        if not path.exists():
            return ""
        with path.open("rb") as file:
            return file.read(MOST_READ).decode("utf-8", "replace")

    def says(self, id: ReplicaId, text: str) -> None:
        wait_for(lambda: text in self.log(id), f"{text!r} in the log of {id}")

    def held(self) -> dict[ReplicaId, Sequence[HeldCard]]:
        """What work holds that was not given it."""
        self.engine.nodes()
        look = self.engine.holders()
        return dict(look.held) if look is not None else {}

    def status(self, id: ReplicaId) -> dict[str, Any]:
        return record.read(str(self.engine.log_path(id).parent), record.STATUS) or {}


@dataclass
class Yard(Place):
    """With a process engine."""

    data: Path
    devices: Sequence[DeviceProbe] = ()
    options: dict[str, Any] = field(default_factory=dict)
    owner: str = "ann"

    def __post_init__(self) -> None:
        self.engine: ProcessEngine = self.new_engine()
        self.node = self.engine.nodes()[0].name

    def new_engine(self) -> ProcessEngine:
        return ProcessEngine(self.data, devices=self.devices, **self.options)

    def supervisor(self, id: ReplicaId) -> int:
        return int(self.status(id)["supervisor"]["pid"])

    def close(self) -> None:
        """Leave nothing behind."""
        self.engine.sweep(())
        wait_for(lambda: not self._left(), "the end of all that was started")
        self.engine.close()

    def _left(self) -> bool:
        self.engine.sweep(())
        name = (self.data / "run" / "yard-id").read_text()
        groups = (folder for _, inner, _ in os.walk("/sys/fs/cgroup") for folder in inner)
        return any((self.data / "run" / "live").iterdir()) or any(group.startswith(f"{name}.") for group in groups)


class MakeYard(Protocol):
    def __call__(self, data: Path, devices: Sequence[DeviceProbe] = (), **options: Any) -> Yard: ...


def is_alive(pid: int) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] not in ("Z", "X")
