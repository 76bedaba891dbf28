"""The shape of the overview: the board of machines and cards, and the line of those that wait."""

from __future__ import annotations

from pydantic import Field

from gpuyard.api.models import Instant, Number, Out
from gpuyard.domain.workload import Kind, State


class BoardCard(Out):
    index: int
    device: str
    model: str
    simulated: bool
    used: float = Field(description="how much of it is given out, 0 to 1")
    trouble: str | None
    work: list[str] = Field(description="ids of the work it is given to; see `works`")


class BoardNode(Out):
    name: str
    state: str
    cpu: Number
    cpu_used: Number
    memory: int
    memory_used: int
    labels: dict[str, str]
    cards: list[BoardCard]


class BoardWork(Out):
    """Names are null for what is not the asker's to see."""

    name: str | None
    owner: str | None
    group: str | None
    kind: Kind
    state: State


class BoardOut(Out):
    nodes: list[BoardNode]
    works: dict[str, BoardWork]
    percent: dict[str, dict[str, float]] = Field(
        description="by machine and card: how busy it was when it was last measured, in percent"
    )


class QueueLine(BoardWork):
    id: str
    position: int = Field(description="1 is asked first")
    mine: bool
    cards: Number
    device: str | None
    priority: int
    submitted_at: Instant


class QueueOut(Out):
    waiting: int = Field(description="how many wait in all")
    items: list[QueueLine]
