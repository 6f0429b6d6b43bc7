"""How long a ``ps`` waits before it looks around, and before it says for what it waits."""

from __future__ import annotations

import time
from typing import Final

from headwater.cluster.task import kinds
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame

#: Between two looks at whether a worker that waits is still there, in seconds.
LOOK_S: Final = 0.5
#: Between two WAIT frames, in seconds.
SPEAK_S: Final = 4.0
#: How long a ``ps`` may say nothing while it should, in seconds, before a worker says so.
SILENCE_S: Final = 10.0


class Reminder:
    """Whether it is time to say what is waited for: `SPEAK_S` after the wait began, and after each time."""

    def __init__(self) -> None:
        self._spoken = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is to be said now; the next time is `SPEAK_S` later."""
        now = time.monotonic()
        due = now - self._spoken >= SPEAK_S
        if due:
            self._spoken = now
        return due

    def tell(self, channel: Channel, what: str) -> None:
        """Tells a worker, where it is time, what its answer waits for."""
        if self.is_due():
            channel.send(Frame(kinds.WAIT, (what,)))
