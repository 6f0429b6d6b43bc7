"""The barrier of synchronous replicas: a replica that is done with a step waits until the next one begins."""

from __future__ import annotations

import logging
import threading

from headwater.errors import AbortedError
from headwater.resources import replica_lives
from headwater.resources.queues import Waiting
from headwater.resources.replica_lives import Lives

_log = logging.getLogger("headwater")


class StepBarrier:
    """The step that all replicas are at.

    Attributes:
      step: the number of the step; -1 before it is set.
    """

    def __init__(self) -> None:
        self.step = -1
        self._extra = 0
        self._lives = Lives()
        self._waiting: dict[str, int] = {}
        self._condition = threading.Condition()

    def join(self, session: str) -> None:
        """A replica takes part, in ``session``."""
        with self._condition:
            self._lives = replica_lives.joined(self._lives, session)

    def start(self, session: str, step: int, extra: int) -> None:
        """The chief starts the training, in ``session``. Those who wait in another one hear that their step is void.

        Args:
          step: the number of the step that begins.
          extra: as for `set`.
        """
        with self._condition:
            stranded = [session for session, done in self._waiting.items() if done > step]
            self._lives = replica_lives.started(self._lives, session, step, stranded=stranded)
            if self._lives.life > 1:
                _log.warning("the chief starts the training anew at step %d; it was at step %d", step, self.step)
            self.step, self._extra = step, extra
            self._condition.notify_all()

    def set(self, session: str, step: int, extra: int) -> None:
        """Begins a step.

        Args:
          session: of the chief that has made the update.
          step: its number.
          extra: how many replicas may give a further gradient in it, where more are needed than there are replicas.

        Raises:
          AbortedError: another chief has started the training since.
        """
        with self._condition:
            self._check(session)
            self.step, self._extra = step, extra
            self._condition.notify_all()

    def wait(self, waiting: Waiting, session: str, done: int) -> int:
        """Waits until a step after ``done`` begins, or this one needs another gradient; the step there is then.

        Raises:
          AbortedError: the training was started anew: the step that a replica waits for in ``session`` may not come.
        """
        with self._condition:
            if session not in self._lives.sessions:
                self._lives = replica_lives.joined(self._lives, session)
            self._waiting[session] = done
            try:
                waiting.wait_until(
                    self._condition,
                    lambda: self.step > done or self._extra > 0 or replica_lives.is_void(self._lives, session),
                    f"the gradients of other replicas for step {done}",
                )
            finally:
                del self._waiting[session]
            self._check(session)
            if self.step <= done:
                self._extra -= 1
            return self.step

    def session_ended(self, session: str, reason: str) -> None:
        """A session is over, or its client is gone."""
        del reason
        with self._condition:
            self._lives = replica_lives.left(self._lives, session)

    def _check(self, session: str) -> None:
        if replica_lives.is_void(self._lives, session):
            raise AbortedError(None, None, replica_lives.void_text(self._lives))
