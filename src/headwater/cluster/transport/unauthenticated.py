"""Unauthenticated connections: their deadlines, and the choice of a connection to drop when there are too many.

Each connection has a deadline. When the maximum number is reached, a new connection replaces the oldest connection of
the host that has most connections. So no unauthenticated connection takes resources for long, and a host that opens
many connections displaces only its own connections. Connections younger than `GRACE_S` are not dropped, as
authentication takes a moment.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

#: Minimum age of a connection that is dropped for another connection, in seconds.
GRACE_S = 0.1


class UnauthenticatedConnection(Protocol):
    """An unauthenticated connection.

    Attributes:
      host: the host of the other end.
    """

    @property
    def host(self) -> str: ...


ConnectionT = TypeVar("ConnectionT", bound=UnauthenticatedConnection)


class UnauthenticatedConnections(Generic[ConnectionT]):
    """All unauthenticated connections of a listener. Thread-safe.

    Args:
      most: maximum number of connections.
      deadline_s: how long each connection may take to authenticate, in seconds.
      clock: returns monotonic seconds.
    """

    def __init__(self, most: int, deadline_s: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._deadline_s = deadline_s
        self._clock = clock
        self._lock = threading.Lock()
        # The start time of each connection, oldest first.
        self._since: dict[ConnectionT, float] = {}

    def __len__(self) -> int:
        return len(self._since)

    def add(self, candidate: ConnectionT) -> None:
        """Adds a new connection."""
        with self._lock:
            self._since[candidate] = self._clock()

    def remove(self, candidate: ConnectionT) -> bool:
        """Removes a connection that was authenticated or closed; returns False if it was removed before."""
        with self._lock:
            return self._since.pop(candidate, None) is not None

    def all(self) -> list[ConnectionT]:
        """Returns all connections, oldest first."""
        with self._lock:
            return list(self._since)

    def remaining_s(self, candidate: ConnectionT) -> float:
        """Returns the time until a connection's deadline, in seconds."""
        with self._lock:
            since = self._since.get(candidate)
        return 0.0 if since is None else since + self._deadline_s - self._clock()

    def overdue(self) -> list[ConnectionT]:
        """Returns the connections past their deadlines."""
        limit = self._clock() - self._deadline_s
        with self._lock:
            return [candidate for candidate, since in self._since.items() if since <= limit]

    def connection_to_drop(self) -> tuple[ConnectionT, float] | None:
        """Returns the connection to drop for a new one, and how long it must still be kept, in seconds.

        None while there is room.
        """
        with self._lock:
            if len(self._since) < self._most:
                return None
            crowd = Counter(candidate.host for candidate in self._since)
            most = max(crowd.values())
            oldest, since = next(entry for entry in self._since.items() if crowd[entry[0].host] == most)
        return oldest, max(0.0, since + GRACE_S - self._clock())

    def next_deadline_s(self) -> float | None:
        """Returns the time until the next deadline, in seconds; None without connections."""
        with self._lock:
            oldest = min(self._since.values(), default=None)
        return None if oldest is None else max(0.0, oldest + self._deadline_s - self._clock())

    def extend_deadlines(self, seconds: float) -> None:
        """Extends all deadlines by a time during which this process did not run and could not read, in seconds."""
        with self._lock:
            for candidate in self._since:
                self._since[candidate] += seconds
