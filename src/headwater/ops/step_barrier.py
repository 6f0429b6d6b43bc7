"""The barrier of synchronous replicas: who is done with a step waits until the next one begins."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from headwater.dtypes import int64
from headwater.ops.define import fixed, host, no_outputs
from headwater.ops.queue_state import Waiting


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


def _barrier(context: Any, name: str) -> StepBarrier:
    return context.resources.get_or_make("", name, StepBarrier, StepBarrier)


@host("StepBarrierSet", infer=no_outputs, inputs="step:int64", announces=True)
def set_step(context: Any, step: Any, *, shared_name: str, extra: int) -> None:
    _barrier(context, shared_name).set(int(step), extra)


@host("StepBarrierWait", infer=fixed(int64, ()), inputs="local_step:int64", blocking=True)
def wait_for_step(context: Any, local_step: Any, *, shared_name: str) -> Any:
    return np.int64(_barrier(context, shared_name).wait(context.step, int(local_step)))
