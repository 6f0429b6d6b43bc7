"""Limits on the requests of one client: rate and burst size."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_MAX_KEYS = 10_000


class RateLimit:
    """Token buckets: each key may perform ``burst`` operations at once, and ``per_s`` per second in the long run.

    Args:
      per_s: operations per second in the long run.
      burst: operations at once.
      clock: returns monotonic seconds.
    """

    def __init__(self, per_s: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def acquire(self, key: str, *, cost: float = 1.0) -> float:
        """Takes a token for ``key``; returns 0.0 if allowed, else the seconds to wait. A cost of 0 only checks."""
        now = self._clock()
        with self._lock:
            available, since = self._left.pop(key, (float(self._burst), now))
            available = min(self._burst, available + (now - since) * self._per_s)
            allowed = available >= max(cost, 1.0)
            self._left[key] = (available - cost if allowed else available, now)
            # The client of a dropped bucket gets a new, full bucket. Drop the least recently used bucket, because it is
            # probably the fullest.
            while len(self._left) > _MAX_KEYS:
                self._left.popitem(last=False)
        return 0.0 if allowed else (max(cost, 1.0) - available) / self._per_s
