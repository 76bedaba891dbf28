"""How a process hears that another one changed something: a look at SQLite's data version, or PostgreSQL's LISTEN.

A watch owns one thread and one connection outside the pool, and tells the newest number each time there may be one.
"""

from __future__ import annotations

import logging
import os
import selectors
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import psycopg

CHANNEL = "gpuyard_changes"
_LOOK_EVERY_SECONDS = 0.05
_ASK_EVERY_SECONDS = 5.0  # in case a notice was lost with a connection that still looks alive
_RECONNECT_AFTER_SECONDS = 0.2
_NEWEST = "SELECT coalesce(max(seq), 0) FROM changes"

_log = logging.getLogger(__name__)
Tell = Callable[[int], None]


class Watch(Protocol):
    def start(self, tell: Tell) -> None: ...

    def close(self) -> None: ...


class SqliteWatch:
    """Looks every 50 ms whether any connection has committed. The look reads one page from memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, tell: Tell) -> None:
        self._thread = threading.Thread(target=self._watch, args=(tell,), name="store-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()

    def _watch(self, tell: Tell) -> None:
        while not self._closing.is_set():
            try:
                with closing(sqlite3.connect(self._path, timeout=1.0, isolation_level=None)) as connection:
                    self._follow(connection, tell)
            except sqlite3.Error as error:
                _log.warning("the change watch of %s stumbled and starts anew: %s", self._path, error)
                self._closing.wait(_RECONNECT_AFTER_SECONDS)

    def _follow(self, connection: sqlite3.Connection, tell: Tell) -> None:
        version = None
        while not self._closing.is_set():
            found = connection.execute("PRAGMA data_version").fetchone()[0]
            if found != version:
                version = found
                tell(connection.execute(_NEWEST).fetchone()[0])
            self._closing.wait(_LOOK_EVERY_SECONDS)


class PostgresWatch:
    """Listens on a connection of its own, and connects again whenever the server went away."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._wake_read, self._wake_write = os.pipe()

    def start(self, tell: Tell) -> None:
        self._thread = threading.Thread(target=self._watch, args=(tell,), name="store-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._closing.is_set():
            return
        self._closing.set()
        os.write(self._wake_write, b"x")
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _watch(self, tell: Tell) -> None:
        import psycopg

        lost = False
        while not self._closing.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=5) as connection:
                    lost = False
                    self._follow(connection, tell)
            except psycopg.Error as error:
                if not lost and not self._closing.is_set():
                    _log.warning("the change watch lost PostgreSQL and tries again: %s", error)
                lost = True
                self._closing.wait(_RECONNECT_AFTER_SECONDS)

    def _follow(self, connection: psycopg.Connection[Any], tell: Tell) -> None:
        connection.execute(f"LISTEN {CHANNEL}")
        while not self._closing.is_set():
            row = connection.execute(_NEWEST).fetchone()
            tell(row[0] if row else 0)
            self._wait(connection)

    def _wait(self, connection: psycopg.Connection[Any]) -> None:
        """Sleep until there is something to read, close() is called, or it is time to ask without being told."""
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            selector.select(_ASK_EVERY_SECONDS)
        for _notice in connection.notifies(timeout=0):
            pass  # the number is read from the table: one look serves any number of notices
