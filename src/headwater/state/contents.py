"""Interface of replicated state: reset, apply a change, feed a backup, promote, demote.

Subclasses of `headwater.state.copy.KeptCopy` implement it for each kind of state.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.state.feed import Feed, FeedChannel
from headwater.state.views import Copy


class Contents:
    """The state that a replica keeps, and serves where it is the primary."""

    def _reset(self) -> None:
        """Resets the state to empty."""
        raise NotImplementedError

    def _end(self) -> None:
        """Discards the state, and stops answering clients from it. `_changed` and `_taking` are held."""
        raise NotImplementedError

    def _apply(self, frame: Frame, channel: Channel) -> None:
        """Applies a change that the primary sent on ``channel``. Where it raises anything, the replica is discarded."""
        raise NotImplementedError

    def _start_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        """Makes the feed of another replica, which begins with a snapshot, and passes it to `_feeds`.

        Both happen between two changes, so that each change is either in the snapshot or sent after it. Changes that
        were recorded and not sent yet are sent to the current feed first.
        """
        raise NotImplementedError

    def _between_changes(self) -> AbstractContextManager[object]:
        """Returns a context manager that blocks changes of the served state."""
        raise NotImplementedError

    def _step_down(self) -> None:
        """Demotes this replica: calls `_stops_serving` between two changes, and stops answering clients.

        This replica keeps its present state, in the form in which a backup keeps it. `_taking` is held.
        """
        raise NotImplementedError

    def _install_fed_state(self) -> None:
        """Promotes this replica: installs the state that it was fed as the served state. `_taking` is held."""
        raise NotImplementedError

    def _is_filled(self) -> bool:
        """Whether there is state to feed a backup with; may briefly wait for it."""
        return True

    def _do_periodic_work(self) -> None:
        """Does periodic work; called regularly while this replica serves."""

    def _wake_other(self) -> None:
        """Asks the other ``ps`` for its replica, so that the other ``ps`` makes it and it reports to the witness.

        Called regularly while the witness knows no view, because the other replica has not reported yet.
        """

    @property
    def _fills_slowly(self) -> bool:
        """Whether the snapshot is sent in pieces: until it is complete, the other replica cannot be promoted."""
        return False
