"""Costs of jobs, including steps lost by preemption."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0003 to 0004."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("spent", sa.JSON(), nullable=False, server_default="{}"))
        jobs.add_column(sa.Column("preemptions", sa.Integer(), nullable=False, server_default="0"))
        jobs.add_column(sa.Column("lost_steps", sa.BigInteger(), nullable=False, server_default="0"))
        jobs.add_column(sa.Column("furthest", sa.BigInteger()))
        jobs.add_column(sa.Column("preempted_at", sa.Float(53)))


def downgrade() -> None:
    """Downgrades the tables from revision 0004 to 0003."""
    with op.batch_alter_table("jobs") as jobs:
        for column in ("preempted_at", "furthest", "lost_steps", "preemptions", "spent"):
            jobs.drop_column(column)
