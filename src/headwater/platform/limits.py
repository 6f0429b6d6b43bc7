"""Bounds on what one client may ask for: how often, and how much at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_KEYS = 10_000


class RateLimit:
    """Token buckets: each key may do ``burst`` things at once, and ``per_s`` in a second in the long run.

    Args:
      per_s: how often, in the long run.
      burst: how many at once.
      clock: gives seconds that only grow.
    """

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, *, cost: float = 1.0) -> float:
        """Takes one for ``key``; 0.0 where that is allowed, else seconds until it will be. A cost of 0 only asks."""
        now = self._clock()
        with self._lock:
            left, since = self._left.pop(key, (float(self._burst), now))
            left = min(self._burst, left + (now - since) * self._per_s)
            allowed = left >= max(cost, 1.0)
            self._left[key] = (left - cost if allowed else left, now)
            # The bucket that was used least recently is the fullest, or its client comes back for more at most.
            while len(self._left) > _MOST_KEYS:
                self._left.popitem(last=False)
        return 0.0 if allowed else (max(cost, 1.0) - left) / self._per_s
