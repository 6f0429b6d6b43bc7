"""A time of day that never jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final


class SteadyClock:
    """Monotonic seconds since 1970: setting the system clock during the process has no effect.

    Used for expiry, and for times that are compared with each other. If the system clock is set between the starts of
    two processes, their steady clocks differ by that adjustment.

    Args:
      wall: returns the time of day, in seconds since 1970; called once.
      monotonic: returns monotonic seconds of any origin.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._origin: Final = wall() - monotonic()

    def __call__(self) -> float:
        return self._origin + self._monotonic()
