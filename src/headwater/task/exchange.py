"""One frame to another task, and its answer."""

from __future__ import annotations

import itertools
import time
from typing import Protocol

from headwater.errors import DeadlineExceededError, UnavailableError
from headwater.task import kinds
from headwater.task.answers import bad_header, raise_error
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame


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


def exchange(link: GivesChannels, task: str, frame: Frame, within_s: float, tries: int = 1) -> Frame:
    """The answer of a task to ``frame``, on a channel of its own.

    Args:
      link: to the task.
      task: its name.
      frame: what is said.
      within_s: how long it may take to answer, in seconds; all tries together.
      tries: how often it is said, where the channel is lost before the answer.

    Raises:
      OpError: it cannot be reached, does not answer in time, or says that something went wrong.
    """
    until = time.monotonic() + within_s
    for tried in itertools.count(1):
        channel = link.take_now()
        try:
            channel.send(frame)
            return answer_on(channel, task, until - time.monotonic())
        except UnavailableError:
            if tried == tries or time.monotonic() >= until:
                raise
        finally:
            link.give_back(channel, False)
    raise AssertionError
