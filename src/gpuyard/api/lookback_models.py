"""What goes over the wire about the journal of decisions and what is found in it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from gpuyard.api.models import In, Instant, Out
from gpuyard.api.moments import When
from gpuyard.api.policy_models import PolicyDifference


class ReplayIn(In):
    since: When | None = None
    until: When | None = None
    last: int | None = Field(
        default=None,
        ge=1,
        le=10_000_000,
        description="only the last so many cycles; with `job`, of those that tell of it",
    )
    job: str | None = Field(
        default=None, min_length=1, max_length=80, description="only cycles that decided over this one: id or name"
    )


class JournalOut(Out):
    kept: bool
    segments: int
    bytes: int
    since: Instant | None = Field(description="the beginning of the oldest segment")
    problem: str = Field(description="why nothing is written now; empty when all is well")
    damaged: list[str] = Field(
        description="segments that could not be read to their end when a replay or what-if of this server last did"
    )


class DifferenceOut(Out):
    at: Instant
    what: str = Field(
        description="placement, eviction, waiting, order, or what else a plan holds", examples=["waiting"]
    )
    workload: str
    then: Any = Field(description="as it was decided; null: not at all")
    now: Any = Field(description="as it is decided now")


class UnreadableOut(Out):
    segment: str
    at: int
    torn: bool = Field(description="it just ends there: its writer was killed, or writes it just now")
    problem: str


class MomentOut(Out):
    at: Instant
    what: Literal["placed", "evicted", "makes_room", "waits"]
    facts: dict[str, Any]
    text: str


class ReplayOut(Out):
    same: bool = Field(description="everything was decided again as it was, and nothing is damaged")
    cycles: int
    placements: int = Field(description="with `job`: of this one only, as all numbers up to `reasons`")
    evictions: int
    reasons: int = Field(description="told to those that wait")
    first: Instant | None
    last: Instant | None
    lost_cycles: int = Field(description="between these that were never written down")
    versions: list[str] = Field(description="of gpuyard, that decided then")
    differing: int
    differences: list[DifferenceOut] = Field(description="at most 100")
    unreadable: list[UnreadableOut]
    moments: list[MomentOut] = Field(description="with `job`: what each cycle said of it; the last 1000")


class WaitsOut(Out):
    jobs: int
    mean: float = Field(
        description="seconds until the first start, without pauses; of those that never started, so far"
    )
    median: float
    p90: float
    never_started: int


class NumbersOut(Out):
    waits: WaitsOut
    utilisation: float | None = Field(description="of the cards there were, from 0 to 1; null: there were none")
    preemptions: int = Field(description="moves among them")
    lost_seconds: float = Field(description="of work that had to be done again")
    ended: int


class ReallyOut(WaitsOut):
    utilisation: float | None = Field(description="of the cards there were, from 0 to 1; null: there were none")
    preemptions: int = Field(description="moves among them")
    lost_seconds: float = Field(description="of work that had to be done again")
    ended: int


class PartyOut(Out):
    name: str = Field(description="of the group, the person or the job")
    id: str = Field(description="of the job; empty for groups and persons")
    group: str
    owner: str
    jobs: int
    before: float = Field(description="mean wait in seconds under the policy in force")
    after: float
    preempted_before: int
    preempted_after: int


class WhatIfOut(Out):
    begin: Instant
    until: Instant
    jobs: int = Field(description="workloads, each once; 0: the journal holds nothing of that time")
    guessed: int = Field(description="jobs that never ran: their run time is a guess")
    lost_cycles: int
    unreadable: list[UnreadableOut] = Field(
        description="what only the damaged rest of these tells of is missing in all numbers"
    )
    changed: list[PolicyDifference] = Field(description="what the other policy has different from the one in force")
    really: ReallyOut = Field(description="as it was, under the policies of that time")
    present: NumbersOut
    other: NumbersOut
    groups: list[PartyOut] = Field(description="those that gain most first")
    users: list[PartyOut]
    gaining: list[PartyOut] = Field(description="jobs; at most ten")
    gain_count: int
    losing: list[PartyOut]
    lose_count: int


class RunOut(Out):
    id: str
    what: Literal["replay", "what_if"]
    state: Literal["running", "done", "failed"]
    done: int = Field(description="parts that are done, of `of`")
    of: int
    problem: str
    replay: ReplayOut | None = None
    what_if: WhatIfOut | None = None
