"""The shape of the answers to `why`: the proof that something waits, who comes first, and what would start it."""

from __future__ import annotations

from pydantic import Field

from gpuyard.api.models import EstimateOut, Facts, OfferOut, Out
from gpuyard.domain.workload import State


class ReasonOut(Out):
    code: str
    facts: Facts
    words: str


class AheadOut(Out):
    id: str
    group: str
    name: str | None = Field(description="null for what is not the asker's to see")
    owner: str | None
    rule: ReasonOut = Field(description="why it comes first, with the numbers of both")


class RemedyOut(OfferOut):
    command: str = Field(description="what to type: the waiting one is replaced, and the new one takes its place")


class WhyOut(Out):
    id: str
    name: str
    state: State
    reason: str
    reason_code: str
    reason_facts: Facts
    sort: str | None = Field(description="never, quota, busy, order or trouble; null when it does not wait")
    sort_words: str | None
    facts: list[ReasonOut] = Field(description="the smallest set of facts that shows it")
    position: int | None = Field(description="how many wait before it; null when it does not wait")
    ahead: list[AheadOut] = Field(description="those that wait before it, the next one first")
    remedies: list[RemedyOut]
    expected_start: EstimateOut | None = Field(default=None, description="of what waits")
    expected_end: EstimateOut | None = Field(default=None, description="of what runs")


class BeforeOut(Out):
    """Which of two comes or came first, and by which rule."""

    first: str
    other: str
    as_asked: bool = Field(description="false: it is the other way round than the question supposed")
    rule: ReasonOut
