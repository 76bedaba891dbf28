"""Many small writes in one transaction: waiting for the disk once serves everyone who came meanwhile.

Making a transaction durable takes milliseconds, and there is one writer. So whoever comes first writes for all who
wait; the more clients there are, the more share one wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from gpuyard.domain.errors import YardError
from gpuyard.store.database import Connection, Database

MOST_AT_ONCE = 64
T = TypeVar("T")


class _Errand:
    """One caller's part of a transaction, and what came of it."""

    def __init__(self, work: Callable[[Connection], Any]) -> None:
        self.work = work
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def carry_out(self, conn: Connection) -> None:
        """A refusal is this caller's alone: it is raised before anything was written, so the others go on."""
        self.result, self.error = None, None
        try:
            self.result = self.work(conn)
        except YardError as refusal:
            self.error = refusal

    def fail(self, error: BaseException) -> None:
        self.result, self.error = None, error


class Together:
    """Runs pieces of writing, several in one transaction. Safe to use from any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Errand] = []
        self._list_lock = threading.Lock()
        self._turn = threading.Lock()

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a write transaction and return once it is durable. It may be run again if the first try fails,
        and must refuse, if it refuses, before it writes."""
        errand = _Errand(work)
        with self._list_lock:
            self._waiting.append(errand)
        with self._turn:
            while not errand.done:  # mostly whoever had the turn before has done it
                self._write_for_all()
        if errand.error is not None:
            raise errand.error
        result: T = errand.result
        return result

    def _write_for_all(self) -> None:
        with self._list_lock:
            errands, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
        try:
            self._one_transaction(errands)
        except YardError as error:  # the store is busy or full, and is so for everyone
            for errand in errands:
                errand.fail(error)
        except Exception:  # somebody's errand broke the transaction: each for itself then
            for errand in errands:
                self._alone(errand)
        finally:
            for errand in errands:
                errand.done = True

    def _one_transaction(self, errands: list[_Errand]) -> None:
        with self._database.write() as conn:
            for errand in errands:
                errand.carry_out(conn)

    def _alone(self, errand: _Errand) -> None:
        try:
            self._one_transaction([errand])
        except Exception as error:
            errand.fail(error)
