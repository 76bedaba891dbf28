"""Guesses when waiting work will start and writes that down, and later how long it really waited: so guesses improve.

A thread of its own: a look ahead takes a moment, and holds up nobody.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from gpuyard.domain.errors import YardError
from gpuyard.domain.workload import State, Workload
from gpuyard.forecast.calibration import OPEN_AT_MOST
from gpuyard.store import guesses as rows
from gpuyard.store import workloads as workload_rows
from gpuyard.store.database import Database
from gpuyard.world.outlook import Outlook

log = logging.getLogger(__name__)

EVERY_SECONDS = 20.0


class Guesser:
    def __init__(self, database: Database, outlook: Outlook, waiting: Callable[[], list[Workload]]) -> None:
        self._database = database
        self._outlook = outlook
        self._waiting = waiting
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            self._outlook.wanted.wait(EVERY_SECONDS)
            if self._over.is_set():
                return
            try:
                if self._outlook.wanted.is_set():
                    self._outlook.wanted.clear()
                    self._outlook.look_anew()
                self.look()
            except (YardError, OSError):
                log.exception("guessing when work starts failed; trying again")

    def end(self) -> None:
        self._over.set()
        self._outlook.wanted.set()

    def look(self) -> None:
        """Settle what is known by now, and guess for those that are new."""
        waiting = {workload.id: workload for workload in self._waiting()}
        open = self._outlook.open_guesses()
        gone = {guess.workload: guess.at for guess in open if guess.workload not in waiting}
        waited = self._waited(gone)
        known = {guess.workload for guess in open}
        new = [id for id in waiting if id not in known][: max(0, OPEN_AT_MOST - len(open) + len(gone))]
        made = self._outlook.guess(new) if new else []
        if not made and not waited:
            return
        with self._database.write() as conn:
            rows.add(conn, [rows.GuessRow(*guess) for guess in made])
            rows.settle(conn, waited)
            rows.forget_old(conn)
        self._outlook.remember(made, waited)

    def _waited(self, gone: dict[str, float]) -> dict[str, float | None]:
        """How long those waited that wait no more; None when they never started."""
        if not gone:
            return {}
        with self._database.read() as conn:
            found = {workload.id: workload for workload in workload_rows.get_many(conn, sorted(gone))}
        return {id: _wait(found.get(id), at) for id, at in gone.items()}


def _wait(workload: Workload | None, since: float) -> float | None:
    attempt = workload.attempt if workload is not None and workload.state is not State.QUEUED else None
    return None if attempt is None or attempt.created_at < since else attempt.created_at - since
