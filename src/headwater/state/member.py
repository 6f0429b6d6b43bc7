"""Membership of a replica in its shard: the view that the replica knows, its requests to the witness, and its status.

Also the interface of the replicated state."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from headwater.cluster.telemetry.snapshot import GroupProgress
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handshake import new_generation
from headwater.state.aims import Move, Placement, feasible_placement, next_step
from headwater.state.feed import Feed, FeedChannel
from headwater.state.sites import Site
from headwater.state.views import Copy, RequestKind, Standing, View, WitnessRequest, standing_after, starts_empty

_log = logging.getLogger("headwater")

#: How long a replica tries to reach another one before it gives up, in seconds.
DIAL_TIMEOUT_S: Final = 0.4
#: Seconds between two attempts.
PAUSE_S: Final = 0.5
#: How long another replica may take to answer, in seconds.
ANSWER_TIMEOUT_S: Final = 5.0


def new_incarnation(before: int = 0) -> int:
    """Returns a new incarnation number: above ``before``, and above all numbers of earlier processes of this ``ps``."""
    # The witness takes the higher of two numbers for the newer one, and no process keeps its number on disk: the clock
    # makes numbers grow across restarts, and the random part makes them differ within a microsecond.
    return max(before + 1, (int(time.time() * 1e6) << 10) + new_generation() % 1024)


class Member:
    """A replica of a shard, with its knowledge of the view.

    Args:
      name: the name of the set of shards, in requests to the witness.
      shard: the number of the shard in the set.
      site: the location of the replica.
      description: a description of the shard, for messages.

    Attributes:
      requested_placement: the requested placement; None if none was requested.
      name: the name of the shard, the first word of its frames' headers.
    """

    def __init__(self, name: str, shard: int, *, site: Site, description: str) -> None:
        self.name: str = f"{name}/{shard}"
        self._set = name
        self._shard = shard
        self._site = site
        self._processes = site.processes
        self._task = site.task
        self._description = description
        self._changed = threading.Condition()
        self._standing = Standing(me=Copy(site.ps, new_incarnation()))
        # A thread holds this lock while it applies the primary's frames, or promotes, demotes or resets the replica. To
        # avoid a deadlock, no thread acquires it while it holds `_changed`.
        self._state_lock = threading.Lock()
        # Allows one request to the witness at a time, so that an older answer cannot arrive after a newer one.
        self._witness_lock = threading.Lock()
        # Held while a frame is sent to the primary: `serve_peer` and the shutdown send frames in different threads.
        self._send_lock = threading.Lock()
        # The channel on which a primary feeds this replica.
        self._primary_channel: Channel | None = None
        self._feed: Feed | None = None
        # Set when the job is over and the backup's process has exited; reset by the next feed.
        self._backup_exited = False
        # The backup's feed while `_replace_backup` opens the feed of the replica that will replace the backup.
        self._replaced_feed: Feed | None = None
        self.requested_placement: Placement | None = None
        # `_received_handoff`: a primary has handed off to this replica. `_handed_off`: this replica was the primary
        # and has handed off. Until the state changes, the new primary can feed the old primary without a snapshot.
        self._received_handoff = False
        self._handed_off = False
        # Whether a primary has sent anything to this replica in its present incarnation.
        self._has_been_fed = False
        # Whether a view promotes this empty replica, because all replicas of the preceding view are lost.
        self._starts_empty = False
        # Whether `shut_down` was called.
        self._has_shut_down = False
        #: How long the last handoff of this replica interrupted service, in seconds.
        self.interruption_s: float = 0.0
        self._serving = False
        self._over = False
        self._closed = False
        self._reset()

    # Service interface ------------------------------------------------------------------------------------------------

    @property
    def has_complete_backup(self) -> bool:
        """Whether this replica serves, and its backup has the whole state."""
        standing, feed = self._standing, self._feed
        paired = standing.serves and standing.view is not None and standing.view.backup is not None
        return paired and feed is not None and not feed.ended.is_set() and not feed.filling

    @property
    def lacks_backup(self) -> bool:
        """Whether this replica serves, and lacks a complete backup that it should have."""
        return self._standing.serves and not self.has_complete_backup and self._wants_backup

    @property
    def _wants_backup(self) -> bool:
        aim = self.requested_placement
        return self._site.has_backup and (aim is None or aim.backup is not None)

    @property
    def would_lose_state(self) -> bool:
        """Whether state would be lost if this process ended now, as far as is known."""
        return self.lacks_backup and not self._has_shut_down

    @property
    def view(self) -> View | None:
        """The newest view that this replica knows; None before the first."""
        return self._standing.view

    @property
    def serves(self) -> bool:
        """Whether this replica is the primary, as far as it knows."""
        return self._standing.serves

    @property
    def backup(self) -> str | None:
        """The name of the backup's task, as far as this replica knows; empty if there is no backup, and None for a
        shard with one replica."""
        view = self._standing.view
        if not self._site.has_backup:
            return None
        return "" if view is None or view.backup is None else self._processes.name(view.backup.ps)

    @property
    def is_spare(self) -> bool:
        """Whether this replica is empty: no view that it knows names it, and no primary feeds it.

        An initial replica is not spare before its first view, which may name it.
        """
        standing = self._standing
        at_first = standing.view is None and self._site.ps in self._site.initial
        return not (standing.serves or standing.follows or self._primary_channel is not None or at_first)

    @property
    def is_free(self) -> bool:
        """Whether this process may end without losing this replica: the replica has shut down, or its view does not
        name it."""
        return self._has_shut_down or not (self._standing.serves or self._standing.follows)

    @property
    def has_desired_placement(self) -> bool:
        """Whether this replica serves, and the replicas have the desired placement."""
        view = self._standing.view
        if not self._standing.serves or view is None:
            return False
        return next_step(view, self._desired_placement(view)).move is Move.STAY and (
            view.backup is None or self.has_complete_backup
        )

    def request_placement(self, primary: int, backup: int | None) -> None:
        """Sets the desired placement of the replicas. Only a primary acts on it.

        Args:
          primary: the number of the ``ps`` that should have the primary.
          backup: the number of the ``ps`` that should have the backup; None if no backup is wanted.
        """
        with self._changed:
            self.requested_placement = Placement(primary, backup)
            self._changed.notify_all()

    def wait_for(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until ``done`` returns True; tests it after each change of the view or the placement.

        Returns:
          False if ``timeout_s`` seconds have passed first.
        """
        with self._changed:
            return self._changed.wait_for(done, timeout_s)

    @property
    def unconfirmed_frames(self) -> int:
        """The number of frames that the other replica has yet to confirm."""
        feed = self._feed
        return feed.last_number - feed.confirmed if self._standing.serves and feed is not None else 0

    def status_text(self) -> str:
        """Returns the status of the replicas, in words."""
        standing, feed = self._standing, self._feed
        term = f"term {standing.view.term}" if standing.view is not None else "no term yet"
        if standing.serves:
            if standing.view is not None and standing.view.backup is None and not self._wants_backup:
                return f"primary of shard {self._shard}, {term}, no backup is needed"
            if feed is None or feed.ended.is_set():
                return f"primary of shard {self._shard}, {term}, NO BACKUP: {self._other} cannot be reached"
            behind = feed.last_number - feed.confirmed
            if feed.filling or standing.view is None or standing.view.backup is None:
                return (
                    f"primary of shard {self._shard}, {term}, {self._other} receives a snapshot, {behind} frames behind"
                )
            return f"primary of shard {self._shard}, {term}, backup on {self._other}, {behind} frames behind"
        if standing.follows:
            return f"backup of shard {self._shard}, {term}, primary on {self._other}"
        filling = self._primary_channel is not None
        return f"shard {self._shard}, {term}: {'receives a snapshot from' if filling else 'waits for'} {self._other}"

    def add_status(self, group: GroupProgress) -> GroupProgress:
        """Returns the progress of the shard with the status of its replicas."""
        return replace(
            group, copies=self.status_text(), lacks_backup=self.lacks_backup, backup_lag=self.unconfirmed_frames
        )

    def job_over(self) -> None:
        """Records that the job is over, as the chief's program has ended."""
        self._over = True

    def _desired_placement(self, view: View) -> Placement:
        """Returns the desired placement, given ``view``."""
        home, beside = self._site.initial[0], self._site.initial[1] if self._site.has_backup else None
        other = home if view.primary.ps == beside else beside
        return feasible_placement(view, self.requested_placement, other, self._processes.staying())

    @property
    def _other(self) -> str:
        """The name of the process with the other replica, for messages.

        If the view names no other replica, or no view is known, the process that should have the other replica.
        """
        view = self._standing.view
        home, beside = self._site.initial[0], self._site.initial[-1]
        if view is not None and view.primary != self._standing.me:
            return self._processes.name(view.primary.ps)
        if view is not None and view.backup is not None:
            return self._processes.name(view.backup.ps)
        if view is not None:
            wanted = self._desired_placement(view)
            number = wanted.backup if wanted.primary == self._site.ps else wanted.primary
            return self._processes.name(number) if number is not None else "no other"
        return self._processes.name(home if self._site.ps != home else beside)

    # Views ------------------------------------------------------------------------------------------------------------

    def _request_view(self, kind: RequestKind, other: Copy | None = None) -> View | None:
        """Sends a request to the witness, and adopts the view in the answer.

        Returns:
          The view; None if the witness knows none.

        Raises:
          OpError: the witness has not answered.
        """
        with self._witness_lock:
            if self._closed:
                return None
            standing = self._standing
            view = self._site.request_view(self._set, self._shard, self._request(standing, kind, other))
            if self._standing.me == standing.me:
                self._adopt_view(view)
        if view is None:
            self._request_other_replica()
        return view

    def _request(self, standing: Standing, kind: RequestKind, other: Copy | None = None) -> WitnessRequest:
        home, among = self._site.initial[0], tuple(self._processes.numbers())
        return WitnessRequest(standing.me, standing.view, kind, other or standing.pairing, home, among)

    def _adopt_view(self, view: View | None) -> None:
        """Adopts a view of the witness, and demotes or resets this replica if the view requires it.

        The caller must hold neither `_changed` nor `_state_lock`.
        """
        if view is None:
            return
        with self._changed:
            known = self._standing.view
            if known is not None and view.term <= known.term:
                # There is no new view. If the answer is the known view, the witness has refused the pending request for
                # a backup. If the answer is an older view, the witness was restarted; it may have granted the request
                # before the restart, so the request stays pending.
                pairing = self._standing.pairing if view != known else None
                self._standing = replace(self._standing, pairing=pairing)
                return
            # `standing_after` uses the new incarnation number, here 0, only if the view removes this replica.
            following = standing_after(self._standing, view, 0)
            stays = following.me == self._standing.me
            if stays:
                self._starts_empty = starts_empty(self._standing, view)
                self._standing = following
                self._changed.notify_all()
            deposed = self._serving and not self._standing.serves
            fed = self._primary_channel
        if stays:
            if deposed:  # keep the state, which may be needed until the new primary has fed this replica
                with self._state_lock:
                    if self._serving and not self._standing.serves:  # else `serve_peer` has demoted it already
                        self._step_down()
            return
        # Close the feed, which ends `serve_peer`: its thread holds `_state_lock` while it waits for frames.
        if fed is not None:
            fed.close()
        with self._state_lock, self._changed:
            self._record_view(view)

    def _record_view(self, view: View) -> None:
        """Records a view, and discards the state if the view removes this replica. `_changed` and `_state_lock` are
        held."""
        before, self._standing = (
            self._standing,
            standing_after(self._standing, view, new_incarnation(self._standing.me.incarnation)),
        )
        if self._standing.me != before.me:
            _log.warning("%s drops its copy of %s: %s", self._task, self._description, view)
            self._discard_state()

    def _discard_state(self) -> None:
        """Resets the replica to empty. `_changed` and `_state_lock` are held."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.end()
        self._serving = self._received_handoff = self._handed_off = self._has_been_fed = False
        self._end()
        self._reset()
        self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

    # Replicated state, which subclasses implement --------------------------------------------------------------------

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
