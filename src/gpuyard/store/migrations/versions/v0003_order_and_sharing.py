"""What order and sharing need: guarantees, weights, past use, learned run times, labels, and when work was saved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("attempts", sa.Column("saved_at", sa.Double(), nullable=True))
    op.add_column("attempts", sa.Column("saved_step", sa.BigInteger(), nullable=True))
    op.add_column("groups", sa.Column("weight", sa.Double(), nullable=False, server_default=sa.text("1")))
    op.add_column("groups", sa.Column("fifo", sa.Boolean(), nullable=False, server_default=sa.false()))
    _change_quotas()
    op.create_table(
        "node_labels",
        sa.Column("node", TEXT, nullable=False),
        sa.Column("key", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("node", "key", name="pk_node_labels"),
    )
    op.create_table(
        "past_use",
        sa.Column("group_name", TEXT, nullable=False),
        sa.Column("user_name", TEXT, nullable=False),
        sa.Column("amount", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("group_name", "user_name", name="pk_past_use"),
    )
    op.create_table(
        "run_times",
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("seconds", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_run_times"),
    )


def _change_quotas() -> None:
    """SQLite cannot take NOT NULL away, so there the table is built anew from its rows."""
    with op.batch_alter_table("quotas") as quotas:
        quotas.alter_column("most", existing_type=sa.BigInteger(), nullable=True)
        quotas.add_column(sa.Column("guaranteed", sa.BigInteger(), nullable=False, server_default=sa.text("0")))
