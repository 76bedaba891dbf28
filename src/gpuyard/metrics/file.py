"""The metrics' own SQLite file: opened for each use, made anew when it is lost, broken or of another version.

Nothing in it is worth waiting for, so it is written without waiting for the disk, and a busy file is given up soon.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

SCHEMA_VERSION = 1
WAIT_SECONDS = 1.0

# `raw` grows at its end only, which keeps adding cheap; `minutes` is written once a minute and read by replica.
_SCHEMA = (
    "CREATE TABLE raw (at REAL, replica TEXT, measures TEXT NOT NULL, PRIMARY KEY (at, replica)) WITHOUT ROWID",
    "CREATE TABLE minutes (replica TEXT, at REAL, measures TEXT NOT NULL, PRIMARY KEY (replica, at)) WITHOUT ROWID",
    "CREATE INDEX minutes_by_time ON minutes (at)",
    "CREATE TABLE latest (replica TEXT PRIMARY KEY, at REAL NOT NULL, cores REAL, usage TEXT NOT NULL) WITHOUT ROWID",
    "CREATE INDEX latest_by_time ON latest (at)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_log = logging.getLogger(__name__)
T = TypeVar("T")


class MetricsFile:
    """One SQLite file. Every use is one transaction on a connection of its own: no state to lose or to share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """Look at the file. Raises sqlite3.OperationalError when it is busy or cannot be opened."""
        return self._run("BEGIN", use)

    def write(self, use: Callable[[sqlite3.Connection], T]) -> T:
        """Change the file, all or nothing. Raises sqlite3.OperationalError when it is busy or cannot be written."""
        return self._run("BEGIN IMMEDIATE", use)

    def _run(self, begin: str, use: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return self._run_once(begin, use)
        except sqlite3.OperationalError:  # busy or full: the file itself is well
            raise
        except sqlite3.DatabaseError as error:
            _log.warning("%s cannot be read and is made anew: %s", self._path, error)
            self._remove()
            return self._run_once(begin, use)

    def _run_once(self, begin: str, use: Callable[[sqlite3.Connection], T]) -> T:
        with closing(self._open()) as connection:
            _prepare(connection)
            connection.execute(begin)
            result = use(connection)
            connection.execute("COMMIT")
            return result  # closing without COMMIT takes everything back

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        return sqlite3.connect(self._path, timeout=WAIT_SECONDS, isolation_level=None)

    def _remove(self) -> None:
        # The file itself last: a log left behind would be read into the new one.
        for ending in ("-wal", "-shm", ""):
            self._path.with_name(self._path.name + ending).unlink(missing_ok=True)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = OFF")
    if _version(connection) == SCHEMA_VERSION:
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    found = _version(connection)  # another process may have been faster
    if found not in (0, SCHEMA_VERSION):
        raise sqlite3.DatabaseError(f"it has version {found}, expected {SCHEMA_VERSION}")
    if found == 0:
        for statement in _SCHEMA:
            connection.execute(statement)
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
