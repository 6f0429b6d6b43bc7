"""Whether the program that a task is to run is there: what is not will not come by starting the task again."""

from __future__ import annotations

import os
from collections.abc import Mapping

#: The program of a task, where it runs one of Python; relative to its working folder.
PROGRAM = "HEADWATER_PROGRAM"


def missing_program(environment: Mapping[str, str], folder: str) -> str:
    """Why a task with this environment cannot be run in ``folder``; empty where it can, or has no program of Python."""
    program = environment.get(PROGRAM)
    if not program or os.path.exists(os.path.join(folder, program)):
        return ""
    return f"there is no program {program!r} in {folder}"
