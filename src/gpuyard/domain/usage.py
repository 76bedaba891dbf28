"""What a running replica uses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CardUse:
    index: int
    percent: float | None  # None: the device does not tell
    memory: int


@dataclass(frozen=True, slots=True)
class Usage:
    """One look at what a replica uses."""

    cpu_seconds: float  # since its start
    memory: int
    processes: int = 0
    cards: tuple[CardUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest sign that a replica's work is saved: its beacon, or the newest file of its checkpoint folder."""

    saved_at: float
    step: int | None = None


@dataclass(frozen=True, slots=True)
class PastUse:
    """Card-seconds used in the past, worn down by time: `amount` is its worth at the moment `at`."""

    amount: float
    at: float
