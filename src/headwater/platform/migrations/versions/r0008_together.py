"""Whether a task has reported that it cannot continue without the other tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0007 to 0008."""
    with op.batch_alter_table("tasks") as tasks:
        # Not ``sa.false()``: SQLite would recreate the table, and delete all rows of other tables that refer to it.
        tasks.add_column(sa.Column("together", sa.Boolean(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Downgrades the tables from revision 0008 to 0007."""
    with op.batch_alter_table("tasks") as tasks:
        tasks.drop_column("together")
