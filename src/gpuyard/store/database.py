"""Opening the database and giving out transactions. One writer at a time, readers never wait, on SQLite and PostgreSQL.

The drivers run in autocommit mode and every transaction is begun here in so many words: `BEGIN IMMEDIATE` or an
advisory lock for a write, a snapshot for a read. That first statement also finds out whether a pooled connection is
still good, so a lost server is noticed before anything of the caller's was sent, and waited for.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError, TimeoutError
from sqlalchemy.pool import NullPool

from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code, because
from gpuyard.store import failures
from gpuyard.store.feed import Feed, announce
from gpuyard.store.migrate import build, migrate, refuse_newer, revision_of
from gpuyard.store.migrations import NEWEST
from gpuyard.store.watch import PostgresWatch, SqliteWatch

Dialect = Literal["sqlite", "postgresql"]
Connection = sa.Connection  # for the rooms that pass one on without speaking SQL themselves

WRITER_LOCK = 0x67707501  # the PostgreSQL advisory lock every write transaction holds
CHECKED_SIZE = 64 << 20  # larger files are checked by the nightly backup: a check here would delay the start
_RETRY_EVERY_SECONDS = 0.1

# A peer that vanished without a word is noticed within half a minute instead of two hours.
_POSTGRES_DEFAULTS = {"connect_timeout": 5, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}

_BEGIN_READ = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"}
_BEGIN_WRITE = {
    "sqlite": "BEGIN IMMEDIATE",
    # Whatever a role or database has as its default: with a stricter level all that is read would be as it was before
    # the lock was had.
    "postgresql": f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({WRITER_LOCK})",
}


class Database:
    """An open database. Safe to use from any thread."""

    def __init__(self, url: URL, *, lock_seconds: float, patience_seconds: float) -> None:
        self.dialect: Dialect = "sqlite" if url.get_backend_name() == "sqlite" else "postgresql"
        self.url = url
        self.path = Path(str(url.database)) if self.dialect == "sqlite" else None
        self.lock_seconds = lock_seconds
        self._patience_seconds = patience_seconds
        self._readers = _engine(url, lock_seconds, pool_size=4, max_overflow=12, read_only=True)
        self._writer = _engine(url, lock_seconds, pool_size=1, max_overflow=0)
        self._writing = threading.Lock()
        self._writing_thread: int | None = None
        watch = SqliteWatch(self.path) if self.path else PostgresWatch(libpq_url(url))
        self.feed = Feed(self.read, watch)

    @classmethod
    def open(cls, url: str, *, lock_seconds: float = 15.0, patience_seconds: float = 30.0) -> Database:
        """Open, and bring the schema to the newest step if it is not there yet.

        Raises Conflict when a newer gpuyard wrote it, and Unavailable when it is broken or cannot be reached.
        """
        parsed = parse_url(url)
        if parsed.get_backend_name() == "sqlite":
            _make_private(Path(str(parsed.database)))
        database = cls(parsed, lock_seconds=lock_seconds, patience_seconds=patience_seconds)
        try:
            database._check()
            database._migrate()
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A snapshot: everything read inside belongs to one moment. Waits for nobody and keeps nobody waiting."""
        conn = self._begin(self._readers, _BEGIN_READ[self.dialect])
        with self._explained(), conn:
            yield conn

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """The one write transaction there is. Commits at the end, or leaves no trace when the body raises."""
        with self._writer_turn():
            conn = self._begin(self._writer, _BEGIN_WRITE[self.dialect])
            with self._explained(), conn:
                yield conn
                newest = announce(conn)
                conn.commit()
        if newest is not None:
            self.feed.publish(newest)

    def close(self) -> None:
        self.feed.close()
        self._readers.dispose()
        self._writer.dispose()

    @contextmanager
    def _writer_turn(self) -> Iterator[None]:
        """Threads of one process queue here: cheaper and fairer than meeting at the database's own lock."""
        me = threading.get_ident()
        if self._writing_thread == me:
            raise RuntimeError("a write transaction was begun inside another one")
        if not self._writing.acquire(timeout=self.lock_seconds):
            raise failures.busy(self.lock_seconds)
        self._writing_thread = me
        try:
            yield
        finally:
            self._writing_thread = None
            self._writing.release()

    def _begin(self, engine: sa.Engine, begin: str) -> sa.Connection:
        """Connect and begin, asking again while the server is away. Nothing of the caller's has been sent yet."""
        deadline = time.monotonic() + self._patience_seconds
        while True:
            try:
                return _connect_and_begin(engine, begin)
            except (DBAPIError, TimeoutError) as error:
                away = isinstance(error, DBAPIError) and failures.is_connection_loss(error)
                if not away or time.monotonic() >= deadline:
                    waited = self._patience_seconds if away else self.lock_seconds
                    raise failures.explain(error, self.path, waited) or error from error
            time.sleep(_RETRY_EVERY_SECONDS)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, TimeoutError) as error:
            explained = failures.explain(error, self.path, self.lock_seconds)
            if explained is None:
                raise
            raise explained from error

    def _check(self) -> None:
        """Look for damage before anybody trusts the file. A PostgreSQL server looks after its own."""
        if self.path is None or not 0 < self.path.stat().st_size <= CHECKED_SIZE:
            return
        with self.read() as conn:
            found = conn.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if found != "ok":
            raise failures.corrupt(self.path, str(found))

    def _migrate(self) -> None:
        with self.read() as conn:
            revision = revision_of(conn)
        refuse_newer(revision)
        if revision == NEWEST:
            return
        with self.exclusive() as conn:
            revision = revision_of(conn)  # another process may have been here while this one waited for its turn
            refuse_newer(revision)
            if revision is None:
                build(conn)
            elif revision != NEWEST:
                migrate(conn)

    @contextmanager
    def exclusive(self) -> Iterator[sa.Connection]:
        """A write transaction for rebuilding tables: on a connection of its own, with foreign keys not enforced.

        SQLite rebuilds a table by dropping it, and with enforcement on that would empty the tables that refer to it.
        """
        engine = _engine(self.url, self.lock_seconds, foreign_keys=False)
        try:
            with self._explained(), self._begin(engine, _BEGIN_WRITE[self.dialect]) as conn:
                yield conn
                conn.commit()
        finally:
            engine.dispose()


def parse_url(url: str) -> URL:
    """Read a database address; only SQLite files and PostgreSQL are known."""
    try:
        parsed = make_url(url)
        name = parsed.get_backend_name()
    except sa.exc.ArgumentError:
        name = ""
    if name == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if name == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(database=str(Path(parsed.database).absolute()))
    raise BadInput(
        because(Code.BAD_VALUE, at="database", problem="expected sqlite:////path or postgresql://", value=url)
    )


def libpq_url(url: URL) -> str:
    """The address as libpq itself reads it, for the connections that bypass the pool."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def _connect_and_begin(engine: sa.Engine, begin: str) -> sa.Connection:
    conn = engine.connect()
    try:
        # Without parameters, or PostgreSQL would not take two statements in one message.
        conn.exec_driver_sql(begin, execution_options={"no_parameters": True})
    except BaseException:
        conn.close()
        raise
    conn.info["changed"] = False
    return conn


def _engine(
    url: URL, lock_seconds: float, *, read_only: bool = False, foreign_keys: bool = True, **pool: int
) -> sa.Engine:
    options: dict[str, Any] = {"isolation_level": "AUTOCOMMIT"}
    options |= {"pool_timeout": lock_seconds, **pool} if pool else {"poolclass": NullPool}
    prepare: Callable[[Any], None]
    if url.get_backend_name() == "sqlite":
        options["connect_args"] = {"timeout": lock_seconds, "check_same_thread": False}
        prepare = _sqlite_preparation(read_only, foreign_keys)
    else:
        options["connect_args"] = {name: value for name, value in _POSTGRES_DEFAULTS.items() if name not in url.query}
        prepare = _postgres_preparation(lock_seconds)
    engine = sa.create_engine(url, **options)
    sa.event.listen(engine, "connect", lambda connection, _record: prepare(connection))
    return engine


def _sqlite_preparation(read_only: bool, foreign_keys: bool) -> Callable[[Any], None]:
    def prepare(connection: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute(f"PRAGMA foreign_keys={int(foreign_keys)}")
        cursor.execute("PRAGMA journal_size_limit=67108864")
        cursor.execute(f"PRAGMA query_only={int(read_only)}")
        cursor.close()

    return prepare


def _postgres_preparation(lock_seconds: float) -> Callable[[Any], None]:
    def prepare(connection: Any) -> None:
        connection.execute(f"SET lock_timeout = {int(lock_seconds * 1000)}")

    return prepare


def _make_private(path: Path) -> None:
    """Create the file for its owner only: it holds password hashes. SQLite's side files take over its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
