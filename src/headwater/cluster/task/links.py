"""Links for services whose channels wait until the other task is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.links import Link
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import DeadlineExceededError, UnavailableError

T = TypeVar("T")

#: Timeout of an answer before another channel is tried, in seconds.
_ANSWER_TIMEOUT_S = 5.0


class WaitingLink(Link):
    """A link that waits for the other task when a channel is opened while the task is not running, and logs the wait.

    Attributes:
      check: called after each failed attempt of a wait without a deadline. Its exceptions end the wait.
    """

    check: Callable[[], None] | None = None

    def _wait_for(self, attempt: Callable[[], T], deadline_s: float | None) -> T:
        def checked() -> T:
            try:
                return attempt()
            except ConnectFailure:
                if self.check is not None:
                    self.check()
                raise

        return super()._wait_for(attempt if deadline_s is not None else checked, deadline_s)

    def _open(self) -> Channel:
        return self._wait_for(self._attempt, None)

    def open_answered_channel(self, greeting: Frame, deadline_s: float) -> Channel:
        """Sends ``greeting`` on a new channel, and returns the channel once the other task has answered.

        If the task closes the channel instead, or does not answer within 5 s, tries again on another channel.

        Args:
          greeting: the first frame.
          deadline_s: how long to wait for the other task, in seconds.

        Raises:
          GaveUpError: the task has not answered in that time.
        """

        def attempt() -> Channel:
            channel = self._attempt()
            self._pool.adopt(channel, self._peer)
            try:
                channel.send(greeting)
                channel.recv(_ANSWER_TIMEOUT_S)
            except UnavailableError as error:
                self.release_channel(channel, usable=False)
                raise ConnectFailure(Problem.BUSY, "it ended the channel") from error
            except DeadlineExceededError as error:
                self.release_channel(channel, usable=False)
                raise ConnectFailure(Problem.SILENT, f"no answer for {_ANSWER_TIMEOUT_S:g} s") from error
            return channel

        return self._link_settings.waiter.connect(
            attempt, me=self._link_settings.me.task, peer=self._called, address=self._address, deadline_s=deadline_s
        )

    def open_channel_now(self) -> Channel:
        """Opens a channel as `open_channel` does, but does not wait for a task that is not running.

        Raises:
          UnavailableError: the task cannot be reached.
        """
        try:
            channel = self._attempt()
        except ConnectFailure as failure:
            raise UnavailableError(f"cannot reach {self._called} at {self._address}: {failure}") from failure
        self._pool.adopt(channel, self._peer)
        return channel

    def watch(self, channel: Channel) -> None:
        """Registers a channel that the other task opened: the channel is closed if that task is lost before its
        release."""
        self._pool.adopt(channel, self._peer)

    def is_lost(self) -> bool:
        """Returns whether the task was reachable before and is lost now, as far as is known."""
        return self.control.is_lost()

    def send_once(self, frame: Frame) -> None:
        """Sends one frame to the task, if it can be reached.

        Raises:
          ConnectFailure, OpError: the task cannot be reached.
        """
        channel = self._attempt()
        try:
            channel.send(frame)
        finally:
            channel.close()
