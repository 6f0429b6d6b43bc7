"""Embedding layers whose rows are elsewhere: which rows a batch uses, and how they get into a compiled step."""
