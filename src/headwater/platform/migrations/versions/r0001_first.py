"""The first tables: jobs, their tasks, attempts, events and samples, and tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_FLOAT = sa.Float(53)
_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Creates the tables of revision 0001 in an empty database."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("owner", sa.String(100), nullable=False),
        sa.Column("submitted_at", _FLOAT, nullable=False),
        sa.Column("backend", sa.String(20), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("archive", sa.String(64)),
        sa.Column("handle", sa.Text()),
        sa.Column("phase", sa.String(12), nullable=False),
        sa.Column("then", sa.String(12)),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("workers", sa.Integer(), nullable=False),
        sa.Column("fixed", sa.Boolean(), nullable=False),
        sa.Column("queued_at", _FLOAT, nullable=False),
        sa.Column("not_before", _FLOAT, nullable=False),
        sa.Column("started_at", _FLOAT),
        sa.Column("attempt_at", _FLOAT),
        sa.Column("ended_at", _FLOAT),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("requeues", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("first", sa.JSON()),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    for column in ("name", "phase", "submitted_at"):
        op.create_index(f"ix_jobs_{column}", "jobs", [column])
    op.create_table(
        "tasks",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("phase", sa.String(12), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("placed", sa.Boolean(), nullable=False),
        sa.Column("start_at", _FLOAT, nullable=False),
        sa.Column("started_at", _FLOAT),
        sa.Column("ended_at", _FLOAT),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("code", sa.Integer()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("first", sa.JSON()),
        sa.Column("step", sa.BigInteger()),
        sa.Column("steps_per_s", _FLOAT),
        sa.Column("loss", _FLOAT),
        sa.Column("progress_at", _FLOAT),
        sa.Column("place", sa.Text()),
        sa.Column("handle", sa.Text()),
        sa.Column("usage", sa.JSON()),
        sa.PrimaryKeyConstraint("job_id", "role", "number", name="pk_tasks"),
        _of_job("tasks"),
    )
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("task", sa.String(40), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("started_at", _FLOAT, nullable=False),
        sa.Column("ended_at", _FLOAT),
        sa.Column("code", sa.Integer()),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("last_lines", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "task", "attempt", name="pk_attempts"),
        _of_job("attempts"),
    )
    op.create_table(
        "events",
        sa.Column("id", _SERIAL, nullable=False, autoincrement=True),
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("at", _FLOAT, nullable=False),
        sa.Column("task", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        _of_job("events"),
    )
    op.create_index("ix_events_job_id", "events", ["job_id"])
    op.create_table(
        "samples",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("task", sa.String(40), nullable=False),
        sa.Column("at", _FLOAT, nullable=False),
        sa.Column("step", sa.BigInteger()),
        sa.Column("steps_per_s", _FLOAT),
        sa.Column("loss", _FLOAT),
        sa.Column("cpu_s", _FLOAT),
        sa.Column("memory_bytes", sa.BigInteger()),
        sa.Column("gpu_memory_bytes", sa.BigInteger()),
        sa.Column("gpu_utilization", _FLOAT),
        sa.PrimaryKeyConstraint("job_id", "task", "at", name="pk_samples"),
        _of_job("samples"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("role", sa.String(10), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("csrf_hash", sa.String(64)),
        sa.Column("parent", sa.String(32)),
        sa.Column("created_at", _FLOAT, nullable=False),
        sa.Column("expires_at", _FLOAT),
        sa.Column("last_used_at", _FLOAT),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("secret_hash", name="uq_tokens_secret_hash"),
    )
    op.create_index("ix_tokens_name", "tokens", ["name"])


def downgrade() -> None:
    """Drops all tables."""
    for table in ("tokens", "samples", "events", "attempts", "tasks", "jobs"):
        op.drop_table(table)


def _of_job(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=f"fk_{table}_job_id", ondelete="CASCADE")
