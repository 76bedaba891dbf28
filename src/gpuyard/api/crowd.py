"""How much each user has waiting or running: enough is enough, so that nobody fills the queue for everyone.

Counted in the store at most once a second and user, and added up in between: this is asked at every submit.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because
from gpuyard.store import workloads
from gpuyard.store.database import Connection

RECOUNT_SECONDS = 1.0
RETRY_SECONDS = 30.0


@dataclass(slots=True)
class _Count:
    number: int
    at: float


class Crowd:
    """What everyone has live, as far as known."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[str, _Count] = {}
        self._lock = threading.Lock()

    def let_in(self, conn: Connection, owner: str, now: float) -> None:
        """One more of this owner, or TooMany. Asked in the transaction that writes it, before it does."""
        with self._lock:
            count = self._counts.get(owner)
            if count is None or not 0 <= now - count.at < RECOUNT_SECONDS:
                count = self._counts[owner] = _Count(workloads.count_live(conn, owner), now)
            if count.number >= self._most:
                raise TooMany(because(Code.TOO_MANY_LIVE, limit=self._most), RETRY_SECONDS)
            count.number += 1
