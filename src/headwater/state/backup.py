"""A backup: it receives a snapshot from the primary, then every change."""

from __future__ import annotations

import logging
from dataclasses import replace

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import OpError, UnavailableError
from headwater.state.aims import Placement
from headwater.state.feed import END_OF_SNAPSHOT
from headwater.state.member import DIAL_TIMEOUT_S, Member, new_incarnation
from headwater.state.sites import PeerServerLink
from headwater.state.views import Copy, accepts, as_words, from_words

_log = logging.getLogger("headwater")


class BackupCopy(Member):
    """A replica that can follow a primary; `headwater.state.feed` describes the frames that it receives."""

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
