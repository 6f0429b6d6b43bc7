"""Jobs that hold resources at their backends, from before the request until the release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0006 to 0007."""
    with op.batch_alter_table("jobs") as jobs:
        # Not ``sa.false()``: SQLite would recreate the table, and delete all rows of other tables that refer to it.
        jobs.add_column(sa.Column("holds", sa.Boolean(), nullable=False, server_default="0"))
    jobs = sa.table("jobs", sa.column("id"), sa.column("holds", sa.Boolean()))
    tasks = sa.table("tasks", sa.column("job_id"), sa.column("place"))
    placed = sa.select(tasks.c.job_id).where(tasks.c.place.is_not(None))
    op.execute(jobs.update().where(jobs.c.id.in_(placed)).values(holds=True))


def downgrade() -> None:
    """Downgrades the tables from revision 0007 to 0006."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("holds")
