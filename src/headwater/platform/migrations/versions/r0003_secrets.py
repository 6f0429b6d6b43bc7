"""Secrets, encrypted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrades the tables from revision 0002 to 0003."""
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("owner", sa.String(100), nullable=False),
        sa.Column("stored_at", sa.Float(53), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )


def downgrade() -> None:
    """Downgrades the tables from revision 0003 to 0002."""
    op.drop_table("secrets")
