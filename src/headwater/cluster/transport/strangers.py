"""Connections that have not proved yet who they are, and which of them go when there are too many.

Each has until a deadline. When there is no room for another one, one is dropped: of those from the host that has most
of them, the oldest. So what a stranger holds it does not hold for long, and a host that opens many connections takes
room from itself, not from others. None is dropped that has just come: who knows the token needs a moment to show it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

#: No connection is dropped for another one before it is so old, in seconds.
GRACE_S = 0.1


class Stranger(Protocol):
    """A connection whose other end is not known yet.

    Attributes:
      host: where it comes from.
    """

    @property
    def host(self) -> str: ...


StrangerT = TypeVar("StrangerT", bound=Stranger)


class Strangers(Generic[StrangerT]):
    """All connections of a listener that have not proved yet who they are. Any thread may use it.

    Args:
      most: how many there may be.
      deadline_s: how long each may take, in seconds.
      clock: seconds that only grow.
    """

    def __init__(self, most: int, deadline_s: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._deadline_s = deadline_s
        self._clock = clock
        self._lock = threading.Lock()
        # Since when each is here. The oldest is the first.
        self._since: dict[StrangerT, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def add(self, stranger: StrangerT) -> None:
        """It has come now."""
        with self._lock:
            self._since[stranger] = self._clock()

    def remove(self, stranger: StrangerT) -> bool:
        """It has proved who it is, or is gone; False when it was removed before."""
        with self._lock:
            return self._since.pop(stranger, None) is not None

    def all(self) -> list[StrangerT]:
        """All of them, the oldest first."""
        with self._lock:
            return list(self._since)

    def remaining_s(self, stranger: StrangerT) -> float:
        """How long it has left, in seconds."""
        with self._lock:
            since = self._since.get(stranger)
        return 0.0 if since is None else since + self._deadline_s - self._clock()

    def overdue(self) -> list[StrangerT]:
        """Those whose time is over."""
        limit = self._clock() - self._deadline_s
        with self._lock:
            return [stranger for stranger, since in self._since.items() if since <= limit]

    def to_drop(self) -> tuple[StrangerT, float] | None:
        """Which one to drop for another one, and in how many seconds it may be dropped; None where there is room."""
        with self._lock:
            if len(self._since) < self._most:
                return None
            crowd = Counter(stranger.host for stranger in self._since)
            most = max(crowd.values())
            oldest, since = next(entry for entry in self._since.items() if crowd[entry[0].host] == most)
        return oldest, max(0.0, since + GRACE_S - self._clock())

    def next_deadline_s(self) -> float | None:
        """In how many seconds the time of one of them is over; None without any."""
        with self._lock:
            oldest = min(self._since.values(), default=None)
        return None if oldest is None else max(0.0, oldest + self._deadline_s - self._clock())

    def forgive(self, seconds: float) -> None:
        """Gives all of them so much more time: this process stood still, and could not listen to them."""
        with self._lock:
            for stranger in self._since:
                self._since[stranger] += seconds
