"""Check for the program of a task: if it is missing, restarting the task does not help."""

from __future__ import annotations

import os
from collections.abc import Mapping

#: The program of a task, if it runs a Python program; relative to its working folder.
PROGRAM = "HEADWATER_PROGRAM"


def missing_program(environment: Mapping[str, str], folder: str) -> str:
    """Returns why a task with this environment cannot run in ``folder``; empty if it can run, or has no Python
    program."""
    program = environment.get(PROGRAM)
    if not program or os.path.exists(os.path.join(folder, program)):
        return ""
    return f"there is no program {program!r} in {folder}"
