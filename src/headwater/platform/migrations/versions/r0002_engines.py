"""Engines' reports of tasks, further metrics of tasks, and groups of jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0001 to 0002."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("handle_attempt", sa.Integer(), nullable=False, server_default="0"))
        jobs.add_column(sa.Column("sweep", sa.String(64)))
        jobs.add_column(sa.Column("settings", sa.JSON()))
    op.create_index(op.f("ix_jobs_sweep"), "jobs", ["sweep"])
    # Before this revision, a job's handle always belonged to its current attempt.
    op.execute("UPDATE jobs SET handle_attempt = attempt")
    with op.batch_alter_table("tasks") as tasks:
        tasks.add_column(sa.Column("metrics", sa.JSON(), nullable=False, server_default="{}"))
        tasks.add_column(sa.Column("host", sa.Text(), nullable=False, server_default=""))
    with op.batch_alter_table("samples") as samples:
        samples.add_column(sa.Column("metrics", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Downgrades the tables from revision 0002 to 0001."""
    with op.batch_alter_table("samples") as samples:
        samples.drop_column("metrics")
    with op.batch_alter_table("tasks") as tasks:
        tasks.drop_column("metrics")
        tasks.drop_column("host")
    op.drop_index(op.f("ix_jobs_sweep"), "jobs")
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("settings")
        jobs.drop_column("sweep")
        jobs.drop_column("handle_attempt")
