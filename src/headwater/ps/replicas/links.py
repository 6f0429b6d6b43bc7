"""A worker's route to the replica of a shard that is the primary."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from headwater.cluster.pauses import pause
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.waiting import Patience
from headwater.errors import UnavailableError
from headwater.state.sites import PeerServerLink

#: How long to try one replica before the other, in seconds.
_ATTEMPT_S = 0.5
#: Pause between two attempts if no replica can be reached, in seconds.
_PAUSE_S = 0.1


class EitherLink:
    """A route to the primary of a shard. After a lost connection, the other replica is tried.

    Args:
      links: the links to both replicas' tasks, the initial primary's first.

    Attributes:
      check: called after each failed attempt of a wait without a deadline. An error that it raises ends the wait.
    """

    def __init__(self, links: Sequence[PeerServerLink]) -> None:
        self.check: Callable[[], None] | None = None
        self._links = links
        self._at = 0
        # Whether to try the next replica even if it counts as lost: the replica that was tried before may have refused
        # the worker because the other replica serves.
        self._tries_lost = False

    def reach(self, deadline_s: float | None = None) -> Any:
        """Waits until a replica can be reached; see `headwater.cluster.transport.links.Link.reach`."""
        give_up_at = time.monotonic() + (Patience.from_environment().deadline_s if deadline_s is None else deadline_s)
        while True:
            link = self._links[self._at]
            try:
                if self._tries_lost or not link.is_lost():
                    self._tries_lost = False
                    return link.reach(_ATTEMPT_S)
                error = UnavailableError("it sends no heartbeats")
            except UnavailableError as failure:
                error = failure
            if time.monotonic() >= give_up_at:
                raise error
            if self.check is not None and deadline_s is None:
                self.check()
            self._at = (self._at + 1) % len(self._links)
            pause(_PAUSE_S)

    def open_channel(self) -> Channel:
        """Returns a channel to the replica that was reached."""
        return self._links[self._at].open_channel_now()

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Returns a channel; after a lost connection, the other replica is tried next."""
        self._links[self._at].release_channel(channel, usable)
        if not usable:
            self._tries_lost = True
            self._at = (self._at + 1) % len(self._links)
