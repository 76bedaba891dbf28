"""Bringing a database to the newest schema, in one transaction, so that a kill in the middle leaves it as it was.

An empty database gets the newest tables at once; an older one goes step by step. A test holds the two ways to the same
result. Alembic is loaded only for steps: a server on a new or an up-to-date database never pays for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gpuyard.domain.errors import Conflict
from gpuyard.domain.reasons import Code, because
from gpuyard.store.migrations import NEWEST, REVISIONS
from gpuyard.store.schema import metadata

_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "schema_version"


def revision_of(conn: sa.Connection) -> str | None:
    """The step the database stands at; None when it is empty."""
    if not sa.inspect(conn).has_table(_VERSION_TABLE):
        return None
    return conn.execute(sa.text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalar()  # noqa: S608


def refuse_newer(revision: str | None) -> None:
    """A database written by a newer gpuyard is left alone: this program does not know what its columns mean."""
    if revision is not None and revision not in REVISIONS:
        raise Conflict(because(Code.STORE_NEWER, found=revision, known=NEWEST))


def build(conn: sa.Connection) -> None:
    """Give an empty database the newest schema, inside the caller's write transaction."""
    metadata.create_all(conn, checkfirst=False)
    version = sa.Table(_VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), nullable=False))
    version.append_constraint(sa.PrimaryKeyConstraint("version_num", name=f"{_VERSION_TABLE}_pkc"))
    version.create(conn, checkfirst=False)
    conn.execute(sa.insert(version), {"version_num": NEWEST})


def migrate(conn: sa.Connection, to: str = NEWEST) -> None:
    """Go to a step, inside the caller's write transaction."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    script = ScriptDirectory.from_config(config)

    def steps(current: Any, _context: Any) -> Any:
        return script._upgrade_revs(to, current)

    with EnvironmentContext(config, script, fn=steps, destination_rev=to) as environment:
        environment.configure(
            connection=conn, version_table=_VERSION_TABLE, render_as_batch=conn.dialect.name == "sqlite"
        )
        environment.run_migrations()
