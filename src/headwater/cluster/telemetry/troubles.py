"""What this process cannot write just now: for the log, `headwater status` and the metrics."""

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
    """Whether ``error`` says that there is no room for what is to be written; libraries say it in words only."""
    if isinstance(error, ResourceExhaustedError):
        return True
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return isinstance(error, Exception) and any(words in str(error) for words in _WORDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Something that could not be written when it was tried last, or that could not at some time before.

    Attributes:
      what: in words, such as ``checkpoints in /data/run``.
      failures: how often it could not be written, since the process began.
      seconds: since when it cannot, in seconds; 0 where it could be written in the end.
      message: of the latest error; empty where it could be written in the end.
    """

    what: str
    failures: int
    seconds: float = 0.0
    message: str = ""


class Troubles:
    """Keeps account of failures to write. Safe to use from several threads.

    Args:
      clock: gives seconds of any origin.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Trouble, float]] = {}

    def failed(self, what: str, error: Exception, then: str) -> None:
        """Notes and logs that ``what`` could not be written; ``then`` says what happens now."""
        message = getattr(error, "message", "") or str(error)
        with self._lock:
            now = self._clock()
            trouble, since = self._known.get(what, (Trouble(what=what, failures=0), now))
            since = since if trouble.message else now
            self._known[what] = replace(trouble, failures=trouble.failures + 1, message=message), since
        _logger.error("Cannot write %s: %s. %s", what, message, then)

    def written(self, what: str) -> None:
        """Notes, and logs where it had failed, that ``what`` was written."""
        with self._lock:
            found = self._known.get(what)
            if found is None or not found[0].message:
                return
            self._known[what] = replace(found[0], message=""), found[1]
            seconds = self._clock() - found[1]
        _logger.warning("%s: written again, after %.0f s", what, seconds)

    def now(self) -> tuple[Trouble, ...]:
        """All that ever failed, what fails now first."""
        with self._lock:
            at = self._clock()
            found = [replace(one, seconds=at - since if one.message else 0.0) for one, since in self._known.values()]
        return tuple(sorted(found, key=lambda one: (not one.message, one.what)))

    @contextmanager
    def noted(self, what: str, then: str) -> Generator[None]:
        """A block that writes ``what``; a full disk is noted in place of raising the error."""
        try:
            yield
        except Exception as error:
            if not is_full_disk(error):
                raise
            self.failed(what, error, then)
        else:
            self.written(what)


TROUBLES: Final = Troubles()
"""Those of this process."""
