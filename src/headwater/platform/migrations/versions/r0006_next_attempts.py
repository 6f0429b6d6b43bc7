"""The next attempt numbers of tasks that were removed from a job, and may return when the job is scaled up again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0005 to 0006."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("next_attempts", sa.JSON(), nullable=False, server_default="{}"))
    attempts = sa.table("attempts", *map(sa.column, ("job_id", "task", "attempt")))
    last = sa.select(attempts.c.job_id, attempts.c.task, sa.func.max(attempts.c.attempt))
    next_attempts: dict[str, dict[str, int]] = {}
    for job_id, task, attempt in op.get_bind().execute(last.group_by(attempts.c.job_id, attempts.c.task)):
        next_attempts.setdefault(job_id, {})[task] = attempt + 1
    jobs = sa.table("jobs", sa.column("id"), sa.column("next_attempts", sa.JSON()))
    for job_id, numbers in next_attempts.items():
        op.execute(jobs.update().where(jobs.c.id == job_id).values(next_attempts=numbers))


def downgrade() -> None:
    """Downgrades the tables from revision 0006 to 0005."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("next_attempts")
