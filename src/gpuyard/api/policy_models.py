"""What goes over the wire about policies and the merging of groups."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from gpuyard.api.models import In, Number, Out, PersonName, QuotaOut

Path = Annotated[str, StringConstraints(max_length=200)]


class PolicySet(In):
    set: dict[Path, Any] = Field(
        min_length=1,
        max_length=64,
        description="null or empty: back to the default",
        examples=[{"order.half_life": "3d"}],
    )


class PolicyDifference(Out):
    key: str = Field(examples=["order.half_life"])
    before: Any = Field(description="null: it was not there")
    after: Any


class PolicyChanged(Out):
    policy: dict[str, Any] = Field(description="the whole document, as it is now")
    changed: list[PolicyDifference]
    warnings: list[str] = Field(description="what the admin should know, in the language asked for")


class WorkBrief(Out):
    id: str
    name: str
    owner: str
    group: str
    cards: Number
    device: str | None


class EvictionOut(Out):
    work: WorkBrief
    by: str = Field(description="the id of the workload it makes room for")
    rule: str
    lost_seconds: float = Field(description="since its work was last saved")


class MoveOut(Out):
    work: WorkBrief
    before: int | None = Field(description="place among the waiting, counted from 1; null: it does not wait")
    after: int | None


class TallyOut(Out):
    starting: int
    waiting: int
    evicted: int


class GroupTally(Out):
    group: str
    before: TallyOut
    after: TallyOut


class PolicyTried(Out):
    """What would change on the present cluster. Nothing was changed."""

    changed: list[PolicyDifference]
    warnings: list[str]
    starts: list[WorkBrief] = Field(description="would start now, and do not; at most 50 are told")
    starts_count: int
    stays: list[WorkBrief] = Field(description="start now, and would not")
    stays_count: int
    evictions: list[EvictionOut] = Field(description="would make room, and do not")
    evictions_count: int
    spared: list[WorkBrief] = Field(description="make room now, and would not")
    spared_count: int
    moves: list[MoveOut] = Field(description="whose place among the waiting would be another one")
    moves_count: int
    groups: list[GroupTally]


class MergeIn(In):
    into: PersonName = Field(description="the group that stays")
    preview: bool = Field(default=False, description="only say what would happen")


class MergeOut(Out):
    source: str
    into: str
    done: bool
    joining: list[str] = Field(description="members that come into the target")
    leads_no_more: list[str] = Field(description="leads of the source that are plain members of the target")
    quotas: list[QuotaOut] = Field(description="of the target, afterwards")
    live: int = Field(description="workloads that wait, run or are paused; they go on")
    running: int
    ended: int
    warnings: list[str]
