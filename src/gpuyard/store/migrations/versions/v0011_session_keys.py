"""Sessions have a key beside their cookie. Those from before have none: they end, and all that was opened with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    for table in ("gate_codes", "gate_sessions"):
        op.execute(f"DELETE FROM {table} WHERE parent LIKE 'session:%'")  # noqa: S608
    op.drop_table("sessions")
    op.create_table(
        "sessions",
        sa.Column("secret_hash", TEXT, nullable=False),
        sa.Column("user_name", TEXT, nullable=False),
        sa.Column("key_hash", TEXT, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("secret_hash", name="pk_sessions"),
        sa.ForeignKeyConstraint(["user_name"], ["users.name"], name="fk_sessions_users", ondelete="CASCADE"),
    )
    op.create_index("ix_sessions_user", "sessions", ["user_name"])
    op.create_index("ix_sessions_expires", "sessions", ["expires_at"])
