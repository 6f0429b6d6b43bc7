"""How a process of job ``ps`` that is told to end while its job goes on waits for others to have what it has."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from headwater.pauses import pause
from headwater.replicas.copy import KeptCopy
from headwater.task.waiting import SPEAK_S

_log = logging.getLogger("headwater")

#: How long it waits, in seconds.
LEAVE_S: Final = 60.0
#: Between two looks, in seconds.
_LOOK_S: Final = 0.05


def await_others(task: str, missed: Callable[[], Sequence[KeptCopy]], may_come: Callable[[], bool]) -> None:
    """Returns once no copy of a process would be missed if that ended, or nothing helps; says what it waits for.

    Args:
      task: the name of the process.
      missed: the copies that would be.
      may_come: whether another process may yet have what is in them.
    """
    began = spoken = time.monotonic()
    while copies := missed():
        now = time.monotonic()
        what = "; ".join(copy.described() for copy in copies)
        if not may_come():
            _log.warning("%s ends with what no other ps can take: %s", task, what)
            return
        if now - began >= LEAVE_S:
            _log.warning("%s ends, though in %g s no other ps has taken: %s", task, LEAVE_S, what)
            return
        if now - spoken >= SPEAK_S:
            spoken = now
            _log.warning("%s waits to end until another ps has taken: %s", task, what)
        pause(_LOOK_S)
