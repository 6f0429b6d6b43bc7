"""How the database came to be what it is now, step by step (alembic)."""
