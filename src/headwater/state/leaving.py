"""How a process of job ``ps`` that is told to end while its job goes on waits for others to have what it has."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from headwater.cluster.pauses import pause
from headwater.cluster.task.waiting import Reminder

_log = logging.getLogger("headwater")

#: How long it waits for another process that is there, and for one that was lost and may come back, in seconds.
LEAVE_S: Final = 60.0
LOST_S: Final = 20.0
#: Between two looks, in seconds.
_LOOK_S: Final = 0.05


class Leaving(Protocol):
    """A copy of a process that is about to end; see `headwater.state.copy.KeptCopy`."""

    def described(self) -> str: ...

    def leave(self) -> bool: ...


def leave(
    task: str, copies: Sequence[Leaving], missed: Callable[[], Sequence[Leaving]], patience_s: Callable[[], float]
) -> None:
    """Waits until no copy of a process would be missed if that ended, or that takes too long; says what it waits for.
    What no other process has then, the chief keeps.

    Args:
      task: the name of the process.
      copies: that it has.
      missed: those of them that would be.
      patience_s: how long another process may take to have what is in them, in seconds; 0 where none is to come.
    """
    _await_others(task, missed, patience_s)
    leave_now(copies)


def leave_now(copies: Sequence[Leaving]) -> None:
    """Each copy leaves; see `leave`. A chief that cannot be reached is waited for once, not for each of them."""
    for copy in copies:
        if not copy.leave():
            return


def _await_others(task: str, missed: Callable[[], Sequence[Leaving]], patience_s: Callable[[], float]) -> None:
    began, reminder = time.monotonic(), Reminder()
    while copies := missed():
        what = "; ".join(copy.described() for copy in copies)
        if time.monotonic() - began >= (patience := patience_s()):
            within = f" within {patience:g} s" if patience else ""
            _log.warning("%s ends, and no other ps has taken%s: %s", task, within, what)
            return
        if reminder.is_due():
            _log.warning("%s waits to end until another ps has taken: %s", task, what)
        pause(_LOOK_S)
