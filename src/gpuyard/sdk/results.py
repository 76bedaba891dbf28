"""What the server tells, as frozen data.

Every class keeps the server's own words in `raw`. Keys this version does not know are left there, keys the server does
not send get their default, so that a client and a server of different versions still understand each other.
Times are ISO 8601 in UTC, as sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from gpuyard.domain.reasons import NEVER_STARTS as NEVER
from gpuyard.sdk.answers import odd_answer

NEVER_STARTS = frozenset(code.value for code in NEVER)


def _raw() -> Any:
    return field(default_factory=dict, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Told:
    """Something the server told."""

    raw: Mapping[str, Any] = _raw()
    parts: ClassVar[Mapping[str, type[Told]]] = {}  # fields that are lists of something told
    single: ClassVar[Mapping[str, type[Told]]] = {}  # fields that are one thing told, or None

    @classmethod
    def read(cls, data: Mapping[str, Any], **ours: Any) -> Self:
        """From what was sent; `ours` are fields the server knows nothing of."""
        if not isinstance(data, Mapping):
            raise odd_answer()
        known = {f.name for f in fields(cls)} - {"raw"} - ours.keys()
        values = {key: value for key, value in data.items() if key in known and value is not None}
        for key, part in cls.parts.items():
            values[key] = tuple(part.read(item) for item in data.get(key) or ())
        for key, part in cls.single.items():
            values[key] = part.read(data[key]) if data.get(key) else None
        return cls(**values, **ours, raw=data)


@dataclass(frozen=True, slots=True)
class Replica(Told):
    replica: str = ""
    node: str = ""
    cards: list[int] = field(default_factory=list)
    state: str = ""
    exit_code: int | None = None
    reason: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    cpu: float | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt(Told):
    parts: ClassVar[Mapping[str, type[Told]]] = {"replicas": Replica}
    number: int = 0
    created_at: str = ""
    started_at: str | None = None
    ended_at: str | None = None
    saved_at: str | None = None  # when its work was last saved
    saved_step: int | None = None
    reason: str = ""
    reason_code: str = ""
    replicas: tuple[Replica, ...] = ()


@dataclass(frozen=True, slots=True)
class Event(Told):
    """One line of a workload's story."""

    at: str = ""
    state: str = ""
    attempt: int = 0
    by: str = ""
    code: str = ""
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fact(Told):
    """A piece of a proof, or a rule with its numbers."""

    code: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""


@dataclass(frozen=True, slots=True)
class Ahead(Told):
    """One that comes first. Name and owner are there for what one may see."""

    id: str = ""
    group: str = ""
    name: str | None = None
    owner: str | None = None
    rule: Fact = Fact()

    @classmethod
    def read(cls, data: Mapping[str, Any], **ours: Any) -> Self:
        return super(Ahead, cls).read(data, rule=Fact.read(data.get("rule") or {}), **ours)


@dataclass(frozen=True, slots=True)
class Remedy(Told):
    """A change that would start it now: the server has tried it. `job.rerun(remedy.changes, instead=True)` does it."""

    kind: str = ""
    changes: Mapping[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    words: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class Estimate(Told):
    """As likely before as after p50, nine times out of ten before p90; both empty when nobody knows: then `unknown`."""

    p50: str = ""
    p90: str = ""
    rough: bool = False
    unknown: str = ""
    unknown_code: str = ""


@dataclass(frozen=True, slots=True)
class Why(Told):
    """Why it is as it is, in words and as a code with facts."""

    parts: ClassVar[Mapping[str, type[Told]]] = {"facts": Fact, "ahead": Ahead, "remedies": Remedy}
    single: ClassVar[Mapping[str, type[Told]]] = {"expected_start": Estimate, "expected_end": Estimate}
    id: str = ""
    name: str = ""
    state: str = ""
    reason: str = ""
    reason_code: str = ""
    reason_facts: Mapping[str, Any] = field(default_factory=dict)
    sort: str = ""  # never, quota, busy, order, trouble; empty when it does not wait
    sort_words: str = ""
    facts: tuple[Fact, ...] = ()
    position: int | None = None
    ahead: tuple[Ahead, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    expected_start: Estimate | None = None
    expected_end: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Before(Told):
    """Which of two comes or came first, and by which rule. `as_asked` is false when it is the other way round."""

    first: str = ""
    other: str = ""
    as_asked: bool = True
    rule: Fact = Fact()

    @classmethod
    def read(cls, data: Mapping[str, Any], **ours: Any) -> Self:
        return super(Before, cls).read(data, rule=Fact.read(data.get("rule") or {}), **ours)


@dataclass(frozen=True, slots=True)
class Problem(Told):
    code: str = ""
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preview(Told):
    """What would happen if this were submitted now."""

    parts: ClassVar[Mapping[str, type[Told]]] = {"problems": Problem, "remedies": Remedy}
    single: ClassVar[Mapping[str, type[Told]]] = {"expected_start": Estimate}
    starts: bool = False
    reason: str = ""
    reason_code: str = ""
    reason_facts: Mapping[str, Any] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    position: int = 0
    ahead: list[str] = field(default_factory=list)
    problems: tuple[Problem, ...] = ()
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what was lost or guessed in reading another system's file
    never: bool = False  # it can never start as it is
    remedies: tuple[Remedy, ...] = ()  # when asked for: changes that would start it now
    expected_start: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Imported(Told):
    """What a file of another system is as a job file of ours."""

    parts: ClassVar[Mapping[str, type[Told]]] = {"notes": Problem}
    dialect: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Problem, ...] = ()  # what was lost or guessed on the way


@dataclass(frozen=True, slots=True)
class Card(Told):
    index: int = 0
    device: str = ""
    model: str = ""
    memory: int = 0
    simulated: bool = False
    used: float = 0
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Node(Told):
    parts: ClassVar[Mapping[str, type[Told]]] = {"cards": Card}
    name: str = ""
    state: str = ""
    cpu: float = 0
    cpu_used: float = 0
    memory: int = 0
    memory_used: int = 0
    cards: tuple[Card, ...] = ()
    cards_total: Mapping[str, int] = field(default_factory=dict)
    cards_free: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    images: list[str] = field(default_factory=list)  # those it holds


@dataclass(frozen=True, slots=True)
class QuotaLine(Told):
    """What a group, or one user inside it, may use of one resource, can count on, uses, has borrowed and lent."""

    group: str = ""
    user: str | None = None
    resource: str = ""
    used: float = 0
    limit: float | None = None  # None: no limit
    guaranteed: float = 0
    borrowed: float = 0
    lent: float = 0


@dataclass(frozen=True, slots=True)
class ReplicaUse(Told):
    """What one running replica uses now, next to what it was given."""

    workload: str = ""
    name: str = ""
    owner: str = ""
    group: str = ""
    attempt: int = 0
    replica: str = ""
    node: str = ""
    cards: list[int] = field(default_factory=list)
    device: str | None = None
    at: str | None = None
    cores: float | None = None
    cores_given: float = 0
    memory: int | None = None
    memory_given: int = 0
    card_use: list[Mapping[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Top(Told):
    parts: ClassVar[Mapping[str, type[Told]]] = {"replicas": ReplicaUse, "nodes": Node}
    replicas: tuple[ReplicaUse, ...] = ()
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Membership(Told):
    group: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class User(Told):
    """`password` is there once, in the answer that made one."""

    parts: ClassVar[Mapping[str, type[Told]]] = {"memberships": Membership}
    name: str = ""
    admin: bool = False
    active: bool = True
    must_change_password: bool = False
    uid: int = 0
    memberships: tuple[Membership, ...] = ()
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Member(Told):
    user: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Group(Told):
    parts: ClassVar[Mapping[str, type[Told]]] = {"members": Member, "quotas": QuotaLine}
    name: str = ""
    members: tuple[Member, ...] = ()
    quotas: tuple[QuotaLine, ...] = ()
    used: dict[str, float] = field(default_factory=dict)
    weight: float = 1.0
    fifo: bool = False
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Merge(Told):
    """What merging one group into another does, or would do."""

    parts: ClassVar[Mapping[str, type[Told]]] = {"quotas": QuotaLine}
    source: str = ""
    into: str = ""
    done: bool = False
    joining: list[str] = field(default_factory=list)
    leads_no_more: list[str] = field(default_factory=list)
    quotas: tuple[QuotaLine, ...] = ()
    live: int = 0
    running: int = 0
    ended: int = 0
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Token(Told):
    """A token; `token`, its secret, is there once, in the answer that made it."""

    id: str = ""
    name: str = ""
    user: str = ""
    scope: str = ""
    created_at: str = ""
    expires_at: str | None = None
    last_used_at: str | None = None
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SshKey(Told):
    """A public key for SSH."""

    id: str = ""
    name: str = ""
    user: str = ""
    kind: str = ""
    fingerprint: str = ""
    created_at: str = ""
    last_used_at: str | None = None


@dataclass(frozen=True, slots=True)
class Gateway(Told):
    """Where running work is entered; None: that door is not open."""

    url: str | None = None
    ssh_host: str | None = None
    ssh_port: int | None = None
    host_key: str | None = None
    host_public_key: str | None = None


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """As whom the server sees this client."""

    user: User
    scope: str
    via: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def engine(self) -> str:
        """What runs the work on this server: process, container or simulated; empty when it does not say."""
        return str(self.raw.get("engine") or "")

    @property
    def role(self) -> str:
        """What the user is, whatever the token in use may do: admin, lead or member."""
        told = self.raw.get("role") or self.user.raw.get("role")
        if told:
            return str(told)
        roles = {"admin"} if self.user.admin else {membership.role for membership in self.user.memberships}
        return next((role for role in ("admin", "lead") if role in roles), "member")


@dataclass(frozen=True, slots=True)
class AuditLine(Told):
    id: int = 0
    at: str = ""
    who: str = ""
    action: str = ""
    object: str = ""
    address: str = ""
    outcome: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
