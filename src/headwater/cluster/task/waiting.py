"""Intervals of waits on a ``ps``: between checks, and between messages about the reason of a wait."""

from __future__ import annotations

import time
from typing import Final

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame

#: Seconds between two checks whether a waiting worker is still connected.
CHECK_INTERVAL_S: Final = 0.5
#: Seconds between two WAIT frames.
WAIT_INTERVAL_S: Final = 4.0
#: How long a ``ps`` may be silent, in seconds, before a worker reports it.
SILENCE_S: Final = 10.0


class Reminder:
    """Limits the messages about a wait to one in `WAIT_INTERVAL_S` seconds; the first is due after the same time."""

    def __init__(self) -> None:
        self._spoken = time.monotonic()

    def is_due(self) -> bool:
        """Returns whether a message is due now; the next one is `WAIT_INTERVAL_S` later."""
        now = time.monotonic()
        due = now - self._spoken >= WAIT_INTERVAL_S
        if due:
            self._spoken = now
        return due

    def send_if_due(self, channel: Channel, what: str) -> None:
        """Sends a worker the reason for the wait if a message is due."""
        if self.is_due():
            channel.send(Frame(kinds.WAIT, (what,)))
