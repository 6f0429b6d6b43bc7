"""A lock that steps hold: `tf.CriticalSection`."""

from __future__ import annotations

import threading
import weakref

from headwater.graph.resources.host_context import RunningStep


class Mutex:
    """A lock for one step at a time.

    A step that ended without giving it back, because it failed, no longer holds it.

    Args:
      name: for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._condition = threading.Condition()
        self._owner: weakref.ref[RunningStep] | None = None

    def lock(self, step: RunningStep) -> None:
        """Takes the lock for ``step``; waits while another one holds it.

        Raises:
          CancelledError, DeadlineExceededError: the step ended meanwhile.
        """
        with self._condition:
            step.wait_until(self._condition, self._is_free, f"the critical section {self._name!r}")
            self._owner = weakref.ref(step)

    def unlock(self, step: RunningStep) -> None:
        """Gives it back, where ``step`` holds it."""
        with self._condition:
            if self._owner is not None and self._owner() is step:
                self._owner = None
                self._condition.notify_all()

    def _is_free(self) -> bool:
        return self._owner is None or self._owner() is None
