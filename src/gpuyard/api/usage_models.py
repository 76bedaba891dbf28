"""What goes over the wire about use: what replicas took of cores, memory and cards."""

from __future__ import annotations

from gpuyard.api.models import CardUseOut, Instant, Out


class UsagePoint(Out):
    at: Instant
    cores: float | None
    memory: int
    cards: list[CardUseOut]


class ReplicaSeries(Out):
    replica: str
    attempt: int
    points: list[UsagePoint]


class UsageOut(Out):
    items: list[ReplicaSeries]
