"""Request and response: one frame to another task, and its answer."""

from __future__ import annotations

import itertools
import logging
import time
from typing import Final, Protocol

from headwater.cluster.pauses import pause
from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.problems import FINAL, ConnectFailure, Problem
from headwater.errors import DeadlineExceededError, UnavailableError

_log = logging.getLogger("headwater")

#: Seconds between two attempts to open a channel.
_PAUSE_S: Final = 0.1
#: Problems after which `open_channel_within` does not retry, because no process listens or the problem is permanent.
_ENDS: Final = FINAL | {Problem.REFUSED, Problem.UNKNOWN_HOST}


class ChannelSource(Protocol):
    """A link to another task."""

    def open_channel_now(self) -> Channel:
        """Opens a channel without waiting for a task that is not running.

        Raises:
          UnavailableError: the task cannot be reached.
        """
        ...

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Returns a channel after use. If ``usable`` is False, the channel is closed instead of being reused."""
        ...


def answer_on(channel: Channel, task: str, within_s: float) -> Frame:
    """Waits for the next answer on a channel and returns it.

    Args:
      task: the name of the task at the other end, for messages.
      within_s: how long the answer may take, in seconds.

    Raises:
      OpError: the other end reports this error.
      UnavailableError: there was no answer in that time.
    """
    until = time.monotonic() + within_s
    while True:
        try:
            answer = channel.recv(max(0.0, until - time.monotonic()))
        except DeadlineExceededError as error:
            raise UnavailableError(f"{task} has not answered within {within_s:.1f} s") from error
        if answer.kind == kinds.ERROR:
            raise_error(answer, task)
        if answer.kind == kinds.DONE:
            return answer
        if answer.kind != kinds.WAIT:
            raise bad_header(answer, task)


def open_channel_within(link: ChannelSource, task: str, within_s: float) -> Channel:
    """Opens a channel to a task. Retries if the task runs but does not answer, because it may hold the GIL.

    Args:
      link: a link to the task.
      task: the task's name.
      within_s: for how long to retry, in seconds; 0 for one attempt.

    Raises:
      UnavailableError: no channel could be opened in that time, or no process listens at the address.
    """
    until = time.monotonic() + within_s
    for tried in itertools.count(1):
        try:
            return link.open_channel_now()
        except UnavailableError as error:
            cause = error.__cause__
            if time.monotonic() >= until or (isinstance(cause, ConnectFailure) and cause.problem in _ENDS):
                raise
            if tried == 1:
                _log.info("%s is retried for up to %.0f s: %s", task, until - time.monotonic(), error.message)
        pause(_PAUSE_S)
    raise AssertionError


def exchange(link: ChannelSource, task: str, frame: Frame, within_s: float, tries: int = 1) -> Frame:
    """Sends ``frame`` to a task on a new channel, and returns the answer.

    Args:
      link: a link to the task.
      task: the task's name.
      frame: the request; it has to be idempotent if ``tries`` is above 1.
      within_s: how long the answer may take, in seconds; all tries together.
      tries: how often to send the frame at most, if the channel is lost before the answer arrives. If this is above 1,
        opening a channel is retried, too; see `open_channel_within`.

    Raises:
      OpError: the task cannot be reached, does not answer in time, or reports an error.
    """
    until = time.monotonic() + within_s
    for tried in itertools.count(1):
        channel = open_channel_within(link, task, until - time.monotonic() if tries > 1 else 0.0)
        try:
            channel.send(frame)
            return answer_on(channel, task, until - time.monotonic())
        except UnavailableError:
            if tried == tries or time.monotonic() >= until:
                raise
        finally:
            # Do not reuse the channel: if the answer was late, the next frame on it would be that answer.
            link.release_channel(channel, False)
    raise AssertionError
