"""What the api is given when it is built: everything it may use, and nothing it has to look for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gpuyard.access.service import Access
from gpuyard.domain.cluster import Node
from gpuyard.domain.policy import Policy
from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import Mount, Workload
from gpuyard.engines.seam import KeepsImages, KeepsLogs
from gpuyard.files.shares import Shares
from gpuyard.files.workdirs import Workdirs
from gpuyard.journal.running import Runs
from gpuyard.metrics.series import Series
from gpuyard.scheduling.before import Answer, Past
from gpuyard.scheduling.proposals import Fragments
from gpuyard.scheduling.snapshot import Preview, Why
from gpuyard.store.database import Database
from gpuyard.world.compare import Comparison
from gpuyard.world.outlook import Outlook

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class ImagePolicy:
    """What the engine does with work that names an image, or names none."""

    engine: str
    uses_images: bool = False
    refuses: bool = False  # instead of running the job without its image
    default: str = ""  # for work that names none, where it runs in images
    held: KeepsImages | None = None


@dataclass(frozen=True, slots=True)
class ApiLimits:
    """Bounds on what one client can ask of the server."""

    body_bytes: int = 256 * 1024
    """A job file is text; a larger one is a mistake."""
    body_seconds: float = 30.0
    """A small body that takes longer is somebody holding a place."""
    uploads_per_user: int = 2
    """At once; more wait for these, and are sent away after `upload_wait_seconds`."""
    upload_wait_seconds: float = 30.0
    upload_seconds: float = 60.0
    """An upload may take this long, and longer as long as it keeps up `upload_bytes_per_second` beyond that."""
    upload_bytes_per_second: float = 100_000.0
    live_workloads_per_user: int = 10_000
    """Waiting, running or paused at a time."""
    followers_per_user: int = 32
    followers: int = 512
    heartbeat_seconds: float = 10.0
    """A follower hears at least this often from us, so that a dead connection is noticed on both sides."""


@dataclass(frozen=True, slots=True)
class Lookback:
    """The journal of decisions: where it lies, and why it is not written now. None: none is kept."""

    folder: Path | None = None
    problem: Callable[[], str] = field(default=lambda: "")
    runs: Runs = field(default_factory=Runs)


class Previews(Protocol):
    def __call__(self, workload: Workload, groups: Sequence[str] | None = None) -> Preview:
        """What would happen if this were submitted now; with `groups` also what would start it, perhaps in those."""


@dataclass(frozen=True, slots=True)
class Parts:
    database: Database
    access: Access
    clock: Callable[[], float]
    make_id: Callable[[], str]
    preview: Previews
    why: Callable[[str, bool, Sequence[str]], Why | None]
    """The proof that this one waits; None when it does not. Whether to look for remedies, and in which other groups."""
    before: Callable[[Past, Past], Answer]
    """Which of two came first, and by which rule."""
    holding: Callable[[], Sequence[Workload]]
    """The workloads that have cards or cores now."""
    held: Callable[[Iterable[str]], Mapping[str, Workload]]
    """Those of these that have cards or cores now."""
    nodes: Callable[[], Sequence[Node]]
    """Every machine, by name."""
    line: Callable[[], Sequence[Workload]]
    """Those that wait, in the order in which they are asked."""
    fragments: Callable[[], Fragments]
    """What is fragmented, for whom, and which moves would help."""
    compare: Callable[[Policy], Comparison]
    """What a policy would change now, were it in force."""
    shares: Shares
    logs: KeepsLogs
    series: Series
    workdirs: Workdirs
    images: ImagePolicy
    version: str
    default_device: str = "nvidia"
    hosts: frozenset[str] = LOOPBACK_NAMES
    """Names (without port) under which this server may be asked; `*` is any."""
    tls: bool = False
    stopping: Callable[[], bool] = field(default=lambda: False)
    """True once the server should end: open streams then close by themselves."""
    limits: ApiLimits = ApiLimits()
    makes_rooms: bool = True
    """Whether work can be shown folders at places of their own."""
    file_refusal: Callable[[str], Reason | None] = field(default=lambda path: None)
    """Why work cannot be shown a small file at this path."""
    door_mounts: Mapping[str, Sequence[Mount]] = field(default_factory=dict)
    """Folders that jobs of another system's files get besides; `{user}` and `{group}` stand for their names."""
    lookback: Lookback = field(default_factory=Lookback)
    outlook: Outlook | None = None
    """When work starts and ends; None: nobody looks ahead."""
    data: Path | None = None
    """Where the gateway leaves its note about itself; None: there is no gateway."""
