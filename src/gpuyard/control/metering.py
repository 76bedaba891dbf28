"""Which cards that are given out are busy, from measurements that come every few seconds."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from gpuyard.control.resting import BUSY_CARD_PERCENT
from gpuyard.domain.usage import Usage
from gpuyard.domain.workload import ReplicaId

IDLE_AFTER_SECONDS = 30.0  # a card that was busy is idle once no measurement found it busy for so long


class _Reading(NamedTuple):
    busy: bool
    busy_at: float


class CardMeter:
    """The sampler notes, control asks. Kept in memory only: the first measurement tells again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[ReplicaId, dict[int, _Reading]] = {}
        self._changed: set[ReplicaId] = set()

    def note(self, now: float, usages: Mapping[ReplicaId, Usage]) -> None:
        with self._lock:
            for id, usage in usages.items():
                before = self._readings.get(id, {})
                told = {card.index: card.percent for card in usage.cards if card.percent is not None}
                after = {index: _read(before.get(index), percent, now) for index, percent in told.items()}
                if after:
                    self._readings[id] = after
                else:
                    self._readings.pop(id, None)
                if {i: r.busy for i, r in before.items()} != {i: r.busy for i, r in after.items()}:
                    self._changed.add(id)
            for gone in self._readings.keys() - usages.keys():
                del self._readings[gone]
                self._changed.add(gone)

    def is_busy(self, replica: ReplicaId, card: int) -> bool | None:
        """None: nobody measures it, or the device does not tell."""
        if not self._readings:
            return None
        reading = self._readings.get(replica, {}).get(card)
        return None if reading is None else reading.busy

    def take_changed(self) -> set[ReplicaId]:
        """Replicas whose cards are told otherwise since this was last asked."""
        if not self._changed:
            return set()
        with self._lock:
            changed, self._changed = self._changed, set()
        return changed


def _read(before: _Reading | None, percent: float, now: float) -> _Reading:
    if percent >= BUSY_CARD_PERCENT:
        return _Reading(True, now)
    if before is None:  # seen for the first time: what is measured counts at once
        return _Reading(False, now)
    return _Reading(before.busy and now - before.busy_at < IDLE_AFTER_SECONDS, before.busy_at)
