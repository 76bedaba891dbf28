"""What a workload was given and has saved in earlier attempts, carried along from attempt to attempt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_SUMS = """
UPDATE attempts SET
  served_before = COALESCE((
    SELECT SUM(earlier.ended_at - earlier.created_at) FROM attempts AS earlier
    WHERE earlier.workload_id = attempts.workload_id AND earlier.number < attempts.number
      AND earlier.ended_at > earlier.created_at), 0),
  kept_before = COALESCE((
    SELECT SUM(earlier.saved_at - earlier.started_at) FROM attempts AS earlier
    WHERE earlier.workload_id = attempts.workload_id AND earlier.number < attempts.number
      AND earlier.saved_at > earlier.started_at), 0)
WHERE number > 1 AND workload_id IN (SELECT id FROM workloads WHERE kind <> 'env')
"""


def upgrade() -> None:
    for name in ("served_before", "kept_before"):
        op.add_column("attempts", sa.Column(name, sa.Double(), nullable=False, server_default="0"))
    op.execute(_SUMS)
