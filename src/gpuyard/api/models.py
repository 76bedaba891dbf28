"""What goes over the wire. In-models take what a client may say, nothing else; out-models are the published promise."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from gpuyard.access.actors import Scope, Via
from gpuyard.domain.people import Role
from gpuyard.domain.workload import Kind, State, Together, Wanted

Number = int | float
Facts = dict[str, Any]
Instant = Annotated[str, Field(description="ISO 8601, UTC", examples=["2026-11-15T08:30:00.123Z"])]
PERSON_PATTERN = r"^[a-z][a-z0-9_-]{0,31}$"
JOB_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
DIGEST_PATTERN = r"^[0-9a-f]{64}$"
PLAIN_PATTERN = r"^[^\x00-\x1f\x7f]*$"
LABEL_PATTERN = r"^[^\x00-\x1f\x7f]+$"
CURSOR_PATTERN = r"^[0-9]{1,15}(\.[0-9]{1,17})?_[a-z0-9]{1,16}$"
COUNT_PATTERN = r"^[0-9]{1,15}$"  # the cursor of a list whose lines are numbered
EVENT_ID_PATTERN = r"^[0-9]{1,16}$"
NO_AMOUNT = "no_amount"
MAX_LABELS = 64  # of one machine
PersonName = Annotated[str, StringConstraints(pattern=PERSON_PATTERN)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=LABEL_PATTERN)]
Password = Annotated[
    str, StringConstraints(min_length=1, max_length=1024), Field(json_schema_extra={"format": "password"})
]
NewPassword = Annotated[  # the lengths are told here and judged in `access`, where the right words are
    str,
    StringConstraints(min_length=1, max_length=1024),
    Field(json_schema_extra={"format": "password", "minLength": 10, "maxLength": 256}),
]
KEEP_TOKENS: bool = Field(default=False, description="left out: they stop working, but for the one that asks")


class In(BaseModel):
    """Sent by a client. Unknown keys are refused, so that nobody sets what is not theirs to set."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Out(BaseModel):
    """Sent to a client."""

    model_config = ConfigDict(extra="forbid")


# --- errors -------------------------------------------------------------------------------------------------------


class ProblemOut(Out):
    code: str
    message: str
    facts: Facts


class ErrorBody(ProblemOut):
    problems: list[ProblemOut] = Field(description="everything that is wrong, when more can be said than the first")


class ErrorOut(Out):
    """How every refusal looks."""

    error: ErrorBody


# --- workloads ----------------------------------------------------------------------------------------------------


class OriginOut(Out):
    """Through which front door it came, and what that door remembers of it."""

    door: str
    facts: dict[str, str]


class EstimateOut(Out):
    """Two moments: as likely before as after p50, and nine times out of ten before p90. Or why nobody knows."""

    p50: Instant | None
    p90: Instant | None
    rough: bool = Field(description="so much is before it that the work was only summed up")
    unknown: str | None = Field(description="why nobody can tell, in the language asked for; null: it is known")
    unknown_code: str | None


class WorkloadOut(Out):
    id: str
    name: str
    kind: Kind
    state: State
    reason: str = Field(description="why it is as it is, in the language asked for")
    reason_code: str
    reason_facts: Facts
    owner: str
    group: str
    priority: int
    wanted: Wanted
    submitted_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    exit_code: int | None
    attempt: int = Field(description="number of the newest attempt; 0 before the first")
    image: str | None
    cards: Number = Field(description="cards over all replicas")
    device: str | None
    replicas: int
    simulated_cards: bool
    saved_step: int | None = Field(description="up to which of its steps it says it has saved its work")
    replicas_by_state: dict[str, int] = Field(
        description="of the newest attempt", examples=[{"pending": 0, "running": 2, "succeeded": 0, "failed": 0}]
    )
    origin: OriginOut | None = Field(description="null: it was described in our own words")
    removed_at: Instant | None = Field(description="when its owner took it off the lists")
    expected_start: EstimateOut | None = Field(
        default=None, description="of what waits; null where there is nothing to tell, and in answers to a change"
    )
    expected_end: EstimateOut | None = Field(default=None, description="of what runs")


class Answered(WorkloadOut):
    """A workload after something was asked of it."""

    warnings: list[str] = Field(description="what the asker should know about it, in the language asked for")
    notes: list[str] = Field(description="what was lost or guessed in reading a file of another system")


class ReplicaOut(Out):
    replica: str = Field(examples=["worker-0"])
    node: str
    cards: list[int] = Field(description="which cards of the node")
    state: str
    exit_code: int | None
    reason: str | None
    started_at: Instant | None
    ended_at: Instant | None
    cpu: Number = Field(description="cores given")
    memory: int = Field(description="bytes given")


class AttemptOut(Out):
    number: int
    created_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    saved_at: Instant | None = Field(
        description="when it last said, or its checkpoint folder showed, that work is saved"
    )
    saved_step: int | None
    reason: str | None
    reason_code: str | None
    replicas: list[ReplicaOut]


class WhereOut(Out):
    """Which machines will do; empty means all."""

    nodes: list[str]
    labels: dict[str, str]


class RoleOut(Out):
    name: str
    replicas: int
    command: list[str]
    image: str | None
    cards: Number
    device: str | None
    models: list[str] = Field(description="any of these models of card will do; empty: every one")
    where: WhereOut
    cpu: Number | None
    memory: int | None
    shm: int | None


class WorkloadDetail(WorkloadOut):
    roles: list[RoleOut]
    attempts: list[AttemptOut]
    retries_used: dict[str, int]
    max_seconds: float | None
    preemptible: bool
    workdir: str | None
    together: Together
    checkpoint: str | None = Field(description="the folder, as the job sees it, where it saves its work")


class WorkloadPage(Out):
    items: list[WorkloadOut]
    next: str | None = Field(description="hand it back as `cursor` for the next page")


class AttemptList(Out):
    items: list[AttemptOut]


class EventOut(Out):
    """One line of a workload's story."""

    at: Instant
    state: State
    attempt: int
    by: str
    code: str
    message: str
    facts: Facts


class EventList(Out):
    items: list[EventOut]


class OfferOut(Out):
    """A change that would start it now: it has been tried on the present state of things."""

    kind: str
    changes: dict[str, str] = Field(examples=[{"cards": "4"}], description="by path in the file; empty: left out")
    nodes: list[str] = Field(description="where it would start")
    words: str


class PreviewOut(Out):
    starts: bool
    never: bool = Field(description="it cannot start as it is, however long it waits")
    reason: str | None
    reason_code: str | None
    reason_facts: Facts
    nodes: list[str]
    position: int
    ahead: list[str]
    problems: list[ProblemOut]
    warnings: list[str] = Field(description="what the owner should know, though it stands in nobody's way")
    notes: list[str] = Field(description="what was lost or guessed in reading a file of another system")
    remedies: list[OfferOut] = Field(description="changes that would start it now; empty unless asked for")
    expected_start: EstimateOut | None = Field(default=None, description="null: at once, or never as it is")


class ReadOut(Out):
    """What a file of another system is as one of ours."""

    dialect: str
    job: dict[str, Any] = Field(description="a job file, ready to be submitted")
    notes: list[ProblemOut] = Field(description="what was lost or guessed on the way")


class RerunIn(In):
    set: dict[Annotated[str, StringConstraints(max_length=200)], Any] = Field(
        default_factory=dict, max_length=64, examples=[{"roles.worker.cards": "4"}]
    )
    instead: bool = Field(default=False, description="in place of a waiting one, which is stopped and leaves its place")


class WorkloadChange(In):
    """What of a workload can be changed after it was submitted."""

    priority: Annotated[str, StringConstraints(max_length=64)] | int = Field(
        description="1 to 1000, larger first, or the name of a class", examples=[200, "high"]
    )


class CardUseOut(Out):
    index: int
    percent: float | None
    memory: int


# --- the cluster --------------------------------------------------------------------------------------------------


class CardOut(Out):
    index: int
    device: str
    model: str
    memory: int
    simulated: bool
    used: float = Field(description="how much of it is given out, 0 to 1")
    trouble: str | None


class NodeOut(Out):
    name: str
    state: str
    cpu: Number
    cpu_used: Number
    memory: int
    memory_used: int
    cards: list[CardOut]
    cards_total: dict[str, int]
    cards_free: dict[str, Number]
    labels: dict[str, str]
    images: list[str] = Field(description="full names of the images it holds; work in them starts without fetching")


class NodeList(Out):
    items: list[NodeOut]


class LabelsIn(In):
    labels: dict[Annotated[str, StringConstraints(max_length=200)], str | None] = Field(
        min_length=1,
        max_length=MAX_LABELS,
        description="labels to set; null takes one away; those not named stay",
        examples=[{"zone": "north", "old": None}],
    )


class LabelsOut(Out):
    name: str
    labels: dict[str, str]


class QuotaOut(Out):
    group: str
    user: str | None = Field(description="null: for the whole group")
    resource: str = Field(description="a device type, cpu or memory")
    limit: Number | None = Field(description="cards, cores or bytes; null: no limit")
    guaranteed: Number = Field(description="what the group can count on; 0: nothing. Only groups have it")
    used: Number
    borrowed: Number = Field(description="of what is used: beyond what is guaranteed to the group")
    lent: Number = Field(description="of what is guaranteed: used by others just now")


class QuotaList(Out):
    items: list[QuotaOut]


class TopReplica(Out):
    workload: str
    name: str
    owner: str
    group: str
    attempt: int
    replica: str
    node: str
    cards: list[int]
    device: str | None
    at: Instant | None = Field(description="when it was last looked at; null: not yet")
    cores: float | None
    cores_given: Number
    memory: int | None
    memory_given: int
    card_use: list[CardUseOut]


class TopOut(Out):
    replicas: list[TopReplica]
    nodes: list[NodeOut]


# --- people -------------------------------------------------------------------------------------------------------


class LoginIn(In):
    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    password: Password


class MembershipOut(Out):
    group: str
    role: Role


class UserOut(Out):
    name: str
    admin: bool
    active: bool
    must_change_password: bool
    uid: int = Field(description="the system user its work runs as; 0: as whoever runs the server")
    memberships: list[MembershipOut]


class LoginOut(Out):
    user: UserOut
    session_key: str = Field(description="send it as X-Session-Key with every request, beside the cookie")
    must_change_password: bool


class WhoAmIOut(Out):
    user: UserOut
    role: Role = Field(description="what the user is: an admin, or the most in any group")
    scope: Scope = Field(description="how far this token or session reaches; it caps what the role allows")
    via: Via
    expires_at: Instant | None
    version: str
    engine: str = Field(description="what runs the work here: process, container or simulated")


class PasswordIn(In):
    old: Password | None = Field(default=None, description="only who owns the data folder may leave it out")
    new: NewPassword
    keep_tokens: bool = KEEP_TOKENS


class UserIn(In):
    name: PersonName
    password: NewPassword | None = Field(default=None, description="left out: one is made, shown once, to be changed")
    role: Annotated[Role, Field(strict=False)] = Role.MEMBER
    group: PersonName | None = Field(default=None, description="left out: the group `default`")


class UserChange(In):
    admin: bool | None = None
    active: bool | None = None
    must_change_password: bool | None = None


class UserMade(UserOut):
    password: str | None = Field(description="the one-time password, when one was made")


class NewPasswordIn(In):
    password: NewPassword | None = None
    keep_tokens: bool = KEEP_TOKENS


class NewPasswordOut(Out):
    password: str | None


class UserList(Out):
    items: list[UserOut]


def _one_mistake(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Of several kinds of amounts each would complain for itself; once is enough."""
    try:
        return read(value)
    except ValidationError:
        raise PydanticCustomError(NO_AMOUNT, "no amount") from None


Amount = Annotated[Annotated[str, StringConstraints(max_length=32)] | int | float, WrapValidator(_one_mistake)]
Resource = Literal["cpu", "memory", "nvidia", "ascend"]
Limits = dict[Resource, Amount | None]
Weight = Annotated[
    float, Field(ge=0.001, le=1000, description="its part under fair share, beside the other groups' weights")
]
FIFO: bool = Field(default=False, description="inside the group nobody overtakes anybody")


class GroupIn(In):
    name: PersonName
    quota: Limits = Field(default_factory=dict, max_length=32, examples=[{"nvidia": 8, "cpu": 64, "memory": "256G"}])
    guarantees: Limits = Field(default_factory=dict, max_length=32, examples=[{"nvidia": 4}])
    weight: Weight = 1.0
    fifo: bool = FIFO


class QuotaIn(In):
    limits: Limits | None = Field(
        default=None,
        min_length=1,
        max_length=32,
        description="null takes a limit away",
        examples=[{"nvidia": 8, "memory": "256G"}],
    )
    guarantees: Limits | None = Field(
        default=None,
        min_length=1,
        max_length=32,
        description="what the group can count on; null or 0 takes it away. Only admins, only for groups",
        examples=[{"nvidia": 4}],
    )
    user: PersonName | None = Field(default=None, description="left out: for the whole group")


class GroupChange(In):
    quota: Limits | None = Field(default=None, min_length=1, max_length=32)
    guarantees: Limits | None = Field(default=None, min_length=1, max_length=32)
    weight: Weight | None = None
    fifo: bool | None = None


class MemberIn(In):
    role: Literal["lead", "member"] = "member"


class MemberOut(Out):
    user: str
    role: Role


class GroupOut(Out):
    name: str
    members: list[MemberOut]
    quotas: list[QuotaOut]
    used: dict[str, Number] = Field(
        default_factory=dict, description="what its work uses now, by resource, also where there is no quota"
    )
    weight: float
    fifo: bool
    warnings: list[str] = Field(default_factory=list, description="what the asker should know, after a change")


class GroupList(Out):
    items: list[GroupOut]


# --- tokens, audit ------------------------------------------------------------------------------------------------


class TokenIn(In):
    name: Label
    scope: Annotated[Scope, Field(strict=False)] = Scope.WRITE
    days: float | None = Field(default=None, gt=0, le=3660, description="left out: 90 days, or as long as one's own")
    user: PersonName | None = Field(default=None, description="for someone else; admins only")


class TokenOut(Out):
    id: str
    name: str
    user: str
    scope: Scope
    created_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None


class TokenMade(TokenOut):
    token: str = Field(description="the secret, shown this once")


class TokenList(Out):
    items: list[TokenOut]


class KeyIn(In):
    public_key: Annotated[str, StringConstraints(min_length=1, max_length=16384)] = Field(
        description="one line, as in ~/.ssh/id_ed25519.pub", examples=["ssh-ed25519 AAAA... you@laptop"]
    )
    name: Label | None = Field(default=None, description="left out: the comment of the key")


class KeyOut(Out):
    id: str
    name: str
    user: str
    kind: str
    fingerprint: str
    created_at: Instant
    last_used_at: Instant | None


class KeyList(Out):
    items: list[KeyOut]


class OpenIn(In):
    what: Annotated[str, StringConstraints(max_length=20)] = Field(
        default="lab", description="lab, ide, terminal, or p8080 for a port"
    )
    path: Annotated[str, StringConstraints(max_length=2000)] = Field(
        default="", description="where to begin inside; left out: at the first page"
    )


class OpenOut(Out):
    """An address for one visit."""

    url: str


class GatewayOut(Out):
    """Where people enter running work."""

    url: str | None
    ssh_host: str | None
    ssh_port: int | None
    host_key: str | None = Field(description="fingerprint of the SSH host key, as ssh shows it at the first visit")
    host_public_key: str | None = Field(description="the SSH host key itself, as in a known_hosts file")


class Health(Out):
    status: Literal["ok"]
    version: str


class Done(Out):
    done: Literal[True] = True
