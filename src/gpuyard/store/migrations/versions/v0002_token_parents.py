"""With which token a token was made, and what each user has live."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
LIVE = "state NOT IN ('succeeded', 'failed', 'stopped')"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("parent", TEXT, nullable=True))
    op.create_index("ix_tokens_parent", "tokens", ["parent"])
    live = sa.text(LIVE)
    op.create_index("ix_workloads_live_owner", "workloads", ["owner"], sqlite_where=live, postgresql_where=live)
