"""What the databases' own errors mean to a person: busy, full, broken, or gone for a moment."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError, TimeoutError

from gpuyard.domain.errors import Unavailable, YardError
from gpuyard.domain.reasons import Code, because

_SQLITE_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# A full disk shows as FULL on most writes, and as a failed write or a failed growth of the shared memory on others.
_SQLITE_FULL = {sqlite3.SQLITE_FULL}
_SQLITE_FULL_EXTENDED = {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_POSTGRES_FULL = "53100"
_POSTGRES_LOCK_TIMEOUT = "55P03"
# Too many connections, shutting down, crashed, starting up: it may be well again in a moment.
_POSTGRES_COMES_BACK = ("53300", "57P01", "57P02", "57P03")


def is_connection_loss(error: DBAPIError) -> bool:
    """True when the server is away or has just come back: worth asking again if nothing was sent yet."""
    if isinstance(error.orig, sqlite3.Error):
        return False
    state = _sqlstate(error.orig)
    return bool(error.connection_invalidated) or state in _POSTGRES_COMES_BACK or _never_connected(error.orig)


def explain(error: DBAPIError | TimeoutError, path: Path | None, waited_seconds: float) -> YardError | None:
    """The same failure as a person should hear it; None when it is a mistake of ours and must stay as it is."""
    if isinstance(error, TimeoutError):
        return busy(waited_seconds)
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _explain_sqlite(cause, path, waited_seconds)
    if _sqlstate(cause) == _POSTGRES_FULL:
        return Unavailable(because(Code.STORE_FULL))
    if _sqlstate(cause) == _POSTGRES_LOCK_TIMEOUT or is_connection_loss(error):
        return busy(waited_seconds)
    return None


def busy(seconds: float) -> Unavailable:
    return Unavailable(because(Code.BUSY_STORE, seconds=seconds))


def corrupt(path: Path | None, detail: str) -> Unavailable:
    command = f"yard restore FILE --data {path.parent} --force" if path else "yard restore FILE --force"
    return Unavailable(because(Code.STORE_CORRUPT, path=str(path or ""), detail=detail, command=command))


def _explain_sqlite(cause: sqlite3.Error, path: Path | None, waited_seconds: float) -> YardError | None:
    extended = getattr(cause, "sqlite_errorcode", 0)
    primary = extended & 0xFF
    if primary in _SQLITE_BUSY:
        return busy(waited_seconds)
    if primary in _SQLITE_FULL or extended in _SQLITE_FULL_EXTENDED:
        return Unavailable(because(Code.STORE_FULL))
    if primary in _SQLITE_BROKEN:
        return corrupt(path, str(cause))
    return None


def _sqlstate(cause: Any) -> str | None:
    return getattr(cause, "sqlstate", None)


def _never_connected(cause: Any) -> bool:
    """psycopg tells a failed connect by an OperationalError without a state; wrong passwords come with one or FATAL."""
    import psycopg

    if not isinstance(cause, psycopg.OperationalError) or _sqlstate(cause) is not None:
        return False
    text = str(cause)
    return "FATAL" not in text or any(word in text for word in ("starting up", "shutting down", "recovery", "too many"))
