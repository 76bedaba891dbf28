"""What a dev environment is to ask for when it has stopped and is started again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("workplaces", sa.Column("again", sa.Text(), nullable=True))
