"""How a worker reaches whichever copy of a shard serves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from headwater.cluster.pauses import pause
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.waiting import Patience
from headwater.errors import UnavailableError
from headwater.state.sites import PeerServerLink

#: How long to try one copy before the other one, in seconds.
_TRY_S = 0.5
#: Between two attempts where no copy can be reached, in seconds.
_PAUSE_S = 0.1


class EitherLink:
    """The way to the copy of a shard that serves. A conversation that broke off is gone on with at the other copy.

    Args:
      links: to both copies' tasks, first to the one that serves at the beginning.

    Attributes:
      check: called whenever a copy was not there, while it is waited for without a deadline. What it raises ends the
        wait.
    """

    def __init__(self, links: Sequence[PeerServerLink]) -> None:
        self.check: Callable[[], None] | None = None
        self._links = links
        self._at = 0
        # Whether to try a copy though it showed no sign of life: the other one may have sent this worker to it.
        self._tries_lost = False

    def reach(self, deadline_s: float | None = None) -> Any:
        """Waits until a copy can be reached; see `headwater.cluster.transport.links.Link.reach`."""
        give_up_at = time.monotonic() + (Patience.from_environment().deadline_s if deadline_s is None else deadline_s)
        while True:
            link = self._links[self._at]
            try:
                if self._tries_lost or not link.lost():
                    self._tries_lost = False
                    return link.reach(_TRY_S)
                error = UnavailableError(None, None, "it shows no sign of life")
            except UnavailableError as failure:
                error = failure
            if time.monotonic() >= give_up_at:
                raise error
            if self.check is not None and deadline_s is None:
                self.check()
            self._at = (self._at + 1) % len(self._links)
            pause(_PAUSE_S)

    def take(self) -> Channel:
        """A channel to the copy that was reached."""
        return self._links[self._at].take_now()

    def give_back(self, channel: Channel, usable: bool) -> None:
        """Ends a conversation; the other copy is tried next where it broke off."""
        self._links[self._at].give_back(channel, usable)
        if not usable:
            self._tries_lost = True
            self._at = (self._at + 1) % len(self._links)
