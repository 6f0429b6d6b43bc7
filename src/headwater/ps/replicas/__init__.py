"""Backups of the parts of sets of parameters, which take over when the primary ``ps`` is lost."""
