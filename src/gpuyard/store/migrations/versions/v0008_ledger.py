"""The card ledger: sums by hour and by day, and what is known of every machine's cards now."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
AMOUNTS = (
    *("capacity", "used", "idle", "fragmented", "quota", "reserved", "unhealthy", "draining", "free"),
    "untold",
)


def upgrade() -> None:
    op.create_table(
        "ledger",
        sa.Column("at", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("hours", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("node", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        *_amounts(),
        sa.PrimaryKeyConstraint("at", "hours", "node", "model", name="pk_ledger"),
    )
    op.create_table(
        "ledger_now",
        sa.Column("node", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        *_amounts(),
        sa.PrimaryKeyConstraint("node", "model", name="pk_ledger_now"),
    )


def _amounts() -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in AMOUNTS]
