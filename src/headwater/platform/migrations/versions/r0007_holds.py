"""Which jobs hold something at their backends, from before it is asked for until it is given back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """From revision 0006 to 0007."""
    with op.batch_alter_table("jobs") as jobs:
        # Not ``sa.false()``: SQLite would make the table anew, and delete all that belongs to its rows.
        jobs.add_column(sa.Column("holds", sa.Boolean(), nullable=False, server_default="0"))
    jobs = sa.table("jobs", sa.column("id"), sa.column("holds", sa.Boolean()))
    tasks = sa.table("tasks", sa.column("job_id"), sa.column("place"))
    placed = sa.select(tasks.c.job_id).where(tasks.c.place.is_not(None))
    op.execute(jobs.update().where(jobs.c.id.in_(placed)).values(holds=True))


def downgrade() -> None:
    """From revision 0007 to 0006."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("holds")
