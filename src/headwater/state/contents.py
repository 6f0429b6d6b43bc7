"""What is kept twice, and how another copy follows it: who derives from `headwater.state.copy.KeptCopy` says so."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.state.feed import Feed, FeedChannel
from headwater.state.views import Copy


class Contents:
    """What a copy keeps, and serves where it is the primary."""

    def _begin(self) -> None:
        """Makes what is kept anew, empty."""
        raise NotImplementedError

    def _end(self) -> None:
        """What was kept is dropped: those who are served hear no more of it. `_changed` and `_taking` are held."""
        raise NotImplementedError

    def _apply(self, frame: Frame, channel: Channel) -> None:
        """Makes a change that the primary has sent on ``channel``; whatever it raises, the copy is dropped."""
        raise NotImplementedError

    def _begin_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        """Makes the feed of the other copy, which begins with all there is now, and gives it to `_feeds`, both between
        two changes. Changes that were noted and not sent yet go to the present feed first."""
        raise NotImplementedError

    def _between_changes(self) -> AbstractContextManager[Any]:
        """What is served does not change meanwhile: changes wait."""
        raise NotImplementedError

    def _step_down(self) -> None:
        """This copy serves no more, with `_stops_serving` between two changes: those who are served hear no more of
        it. It is left with what there is at that moment, as a second has it. `_taking` is held."""
        raise NotImplementedError

    def _take_up(self) -> None:
        """This copy serves from now on: what it was fed is made what is served. `_taking` is held."""
        raise NotImplementedError

    def _is_filled(self) -> bool:
        """Whether there is something to feed the other copy with; may wait for it for a moment."""
        return True

    def _look_after(self) -> None:
        """Called now and then while this copy serves."""

    def _wake_other(self) -> None:
        """Called now and then while the witness waits for the other copy."""

    @property
    def _fills_slowly(self) -> bool:
        """Whether what a feed begins with comes in pieces: meanwhile the other copy is none."""
        return False
