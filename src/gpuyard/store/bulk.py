"""One statement with very many rows: the hot path of every pass.

SQLAlchemy looks at every value of every row anew. On SQLite the statement is put into words once and the rows go
straight to the driver, which needs nothing converted but the text that `PlainText` guards. PostgreSQL takes the usual
way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.dml import UpdateBase

from gpuyard.store.schema import PlainText, plain_text

Row = Mapping[str, Any]
Values = tuple[Any, ...]


def execute_many(conn: sa.Connection, statement: UpdateBase, rows: Sequence[Row]) -> None:
    """Run it once for each row. All rows have the same keys; no row, no statement."""
    if not rows:
        return
    if conn.dialect.name != "sqlite" or len(rows[0]) < 2:
        conn.execute(statement, rows)
        return
    text, values_of = _in_words(statement, conn.dialect, tuple(rows[0]))
    conn.exec_driver_sql(text, [values_of(row) for row in rows])


@lru_cache(maxsize=64)
def _in_words(statement: UpdateBase, dialect: sa.Dialect, keys: tuple[str, ...]) -> tuple[str, Callable[[Row], Values]]:
    named = {column.key for column in statement.table.columns}
    compiled: Any = statement.compile(dialect=dialect, column_keys=[key for key in keys if key in named])
    order: list[str] = compiled.positiontup
    guarded = [place for place, name in enumerate(order) if isinstance(compiled.binds[name].type, PlainText)]
    get: Callable[[Row], Values] = itemgetter(*order)

    def values_of(row: Row) -> Values:
        values = get(row)
        for place in guarded:
            value = values[place]
            if value is not None and not (value.isascii() and "\0" not in value):
                return tuple(plain_text(one) if at in guarded else one for at, one in enumerate(values))
        return values

    return str(compiled), values_of
