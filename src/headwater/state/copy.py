"""One of the copies of what a ``ps`` holds: it serves, or follows the copy that does.

A thread of its own, the *keeper*, asks the witness, feeds the other copy where this one is the primary, and takes over
where the primary is lost. What it may do is decided by `headwater.state.views`. What it does is in a class for each
thing, from the first to the last: it knows who serves (`headwater.state.member`), follows
(`headwater.state.second`), feeds others (`headwater.state.feeding`), serves (`headwater.state.primary`), and,
here, keeps to that and leaves. What is kept twice is up to who derives from `KeptCopy`
(`headwater.state.contents`).

Each process of a ``ps`` may have a `KeptCopy` of each shard. Two of them are copies; the others are *spare*: they have
nothing, and wait to be fed. A primary is told where the copies should be with `KeptCopy.aim`, and has them go there one
after the other while it serves (`headwater.state.aims`): it feeds a spare one beside its second, which that replaces
then, and hands over to its second. What is served has to be able to `KeptCopy._step_down` for the latter. A process
that is about to end is none of `Processes.staying`, which is enough: its copies go to others, and `KeptCopy.is_free`
says when. Where `aim` is never called and all processes stay, copies stay on two processes, too.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Final

from headwater.cluster.task import kinds
from headwater.cluster.task.waiting import LOOK_S
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, OpError
from headwater.state.left_copies import LeftCopies
from headwater.state.member import ANSWER_S, PAUSE_S
from headwater.state.primary import PrimaryCopy
from headwater.state.sites import Site
from headwater.state.views import Copy, View, Wants

_log = logging.getLogger("headwater")

#: What the chief is as the other copy of one that ends.
_AT_CHIEF: Final = Copy(-1, 0)
#: How often a copy that is spare, or follows, tells the witness what it knows, in seconds: a witness that was started
#: anew may wait for that.
_SPARE_S: Final = 2.0


class KeptCopy(PrimaryCopy):
    """One of the copies of a shard, with its keeper; see `headwater.state.member.Member` for arguments."""

    def __init__(self, name: str, shard: int, *, site: Site, called: str) -> None:
        super().__init__(name, shard, site=site, called=called)
        self._keeper = threading.Thread(target=self._keep, name=f"replica-{self.name}", daemon=True)

    def start(self) -> None:
        """Begins to ask who serves, and to serve or follow."""
        self._keeper.start()

    def close(self) -> None:
        """Ends the keeper, and tells the primary that this copy will never serve, where it has one."""
        self._acknowledges_no_more()
        self._resign()
        self._stop_keeping()

    def _acknowledges_no_more(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _stop_keeping(self) -> None:
        feed = self._feed
        if feed is not None:
            feed.end()
        if self._keeper.is_alive() and threading.current_thread() is not self._keeper:
            self._keeper.join(timeout=ANSWER_S)

    def _resign(self) -> None:
        """Follows no more, and will never serve: the primary hears so, where this copy has one."""
        fed = self._fed
        if fed is None:
            return
        if self._asking.acquire(timeout=PAUSE_S):
            try:
                if not self._standing.serves:
                    with self._answering:
                        fed.send(Frame(kinds.RESIGNS))
            except OpError as error:
                _log.debug("%s does not hear that %s ends: %s", self._other, self._task, error.message)
            finally:
                self._asking.release()
        fed.close()

    # Keeping ----------------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        while not self._closed:
            try:
                if self._standing.serves:
                    self._lead()
                else:
                    self._follow()
            except CancelledError:
                return
            except OpError as error:
                _log.info("%s: %s: %s", self._task, self._called, error.message)
                self._pause(PAUSE_S)
            except Exception:  # noqa: BLE001 - without this thread, neither copy would take the place of the other
                _log.exception("%s: the copy of %s goes on after an error", self._task, self._called)
                self._pause(PAUSE_S)

    def _follow(self) -> None:
        with self._changed:
            changed = self._changed.wait_for(
                lambda: self._closed or self._fed is None or self._standing.serves, _SPARE_S
            )
        if not changed:
            if not self._over:
                self._ask(Wants.VIEW)  # a witness that was started anew may wait to hear what this copy knows
            return
        with self._changed:
            if self._standing.serves:
                return
            follows = self._standing.follows
            if self._changed.wait_for(
                lambda: self._closed or self._fed is not None, self._site.grace_s if follows else 0
            ):
                return
        if follows:
            log = _log.info if self._over else _log.warning
            log("%s lost %s, the primary of %s", self._task, self._other, self._called)
        self._ask(Wants.ALONE if follows else Wants.VIEW)
        rests = self.is_spare and not self._has_been_fed and self._standing.view is not None
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._fed is not None or self._standing.serves or self._standing.follows,
                _SPARE_S if rests and self._site.ps not in self._site.pair else LOOK_S,
            )

    def _lead(self) -> None:
        if not self._serving:
            self._take_over()
        standing = self._standing
        view = standing.view
        self._look_after()
        if view is None or not self._is_filled():
            return
        if self._over and not self._left:
            self._look_who_is_left(standing)
        if standing.pairing is not None:  # whether it is a pair is not known
            self._ask_pair(standing.pairing)
            self._part_feeds()
            if self._standing.pairing is not None:  # the witness waits for others, which have to get a word in
                self._pause(PAUSE_S)
            return
        paired = view.second is not None
        feed = self._feed
        if feed is None or feed.broken.is_set() or not paired or feed.target != view.second:
            feed = self._second_again(view) if paired else self._second_anew(view)
            if feed is None:
                return
        elif feed.filling:
            feed.fill()
        if not feed.broken.is_set() and self._standing.serves:
            _log.warning("%s has a copy of %s now", self._other, self._called)
        while self._standing.serves and not self._closed and not feed.broken.wait(LOOK_S):
            feed.look()
            self._look_after()
            feed = self._move(feed)
        feed.end()
        with self._changed:
            if feed.resigned:
                self._standing = replace(self._standing, resigned=True)
            self._changed.notify_all()

    # Leaving ----------------------------------------------------------------------------------------------------------

    def leave(self) -> bool:
        """The process ends. Where no other process has what this copy has, the chief keeps that; see
        `headwater.state.left_copies`. From now on it acknowledges nothing.

        Returns:
          Whether the chief could be reached.
        """
        has_other = self.is_whole if self._standing.serves else self._fed is not None
        self._acknowledges_no_more()
        self._stop_keeping()
        self._is_left = True
        left = self._site.left
        reached = False
        try:
            if left is not None and not self._over:
                left.require_chief()
                reached = True
                view = self._last_view(has_other and not self._standing.resigned)
                if view is not None:
                    self._leave_with(left, view)
        except (OpError, MemoryError) as error:
            log = _log.warning if self._standing.serves else _log.info
            what = "%s could not leave its copy of %s with %s, so it is lost where no other one has it: %s"
            log(what, self._task, self._called, left.chief if left is not None else "no chief", error)
        finally:
            self._resign()
        return reached

    def _leave_with(self, left: LeftCopies, view: View) -> None:
        """Has the chief keep what this copy has, which is the last."""
        if self._is_filled():
            channel = left.leave(self.name, view.term)
            feed = self._begin_feed(channel, _AT_CHIEF)
            feed.fill()
            with self._taking:
                self._step_down()
            feed.wait(feed.given, lambda: True)
            channel.end()
            what = "%s has left its copy of %s with %s until it is served again: term %d"
            _log.warning(what, self._task, self._called, left.chief, view.term)
        self._ask_last(Wants.LEAVE)

    def _last_view(self, has_other: bool) -> View | None:
        """The view in which this copy, which has no keeper any more, is the last; None where another one serves.

        Args:
          has_other: whether there was a channel between the two copies; else the other one may be lost.
        """
        while True:
            known = self._standing.view
            last = not has_other and known is not None and self._standing.me in known
            view = self._ask_last(Wants.ALONE if last else Wants.GO)
            self._become(view)
            if view is None or view.second is None or self._standing.me not in view:
                break
            if view == known:
                return None  # the other one
            if self._standing.view == known:  # which is newer than what a witness knows that was started anew
                break
        if self._standing.serves and not self._serving:
            self._take_over()
        return self._standing.view if self._standing.serves else None

    def _ask_last(self, wants: Wants) -> View | None:
        """Asks the witness, without a keeper."""
        return self._site.ask(self._set, self._shard, self._request(self._standing, wants))
