"""The desired number of parameter servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0004 to 0005."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("ps", sa.Integer()))


def downgrade() -> None:
    """Downgrades the tables from revision 0005 to 0004."""
    with op.batch_alter_table("jobs") as jobs:
        jobs.drop_column("ps")
