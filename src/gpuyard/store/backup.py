"""Backups in one portable form: gzipped lines of JSON, the same from SQLite and from PostgreSQL, restored to either.

First line: what it is and the schema step. Then each table's columns, followed by its rows. Last line: how many rows
there were, so that a file cut short is known by its end as well as by gzip's own check. A backup is read from one
snapshot: writers go on meanwhile, and the copy belongs to one moment.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa

from gpuyard.domain.errors import BadInput
from gpuyard.domain.reasons import Code, because
from gpuyard.store import failures
from gpuyard.store.database import Database
from gpuyard.store.migrate import refuse_newer, revision_of
from gpuyard.store.schema import metadata

FORMAT = 1
_AT_ONCE = 1000


def backup(database: Database, target: Path) -> None:
    """Write a whole, checked copy to `target`; it appears there complete or not at all, for its owner only."""
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        file = os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(file, "wb") as raw:
            write_backup(database, raw)
            raw.flush()
            os.fsync(raw.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def write_backup(database: Database, target: IO[bytes]) -> None:
    """The same into any open file. A damaged SQLite file is refused rather than copied."""
    with database.read() as conn, gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6, mtime=0) as lines:
        _refuse_damage(database, conn)
        _write(lines, {"gpuyard_backup": FORMAT, "revision": revision_of(conn)})
        counts = {table.name: _write_table(conn, lines, table) for table in metadata.sorted_tables}
        _write(lines, {"end": counts})


def read_backup(source: Path) -> Iterator[tuple[str, Any]]:
    """The parts of a backup, checked as they come.

    ("revision", step) is first; then for each table ("table", (name, columns)) and its rows as ("row", [values]).
    Raises BadInput when it is not a backup, or not a whole one.
    """
    counts: dict[str, int] = {}
    table = ""
    try:
        with gzip.open(source, "rb") as lines:
            yield "revision", _read_header(source, lines.readline())
            for line in lines:
                part = json.loads(line)
                if isinstance(part, list):
                    counts[table] += 1
                    yield "row", part
                elif "table" in part:
                    table = part["table"]
                    counts[table] = 0
                    yield "table", (table, part["columns"])
                elif part.get("end") == counts:
                    return
                else:
                    break
    except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise _bad(source, str(error)) from error
    raise _bad(source, "it is cut short")


def _write_table(conn: sa.Connection, lines: gzip.GzipFile, table: sa.Table) -> int:
    """Rows in the order of their keys: the same contents make the same file, and parents come before children."""
    _write(lines, {"table": table.name, "columns": [column.name for column in table.columns]})
    count = 0
    query = sa.select(table).order_by(*table.primary_key.columns)
    for some in conn.execution_options(yield_per=_AT_ONCE).execute(query).partitions():
        lines.write(b"".join(_line(list(row)) for row in some))
        count += len(some)
    return count


def _refuse_damage(database: Database, conn: sa.Connection) -> None:
    if database.dialect == "sqlite":
        found = conn.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if found != "ok":
            raise failures.corrupt(database.path, str(found))


def _read_header(source: Path, line: bytes) -> str:
    header = json.loads(line)
    if not isinstance(header, dict) or header.get("gpuyard_backup") != FORMAT:
        raise _bad(source, "it is not a backup of gpuyard")
    revision = str(header["revision"])
    refuse_newer(revision)
    return revision


def _write(lines: gzip.GzipFile, part: Any) -> None:
    lines.write(_line(part))


def _line(part: Any) -> bytes:
    return json.dumps(part, separators=(",", ":")).encode() + b"\n"


def _bad(source: Path, problem: str) -> BadInput:
    return BadInput(because(Code.BAD_BACKUP, path=str(source), problem=problem))
