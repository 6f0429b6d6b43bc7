"""Drain of a ``ps`` that shuts down while its job continues: the ``ps`` waits until other processes have its state."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headwater.cluster.pauses import pause
from headwater.cluster.task.waiting import Reminder

if TYPE_CHECKING:
    from headwater.state.copy import Replica

_log = logging.getLogger("headwater")

#: How long a process that shuts down waits until other processes have its state, in seconds, if such a process is
#: reachable.
LEAVE_TIMEOUT_S: Final = 60.0
#: The same if all other processes are lost: they may be restarted.
LOST_TIMEOUT_S: Final = 20.0
#: Seconds between two checks.
_POLL_INTERVAL_S: Final = 0.05


def shut_down_after_transfer(
    task: str, copies: Sequence[Replica], find_last: Callable[[], Sequence[Replica]], patience_s: Callable[[], float]
) -> None:
    """Waits until other processes have the state of all replicas of this process, then shuts the replicas down.

    Logs the status of the replicas whose state no other process has yet. After ``patience_s``, stops waiting, and
    deposits the state of these replicas with the chief.

    Args:
      task: the name of the process.
      copies: the replicas of that process.
      find_last: returns the replicas whose state no other process has.
      patience_s: returns how long to wait for other processes to copy this state, in seconds; 0 if no process is
        expected to.
    """
    _await_others(task, find_last, patience_s)
    shut_down_now(copies)


def shut_down_now(copies: Sequence[Replica]) -> None:
    """Shuts the replicas down; see `shut_down_after_transfer`.

    Stops at the first replica that cannot reach the chief, so that this process waits for the chief only once.
    """
    for copy in copies:
        if not copy.shut_down():
            return


def _await_others(task: str, find_last: Callable[[], Sequence[Replica]], patience_s: Callable[[], float]) -> None:
    began, reminder = time.monotonic(), Reminder()
    while copies := find_last():
        what = "; ".join(copy.status_text() for copy in copies)
        if time.monotonic() - began >= (patience := patience_s()):
            within = f" within {patience:g} s" if patience else ""
            _log.warning("%s shuts down, and no other ps has taken over%s: %s", task, within, what)
            return
        if reminder.is_due():
            _log.warning("%s waits to shut down until another ps has taken over: %s", task, what)
        pause(_POLL_INTERVAL_S)
