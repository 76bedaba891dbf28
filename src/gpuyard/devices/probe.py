"""What every kind of card can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuyard.domain.cluster import Card


@dataclass(frozen=True, slots=True)
class CardReading:
    """How busy one card is now."""

    device: str
    index: int
    percent: float | None  # None: the device does not tell
    memory: int


class DeviceProbe(Protocol):
    def look(self) -> Sequence[Card]:
        """The cards of this kind there are now; none when the machine has none or its driver is not there."""

    def read(self) -> Sequence[CardReading]:
        """How busy they are; those that do not tell are left out."""

    def close(self) -> None: ...
