"""Which reasons to wait are written when: a new kind of reason soon, new numbers of an old one little by little."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import State, Workload

# Reasons written in one pass: ten thousand waiting jobs must not hold up the one that can start.
NEW_AT_ONCE = 500
NUMBERS_AT_ONCE = 100


class Teller:
    """Keeps what is still to be written. What is lost with it is told anew by a new control."""

    def __init__(self) -> None:
        self._new: dict[str, Reason] = {}
        self._numbers: dict[str, Reason] = {}  # the kind of reason is as written, only its numbers are not

    @property
    def has_news(self) -> bool:
        """Is there more that should be written at once?"""
        return bool(self._new)

    def add(self, reasons: Mapping[str, Reason], live: Mapping[str, Workload]) -> None:
        """These are the reasons now; `live` still has the ones before."""
        for id, reason in reasons.items():
            if id in self._new or live[id].reason.code is not reason.code:
                self._new[id] = reason
                self._numbers.pop(id, None)
            else:
                self._numbers[id] = reason

    def choose(self, live: Mapping[str, Workload]) -> dict[str, Reason]:
        """Some of them, to be written now. Those who do not wait any more are dropped."""
        for pending in (self._new, self._numbers):
            gone = [id for id in pending if id not in live or live[id].state is not State.QUEUED]
            for id in gone:
                del pending[id]
        chosen = dict(islice(self._new.items(), NEW_AT_ONCE))
        chosen.update(islice(self._numbers.items(), NUMBERS_AT_ONCE))
        return chosen

    def told(self, reasons: Mapping[str, Reason]) -> None:
        """These are written."""
        for id in reasons:
            self._new.pop(id, None)
            self._numbers.pop(id, None)
