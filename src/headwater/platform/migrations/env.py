"""Runs migrations on the connection of `headwater.platform.store`; alembic executes this file."""

from __future__ import annotations

from alembic import context

from headwater.platform.tables import Base

# Tools that import the whole package, such as the reference generator, must not run migrations.
if __name__ != "headwater.platform.migrations.env":
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Base.metadata,
        # SQLite can change most of a table only by creating a new one.
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()
