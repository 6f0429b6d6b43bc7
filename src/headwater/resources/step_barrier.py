"""The barrier of synchronous replicas: a replica that is done with a step waits until the next one begins."""

from __future__ import annotations

import threading

from headwater.resources.queues import Waiting


class StepBarrier:
    """The step that all replicas are at.

    Attributes:
      step: the number of the step; -1 before it is set.
    """

    def __init__(self) -> None:
        self.step = -1
        self._extra = 0
        self._condition = threading.Condition()

    def set(self, step: int, extra: int) -> None:
        """Begins a step.

        Args:
          step: its number.
          extra: how many replicas may give a further gradient in it, where more are needed than there are replicas.
        """
        with self._condition:
            self.step, self._extra = step, extra
            self._condition.notify_all()

    def wait(self, waiting: Waiting, done: int) -> int:
        """Waits until a step after ``done`` begins, or this one needs another gradient; the step there is then."""
        with self._condition:
            waiting.wait_until(
                self._condition,
                lambda: self.step > done or self._extra > 0,
                f"the gradients of other replicas for step {done}",
            )
            if self.step <= done:
                self._extra -= 1
            return self.step
