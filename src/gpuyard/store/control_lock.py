"""One control at a time. Who holds the lock has an epoch; a holder that lost it unawares is stopped by the next epoch.

SQLite: a lock on the file `<database>.control`, let go by the kernel when the process dies. PostgreSQL: an advisory
lock of a session on a connection of its own, never from a pool, let go by the server when the connection dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy as sa

from gpuyard.domain.errors import Conflict, Unavailable
from gpuyard.domain.reasons import Code, because
from gpuyard.store import facts, failures
from gpuyard.store.database import Database, libpq_url

if TYPE_CHECKING:
    import psycopg

CONTROL_LOCK = 0x67707502  # the PostgreSQL advisory lock the control holds
_EPOCH = "control.epoch"
_HOLDER = "control.holder"


class LostControl(Exception):
    """Another control has taken over. This one must write nothing more and end."""


class _Hold(Protocol):
    def take(self) -> bool: ...

    def keep(self) -> bool: ...

    def let_go(self) -> None: ...


class ControlLock:
    """The right to decide and act, held by one process."""

    def __init__(self, hold: _Hold, epoch: int) -> None:
        self._hold = hold
        self.epoch = epoch

    @classmethod
    def acquire(cls, database: Database, who: str) -> ControlLock:
        """Take the lock, or raise Conflict naming who has it."""
        hold = hold_for(database)
        if not hold.take():
            with database.read() as conn:
                holder = facts.get(conn, _HOLDER) or ""
            raise in_use(database, holder)
        try:
            with database.write() as conn:
                epoch = int(facts.get(conn, _EPOCH) or 0) + 1
                facts.put(conn, _EPOCH, str(epoch))
                facts.put(conn, _HOLDER, who)
        except BaseException:
            hold.let_go()
            raise
        return cls(hold, epoch)

    def check(self, conn: sa.Connection) -> None:
        """Call inside each write transaction: raises LostControl when a newer holder has been there."""
        if int(facts.get(conn, _EPOCH) or 0) != self.epoch:
            raise LostControl

    def renew(self, database: Database) -> None:
        """Call now and then: takes the lock again if a lost connection let it go. Raises LostControl if it is taken."""
        if not self._hold.keep():
            raise LostControl
        with database.read() as conn:
            self.check(conn)

    def release(self) -> None:
        self._hold.let_go()


def hold_for(database: Database) -> _Hold:
    return _FileHold(control_file(database.path)) if database.path else _PostgresHold(libpq_url(database.url))


def control_file(path: Path) -> Path:
    return path.with_name(path.name + ".control")


def in_use(database: Database, holder: str) -> Conflict:
    name = str(database.path or database.url.render_as_string(hide_password=True))
    return Conflict(because(Code.IN_USE, what="database", name=name, by=holder))


class _FileHold:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self) -> bool:
        file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def keep(self) -> bool:
        """The kernel keeps it for us, unless somebody removed the file under it: then the lock means nothing."""
        if self._file is None:
            return False
        try:
            return os.fstat(self._file).st_ino == self._path.stat().st_ino
        except FileNotFoundError:
            return False

    def let_go(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _PostgresHold:
    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[Any] | None = None

    def take(self) -> bool:
        import psycopg

        try:
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=5)
            if self._ask(f"SELECT pg_try_advisory_lock({CONTROL_LOCK})"):
                return True
        except psycopg.OperationalError as error:
            self.let_go()
            raise failures.busy(0.0) from error
        self.let_go()
        return False

    def keep(self) -> bool:
        """Still connected means still held. A server that is away for a moment is not a loss: ask again later."""
        import psycopg

        try:
            if self._connection is not None and self._ask("SELECT 1"):
                return True
        except psycopg.OperationalError:
            self.let_go()
        try:
            return self.take()
        except Unavailable:
            return True

    def let_go(self) -> None:
        """In words, as far as one is heard: a busy server takes its time to notice that somebody is gone."""
        import psycopg

        if self._connection is not None:
            with contextlib.suppress(psycopg.OperationalError):
                self._ask("SELECT pg_advisory_unlock_all() IS NULL")
            self._connection.close()
            self._connection = None

    def _ask(self, question: str) -> bool:
        assert self._connection is not None
        row = self._connection.execute(question).fetchone()
        return bool(row and row[0])
