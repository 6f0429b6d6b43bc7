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
    """The state of a replica; a primary serves it."""

    def _reset(self) -> None:
        """Resets the state to empty."""
        raise NotImplementedError

    def _end(self) -> None:
        """Discards the state, and stops answering clients from it. `_changed` and `_state_lock` are held."""
        raise NotImplementedError

    def _apply(self, frame: Frame, channel: Channel) -> None:
        """Applies a change that the primary sent on ``channel``. After any exception the replica is discarded."""
        raise NotImplementedError

    def _start_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        """Creates a feed to ``other``, beginning with a snapshot, and passes it to `_attach_feed`.

        No change may occur between the snapshot and the call of `_attach_feed`, so that each change is either in the
        snapshot or sent after it. Recorded changes that have not been sent yet are first sent to the current feed.
        """
        raise NotImplementedError

    def _between_changes(self) -> AbstractContextManager[object]:
        """Returns a context manager that blocks changes of the served state."""
        raise NotImplementedError

    def _step_down(self) -> None:
        """Demotes this replica: calls `_stop_serving` between two changes, and stops answering clients.

        The replica keeps its state, but in the form that a backup uses. `_state_lock` is held.
        """
        raise NotImplementedError

    def _end_rounds(self) -> bool:
        """Waits for a limited time until this replica can hand off without losing a gradient.

        The default does not wait: workers push an unanswered gradient again, to the next primary.

        Returns:
          True if this replica can hand off now; from then on, it accepts no gradient that a handoff would lose. False
          if a round was still incomplete at the time limit; then training continues.
        """
        return True

    def _install_fed_state(self) -> None:
        """Promotes this replica: the state received from the primary becomes the served state. `_state_lock` is
        held."""
        raise NotImplementedError

    def _is_filled(self) -> bool:
        """Returns whether this replica has any state to send to a backup; may wait briefly for that state."""
        return True

    def _do_periodic_work(self) -> None:
        """Does periodic work; called regularly while this replica serves."""

    def _request_other_replica(self) -> None:
        """Sends the other ``ps`` a request that makes it create its replica, which then reports to the witness. Called
        regularly while the witness knows no view because the other replica has not reported yet.
        """

    @property
    def _fills_slowly(self) -> bool:
        """Returns whether the snapshot is sent in pieces: until it is complete, the backup cannot be promoted."""
        return False
