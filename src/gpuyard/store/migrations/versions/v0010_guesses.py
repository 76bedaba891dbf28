"""What was guessed of starts, and how long those then waited: the next guesses are corrected by it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "guesses",
        sa.Column("workload_id", TEXT, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("middle", sa.Double(), nullable=False),
        sa.Column("late", sa.Double(), nullable=False),
        sa.Column("told", sa.Double(), nullable=False),
        sa.Column("waited", sa.Double()),
        sa.PrimaryKeyConstraint("workload_id", name="pk_guesses"),
    )
