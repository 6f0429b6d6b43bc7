"""A replica of a shard of a ``ps``: it serves the shard, or follows the primary.

Its thread, the *keeper*, asks the witness for the view. If this replica is the primary, the keeper feeds the backup; if
the primary is lost, the keeper takes over. `headwater.state.views` decides which of these actions are allowed. Its
base classes know the view (`headwater.state.member`), and follow or feed other replicas (`headwater.state.feeding`).
Subclasses define the replicated state.

Each process of a ``ps`` may have a `Replica` of each shard. A view names one or two of these replicas; all others are
*spare*: they are empty, and wait to be fed. `Replica.request_placement` sets the desired placement. The primary then
moves replicas, one at a time, while it serves (`headwater.state.aims`): it feeds a spare replica, which replaces the
backup, and it hands off to its backup. Handing off requires that the served state implements `Replica._step_down`. A
shard with one replica (`Site.has_backup` is false) moves in the same way: it has a backup from the end of the snapshot
until the backup, as the new primary, drops the old primary.

A process that drains is not in `Processes.staying`. So primaries move its replicas to other processes; the process may
end once `Replica.is_free` is true for each of its replicas. As long as `request_placement` is not called and no
process drains, the replicas stay on the same two processes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import error_frame
from headwater.cluster.task.waiting import CHECK_INTERVAL_S, Reminder
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.state.aims import Move, next_step
from headwater.state.feed import Feed
from headwater.state.feeding import FeedingReplica
from headwater.state.member import ANSWER_TIMEOUT_S, PAUSE_S
from headwater.state.replica_deposits import ReplicaDeposits
from headwater.state.sites import Site, may_be_reachable
from headwater.state.views import Copy, RequestKind, View

_log = logging.getLogger("headwater")

_State = TypeVar("_State")

#: The target of the feed by which a replica that shuts down deposits its state with the chief.
_CHIEF_COPY: Final = Copy(-1, 0)
#: How often a spare replica or a backup reports its view to the witness, in seconds: a witness that was restarted
#: may wait for that report.
_REPORT_INTERVAL_S: Final = 2.0


class Replica(FeedingReplica):
    """A replica of a shard, with its keeper thread; see `headwater.state.member.Member` for arguments."""

    def __init__(self, name: str, shard: int, *, site: Site, description: str) -> None:
        super().__init__(name, shard, site=site, description=description)
        self._keeper = threading.Thread(target=self._run_keeper, name=f"replica-{self.name}", daemon=True)

    def start(self) -> None:
        """Starts the keeper thread, which asks for the view and then serves or follows."""
        self._keeper.start()

    def close(self) -> None:
        """Stops the keeper. If this replica is a backup, first notifies the primary that this replica will never
        serve."""
        self._stop_acknowledging()
        self._resign()
        self._stop_keeper()

    def _stop_acknowledging(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _stop_keeper(self) -> None:
        feed = self._feed
        if feed is not None:
            feed.end()
        if self._keeper.is_alive() and threading.current_thread() is not self._keeper:
            self._keeper.join(timeout=ANSWER_TIMEOUT_S)

    def _resign(self) -> None:
        """Notifies the primary, if one feeds this replica, that this replica will never serve, and ends the feed."""
        fed = self._primary_channel
        if fed is None:
            return
        if self._witness_lock.acquire(timeout=PAUSE_S):
            try:
                if not self._standing.serves:
                    with self._send_lock:
                        fed.send(Frame(kinds.RESIGNS))
            except OpError as error:
                _log.debug("%s could not be notified that %s shuts down: %s", self._other, self._task, error.message)
            finally:
                self._witness_lock.release()
        fed.close()

    # Keeping ----------------------------------------------------------------------------------------------------------

    def _run_keeper(self) -> None:
        while not self._closed:
            try:
                if self._standing.serves:
                    self._serve_as_primary()
                else:
                    self._follow()
            except CancelledError:
                return
            except OpError as error:
                _log.info("%s: %s: %s", self._task, self._description, error.message)
                self._pause(PAUSE_S)
            except Exception:  # noqa: BLE001 - without its keeper a replica is never promoted, and feeds no backup
                _log.exception("%s: the keeper of %s continues after an error", self._task, self._description)
                self._pause(PAUSE_S)

    def _follow(self) -> None:
        """Waits while a primary feeds this replica. If the feed ends and no new one begins in time, a backup asks to
        serve alone."""
        with self._changed:
            changed = self._changed.wait_for(
                lambda: self._closed or self._primary_channel is None or self._standing.serves, _REPORT_INTERVAL_S
            )
        if not changed:
            if not self._over:
                self._request_view(RequestKind.VIEW)  # a restarted witness may wait for this report
            return
        with self._changed:
            if self._standing.serves:
                return
            # A backup waits for its primary to reconnect, because a failover would interrupt workers. A spare replica
            # has no primary to wait for.
            follows = self._standing.follows
            if self._changed.wait_for(
                lambda: self._closed or self._primary_channel is not None, self._site.grace_s if follows else 0
            ):
                return
        if follows:
            log = _log.info if self._over else _log.warning
            log("%s lost %s, the primary of %s", self._task, self._other, self._description)
        self._request_view(RequestKind.ALONE if follows else RequestKind.VIEW)
        # A spare replica outside the initial pair usually stays spare. It asks less often, to reduce the load of the
        # witness.
        rests = self.is_spare and not self._has_been_fed and self._standing.view is not None
        with self._changed:
            self._changed.wait_for(
                lambda: (
                    self._closed or self._primary_channel is not None or self._standing.serves or self._standing.follows
                ),
                _REPORT_INTERVAL_S if rests and self._site.ps not in self._site.initial else CHECK_INTERVAL_S,
            )

    def _serve_as_primary(self) -> None:
        """Fills or feeds a backup while this replica is the primary, until it is demoted or the feed ends."""
        if not self._serving:
            self._promote()
        standing = self._standing
        view = standing.view
        self._do_periodic_work()
        if view is None or not self._is_filled():
            return
        if self._over and not self._backup_exited:
            self._drop_exited_backup(standing)
        if standing.pairing is not None:  # the witness's answer was lost
            self._request_pair(standing.pairing)
            self._end_other_feed()
            # A restarted witness knows no view until other replicas have reported: give them time.
            if self._standing.pairing is not None:
                self._pause(PAUSE_S)
            return
        paired = view.backup is not None
        feed = self._feed
        if feed is None or feed.ended.is_set() or not paired or feed.target != view.backup:
            feed = self._resume_backup(view) if paired else self._start_backup(view)
            if feed is None:
                return
        elif feed.filling:
            feed.fill()
        if not feed.ended.is_set() and self._standing.serves:
            _log.warning("%s has a copy of %s now", self._other, self._description)
        while self._standing.serves and not self._closed and not feed.ended.is_set():
            feed.check_channel()
            self._do_periodic_work()
            before = self._standing.view
            feed = self._take_next_step(feed)
            if self._standing.view == before:  # after a step of a move, take the next one immediately
                feed.ended.wait(CHECK_INTERVAL_S)
        feed.end()
        with self._changed:
            if feed.resigned:
                self._standing = replace(self._standing, resigned=True)
            self._changed.notify_all()

    # Serving ----------------------------------------------------------------------------------------------------------

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

    def _await_serving(self, channel: Channel, contents: Callable[[], _State]) -> _State | None:
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
                serving, elsewhere, state = self._serving, self._redirects_workers(), contents()
            if serving:
                return state
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

    # Shutdown ---------------------------------------------------------------------------------------------------------

    def shut_down(self) -> bool:
        """Shuts this replica down, as its process ends. It acknowledges nothing from this call on.

        If no other process has this state, it is deposited with the chief; see `headwater.state.replica_deposits`.

        Returns:
          Whether the chief could be reached.
        """
        # Determine `has_other` before stopping the keeper, which ends the feed: without a feed, no backup counts as
        # connected.
        has_other = self.has_complete_backup if self._standing.serves else self._primary_channel is not None
        self._stop_acknowledging()
        self._stop_keeper()
        self._has_shut_down = True
        deposits = self._site.deposits
        reached = False
        try:
            if deposits is not None and not self._over:
                deposits.require_chief()
                reached = True
                view = self._last_view(has_other and not self._standing.resigned)
                if view is not None:
                    self._deposit(deposits, view)
        except (OpError, MemoryError) as error:
            log = _log.warning if self._standing.serves else _log.info
            what = "%s could not deposit its replica of %s with %s; the state is lost unless another replica has it: %s"
            log(what, self._task, self._description, deposits.chief if deposits is not None else "no chief", error)
        finally:
            self._resign()
        return reached

    def _deposit(self, deposits: ReplicaDeposits, view: View) -> None:
        """Deposits the state with the chief, because this is the last replica."""
        if self._is_filled():
            channel = deposits.open_feed(self.name, view.term)
            feed = self._start_feed(channel, _CHIEF_COPY)
            feed.fill()
            if not self._end_rounds():
                _log.warning("%s shuts down and loses the gradients of an incomplete round", self._task)
            with self._state_lock:
                self._step_down()
            feed.wait(feed.last_number, lambda: True)
            channel.end()
            what = "%s has deposited its replica of %s with %s until a ps serves it again: term %d"
            _log.warning(what, self._task, self._description, deposits.chief, view.term)
        # Send this request only after the deposit is complete: as soon as the witness has the request, it may promote
        # an empty replica, which fetches the state from the chief.
        self._request_last_view(RequestKind.DEPOSITED)

    def _last_view(self, has_other: bool) -> View | None:
        """Asks the witness for a view in which this replica is alone. Called after the keeper has stopped.

        Args:
          has_other: whether the two replicas were connected. If they were not, the other replica may be lost.

        Returns:
          The view, in which this replica is the primary; None if the state need not be deposited, because another
          replica continues to serve.
        """
        while True:
            known = self._standing.view
            last = not has_other and known is not None and self._standing.me in known
            view = self._request_last_view(RequestKind.ALONE if last else RequestKind.SHUT_DOWN)
            self._adopt_view(view)
            if view is None or view.backup is None or self._standing.me not in view:
                break
            if view == known:
                return None  # the other replica continues serving
            if self._standing.view == known:  # the answer was an older view, as the witness was restarted
                break
        if self._standing.serves and not self._serving:
            self._promote()
        return self._standing.view if self._standing.serves else None

    def _request_last_view(self, kind: RequestKind) -> View | None:
        """Sends the witness a request after the keeper has stopped. Returns the view; None if the witness knows
        none."""
        return self._site.request_view(self._set, self._shard, self._request(self._standing, kind))
