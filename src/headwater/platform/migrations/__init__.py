"""Migrations of the database schema, step by step (alembic)."""
