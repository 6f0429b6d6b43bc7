"""Replicated and saved state of a ``ps``: snapshots, primary and backup, the witness, state files.

The kinds of state (graph variables, parameters, tables) implement the interface in `contents` in their own packages and
are not known here. Start with `views`, the pure function that decides which replica serves, then `primary` and `copy`.
"""
