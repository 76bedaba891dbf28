"""Which reasons to wait are written when: a new kind of reason soon, new numbers of an old one little by little."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import State, Workload

# What is written in one pass, and of mere numbers in one second: ten thousand waiting jobs must not hold up the one
# that can start. Whoever wants to know exactly asks why, and is answered from the books.
NEW_AT_ONCE = 500
NUMBERS_A_SECOND = 100


class Teller:
    """Keeps what is still to be written. What is lost with it is told anew by a new control."""

    def __init__(self) -> None:
        self._new: dict[str, Reason] = {}
        self._numbers: dict[str, Reason] = {}  # the kind of reason is as written, only its numbers are not
        self._numbers_at = 0.0

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

    def choose(self, live: Mapping[str, Workload], now: float) -> dict[str, Reason]:
        """Some of them, to be written now. Those who do not wait any more are dropped."""
        chosen = _first(self._new, live, NEW_AT_ONCE)
        if self._numbers and now >= self._numbers_at:
            self._numbers_at = now + 1.0
            chosen.update(_first(self._numbers, live, NUMBERS_A_SECOND))
        return chosen

    def told(self, reasons: Mapping[str, Reason]) -> None:
        """These are written."""
        for id in reasons:
            self._new.pop(id, None)
            self._numbers.pop(id, None)


def _first(pending: dict[str, Reason], live: Mapping[str, Workload], most: int) -> dict[str, Reason]:
    found: dict[str, Reason] = {}
    gone: list[str] = []
    for id, reason in pending.items():
        if len(found) >= most:
            break
        if id in live and live[id].state is State.QUEUED:
            found[id] = reason
        else:
            gone.append(id)
    for id in gone:
        del pending[id]
    return found
