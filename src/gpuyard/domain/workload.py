"""A workload is anything a user starts. It has roles, a role has replicas, and each start of it is an attempt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpuyard.domain.cluster import Allotment
from gpuyard.domain.reasons import Code, Reason
from gpuyard.domain.resources import Resources

DEFAULT_PRIORITY = 500
MIN_PRIORITY, MAX_PRIORITY = 1, 1000
DEFAULT_GRACE_SECONDS = 10.0
MAX_REPLICAS = 100_000
ID_RULE = re.compile(r"^[a-z][a-z0-9]{9}\Z")
JOB_NAME_RULE = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62})\Z")
ROLE_NAME_RULE = re.compile(r"^[a-z][a-z0-9]{0,15}\Z")
ENV_NAME_RULE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
WORKPLACE_NAME_RULE = re.compile(r"^[A-Za-z0-9_]{1,27}\Z")
WORKPLACE_ROLE = "main"
DOORS = ("dlc", "volcano")  # the other systems whose files are read; `dialects` has a folder for each
MAX_ORIGIN_FACTS = 200
MAX_ORIGIN_BYTES = 64 * 1024
ORIGIN_FACT_RULE = re.compile(r"^[A-Za-z][A-Za-z0-9_.-]{0,127}\Z")


class Kind(StrEnum):
    JOB = "job"
    ENV = "env"  # a dev environment: it stays until it is stopped, and can be started again with all it holds


class State(StrEnum):
    QUEUED = "queued"
    PLACED = "placed"  # cards are given, replicas are being launched
    STARTING = "starting"  # all launched, not all running yet
    RUNNING = "running"
    STOPPING = "stopping"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED})
HOLDS_RESOURCES = frozenset({State.PLACED, State.STARTING, State.RUNNING, State.STOPPING})


class Wanted(StrEnum):
    """What the owner wants. Written by the api; control makes it so."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


class Cause(StrEnum):
    """Why an attempt failed, as far as retrying is concerned. Each has its own allowance."""

    EXIT = "exit"  # the command ended with an error or a signal of its own
    OOM = "oom"  # it needed more memory than it asked for
    LOST = "lost"  # supervisor, node or machine went away: not the job's fault
    LAUNCH = "launch"  # it could not be started
    TIME = "time"  # its maximum duration was reached


DEFAULT_RETRIES: Mapping[Cause, int] = {
    Cause.EXIT: 0,
    Cause.OOM: 0,
    Cause.LOST: 3,
    Cause.LAUNCH: 2,
    Cause.TIME: 0,
}


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the owner (`home`) or of the group (`share`), shown to the workload at `at`."""

    volume: str
    at: str
    path: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Port:
    number: int
    name: str = ""


class Together(StrEnum):
    """Where the replicas of a workload may be, seen from each other."""

    ANY = "any"
    ONE_NODE = "one_node"
    SPREAD = "spread"  # every replica on a node of its own


@dataclass(frozen=True, slots=True)
class Where:
    """Which nodes will do: one of the named ones (empty: all), that carries all of these labels."""

    nodes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """Replicas that are alike: same command, same resources."""

    name: str
    command: tuple[str, ...]
    replicas: int = 1
    resources: Resources = Resources()
    image: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    ports: tuple[Port, ...] = ()
    where: Where = Where()
    completes: bool = False  # once all of its replicas have ended well, so has the whole workload


@dataclass(frozen=True, slots=True)
class Origin:
    """Through which front door it came, and what that door has to remember of it to tell it in its own words."""

    door: str
    facts: tuple[tuple[str, str], ...] = ()

    def fact(self, name: str, otherwise: str = "") -> str:
        return next((value for known, value in self.facts if known == name), otherwise)


@dataclass(frozen=True, slots=True)
class Spec:
    """What the user asked for. Never changes after submit."""

    name: str
    roles: tuple[RoleSpec, ...]
    kind: Kind = Kind.JOB
    priority: int = DEFAULT_PRIORITY
    preemptible: bool = False
    retries: Mapping[Cause, int] = field(default_factory=lambda: dict(DEFAULT_RETRIES))
    max_seconds: float | None = None
    grace_seconds: float = DEFAULT_GRACE_SECONDS
    workdir: str | None = None  # digest of the shipped folder
    together: Together = Together.ANY
    checkpoint: str | None = None  # folder, as the job sees it, whose newest file tells when work was last saved
    idle_seconds: float | None = None  # a dev environment that nobody used for so long is stopped
    origin: Origin | None = None  # None: it was described in our own words

    def role(self, name: str) -> RoleSpec:
        return next(role for role in self.roles if role.name == name)


@dataclass(frozen=True, slots=True, order=True)
class ReplicaId:
    """Names one replica of one attempt, everywhere: in the store, on disk, in labels."""

    workload: str
    attempt: int
    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.workload}-{self.attempt}-{self.role}-{self.index}"

    @property
    def short(self) -> str:
        """As people name it inside one attempt: `worker-3`."""
        return f"{self.role}-{self.index}"


class Life(StrEnum):
    """What an engine sees of one replica."""

    ABSENT = "absent"  # never launched, or nothing known of it
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a replica. `reason` and `cause` tell how it ended; cause is None for a good or an asked-for end."""

    life: Life = Life.ABSENT
    exit_code: int | None = None
    cause: Cause | None = None
    reason: Reason | None = None
    started_at: float | None = None
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class Replica:
    id: ReplicaId
    allotment: Allotment
    handle: str | None = None  # the engine's own note, enough for a new process to find the replica again
    seen: Seen = Seen()


class Verdict(StrEnum):
    """What an ending attempt leads to once its last replica is gone."""

    STOPPED = "stopped"
    PAUSED = "paused"
    PREEMPTED = "preempted"
    FAILED = "failed"
    COMPLETED = "completed"  # a role that completes the workload has ended well; the others are only stopped


@dataclass(frozen=True, slots=True)
class Ending:
    verdict: Verdict
    reason: Reason
    cause: Cause | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    created_at: float
    replicas: tuple[Replica, ...]
    ending: Ending | None = None
    started_at: float | None = None
    ended_at: float | None = None
    saved_at: float | None = None  # when it last said, or its checkpoint folder showed, that its work is saved
    saved_step: int | None = None
    served_before: float = 0.0  # seconds for which earlier attempts held their places
    kept_before: float = 0.0  # seconds of work that earlier attempts saved

    def served(self, now: float) -> float:
        """Seconds for which this attempt and earlier ones held their places, until now or its end."""
        return self.served_before + max(0.0, (now if self.ended_at is None else self.ended_at) - self.created_at)

    @property
    def kept(self) -> float:
        """Seconds of work that is saved, by this attempt and by earlier ones."""
        if self.saved_at is None or self.started_at is None:
            return self.kept_before
        return self.kept_before + max(0.0, self.saved_at - self.started_at)


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload as it stands: what is wanted, what is seen, the newest attempt. Older attempts are in the store."""

    id: str
    owner: str
    group: str
    spec: Spec
    submitted_at: float  # also its place in the queue; pause, retry and preemption keep it
    state: State = State.QUEUED
    wanted: Wanted = Wanted.RUN
    wanted_by: str = ""
    reason: Reason = Reason(Code.NEW)
    version: int = 1
    not_before: float = 0.0
    retries_used: Mapping[Cause, int] = field(default_factory=dict)
    attempt: Attempt | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    removed_at: float | None = None  # its owner has taken it off the lists

    @property
    def attempts_made(self) -> int:
        return self.attempt.number if self.attempt else 0

    @property
    def holds_resources(self) -> bool:
        return self.state in HOLDS_RESOURCES


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """One line of a workload's history, written in the same transaction as the state it explains."""

    at: float
    reason: Reason
    state: State
    attempt: int = 0
    by: str = ""
