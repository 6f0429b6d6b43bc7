"""Failures of this process to write files, for the log, `headwater status` and the metrics."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from headwater.errors import ResourceExhaustedError

_logger: Final = logging.getLogger(__name__)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS: Final = ("No space left on device", "Disk quota exceeded", "database or disk is full")


def is_full_disk(error: BaseException) -> bool:
    """Returns whether ``error`` means that the disk is full; some libraries indicate this only in the message."""
    if isinstance(error, ResourceExhaustedError):
        return True
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return isinstance(error, Exception) and any(words in str(error) for words in _WORDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """A file or folder that this process has failed to write, at the last attempt or an earlier attempt.

    Attributes:
      what: a description, such as ``checkpoints in /data/run``.
      failures: the number of failed attempts since the process started.
      seconds: for how long writing has failed, in seconds; 0 after a success.
      message: the message of the latest error; empty after a success.
    """

    what: str
    failures: int
    seconds: float = 0.0
    message: str = ""


class Troubles:
    """Records failures to write. Safe to use from several threads.

    Args:
      clock: returns monotonic seconds of any origin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Trouble, float]] = {}

    def record_failure(self, what: str, error: Exception, then: str) -> None:
        """Records and logs that ``what`` could not be written; ``then`` describes the consequence."""
        message = getattr(error, "message", "") or str(error)
        with self._lock:
            now = self._clock()
            trouble, since = self._known.get(what, (Trouble(what=what, failures=0), now))
            since = since if trouble.message else now  # after a success, count the time from this failure
            self._known[what] = replace(trouble, failures=trouble.failures + 1, message=message), since
        _logger.error("Cannot write %s: %s. %s", what, message, then)

    def record_success(self, what: str) -> None:
        """Records that ``what`` was written. If the previous attempt to write it had failed, logs the success."""
        with self._lock:
            trouble_and_time = self._known.get(what)
            if trouble_and_time is None or not trouble_and_time[0].message:
                return
            self._known[what] = replace(trouble_and_time[0], message=""), trouble_and_time[1]
            seconds = self._clock() - trouble_and_time[1]
        _logger.warning("%s: written again, after %.0f s", what, seconds)

    def all_failures(self) -> tuple[Trouble, ...]:
        """Returns all failures of this process, current ones first."""
        with self._lock:
            at = self._clock()
            troubles = [replace(one, seconds=at - since if one.message else 0.0) for one, since in self._known.values()]
        return tuple(sorted(troubles, key=lambda one: (not one.message, one.what)))

    @contextmanager
    def record_full_disk(self, what: str, then: str) -> Generator[None]:
        """Context manager for a block that writes ``what``: records a full disk instead of raising the error."""
        try:
            yield
        except Exception as error:
            if not is_full_disk(error):
                raise
            self.record_failure(what, error, then)
        else:
            self.record_success(what)


TROUBLES: Final = Troubles()
"""The failures of this process."""
