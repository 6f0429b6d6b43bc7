"""A worker's route to the ``ps`` that owns a shard."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

from headwater.cluster.pauses import pause
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.waiting import Patience
from headwater.errors import GaveUpError, OpError, UnavailableError
from headwater.ps.shards.directory import Directory
from headwater.ps.shards.places import ShardPlace
from headwater.state.sites import PeerServerLink

_log = logging.getLogger("headwater")

#: How long to try a ``ps`` before other ``ps`` are asked for the shard's place, in seconds.
_ATTEMPT_S: Final = 0.5
#: Pause between two attempts, in seconds: initial and maximum.
_PAUSE_S: Final = (0.005, 0.2)


class ShardLink:
    """A route to the ``ps`` that owns a shard. After a lost connection, the shard's place is looked up again.

    Args:
      directory: this task's knowledge of the places of shards.
      shard: the number of the shard.

    Attributes:
      check: called after each failed attempt of a wait without a deadline. An error that it raises ends the wait.
    """

    def __init__(self, directory: Directory, shard: int) -> None:
        self.check: Callable[[], None] | None = None
        self._directory = directory
        self._shard = shard
        self._at: tuple[str, PeerServerLink] | None = None
        #: Whether the known place may be outdated.
        self._may_be_outdated = False
        #: Time of the last successful `reach`; and the number of consecutive calls that followed a success within
        #: `_ATTEMPT_S` seconds each.
        self._reached = -float("inf")
        self._soon = 0

    def reach(self, deadline_s: float | None = None) -> Any:
        """Waits until the ``ps`` that owns the shard can be reached; see
        `headwater.cluster.transport.links.Link.reach`."""
        give_up_at = time.monotonic() + (Patience.from_environment().deadline_s if deadline_s is None else deadline_s)
        pause_s = _PAUSE_S[0]
        self._soon = self._soon + 1 if time.monotonic() - self._reached < _ATTEMPT_S else 0
        # A ps that is reached again and again refuses to serve the shard, and no task knows its new place yet. Retry
        # with growing pauses, not in a busy loop.
        if self._soon > 1:
            pause(min(_PAUSE_S[1], _PAUSE_S[0] * 2 ** min(self._soon, 10)))
        while True:
            place = self._directory.of(self._shard)
            if self._may_be_outdated or place is None:
                place = self._locate()
            what = f"no ps knows the place of shard {self._shard} of {self._directory.name!r}"
            error = UnavailableError(what)
            if place is not None:
                link = self._directory.link(place.task)
                self._at = place.task, link
                try:
                    if not link.is_lost():
                        status = link.reach(_ATTEMPT_S)
                        self._may_be_outdated, self._reached = False, time.monotonic()
                        return status
                    error = UnavailableError(f"{place.task} sends no heartbeats")
                except UnavailableError as failure:
                    error = failure
            self._may_be_outdated = True
            if time.monotonic() >= give_up_at:
                raise GaveUpError(error.message) from error
            if self.check is not None and deadline_s is None:
                self.check()
            pause(pause_s)
            pause_s = min(_PAUSE_S[1], 2 * pause_s)

    def _locate(self) -> ShardPlace | None:
        """Queries the place of the shard, first from the ``ps`` that owned it, which knows the next owner."""
        directory, before = self._directory, self._directory.of(self._shard)
        if before is not None and not directory.link(before.task).is_lost():
            try:
                directory.exchange_places(before.task)
            except OpError as error:
                _log.debug("%s does not report the place of shard %d: %s", before.task, self._shard, error.message)
            if directory.of(self._shard) != before:
                return directory.of(self._shard)
        directory.query_all(skip_lost=True)
        return directory.of(self._shard)

    def open_channel(self) -> Channel:
        """Returns a channel to the ``ps`` that was reached."""
        assert self._at is not None
        return self._at[1].open_channel_now()

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Returns a channel after use; if its connection is lost, the known place counts as outdated."""
        assert self._at is not None
        self._at[1].release_channel(channel, usable)
        self._may_be_outdated = self._may_be_outdated or not usable
