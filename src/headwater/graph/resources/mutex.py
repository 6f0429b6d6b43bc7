"""Locks held by steps, for `tf.CriticalSection`."""

from __future__ import annotations

import threading
import weakref

from headwater.graph.resources.host_context import RunningStep


class Mutex:
    """A lock that one step at a time can hold.

    The lock is released automatically when the step that holds it fails and ends without unlocking.

    Args:
      name: for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._condition = threading.Condition()
        # A weak reference: a step that fails does not run its unlock operation. When the step object is freed, the
        # reference becomes None, and the lock is free.
        self._owner: weakref.ref[RunningStep] | None = None

    def lock(self, step: RunningStep) -> None:
        """Acquires the lock for ``step``; waits while another step holds it.

        Raises:
          CancelledError, DeadlineExceededError: the step ended meanwhile.
        """
        with self._condition:
            step.wait_until(self._condition, self._is_free, f"the critical section {self._name!r}")
            self._owner = weakref.ref(step)

    def unlock(self, step: RunningStep) -> None:
        """Releases the lock, if ``step`` holds it."""
        with self._condition:
            if self._owner is not None and self._owner() is step:
                self._owner = None
                self._condition.notify_all()

    def _is_free(self) -> bool:
        return self._owner is None or self._owner() is None
