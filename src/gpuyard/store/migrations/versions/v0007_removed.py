"""When a workload was taken off the lists by its owner."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("workloads", sa.Column("removed_at", sa.Double(), nullable=True))
