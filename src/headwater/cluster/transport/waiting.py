"""Retries until a task can be reached, with messages about the wait.

A task may be started minutes after the tasks that need it. A waiting task logs every few seconds the task that it waits
for, the address of that task, the duration of the wait, and the reason. After a deadline, it gives up with an error
that contains a hint.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from headwater.cluster.addresses import Address
from headwater.cluster.transport.problems import FINAL, ConnectFailure, Problem
from headwater.errors import CancelledError, GaveUpError, InvalidArgumentError, UnavailableError

_log = logging.getLogger("headwater")

DEADLINE = "HEADWATER_CONNECT_DEADLINE_S"
SILENCE_DEADLINE = "HEADWATER_SILENCE_DEADLINE_S"

_SHORTEST_PAUSE_S = 0.001

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """Limits of waits for a task, and intervals of retries and messages.

    Attributes:
      deadline_s: give up after this long, in seconds.
      silence_deadline_s: give up after this long, in seconds, if there was no answer of any kind, not even a refusal: a
        firewall may drop the packets, or the machine may be down.
      first_pause_s: the pause after the first attempt, in seconds; each later pause is 1.5 times as long.
      longest_pause_s: maximum pause between two attempts, in seconds.
      report_s: seconds between two messages in the log.

    Raises:
      InvalidArgumentError: one of them is negative.
    """

    deadline_s: float = 600.0
    silence_deadline_s: float = 25.0
    first_pause_s: float = 0.05
    longest_pause_s: float = 1.0
    report_s: float = 4.0

    def __post_init__(self) -> None:
        for name in ("deadline_s", "silence_deadline_s", "first_pause_s", "longest_pause_s", "report_s"):
            if not getattr(self, name) >= 0:
                raise InvalidArgumentError(f"{name} must not be negative, but is {getattr(self, name)!r}")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Patience:
        """Returns the defaults, with deadlines from the environment where set.

        Raises:
          InvalidArgumentError: a variable is not a number.
        """
        environ = os.environ if environ is None else environ
        return cls(
            deadline_s=seconds_from(environ, DEADLINE, cls().deadline_s),
            silence_deadline_s=seconds_from(environ, SILENCE_DEADLINE, cls().silence_deadline_s),
        )


def seconds_from(environ: Mapping[str, str], name: str, default: float) -> float:
    """Returns the number of seconds in an environment variable, or ``default``.

    Raises:
      InvalidArgumentError: the variable is not a number.
    """
    text = environ.get(name, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise InvalidArgumentError(f"{name} is {text!r}, but must be a number of seconds") from None


def positive_seconds_from(environ: Mapping[str, str], name: str, default: float) -> float:
    """Returns a number as `seconds_from` does; raises InvalidArgumentError also if it is not above 0."""
    seconds = seconds_from(environ, name, default)
    if not seconds > 0:
        raise InvalidArgumentError(f"{name} is {seconds:g}, but must be more than 0 s")
    return seconds


class Waiter:
    """Retries attempts to reach a task. The clock and the pauses can be replaced.

    Args:
      patience: limits and intervals.
      clock: returns monotonic seconds.
      pause: waits for a number of seconds; returns True when `cancel` was called, to end the wait.
    """

    def __init__(
        self,
        patience: Patience | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], bool] | None = None,
    ) -> None:
        self.patience: Patience = patience or Patience.from_environment()
        self._clock = clock
        self._cancelled = threading.Event()
        self._pause = pause or self._cancelled.wait

    def cancel(self) -> None:
        """Ends all current and future waits with `CancelledError`. Thread-safe."""
        self._cancelled.set()

    def connect(
        self,
        attempt: Callable[[], T],
        *,
        me: str,
        peer: str,
        address: Address,
        deadline_s: float | None = None,
        otherwise: str = "gives up",
        known: bool = False,
    ) -> T:
        """Repeats ``attempt`` until it succeeds; returns its result.

        Args:
          attempt: raises `ConnectFailure` if it fails.
          me: the name of the waiting task.
          peer: the name of the task that is waited for.
          address: the address of that task.
          deadline_s: the deadline, in seconds; by default the deadline of ``patience``.
          otherwise: the caller's action after the deadline, in words, for messages.
          known: whether the address has answered before. Then silence cannot mean a wrong address or a firewall, and
            the long deadline applies.

        Raises:
          GaveUpError: the deadline has passed; the message has the task, address, duration and reason.
          UnauthenticatedError, FailedPreconditionError, AbortedError: a permanent problem: a certificate or token was
            not accepted, the versions differ, or the task was restarted.
          CancelledError: `cancel` was called.
        """
        patience = self.patience
        deadline_s = patience.deadline_s if deadline_s is None else deadline_s
        began = self._clock()
        reported = began
        only_silence = not known
        pause_s = patience.first_pause_s
        first = True
        while True:
            try:
                result = attempt()
            except ConnectFailure as error:
                failure = error
            else:
                if reported > began:
                    _log.info("%s reached %s at %s after %d s", me, peer, address, self._clock() - began)
                return result
            now = self._clock()
            waited = now - began
            # Any answer, even a refusal, shows that no firewall drops the packets: use the long deadline from then on.
            only_silence = only_silence and failure.problem is Problem.NO_ANSWER
            limit = min(deadline_s, patience.silence_deadline_s) if only_silence else deadline_s
            if failure.problem in FINAL or waited >= limit:
                since = "" if first else f" after {waited:.0f} s"
                error = failure.as_error(f"{me} gave up waiting for {peer} at {address}{since}")
                if isinstance(error, UnavailableError):
                    error = GaveUpError(error.message)
                raise error from failure
            # A refusal is usual while tasks are starting, so it is not reported immediately.
            if now - reported >= patience.report_s or (first and failure.problem is not Problem.REFUSED):
                remaining_s = max(0.0, limit - waited)
                _log.warning(
                    "%s waits for %s at %s, %d s so far: %s; %s in %d s",
                    me,
                    peer,
                    address,
                    waited,
                    failure,
                    otherwise,
                    remaining_s,
                )
                reported = now
            if self._cancelled.is_set() or self._pause(min(pause_s, max(_SHORTEST_PAUSE_S, limit - waited))):
                raise CancelledError(f"{me} was stopped while it waited for {peer} at {address}")
            pause_s = min(pause_s * 1.5, patience.longest_pause_s)
            first = False
