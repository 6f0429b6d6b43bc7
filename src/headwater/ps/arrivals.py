"""Detects that a worker has joined while the job was ending.

Without this, such a worker would wait for parameter servers that have ended and will not restart.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from headwater.cluster.names import TaskName
from headwater.cluster.task.shell import OVER_DETAIL
from headwater.errors import FailedPreconditionError, OpError

_log = logging.getLogger("headwater")

#: Interval between two checks, in seconds.
_CHECK_INTERVAL_S: Final = 1.0


class _Link(Protocol):
    def reach(self, deadline_s: float | None = None) -> Any:
        """Waits until the task can be reached, for at most ``deadline_s`` seconds."""
        ...


class Arrival:
    """Checks whether the job is over, while a worker that has joined the cluster waits for its first connection to a
    ``ps``.

    The job is over if another task reports it, or if neither a ``ps`` nor the chief can be reached: these tasks were
    running when the worker joined, so they have ended since. A worker of the cluster spec needs no such check, because
    the ``ps`` wait for it even after other workers have ended.

    Args:
      me: this worker.
      others: every ``ps`` and the chief, each with a link that does not wait.
      has_met_all: returns whether this worker has connected to every ``ps``. From then on `check` does nothing, and the
        worker waits for each ``ps`` that is lost.
      clock: returns monotonic seconds.
    """

    def __init__(
        self,
        me: TaskName,
        others: Sequence[tuple[TaskName, _Link]],
        has_met_all: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._me = me
        self._others = others
        self._has_met_all = has_met_all
        self._clock = clock
        self._next_look = -float("inf")

    def check(self) -> None:
        """Checks whether the job is over. Called whenever a ``ps`` could not be reached.

        Raises:
          SystemExit: the job is over; this process ends with code 0, because there is nothing to do.
          FailedPreconditionError: the job is over, and this method was not called in the main thread.
        """
        if self._clock() < self._next_look or self._has_met_all():
            return
        why = self._why_over()
        # Count from the end of the check, which may itself take long.
        self._next_look = self._clock() + _CHECK_INTERVAL_S
        if not why:
            return
        text = f"{self._me} ends, because the job is already over ({why})"
        # In another thread SystemExit would end that thread only.
        if threading.current_thread() is threading.main_thread():
            _log.warning("%s", text)
            raise SystemExit(0)
        raise FailedPreconditionError(text)

    def _why_over(self) -> str:
        answered = False
        for task, link in self._others:
            try:
                details = link.reach(0.0).details
            except OpError as error:
                _log.debug("%s does not say whether the job is over: %s", task, error.message)
                continue
            answered = True
            if OVER_DETAIL in details:
                return f"reported by {task}"
        return "" if answered else "no parameter server and no chief is running any more"
