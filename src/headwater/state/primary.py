"""A replica as the primary: its promotion, its answers to workers, and the handoff to its backup."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from headwater.cluster.task.answers import error_frame
from headwater.cluster.task.waiting import CHECK_INTERVAL_S, Reminder
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.errors import UnavailableError
from headwater.state.aims import Move, next_step
from headwater.state.feed import Feed
from headwater.state.feeding import FeedingCopy
from headwater.state.sites import may_be_reachable
from headwater.state.views import RequestKind, View

_log = logging.getLogger("headwater")

_Found = TypeVar("_Found")


class PrimaryCopy(FeedingCopy):
    """A replica that can serve."""

    def _promote(self) -> None:
        """Promotes this replica: applies all confirmed frames, then serves workers."""
        with self._changed:
            fed = self._primary_channel
        if fed is not None:
            fed.close()
        # Wait until `serve_peer` has applied all confirmed frames: the old primary may have acknowledged them.
        with self._state_lock:
            view = self._standing.view
            # All replicas of the preceding term are lost: continue with the state that its primary deposited, if any.
            if view is not None and view.term > 1 and self._starts_empty:
                self._restore_deposited_state(view.term - 1)
            self._install_fed_state()
            # The old primary is the backup now and has the same state: it needs only changes, and no snapshot.
            if self._received_handoff and view is not None and view.backup is not None:
                self._dial(view, view.backup.ps, resumes=True)
            with self._changed:
                self._handed_off = self._received_handoff = self._backup_exited = self._starts_empty = False
                self._serving = self._standing.serves
                self._changed.notify_all()

    def _restore_deposited_state(self, term: int) -> None:
        """Restores the state that the primary of ``term`` deposited with the chief, if any. `_state_lock` is held.

        Discards state that an earlier primary has fed to this replica, because that state is older.
        """
        deposits = self._site.deposits
        if self._has_been_fed:
            with self._changed:
                self._discard_state()
        if deposits is None:
            return
        channel, _ = memory_pair((deposits.chief, self._task))
        count = 0
        try:
            for frame in deposits.find(self.name, term):
                self._apply(frame, channel)
                count += 1
        except Exception:  # noqa: BLE001 - serve without the deposited state: the chief then restores its own values
            _log.exception("%s cannot continue with the deposited replica of %s", self._task, self._description)
            with self._changed:
                self._discard_state()
            return
        if count:
            what = "%s continues with the copy of %s of term %d, which was deposited with %s"
            _log.warning(what, self._task, self._description, term, deposits.chief)

    def _stop_serving(self) -> None:
        """Stops serving: changes that arrive later are neither sent to the other replica nor answered."""
        with self._changed:
            self._serving = False
            self._changed.notify_all()

    # Workers ----------------------------------------------------------------------------------------------------------

    def _redirects_workers(self) -> bool:
        """Returns whether a worker should try the other replica, as this one neither serves nor will serve soon."""
        # Do not redirect workers from a primary that has neither values nor a backup yet: the chief connects to it to
        # send the initial values.
        view = self._standing.view
        outside = view is not None and self._standing.me not in view
        # When the job is over, the witness makes no more views, so this replica will not be promoted.
        return self._primary_channel is not None or self._closed or self._over or outside

    def _await_serving(self, channel: Channel, contents: Callable[[], _Found]) -> _Found | None:
        """Waits until this replica serves, and returns the state for a worker.

        Args:
          channel: the channel to the worker.
          contents: returns the state for the worker.

        Returns:
          The result of ``contents``; None if the worker has disconnected, or was sent an error that makes it try the
          other replica.
        """
        reminder = Reminder()
        while not channel.peer_gone():
            with self._changed:
                self._changed.wait_for(lambda: self._serving or self._redirects_workers(), CHECK_INTERVAL_S)
                serving, elsewhere, found = self._serving, self._redirects_workers(), contents()
            if serving:
                return found
            if elsewhere:
                reason = f"{self._other} serves {self._description}, not {self._task}"
                channel.send(error_frame(0, UnavailableError(reason), self._task))
                return None
            reminder.send_if_due(channel, f"{self._task} to learn which ps serves {self._description}")
        return None

    def _secure_answer(self, channel: Channel, feed: Feed | None, number: int, serves: Callable[[], bool]) -> None:
        """Waits until the answer to a worker may be sent; meanwhile, sends the worker the reason for the wait.

        Args:
          channel: the channel to the worker.
          feed, number, serves: see `_await_backup`.

        Raises:
          UnavailableError: this replica no longer serves, or the worker has disconnected.
        """
        reminder = Reminder()

        def waits(what: str) -> None:
            if channel.peer_gone():
                raise UnavailableError(f"{channel.peer} has disconnected")
            reminder.send_if_due(channel, what)

        self._await_backup(feed, number, serves, waits)

    def _await_backup(
        self, feed: Feed | None, number: int, serves: Callable[[], bool], waits: Callable[[str], None]
    ) -> None:
        """Waits until the backup has confirmed frame ``number`` of ``feed``, or the view has no backup.

        An update may be acknowledged only then. So a backup that is promoted has all acknowledged updates.

        Args:
          feed: the feed of the update; None if there was none.
          number: the number of the update's frame in ``feed``.
          serves: returns whether this replica still serves the state to which the answer belongs.
          waits: called regularly with the reason for the wait, in words. Its exceptions end the wait.

        Raises:
          UnavailableError: this replica no longer serves.
        """
        while True:
            with self._changed:
                if not serves() or not self._serving or self._closed:
                    raise UnavailableError(f"{self._task} no longer serves {self._description}")
                now = self._feed
                third = now.replacement if now is not None else None
                # When the job is over, the witness may have ended, so that there can be no view without the backup.
                # Then acknowledge without the backup, but only after its process has ended: a backup that runs may have
                # been promoted while this process was stopped.
                exited = self._backup_exited and (now is None or now.ended.is_set())
                if self._over and third is not None and third.ended.is_set():
                    third = None
                by_third = third.last_number if third is not None else 0
                alone = self._standing.acknowledges_alone
                if exited or (alone and (now is None or now.has_room)):
                    return
                if now is not feed:
                    # The update is older than this feed. The target of the feed has the update once it has confirmed
                    # frame `last_before_replacement`.
                    feed, number = now, now.last_before_replacement if now is not None else 0
                is_needed = third is not None and self._standing.needs(third.target)
                if feed is None or feed.ended.is_set() or (is_needed and third is not None and third.ended.is_set()):
                    self._changed.wait(CHECK_INTERVAL_S)
            if feed is not None and not feed.ended.is_set():
                if alone:  # wait for room in the queue of the replica that is being filled
                    feed.wait(feed.confirmed + 1, serves)
                elif feed.wait(number, serves) and (
                    third is None or not self._standing.needs(third.target) or third.wait(by_third, serves)
                ):
                    return
            waits(
                f"{self._other} to confirm changes of {self._description}, "
                f"or {self._task} to get a view without the backup"
            )

    # Moving -----------------------------------------------------------------------------------------------------------

    def _take_next_step(self, feed: Feed) -> Feed:
        """Takes the next step towards the desired placement. Returns the feed of the backup after that step."""
        standing = self._standing
        view = standing.view
        if view is None or not standing.serves:
            return feed
        # The witness has not answered, for example because it was restarted: ask again.
        if standing.pairing is not None:
            self._request_pair(standing.pairing)
            self._end_other_feed()
            return self._feed or feed
        if view.backup != feed.target or feed.ended.is_set():
            return feed
        step = next_step(view, self._desired_placement(view))
        match step.move:
            case Move.DROP:
                self._request_view(RequestKind.ALONE)
                now = self._standing.view
                if now is not None and now != view:
                    with self._between_changes():  # send the dropped backup the new view, so it need not ask for it
                        feed.send_view(now, self.requested_placement)
                    feed.wait(feed.last_number, lambda: not self._closed)
                    feed.end()
            # Only if the process can be reached: the replacement of a backup is not urgent enough to wait for one.
            case Move.BRING if step.ps is not None and may_be_reachable(self._processes, step.ps):
                return self._replace_backup(feed, view, step.ps)
            case Move.HAND_OFF:
                self._hand_off(feed, view)
            case _:
                pass
        return feed

    def _hand_off(self, feed: Feed, view: View) -> None:
        """Hands off to the backup, which becomes the primary; this replica becomes its backup."""
        # Keep serving if the witness cannot be asked or knows no view: after this replica has stopped serving, no
        # replica could serve until the witness answers. Also keep serving when the job is over, as the backup and the
        # witness may have ended.
        if (
            self._request_view(RequestKind.VIEW) != view
            or not feed.wait(self._last_frame_number(feed), lambda: not self._closed)
            or self._over
            or not self._end_rounds()
        ):
            return
        began = time.monotonic()
        with self._state_lock:
            self._step_down()
        # The backup may serve only after it has confirmed the last change. No change follows, as this replica has
        # stepped down.
        if feed.wait(self._last_frame_number(feed), lambda: not self._closed):
            self._request_view(RequestKind.HAND_OFF)
        now = self._standing.view
        if now is None or self._standing.serves:  # not granted, or no answer: serve again
            self._promote()
            return
        with self._changed:
            self._handed_off = self._standing.follows
            self._feed = None
        # Send the backup the view that makes it the primary, so that it need not wait for its next request to the
        # witness.
        if self._handed_off:
            feed.send_view(now, self.requested_placement)
            feed.wait(feed.last_number, lambda: not self._closed)
            self.interruption_s = time.monotonic() - began
            _log.warning(
                "%s has handed off %s to %s in %.3f s: %s",
                self._task,
                self._description,
                self._other,
                self.interruption_s,
                now,
            )
        feed.end()
