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
