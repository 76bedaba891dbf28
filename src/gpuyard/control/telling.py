"""Writes why the waiting wait: a new kind of reason first, new numbers of an old one little by little."""

from __future__ import annotations

from collections.abc import Mapping

from gpuyard.domain.reasons import Reason
from gpuyard.domain.workload import State, Workload
from gpuyard.store import workloads as workload_rows
from gpuyard.store.control_lock import ControlLock
from gpuyard.store.database import Database
from gpuyard.world.picture import Picture

# Reasons written in one pass: ten thousand waiting jobs must not hold up the one that can start.
AT_ONCE = 500
NUMBERS_AT_ONCE = 100  # of these only the numbers changed


class Teller:
    """Keeps what is still to be written. What is lost with it is told anew by a new control."""

    def __init__(self) -> None:
        self._pending: dict[str, Reason] = {}

    def add(self, reasons: Mapping[str, Reason]) -> None:
        self._pending.update(reasons)

    def write(self, database: Database, lock: ControlLock, picture: Picture, now: float) -> bool:
        """Write some of them. True when there are more."""
        if not self._pending:
            return False
        chosen = self._choose(picture.live)
        if chosen:
            with database.write() as conn:
                lock.check(conn)
                workload_rows.set_reasons(conn, chosen, now)
            picture.told(chosen)
            for id in chosen:
                del self._pending[id]
        return bool(self._pending)

    def _choose(self, live: Mapping[str, Workload]) -> dict[str, Reason]:
        chosen: dict[str, Reason] = {}
        numbers = 0
        for id, reason in list(self._pending.items()):
            workload = live.get(id)
            if workload is None or workload.state is not State.QUEUED or workload.reason == reason:
                del self._pending[id]
                continue
            if workload.reason.code is reason.code:
                numbers += 1
                if numbers > NUMBERS_AT_ONCE:
                    continue
            chosen[id] = reason
            if len(chosen) >= AT_ONCE:
                break
        return chosen
