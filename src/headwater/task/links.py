"""The way to another task, for services whose channels wait until the task is there."""

from __future__ import annotations

from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.links import Link


class WaitingLink(Link):
    """A link whose channels wait for the other task where it is not there, and say so."""

    def _open(self) -> Channel:
        return self._wait_for(self._attempt, None)

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
