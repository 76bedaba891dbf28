"""What dev environments need: ways in, SSH keys, timers and when each was last used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "gate_codes",
        sa.Column("code_hash", TEXT, nullable=False),
        *_pass_columns("gate_codes"),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("code_hash", name="pk_gate_codes"),
    )
    op.create_table(
        "gate_sessions",
        sa.Column("secret_hash", TEXT, nullable=False),
        *_pass_columns("gate_sessions"),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("secret_hash", name="pk_gate_sessions"),
    )
    op.create_index("ix_gate_sessions_expires", "gate_sessions", ["expires_at"])
    op.create_table(
        "ssh_keys",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("user_name", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_ssh_keys"),
        sa.UniqueConstraint("user_name", "fingerprint", name="uq_ssh_keys_user_name_fingerprint"),
        _of_a_user("ssh_keys"),
    )
    op.create_table(
        "workplaces",
        sa.Column("workload_id", TEXT, nullable=False),
        sa.Column("stop_at", sa.Double(), nullable=True),
        sa.Column("used_at", sa.Double(), nullable=True),
        sa.Column("warned_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("workload_id", name="pk_workplaces"),
        sa.ForeignKeyConstraint(["workload_id"], ["workloads.id"], name="fk_workplaces_workloads", ondelete="CASCADE"),
    )


def _pass_columns(table: str) -> list[sa.Column[str] | sa.ForeignKeyConstraint]:
    names = ("user_name", "workload_id", "what", "parent")
    return [*(sa.Column(name, TEXT, nullable=False) for name in names), _of_a_user(table)]


def _of_a_user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_name"], ["users.name"], name=f"fk_{table}_users", ondelete="CASCADE")
