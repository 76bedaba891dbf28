"""What control needs from a place where replicas run: a few verbs, each safe to repeat after a crash.

Optional abilities are small protocols of their own; what an engine cannot do is refused in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from gpuyard.domain.cluster import Allotment, Node
from gpuyard.domain.reasons import Reason
from gpuyard.domain.told import SmallFile
from gpuyard.domain.usage import CardUse as CardUse
from gpuyard.domain.usage import Progress as Progress
from gpuyard.domain.usage import Usage as Usage
from gpuyard.domain.workload import Kind, Mount, ReplicaId, Seen


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Everything an engine needs to start one replica. Made by control, pure data."""

    id: ReplicaId
    owner: str
    uid: int  # 0: as whoever runs the server
    gid: int
    group: str
    command: tuple[str, ...]  # (): it stays until it is stopped, for people to work in
    env: tuple[tuple[str, str], ...]
    allotment: Allotment
    grace_seconds: float
    mounts: tuple[Mount, ...] = ()
    image: str | None = None
    workdir: Path | None = None  # the shipped folder, as a tar file
    checkpoint: str | None = None  # where its work is saved, as the job sees it; relative to its home
    kind: Kind = Kind.JOB
    ports: tuple[int, ...] = ()  # on which it alone will listen
    keeps: str | None = None  # what is installed in it is kept under this name from one attempt to the next
    aliases: tuple[str, ...] = ()  # further host names under which the replicas of this attempt find this one
    peers: tuple[str, ...] = ()  # the aliases of all replicas of this attempt, its own included
    files: tuple[SmallFile, ...] = ()  # shown inside, read-only


class Engine(Protocol):
    """A place where replicas run."""

    name: str

    def nodes(self) -> Sequence[Node]:
        """The machines and cards there are now, with trouble named on each card that must not be given out."""

    def launch(self, request: LaunchRequest) -> str:
        """Start a replica and return the handle. Asked twice for the same id, it starts once and answers the same.

        Raises EngineError when the replica cannot be started at all, EngineUnsure when nobody knows, EngineWaits while
        something has to come first that takes long, such as its image: then it is to be asked again, or stopped.
        """

    def observe(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Seen]:
        """Look at replicas by id and handle (None: launched by nobody who lived to tell).

        Answers for every id asked. Never raises for a replica that is gone: that is `Life.ABSENT`, or `ENDED` when its
        end is on record. An end, once told, is told the same for ever.
        """

    def stop(self, id: ReplicaId, handle: str | None, grace_seconds: float) -> None:
        """Ask it to end: signal, grace, then the whole process tree. Returns at once; `observe` tells when it is over.

        After this call a replica that was never launched stays absent for good, even if a launch is still on its way.
        """

    def sweep(self, known: Iterable[ReplicaId]) -> Sequence[ReplicaId]:
        """End every replica of ours that runs here and is not among `known`. Returns the ones it ended."""

    def on_change(self, call: Callable[[], None]) -> None:
        """`call` is called, from any thread, soon after a replica's life changes. Missing one does no harm."""

    def changed(self) -> frozenset[ReplicaId] | None:
        """Replicas whose life may have changed since this was last asked. None: unknown, look at all.

        Whoever asks need not look at thousands that go on as before. It is a hint: a change may be missing from it (a
        supervisor was killed), so a look at everything now and then stays necessary; and what happens before `launch`
        returns may be named before or not at all, so what was just launched must be looked at once in any case.
        """

    def close(self) -> None:
        """Let go of what this process holds. Replicas go on."""


@runtime_checkable
class LaunchesQuickly(Protocol):
    launches_quickly: bool
    """Handing over a replica takes no time worth a thread: many are handed over one after the other."""


@runtime_checkable
class MakesRooms(Protocol):
    makes_rooms: bool
    """Work is shown folders and files at places of their own, and finds its like by `aliases`. Where that is not so,
    `mounts` and `files` are refused, and `aliases` mean nothing."""

    def file_refusal(self, path: str) -> Reason | None:
        """Why no file can be shown at this path; None when it can. Takes no time."""


@runtime_checkable
class SharesNetwork(Protocol):
    def shares_network(self, group: str) -> bool:
        """Whether this group's work has no network of its own: a port can then be used by one replica of all."""


@runtime_checkable
class ReadsUsage(Protocol):
    def usage(self, replicas: Iterable[ReplicaId]) -> Mapping[ReplicaId, Usage]:
        """What each running replica uses now; those that cannot be read are left out."""


@runtime_checkable
class ReadsProgress(Protocol):
    """Every replica is told in YARD_BEACON which file to write when its work is saved, in YARD_CHECKPOINT which folder
    was declared for that, and in YARD_ATTEMPT which start of it this is."""

    def progress(self, replicas: Mapping[ReplicaId, str | None]) -> Mapping[ReplicaId, Progress]:
        """When each of these replicas, by id and handle, last saved its work in this attempt: from its beacon or from
        the newest file of its checkpoint folder, whichever is newer. Those that give no sign are left out. It can also
        be asked of one that has ended: many save when they are told to stop.

        May take seconds: it is not for the control loop's own thread.
        """


@dataclass(frozen=True, slots=True, order=True)
class HeldImage:
    """An image that is on this machine, under one of its names."""

    name: str
    id: str
    size: int  # bytes
    created_at: float


@runtime_checkable
class KeepsImages(Protocol):
    """Work runs in images here. Each verb may take as long as a disk does, but none waits for a registry."""

    def images(self) -> Sequence[HeldImage]: ...

    def fetch_refusal(self, name: str) -> Reason | None:
        """Why the registry that its name leads to may not be asked for it; None when it may. Takes no time."""

    def has_image(self, name: str) -> bool:
        """Whether it is on this machine, so that no registry is needed. Raises EngineError when nobody knows."""

    def pull_image(
        self, name: str, user: str, told: Callable[[str], None], over: Callable[[Reason | None], None]
    ) -> Callable[[], None]:
        """Have it fetched from its registry. `told` hears of the steps, and of none as long as others have their turn;
        `over` once of the end: the reason why it failed, or None. Both from any thread, and neither may take long.

        The answer gives it up; what nobody waits for any more is not fetched to its end. Raises EngineError when it is
        refused at once, TooMany when this user waits for too many already.
        """

    def load_image(self, chunks: Iterable[bytes]) -> Sequence[str]:
        """Take in the images of a `docker save` archive. Returns their names."""

    def remove_image(self, name: str) -> bool:
        """False when it is not here. Raises EngineError when it is in use."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What a replica has written on its machine's own disk, and how much it may. In bytes."""

    used: int
    allowed: int


@runtime_checkable
class MeasuresDisk(Protocol):
    def disk_use(self) -> Mapping[ReplicaId, DiskUse]:
        """Of running replicas, as last measured. What lies in homes and shares does not count. Takes no time."""


@dataclass(frozen=True, slots=True, order=True)
class HeldCard:
    """A card whose device a process has open."""

    node: str
    device: str
    index: int
    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class HolderLook:
    """Living replicas that hold cards which they were not given. It speaks of the time from `began` on."""

    began: float  # seconds, by a clock that is never set
    held: Mapping[ReplicaId, Sequence[HeldCard]]


@runtime_checkable
class NamesHolders(Protocol):
    def holders(self) -> HolderLook | None:
        """The last look that was finished; None while there is none. Takes no time."""


@runtime_checkable
class KeepsLogs(Protocol):
    def log_path(self, id: ReplicaId) -> Path:
        """The file its output goes to. May not exist yet. See `engines/logs.py` for how it is bounded."""

    def forget(self, workload: str) -> None:
        """Remove everything kept on disk for all attempts of a workload that has ended."""
