"""A replica of a shard of a ``ps``: it serves the shard, or follows the primary.

Its thread, the *keeper*, asks the witness for the view. If this replica is the primary, the keeper feeds the backup; if
the primary is lost, the keeper takes over. `headwater.state.views` decides which of these actions are allowed. Each
class of the hierarchy adds one role: knowing the view (`headwater.state.member`), following as the backup
(`headwater.state.backup`), feeding other replicas (`headwater.state.feeding`), serving as the primary
(`headwater.state.primary`), and, here, the keeper and the shutdown. Subclasses of `KeptCopy` define the replicated
state (`headwater.state.contents`).

Each process of a ``ps`` may have a `KeptCopy` of each shard. A view names one or two of these replicas; the others are
*spare*: they are empty, and wait to be fed. `KeptCopy.request_placement` sets the desired placement. The primary then
moves replicas, one at a time, while it serves (`headwater.state.aims`): it feeds a spare replica, which replaces the
backup, and it hands off to its backup. Handing off requires that the served state implements `KeptCopy._step_down`. A
shard with one replica (`Site.has_backup` is false) moves in the same way: it has a backup from the end of the snapshot
until the backup, as the new primary, drops the old primary.

A process that drains is not in `Processes.staying`. So primaries move its replicas to other processes; the process may
end once `KeptCopy.is_free` is true for each of its replicas. As long as `request_placement` is not called and no
process drains, the replicas stay on the same two processes.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Final

from headwater.cluster.task import kinds
from headwater.cluster.task.waiting import CHECK_INTERVAL_S
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, OpError
from headwater.state.member import ANSWER_TIMEOUT_S, PAUSE_S
from headwater.state.primary import PrimaryCopy
from headwater.state.replica_deposits import ReplicaDeposits
from headwater.state.sites import Site
from headwater.state.views import Copy, RequestKind, View

_log = logging.getLogger("headwater")

#: The target of the feed by which a replica that shuts down deposits its state with the chief.
_CHIEF_COPY: Final = Copy(-1, 0)
#: How often a spare replica or a backup reports its view to the witness, in seconds: a witness that was restarted
#: may wait for that report.
_REPORT_INTERVAL_S: Final = 2.0


class KeptCopy(PrimaryCopy):
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
