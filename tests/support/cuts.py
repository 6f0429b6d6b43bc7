"""Channels that are cut at chosen frames, to test each point at which a connection may be lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection

from headwater.cluster.transport.channel import Channel, ChannelStatistics
from headwater.cluster.transport.frames import Frame
from headwater.errors import UnavailableError

_REASON = "the test has cut it"


class Cuts:
    """Numbers the frames of all channels of a cluster in the order of sending, and cuts channels at chosen numbers.

    Attributes:
      frames: the number of the next frame, from 0.
      made: the number of channels that were cut.
      on_cut: called when a frame in ``before`` was lost; see `plan`.
      on_frame: called with the number of each frame before it is sent.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._before: Collection[int] = ()
        self._after: Collection[int] = ()
        self._unnoticed: Collection[int] = ()
        self.frames = 0
        self.made = 0
        self.on_cut: Callable[[], object] = lambda: None
        self.on_frame: Callable[[int], object] = lambda _: None

    def plan(
        self, *, before: Collection[int] = (), after: Collection[int] = (), unnoticed: Collection[int] = ()
    ) -> None:
        """Sets the frames at which channels are cut, and restarts the numbering at 0.

        Args:
          before: numbers of frames that are not sent: the channel is cut before, and the sender gets an error.
          after: numbers of frames that arrive: the channel is cut afterwards.
          unnoticed: numbers of frames that are lost with their channel, while the sender gets no error.
        """
        self._numbers, self.frames, self.made = itertools.count(), 0, 0
        self._before, self._after, self._unnoticed = before, after, unnoticed

    def between(self, one: Channel, other: Channel) -> tuple[Channel, Channel]:
        """Returns the ends of a channel, wrapped so that their frames are counted and cut."""
        return _CutChannel(one, self), _CutChannel(other, self)

    def pass_on(self, frame: Frame, channel: Channel) -> None:
        """Sends a frame, cuts the channel, or does both, as planned."""
        number = next(self._numbers)
        self.frames = number + 1
        self.on_frame(number)
        if number in self._before:
            self.made += 1
            channel.break_off(_REASON)
            self.on_cut()
            raise UnavailableError(None, None, _REASON)
        if number in self._unnoticed:
            self.made += 1
            channel.break_off(_REASON)
            return
        channel.send(frame)
        if number in self._after:
            self.made += 1
            channel.break_off(_REASON)


class _CutChannel:
    def __init__(self, channel: Channel, cuts: Cuts) -> None:
        self._channel = channel
        self._cuts = cuts
        self.peer_generation = channel.peer_generation

    @property
    def peer(self) -> str:
        return self._channel.peer

    @property
    def closed(self) -> bool:
        return self._channel.closed

    def send(self, frame: Frame) -> None:
        self._cuts.pass_on(frame, self._channel)

    def recv(self, timeout_s: float | None = None) -> Frame:
        return self._channel.recv(timeout_s)

    def sends_at_once(self, payload_bytes: int) -> bool:
        return self._channel.sends_at_once(payload_bytes)

    def peer_gone(self) -> bool:
        return self._channel.peer_gone()

    def close(self) -> None:
        self._channel.close()

    def break_off(self, reason: str) -> None:
        self._channel.break_off(reason)

    def statistics(self) -> ChannelStatistics:
        return self._channel.statistics()
