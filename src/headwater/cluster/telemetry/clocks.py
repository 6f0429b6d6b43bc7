"""Time of day that does not jump."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final


class SteadyClock:
    """Seconds since 1970 that only grow, as fast as time passes: a clock that is set meanwhile changes nothing.

    For what expires, and for times that are compared with each other. Two processes that began before and after the
    clock was set differ by as much as it was set.

    Args:
      wall: the time of day when this begins, in seconds since 1970.
      monotonic: gives seconds of any origin that only grow.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._origin: Final = wall() - monotonic()

    def __call__(self) -> float:
        return self._origin + self._monotonic()
