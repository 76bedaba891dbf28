"""When somebody last worked in each workload: noted at once in memory, and in the store at most once a minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from gpuyard.domain.errors import YardError
from gpuyard.store import workplaces
from gpuyard.store.database import Database

NOTE_SECONDS = 60.0
_log = logging.getLogger(__name__)


class Activity:
    """`used` costs next to nothing; `write` is called now and then, in a thread."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._new: dict[str, None] = {}
        self._written: dict[str, float] = {}

    def used(self, workload: str) -> None:
        self._new[workload] = None

    @property
    def due(self) -> list[str]:
        """Those used since they were last written down, if that was a minute ago."""
        now = time.monotonic()
        return [id for id in list(self._new) if now - self._written.get(id, -NOTE_SECONDS) >= NOTE_SECONDS]

    def write(self) -> None:
        due, now = self.due, time.monotonic()
        if not due:
            return
        try:
            with self._database.write() as conn:
                for id in due:
                    workplaces.touch(conn, id, self._clock())
        except YardError as error:  # a busy store: the next round will do
            _log.warning("use was not noted: %s", error)
            return
        for id in due:
            self._new.pop(id, None)
            self._written[id] = now
        self._written = {id: at for id, at in self._written.items() if now - at < 2 * NOTE_SECONDS}
