"""How a worker reaches whichever ``ps`` has a shard."""

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
from headwater.ps.shards.places import Place
from headwater.state.sites import PeerServerLink

_log = logging.getLogger("headwater")

#: How long to try a ``ps`` before the others are asked where the shard is, in seconds.
_TRY_S: Final = 0.5
#: Between two attempts, in seconds: at first, and at most.
_PAUSE_S: Final = (0.005, 0.2)


class ShardLink:
    """The way to the ``ps`` that has a shard. A conversation that broke off is gone on with where it is then.

    Args:
      directory: where shards are, as far as this task knows.
      shard: its number.

    Attributes:
      check: called whenever the ``ps`` was not there, while it is waited for without a deadline. What it raises ends
        the wait.
    """

    def __init__(self, directory: Directory, shard: int) -> None:
        self.check: Callable[[], None] | None = None
        self._directory = directory
        self._shard = shard
        self._at: tuple[str, PeerServerLink] | None = None
        #: Whether it may be elsewhere than was known.
        self._doubts = False
        #: When it was reached last, and how often in a row it was soon after the time before.
        self._reached = -float("inf")
        self._soon = 0

    def reach(self, deadline_s: float | None = None) -> Any:
        """Waits until the ``ps`` that has the shard can be reached; see
        `headwater.cluster.transport.links.Link.reach`."""
        give_up_at = time.monotonic() + (Patience.from_environment().deadline_s if deadline_s is None else deadline_s)
        pause_s = _PAUSE_S[0]
        self._soon = self._soon + 1 if time.monotonic() - self._reached < _TRY_S else 0
        if self._soon > 1:  # it has the shard no more, and no other task knows better yet
            pause(min(_PAUSE_S[1], _PAUSE_S[0] * 2 ** min(self._soon, 10)))
        while True:
            place = self._directory.of(self._shard)
            if self._doubts or place is None:
                place = self._look_for()
            what = f"no ps says where shard {self._shard} of {self._directory.name!r} is"
            error = UnavailableError(None, None, what)
            if place is not None:
                link = self._directory.link(place.task)
                self._at = place.task, link
                try:
                    if not link.lost():
                        found = link.reach(_TRY_S)
                        self._doubts, self._reached = False, time.monotonic()
                        return found
                    error = UnavailableError(None, None, f"{place.task} shows no sign of life")
                except UnavailableError as failure:
                    error = failure
            self._doubts = True
            if time.monotonic() >= give_up_at:
                raise GaveUpError(None, None, error.message) from error
            if self.check is not None and deadline_s is None:
                self.check()
            pause(pause_s)
            pause_s = min(_PAUSE_S[1], 2 * pause_s)

    def _look_for(self) -> Place | None:
        """Asks where the shard is: first the ``ps`` that had it, which knows where it went."""
        directory, before = self._directory, self._directory.of(self._shard)
        if before is not None and not directory.link(before.task).lost():
            try:
                directory.ask(before.task)
            except OpError as error:
                _log.debug("%s does not say where shard %d is: %s", before.task, self._shard, error.message)
            if directory.of(self._shard) != before:
                return directory.of(self._shard)
        directory.ask_all(but_lost=True)
        return directory.of(self._shard)

    def take(self) -> Channel:
        """A channel to the ``ps`` that was reached."""
        assert self._at is not None
        return self._at[1].take_now()

    def give_back(self, channel: Channel, usable: bool) -> None:
        """Ends a conversation; where it broke off, the shard may be elsewhere."""
        assert self._at is not None
        self._at[1].give_back(channel, usable)
        self._doubts = self._doubts or not usable
