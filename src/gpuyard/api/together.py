"""Many small writes in one transaction: waiting for the disk once serves everyone who came meanwhile.

Making a transaction durable takes milliseconds, and there is one writer. So while one transaction is on its way, those
who come wait together and share the next. The more clients there are, the more share one wait, and one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from gpuyard.domain.errors import YardError
from gpuyard.store.database import Connection, Database

MOST_AT_ONCE = 64
T = TypeVar("T")


class _Errand:
    """One caller's part of a transaction, and what came of it."""

    def __init__(self, work: Callable[[Connection], Any], answer: asyncio.Future[Any]) -> None:
        self.work = work
        self.answer = answer
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

    def tell(self) -> None:
        if self.answer.done():  # nobody waits any more
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)


class Together:
    """Runs pieces of writing, several in one transaction. Belongs to one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Errand] = []
        self._writing: asyncio.Task[None] | None = None
        self._thread: anyio.CapacityLimiter | None = None

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a write transaction and return once it is durable. It may be run again if the first try fails,
        and must refuse, if it refuses, before it writes."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Errand(work, answer))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all_there_is())
        return await answer

    async def _write_all_there_is(self) -> None:
        if self._thread is None:  # its own, so that slow requests elsewhere never keep writers waiting
            self._thread = anyio.CapacityLimiter(1)
        while self._waiting:
            errands, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            try:
                await anyio.to_thread.run_sync(self._carry_out, errands, limiter=self._thread)
            except BaseException as error:  # the server is ending: nobody is left without an answer
                for errand in errands:
                    errand.fail(error)
                raise
            finally:
                for errand in errands:
                    errand.tell()

    def _carry_out(self, errands: list[_Errand]) -> None:
        try:
            self._one_transaction(errands)
        except YardError as error:  # the store is busy or full, and is so for everyone
            for errand in errands:
                errand.fail(error)
        except Exception:  # somebody's errand broke the transaction: each for itself then
            for errand in errands:
                self._alone(errand)

    def _one_transaction(self, errands: list[_Errand]) -> None:
        with self._database.write() as conn:
            for errand in errands:
                errand.carry_out(conn)

    def _alone(self, errand: _Errand) -> None:
        try:
            self._one_transaction([errand])
        except Exception as error:
            errand.fail(error)
