"""Timers of hooks: due at an interval of steps, or of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable


class SecondOrStepTimer:
    """A timer that is due at the first step, and then at an interval of seconds or steps.

    Args:
      every_secs: interval in seconds.
      every_steps: interval in steps.
      clock: returns monotonic seconds.

    Raises:
      ValueError: not exactly one of the two is given.
    """

    def __init__(
        self,
        every_secs: float | None = None,
        every_steps: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self._clock = clock
        self._last_step: int | None = None
        self._last_time = 0.0

    def reset(self) -> None:
        """Clears the time and step at which it was due last."""
        self._last_step = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Returns whether it is due at ``step``."""
        if self._last_step is None:
            return True
        if self._last_step == step:
            return False
        if self._every_secs is not None:
            return self._clock() >= self._last_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Records that it was due at ``step``.

        Returns:
          Seconds and steps since the last time; None the first time.
        """
        now = self._clock()
        elapsed = (None, None) if self._last_step is None else (now - self._last_time, step - self._last_step)
        self._last_step, self._last_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step at which it was due last."""
        return self._last_step


class NeverTriggerTimer(SecondOrStepTimer):
    """A timer that is never due."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        return None, None
