"""Bringing a backup back, into an empty database or in place of what is there.

The rows are put into the schema they came from and then brought to the newest step, like any old database. A SQLite
file is built next to the old one and takes its place at the end, so a damaged file is no obstacle and a kill in the
middle leaves the old one; what was replaced is kept as `<database>.replaced`. On PostgreSQL it is one transaction.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL

from gpuyard.domain.errors import BadInput, Conflict
from gpuyard.domain.reasons import Code, because
from gpuyard.store import audit
from gpuyard.store.backup import read_backup
from gpuyard.store.control_lock import CONTROL_LOCK, hold_for, in_use
from gpuyard.store.database import Database, parse_url
from gpuyard.store.migrate import migrate
from gpuyard.store.schema import metadata

_AT_ONCE = 1000
_SIDE_FILES = ("-wal", "-shm")
_TELLING_TABLES = ("workloads", "users", "groups", "audit")  # rows here mean that somebody lives in this database


def restore(database_url: str, source: Path, *, force: bool = False) -> None:
    """Make the database what the backup says. Refuses one that is in use, and one with contents unless `force`.

    Raises BadInput for a file that is not a whole backup, and Conflict as above; nothing is changed then.
    """
    if not source.is_file():
        raise BadInput(because(Code.BAD_BACKUP, path=str(source), problem="there is no such file"))
    url = parse_url(database_url)
    if url.get_backend_name() == "sqlite":
        _restore_file(url, source, force)
    else:
        _restore_postgres(url, source, force)


def _restore_file(url: URL, source: Path, force: bool) -> None:
    path = Path(str(url.database))
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".restoring")
    _remove(fresh)
    with closing(Database(url, lock_seconds=1.0, patience_seconds=0.0)) as old:
        hold = hold_for(old)
        if not hold.take():
            raise in_use(old, "")
        try:
            if not force and path.exists() and path.stat().st_size and not _is_empty(old):
                raise _not_empty(str(path))
            _build_file(url.set(database=str(fresh)), source)
            old.close()
            _take_place(fresh, path)
        finally:
            hold.let_go()
            _remove(fresh)


def _build_file(url: URL, source: Path) -> None:
    os.close(os.open(str(url.database), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(Database(url, lock_seconds=15.0, patience_seconds=0.0)) as fresh:
        with fresh.exclusive() as conn:
            _fill(conn, source)
        with fresh.read() as conn:
            broken = conn.exec_driver_sql("PRAGMA foreign_key_check").first()
            if broken is not None:
                raise BadInput(because(Code.BAD_BACKUP, path=str(source), problem=f"rows of {broken[0]} hang loose"))


def _take_place(fresh: Path, path: Path) -> None:
    """The old write-ahead log must be gone before the new file is there, or SQLite would play it onto the new one."""
    if path.exists() and path.stat().st_size:
        kept = path.with_name(path.name + ".replaced")
        kept.unlink(missing_ok=True)
        os.link(path, kept)
    for suffix in _SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _restore_postgres(url: URL, source: Path, force: bool) -> None:
    with closing(Database(url, lock_seconds=15.0, patience_seconds=30.0)) as database:
        if not force and not _is_empty(database):
            raise _not_empty(database.url.render_as_string(hide_password=True))
        with database.exclusive() as conn:
            if not conn.execute(sa.select(sa.func.pg_try_advisory_xact_lock(CONTROL_LOCK))).scalar():
                raise in_use(database, "")
            for table in _our_tables(conn):
                conn.exec_driver_sql(f'DROP TABLE "{table}" CASCADE')
            _fill(conn, source)


def _fill(conn: sa.Connection, source: Path) -> None:
    """Build the schema of the backup's time, put the rows in, go on to the newest step, and look at the result."""
    table: sa.TableClause | None = None
    columns: list[str] = []
    rows: list[dict[str, Any]] = []

    def write_rows() -> None:
        if rows and table is not None:
            conn.execute(sa.insert(table), rows)
            rows.clear()

    for kind, part in read_backup(source):
        if kind == "revision":
            migrate(conn, part)
        elif kind == "table":
            write_rows()
            name, columns = part
            table = _table(conn, source, name, columns)
        else:
            rows.append(dict(zip(columns, part, strict=True)))
            if len(rows) >= _AT_ONCE:
                write_rows()
    write_rows()
    migrate(conn)
    _go_on_counting(conn)
    _verify(conn, source)


def _table(conn: sa.Connection, source: Path, name: str, columns: list[str]) -> sa.TableClause:
    """A table of the schema just built. Names come from a file, so only those that exist are used."""
    inspector = sa.inspect(conn)
    known = {column["name"] for column in inspector.get_columns(name)} if inspector.has_table(name) else set()
    if not known.issuperset(columns):
        raise BadInput(because(Code.BAD_BACKUP, path=str(source), problem=f"table {name} does not match its schema"))
    return sa.table(name, *(sa.column(column) for column in columns))


def _go_on_counting(conn: sa.Connection) -> None:
    """PostgreSQL counts apart from the rows; it must go on after the highest number restored."""
    if conn.dialect.name != "postgresql":
        return
    for table, column in (("story", "id"), ("changes", "seq")):
        highest = f'SELECT coalesce(max("{column}"), 0) + 1 FROM "{table}"'  # noqa: S608
        conn.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), ({highest}), false)")


def _verify(conn: sa.Connection, source: Path) -> None:
    broken = audit.verify(conn)
    if broken is not None:
        problem = f"its audit trail does not hold together at entry {broken}"
        raise BadInput(because(Code.BAD_BACKUP, path=str(source), problem=problem))


def _is_empty(database: Database) -> bool:
    with database.read() as conn:
        present = [name for name in _TELLING_TABLES if sa.inspect(conn).has_table(name)]
        return all(
            conn.execute(sa.select(sa.text("1")).select_from(sa.table(name)).limit(1)).first() is None
            for name in present
        )


def _our_tables(conn: sa.Connection) -> list[str]:
    ours = {*metadata.tables, "schema_version"}
    return [name for name in sa.inspect(conn).get_table_names() if name in ours]


def _not_empty(name: str) -> Conflict:
    return Conflict(because(Code.ALREADY_THERE, what="database", name=name))


def _remove(path: Path) -> None:
    for suffix in ("", *_SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
