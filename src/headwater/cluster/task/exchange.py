"""One frame to another task, and its answer."""

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

#: Between two attempts to open a channel, in seconds.
_PAUSE_S: Final = 0.1
#: Why there is no channel to a task, where no other attempt is made: nothing is there, or that does not go away.
_ENDS: Final = FINAL | {Problem.REFUSED, Problem.UNKNOWN_HOST}


class GivesChannels(Protocol):
    """The way to another task."""

    def take_now(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...


def answer_on(channel: Channel, task: str, within_s: float) -> Frame:
    """The next answer on a channel.

    Raises:
      OpError: what the other end says went wrong; UnavailableError where it has not answered within that time.
    """
    until = time.monotonic() + within_s
    while True:
        try:
            answer = channel.recv(max(0.0, until - time.monotonic()))
        except DeadlineExceededError as error:
            raise UnavailableError(None, None, f"{task} has not answered within {within_s:.1f} s") from error
        if answer.kind == kinds.ERROR:
            raise_error(answer, task)
        if answer.kind == kinds.DONE:
            return answer
        if answer.kind != kinds.WAIT:
            raise bad_header(answer, task)


def take_within(link: GivesChannels, task: str, within_s: float) -> Channel:
    """A channel to a task, which is tried again where it is there and gives none: it may compute.

    Args:
      link: to the task.
      task: its name.
      within_s: for how long it is tried, in seconds. 0: once.

    Raises:
      UnavailableError: there was none in that time; at once where nothing listens.
    """
    until = time.monotonic() + within_s
    for tried in itertools.count(1):
        try:
            return link.take_now()
        except UnavailableError as error:
            cause = error.__cause__
            if time.monotonic() >= until or (isinstance(cause, ConnectFailure) and cause.problem in _ENDS):
                raise
            if tried == 1:
                _log.info("%s is tried again for up to %.0f s: %s", task, until - time.monotonic(), error.message)
        pause(_PAUSE_S)
    raise AssertionError


def exchange(link: GivesChannels, task: str, frame: Frame, within_s: float, tries: int = 1) -> Frame:
    """The answer of a task to ``frame``, on a channel of its own.

    Args:
      link: to the task.
      task: its name.
      frame: what is said.
      within_s: how long it may take to answer, in seconds; all tries together.
      tries: how often it is said, where the channel is lost before the answer. With more than one, `take_within` opens
        the channels.

    Raises:
      OpError: it cannot be reached, does not answer in time, or says that something went wrong.
    """
    until = time.monotonic() + within_s
    for tried in itertools.count(1):
        channel = take_within(link, task, until - time.monotonic() if tries > 1 else 0.0)
        try:
            channel.send(frame)
            return answer_on(channel, task, until - time.monotonic())
        except UnavailableError:
            if tried == tries or time.monotonic() >= until:
                raise
        finally:
            link.give_back(channel, False)
    raise AssertionError
