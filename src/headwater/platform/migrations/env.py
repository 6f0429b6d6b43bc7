"""Runs migrations over the connection that `headwater.platform.store` gives; alembic executes this file."""

from __future__ import annotations

from alembic import context

from headwater.platform.tables import Base

# Under its own name it is imported by what reads all of the package, such as the maker of the reference.
if __name__ != "headwater.platform.migrations.env":
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=Base.metadata,
        # SQLite changes a table by making a new one.
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()
