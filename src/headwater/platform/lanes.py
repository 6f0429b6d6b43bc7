"""A backend of the server, the thread that handles its jobs, and its availability.

Each backend has its own thread: a backend that does not answer delays neither other backends nor a request to submit or
stop a job. An unreachable backend is retried with growing pauses; meanwhile its jobs show why they wait.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from headwater.platform.backends.base import Backend, BackendError, Capacity

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 60.0
# A backend that has not answered a call for this long is shown as unavailable.
_UNAVAILABLE_AFTER_S = 45.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendSource:
    """A backend that is not connected yet.

    Attributes:
      name: the backend's name in the ``backend:`` field of job files.
      kind: the backend's class, which can check jobs without a connection.
      connect: connects to the backend; raises `BackendError`. A call may take long.
    """

    name: str
    kind: type[Backend]
    connect: Callable[[], Backend]


class Lane:
    """A backend and its availability.

    Args:
      source: the backend, or its source.
      clock: returns monotonic seconds.
    """

    def __init__(self, source: Backend | BackendSource, clock: Callable[[], float] = time.monotonic) -> None:
        self.name: str = source.name
        self._clock = clock
        self._connect: Callable[[], Backend] | None = None
        self.backend: Backend | None = None
        if isinstance(source, BackendSource):
            self.kind, self._connect = source.kind, source.connect
        else:
            self.kind, self.backend = type(source), source
        self._failure = ""
        self._pause_s = _FIRST_PAUSE_S
        self._retry_at = 0.0
        self._asked_since: float | None = None
        self._lock = threading.Lock()
        self._looking: threading.Thread | None = None
        self._seen: Capacity | BackendError | None = None

    def usable(self) -> Backend:
        """Returns the backend.

        Raises:
          BackendError: the backend could not be reached, or no connection has been tried yet.
        """
        if self.backend is None:
            why = self._failure or "it has not been reached yet"
            raise BackendError(f"backend {self.name} cannot be used now: {why}", temporary=True)
        return self.backend

    def reach(self) -> bool:
        """Tries to connect to the backend if a retry is due; returns whether it is usable. May take long."""
        if self.backend is not None or self._connect is None or self._clock() < self._retry_at:
            return self.backend is not None
        with self.call_in_progress():
            try:
                self.backend = self._connect()
            except BackendError as error:
                if str(error) != self._failure:
                    _log.warning("backend %s cannot be used now, and will be retried: %s", self.name, error)
                self._failure = str(error)
                self._retry_at = self._clock() + self._pause_s
                self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
                return False
        if self._failure:
            _log.info("backend %s can be used now", self.name)
        self._failure = ""
        return True

    @contextmanager
    def call_in_progress(self) -> Generator[None]:
        """Marks a call to the backend as in progress, so that `problem` reports a call that takes too long."""
        self._asked_since = self._clock()
        try:
            yield
        finally:
            self._asked_since = None

    def problem(self) -> str:
        """Returns why the backend is not usable now; empty if it is usable."""
        if self.backend is None:
            return self._failure or "it has not been reached yet"
        since = self._asked_since
        silent = 0.0 if since is None else self._clock() - since
        return f"it has not answered for {silent:.0f} s" if silent > _UNAVAILABLE_AFTER_S else ""

    def capacity(self, timeout_s: float) -> Capacity:
        """Returns all hosts of the backend, if it answers within ``timeout_s``.

        Raises:
          BackendError: the backend is not usable, refuses, or does not answer in time.
        """
        backend = self.usable()
        with self._lock:
            # Concurrent callers share one query, so that a silent backend blocks one thread instead of one per request.
            if self._looking is None or not self._looking.is_alive():
                self._seen = None
                # A daemon thread, so that neither this call nor the end of the process waits for the backend.
                self._looking = threading.Thread(
                    target=self._refresh_capacity, args=(backend,), name=f"headwater-{self.name}-capacity", daemon=True
                )
                self._looking.start()
            looking = self._looking
        looking.join(timeout_s)
        seen = self._seen
        if seen is None:
            raise BackendError(f"backend {self.name} has not answered in {timeout_s:g} s", temporary=True)
        if isinstance(seen, BackendError):
            raise seen
        return seen

    def _refresh_capacity(self, backend: Backend) -> None:
        try:
            self._seen = backend.capacity()
        except BackendError as error:
            self._seen = error
        except Exception as error:  # noqa: BLE001  from a client library: report it to the waiting caller
            _log.exception("backend %s: its hosts cannot be listed", self.name)
            self._seen = BackendError(f"backend {self.name}: {error}")
