"""Tries to log in are counted over all processes that let people in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "login_tries",
        sa.Column("key_hash", TEXT, nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("key_hash", name="pk_login_tries"),
    )
    op.create_index("ix_login_tries_at", "login_tries", ["at"])
