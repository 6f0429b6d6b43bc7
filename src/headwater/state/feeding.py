"""Exchange of state: the backup follows the primary's feed, and the primary chooses and feeds its backup."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.state.aims import Placement, next_step
from headwater.state.feed import END_OF_SNAPSHOT, Feed
from headwater.state.member import ANSWER_TIMEOUT_S, DIAL_TIMEOUT_S, PAUSE_S, Member, new_incarnation
from headwater.state.sites import PeerServerLink
from headwater.state.views import Copy, RequestKind, Standing, View, accepts, as_words, from_words

_log = logging.getLogger("headwater")


class FeedingReplica(Member):
    """A replica that can follow a primary and feed other replicas; `headwater.state.feed` describes the frames."""

    # As the backup ----------------------------------------------------------------------------------------------------

    def serve_peer(self, channel: Channel, first: Frame) -> None:
        """Applies the frames of a primary until the channel ends. Refuses a primary of an older term."""
        match first.header:
            case (str(), words, bool(resumes)):
                view = from_words(words)
            case _:
                raise bad_header(first, channel.peer)
        if view is None:
            raise bad_header(first, channel.peer)
        link = self._processes.link(view.primary.ps)
        with self._changed:
            before = self._primary_channel if accepts(self._standing, view) else None
        if before is not None:  # the thread that serves the preceding primary holds `_state_lock`: end its feed
            before.close()
        with self._state_lock:
            with self._changed:
                # Checked again: the view may have changed while this thread waited for `_state_lock`.
                taken = accepts(self._standing, view) and not self._closed
                if taken:
                    self._primary_channel = channel
                    self._record_view(view)
                    self._received_handoff = False
                    self._handed_off = self._handed_off and resumes
                    self._has_been_fed = True
                    self._changed.notify_all()
                standing = self._standing
                deposed = self._serving and not standing.serves
            if deposed:
                self._step_down()
            try:
                channel.send(Frame(kinds.DONE, (taken, *standing.me, as_words(standing.view), self._handed_off)))
                if not taken or (resumes and not self._handed_off):
                    return
                self._watch(link, channel)
                while True:
                    frame = channel.recv()
                    # Confirm a change as soon as it has arrived, and apply it later, so that workers need not wait
                    # until it is applied. A promotion acquires `_state_lock`, and so waits until all confirmed changes
                    # are applied. The last frame of the snapshot is applied before it is confirmed: the confirmation
                    # lets this replica become the backup, and no worker waits for that confirmation.
                    number = frame.header[0]
                    if number == END_OF_SNAPSHOT:
                        self._follow_frame(frame, channel)
                    with self._send_lock:
                        channel.send(Frame(kinds.DONE, (number,)))
                    if number != END_OF_SNAPSHOT:
                        self._follow_frame(frame, channel)
            finally:
                with self._changed:
                    if self._primary_channel is channel:
                        self._primary_channel = None
                        self._changed.notify_all()
                link.release_channel(channel, False)

    def _watch(self, link: PeerServerLink, channel: Channel) -> None:
        """Registers the channel, so that it is closed as soon as the primary's process or machine is lost."""
        try:
            link.reach(DIAL_TIMEOUT_S)
        except OpError as error:
            raise UnavailableError(f"{self._task} cannot reach {self._other}: {error.message}") from error
        link.watch(channel)

    def _follow_frame(self, frame: Frame, channel: Channel) -> None:
        try:
            match frame.kind, frame.header:
                case kinds.NEW_VIEW, (int(), words, aim):
                    view = from_words(words)
                    with self._changed:
                        self.requested_placement = Placement(*aim) if aim is not None else self.requested_placement
                        if view is not None:
                            known = self._standing.view
                            self._record_view(view)
                            self._received_handoff = self._standing.serves and view != known
                            self._changed.notify_all()
                    if view is not None and self._standing.me not in view:
                        channel.close()  # this replica has dropped its state, and needs no further changes
                case _:
                    self._apply(frame, channel)
        except Exception as error:
            # The frame was confirmed before it was applied. So the primary may have acknowledged a change that this
            # replica lacks: discard the whole state, and rejoin with a new incarnation.
            _log.exception("%s drops its copy of %s: it could not apply a change", self._task, self._description)
            with self._changed:
                me = Copy(self._standing.me.ps, new_incarnation(self._standing.me.incarnation))
                self._standing = replace(self._standing, me=me)
                self._discard_state()
            raise UnavailableError(f"{self._task} could not apply a change") from error

    # As the primary ---------------------------------------------------------------------------------------------------

    def _resume_backup(self, view: View) -> Feed | None:
        """Feeds the backup of ``view`` over a new channel; if that fails, asks for a view without the backup.

        Returns:
          The feed; None if it could not be opened.
        """
        assert view.backup is not None
        resigned = self._standing.resigned
        # A large snapshot is sent in pieces, and a backup that lacks some of them cannot be promoted. Waiting for such
        # a backup would delay workers and protect no update, so ask the witness for a view without the backup. After
        # the end of the job, fill the backup instead: the witness may have ended, and without its view no primary may
        # serve alone.
        waits = not self._fills_slowly or resigned or self._over
        if waits and (feed := self._open_filled_feed(view, view.backup.ps)) is not None:
            return feed
        if self._standing.view != view:
            return None
        if resigned and self._over:  # the witness has ended with the job: there will be no other view
            self._pause(PAUSE_S)
            return None
        if not self._fills_slowly:
            log = _log.info if self._over else _log.warning
            log("%s has no backup now: %s cannot be reached", self._description, self._other)
        self._request_view(RequestKind.ALONE)
        if self._standing.view == view:
            self._pause(PAUSE_S)
        return None

    def _start_backup(self, view: View) -> Feed | None:
        """Fills another replica and makes it the backup.

        Returns:
          The feed of the new backup; None if no backup is wanted, or no other ``ps`` accepts the feed.
        """
        aim, first = self.requested_placement, next_step(view, self._desired_placement(view)).ps
        # A shard with one replica has no backup of its own: while it moves, only the target of the move becomes one.
        others = [
            number
            for number in self._processes.staying()
            if self._site.has_backup and number not in (first, self._site.ps)
        ]
        for number in [] if first is None else [first, *others]:
            feed = self._open_filled_feed(view, number)
            if feed is not None:
                self._make_backup(feed)
                return feed
            if self._standing.view != view:
                return None
        self.wait_for(lambda: self._closed or self.requested_placement != aim, PAUSE_S)
        return None

    def _replace_backup(self, feed: Feed, view: View, ps: int) -> Feed:
        """Fills the replica of another ``ps``, and makes it the backup instead of the target of ``feed``.

        Returns:
          The feed of the new backup; ``feed`` if the backup was not replaced.
        """
        before = self._other
        # The backup stays in use until the view has changed. Until then, `_attach_feed` makes the new feed the
        # `replacement` of the backup's feed, so that changes are sent to both replicas.
        with self._changed:
            self._replaced_feed = feed
        try:
            third = self._dial(view, ps)
        finally:
            with self._changed:
                self._replaced_feed = None
        if third is None:
            return feed

        def is_usable() -> bool:
            feed.check_channel()
            return not (feed.ended.is_set() or self._closed)

        try:
            third.fill(is_usable)
            if not third.ended.is_set() and is_usable():
                self._make_backup(third)
        finally:
            self._end_other_feed()
        if self._feed is third:
            _log.warning("%s has a copy of %s now, in the place of %s", self._other, self._description, before)
        return self._feed or feed

    def _open_filled_feed(self, view: View, ps: int) -> Feed | None:
        """Opens a feed to the replica of another ``ps``, and sends the whole state. Returns None if that fails."""
        try:
            feed = self._dial(view, ps)
            if feed is not None:
                feed.fill()
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - such as a lack of memory: this replica then serves without a backup
            _log.exception("%s cannot send %s to %s", self._task, self._description, self._processes.name(ps))
            return None
        return None if feed is None or feed.ended.is_set() else feed

    def _dial(self, view: View, ps: int, *, resumes: bool = False) -> Feed | None:
        """Opens a feed to the replica of another ``ps``; returns None if the ``ps`` cannot be reached or refuses the
        feed.

        Args:
          view: the current view.
          ps: the number of the other ``ps``.
          resumes: whether to send only changes, and no snapshot. Used after a handoff: the other replica was the
            primary until then, so it has the whole state.
        """
        backup = view.backup if view.backup is not None and view.backup.ps == ps else None
        other_name = self._processes.name(ps)
        try:
            link = self._processes.link(ps)
            if backup is not None and link.is_lost():
                return None
            link.reach(DIAL_TIMEOUT_S)
            channel = link.open_channel_now()
        except CancelledError:
            raise
        except OpError as error:
            _log.debug("%s cannot reach %s: %s", self._task, other_name, error.message)
            return None
        try:
            channel.send(Frame(kinds.BACKUP, (self.name, as_words(view), resumes)))
            answer = channel.recv(ANSWER_TIMEOUT_S)
            match answer.kind, answer.header:
                case kinds.DONE, (bool(taken), int(number), int(incarnation), words, bool(has_all)):
                    other, its_view = Copy(number, incarnation), from_words(words)
                case _:
                    raise bad_header(answer, other_name)
        except (OpError, ValueError) as error:
            _log.debug("%s does not accept the state: %s", other_name, error)
            link.release_channel(channel, False)
            return None
        # A feed without a snapshot fits only the view's backup, and only if that replica still has the state that it
        # handed off. A feed with a snapshot fits any replica, with one exception: if the view's backup is on that ps,
        # the replica must have the backup's incarnation, because the witness would not promote a later incarnation.
        fits = other == backup and has_all if resumes else backup is None or other == backup
        if not taken or not fits:
            link.release_channel(channel, False)
            if not resumes:
                self._adopt_view(its_view)
                if backup is not None and other != backup:  # another incarnation, which has lost its state
                    self._record_backup_exit()
            return None
        try:
            if resumes:
                # The other replica has the whole state: the feed begins with the view instead of a snapshot.
                feed = Feed(channel, other, [(kinds.NEW_VIEW, (as_words(view), self.requested_placement), ())])
                self._attach_feed(feed)
            else:
                feed = self._start_feed(channel, other)
        except BaseException:
            link.release_channel(channel, False)
            raise
        feed.at_end(partial(link.release_channel, channel, False))
        return feed

    def _attach_feed(self, feed: Feed) -> None:
        """Attaches a feed, to which all further changes are sent. The feed's snapshot contains the changes made so
        far."""
        with self._changed:
            if self._replaced_feed is not None:
                self._replaced_feed.replacement = feed
                return
            self._feed = feed
            self._backup_exited = False
            self._changed.notify_all()

    def _last_frame_number(self, feed: Feed) -> int:
        """Returns the number of the last frame sent or queued in ``feed``, at a moment between two changes."""
        with self._between_changes():
            return feed.last_number

    # Choosing the backup ----------------------------------------------------------------------------------------------

    def _make_backup(self, feed: Feed) -> None:
        """Asks the witness to appoint the target of ``feed`` as the backup.

        From this call on, this primary acknowledges only updates that the target has confirmed.
        """
        # Set `pairing` before asking the witness: if the witness's answer is lost, the target may already be the
        # backup.
        with self._changed:
            self._standing = replace(self._standing, pairing=feed.target)
        # The target may become the backup only after it has received all changes made so far.
        if not feed.wait(self._last_frame_number(feed), lambda: not self._closed):
            with self._changed:  # the witness was not asked, so the target cannot be the backup
                self._standing = replace(self._standing, pairing=None)
                self._changed.notify_all()
            return
        self._request_pair(feed.target)

    def _request_pair(self, other: Copy) -> None:
        """Asks the witness to appoint ``other`` as the backup. If the witness does, sends ``other`` the new view."""
        self._request_view(RequestKind.PAIR, other)
        view, feed = self._standing.view, self._feed
        if view is None or view.backup != other or feed is None:
            return
        for each in (feed, feed.replacement):
            if each is not None and each.target == other:
                with self._between_changes():
                    each.send_view(view, self.requested_placement)

    def _end_other_feed(self) -> None:
        """If there are two feeds, keeps the feed of the backup and ends the other feed.

        There are two feeds while a third replica is about to replace the backup. Until the witness has answered which
        of the two replicas is the backup, both feeds continue, because either replica may be promoted.
        """
        with self._between_changes(), self._changed:
            feed, view = self._feed, self._standing.view
            third = feed.replacement if feed is not None else None
            if feed is None or third is None:
                return
            whole = not feed.ended.is_set()
            if whole and self._standing.pairing is not None:
                return
            feed.replacement = None
            replaced = view is not None and view.backup == third.target
            if replaced:
                third.last_before_replacement = third.last_number
                self._feed = third
            self._changed.notify_all()
        if not whole or not replaced:
            # The third replica gets changes through the backup's feed, and lacks all changes since that feed broke.
            third.end()
        if replaced:
            feed.end()

    # When the job is over ---------------------------------------------------------------------------------------------

    def _drop_exited_backup(self, standing: Standing) -> None:
        """Stops waiting for backups whose processes have exited with the job."""
        feed, backup = self._feed, standing.view.backup if standing.view is not None else None
        if feed is None or feed.ended.is_set():
            others = {copy.ps for copy in (backup, standing.pairing) if copy is not None}
            if not any(self._is_reachable(ps) for ps in others):
                self._record_backup_exit()

    def _record_backup_exit(self) -> None:
        """Records, if the job is over, that the backup will never serve, because its process has ended."""
        with self._changed:
            # While the job runs, only the witness may remove the backup: it may have promoted the backup already.
            self._backup_exited = self._over
            self._changed.notify_all()

    def _is_reachable(self, ps: int) -> bool:
        """Returns whether the process of another ``ps`` can be reached."""
        try:
            self._processes.link(ps).reach(DIAL_TIMEOUT_S)
        except CancelledError:
            raise
        except OpError:
            return False
        return True
