"""The way to another task, for services whose channels wait until the task is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.links import Link
from headwater.cluster.transport.problems import ConnectFailure, Problem
from headwater.errors import DeadlineExceededError, UnavailableError

T = TypeVar("T")

#: After so long without an answer another channel is tried, in seconds.
_ANSWER_S = 5.0


class WaitingLink(Link):
    """A link whose channels wait for the other task where it is not there, and say so.

    Attributes:
      check: called after each attempt that found it not there, while it is waited for without a deadline of its own.
        What it raises ends the wait.
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

    def take_answered(self, greeting: Frame, deadline_s: float) -> Channel:
        """A channel on which the other task has answered ``greeting``; tried again where it ends the channel instead.

        Args:
          greeting: the first frame.
          deadline_s: how long the other task is waited for, in seconds.

        Raises:
          GaveUpError: it did not answer before that.
        """

        def attempt() -> Channel:
            channel = self._attempt()
            self._pool.adopt(channel, self._peer)
            try:
                channel.send(greeting)
                channel.recv(_ANSWER_S)
            except UnavailableError as error:
                self.give_back(channel, usable=False)
                raise ConnectFailure(Problem.BUSY, "it ended the channel") from error
            except DeadlineExceededError as error:
                self.give_back(channel, usable=False)
                raise ConnectFailure(Problem.SILENT, f"no answer for {_ANSWER_S:g} s") from error
            return channel

        return self._wiring.waiter.connect(
            attempt, me=self._wiring.me.task, peer=self._called, address=self._address, deadline_s=deadline_s
        )

    def take_now(self) -> Channel:
        """As `take`, without any wait for a task that is not there.

        Raises:
          UnavailableError: it cannot be reached.
        """
        try:
            channel = self._attempt()
        except ConnectFailure as failure:
            raise UnavailableError(
                None, None, f"cannot reach {self._called} at {self._address}: {failure}"
            ) from failure
        self._pool.adopt(channel, self._peer)
        return channel

    def watch(self, channel: Channel) -> None:
        """From now on ``channel``, which the other task has opened, breaks off when that task is lost. `give_back` ends
        this."""
        self._pool.adopt(channel, self._peer)

    def lost(self) -> bool:
        """Whether the task was there, and is not any more, as far as is known."""
        return self.control.lost()

    def tell(self, frame: Frame) -> None:
        """Sends one frame to the task, if it can be reached.

        Raises:
          ConnectFailure, OpError: it cannot.
        """
        channel = self._attempt()
        try:
            channel.send(frame)
        finally:
            channel.close()
