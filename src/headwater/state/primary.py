"""How a copy serves: it takes over, answers workers once the second has what the answer says, and hands over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from headwater.cluster.task.answers import error_frame
from headwater.cluster.task.waiting import LOOK_S, Reminder
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.errors import UnavailableError
from headwater.state.aims import Move, next_step
from headwater.state.feed import Feed
from headwater.state.feeding import FeedingCopy
from headwater.state.sites import shows_life
from headwater.state.views import View, Wants

_log = logging.getLogger("headwater")

_Found = TypeVar("_Found")


class PrimaryCopy(FeedingCopy):
    """A copy that can serve."""

    def _take_over(self) -> None:
        with self._changed:
            fed = self._fed
        if fed is not None:
            fed.close()
        # What was confirmed is applied first.
        with self._taking:
            view = self._standing.view
            if view is not None and view.term > 1 and self._begins_anew:
                self._bring_back(view.term - 1)
            self._take_up()
            if self._handed and view is not None and view.second is not None:
                self._dial(view, view.second.ps, goes_on=True)
            with self._changed:
                self._gave = self._handed = self._left = self._begins_anew = False
                self._serving = self._standing.serves
                self._changed.notify_all()

    def _bring_back(self, term: int) -> None:
        """Has what the last primary has left with the chief, if anything was left in that term, and nothing of what one
        before has fed it. `_taking` is held."""
        left = self._site.left
        if self._has_been_fed:
            with self._changed:
                self._renew()
        if left is None:
            return
        channel, _ = memory_pair((left.chief, self._task))
        count = 0
        try:
            for frame in left.find(self.name, term):
                self._apply(frame, channel)
                count += 1
        except Exception:  # noqa: BLE001 - it serves without that, as where nothing was left
            _log.exception("%s cannot go on with the copy of %s that was left", self._task, self._called)
            with self._changed:
                self._renew()
            return
        if count:
            what = "%s goes on with the copy of %s of term %d, which %s has kept"
            _log.warning(what, self._task, self._called, term, left.chief)

    def _stops_serving(self) -> None:
        """From now on nothing is served, and no change goes to the other copy: one that comes late has no answer."""
        with self._changed:
            self._serving = False
            self._changed.notify_all()

    # Workers ----------------------------------------------------------------------------------------------------------

    def _is_elsewhere(self) -> bool:
        """Whether the other copy serves, as far as is known, and this one is not to take its place soon."""
        # Without a second there may be no values yet, which the chief, asking here, is to bring.
        view = self._standing.view
        outside = view is not None and self._standing.me not in view
        # When the job is over, the witness makes no other views.
        return self._fed is not None or self._closed or self._over or outside

    def _await_serving(self, channel: Channel, contents: Callable[[], _Found]) -> _Found | None:
        """What is served to a worker, as ``contents`` gives it, as soon as this copy serves; None where the worker has
        gone, or was told to try the other copy, which does."""
        reminder = Reminder()
        while not channel.peer_gone():
            with self._changed:
                self._changed.wait_for(lambda: self._serving or self._is_elsewhere(), LOOK_S)
                serving, elsewhere, found = self._serving, self._is_elsewhere(), contents()
            if serving:
                return found
            if elsewhere:
                reason = f"{self._other} serves {self._called}, not {self._task}"
                channel.send(error_frame(0, UnavailableError(None, None, reason), self._task))
                return None
            reminder.tell(channel, f"{self._task} to hear who serves {self._called}")
        return None

    def _secure_answer(self, channel: Channel, feed: Feed | None, number: int, serves: Callable[[], bool]) -> None:
        """Does `_await_second` for an answer to a worker, and tells it what it waits for.

        Raises:
          UnavailableError: this copy does not serve any more, or the worker is gone.
        """
        reminder = Reminder()

        def waits(what: str) -> None:
            if channel.peer_gone():
                raise UnavailableError(None, None, f"{channel.peer} is gone")
            reminder.tell(channel, what)

        self._await_second(feed, number, serves, waits)

    def _await_second(
        self, feed: Feed | None, number: int, serves: Callable[[], bool], waits: Callable[[str], None]
    ) -> None:
        """Returns once the other copy has confirmed frame ``number`` of ``feed``, or the view has no other one.

        Args:
          serves: whether what the answer says is still what is served.
          waits: called now and then with what is waited for, in words. What it raises ends the wait.

        Raises:
          UnavailableError: this copy does not serve any more.
        """
        while True:
            with self._changed:
                if not serves() or not self._serving or self._closed:
                    raise UnavailableError(None, None, f"{self._task} serves {self._called} no more")
                now = self._feed
                third = now.beside if now is not None else None
                # When the job is over, and another copy has ended with it, no task is left that says so in a view. But
                # that one may serve, where this one was stopped: it has to be gone.
                left = self._left and (now is None or now.broken.is_set())
                if self._over and third is not None and third.broken.is_set():
                    third = None
                by_third = third.given if third is not None else 0
                alone = self._standing.acknowledges_alone
                if left or (alone and (now is None or now.has_room)):
                    return
                if now is not feed:
                    # By that frame it has all there was when it became the feed, which is later than what is to be
                    # secured.
                    feed, number = now, now.secures if now is not None else 0
                is_needed = third is not None and self._standing.needs(third.target)
                if feed is None or feed.broken.is_set() or (is_needed and third is not None and third.broken.is_set()):
                    self._changed.wait(LOOK_S)
            if feed is not None and not feed.broken.is_set():
                if alone:
                    feed.wait(feed.confirmed + 1, serves)
                elif feed.wait(number, serves) and (
                    third is None or not self._standing.needs(third.target) or third.wait(by_third, serves)
                ):
                    return
            waits(f"{self._other} to have its copy of {self._called}, or {self._task} to be told to go alone")

    # Moving -----------------------------------------------------------------------------------------------------------

    def _move(self, feed: Feed) -> Feed:
        """Takes the next step to where the copies should be; the feed of the second then."""
        standing = self._standing
        view = standing.view
        if view is None or not standing.serves:
            return feed
        if standing.pairing is not None:  # a witness that was started anew had no answer
            self._ask_pair(standing.pairing)
            self._part_feeds()
            return self._feed or feed
        if view.second != feed.target or feed.broken.is_set():
            return feed
        step = next_step(view, self._wanted(view))
        match step.move:
            case Move.DROP:
                self._ask(Wants.ALONE)
                if self._standing.view != view:
                    feed.end()
            # While another one has the second copy, a process that is away is not dialled.
            case Move.BRING if step.ps is not None and shows_life(self._processes, step.ps):
                return self._replace_second(feed, view, step.ps)
            case Move.HAND_OVER:
                self._hand_over(feed, view)
            case _:
                pass
        return feed

    def _hand_over(self, feed: Feed, view: View) -> None:
        """Has the second serve in the place of this copy, which follows it then."""
        # Where the witness cannot be asked, or knows nothing, this goes on to serve. So it does when the job is over:
        # the second, and the witness, may have ended with it.
        if self._ask(Wants.VIEW) != view or not feed.wait(self._given(feed), lambda: not self._closed) or self._over:
            return
        began = time.monotonic()
        with self._taking:
            self._step_down()
        if feed.wait(self._given(feed), lambda: not self._closed):
            self._ask(Wants.HAND_OVER)
        now = self._standing.view
        if now is None or self._standing.serves:
            self._take_over()
            return
        with self._changed:
            self._gave = self._standing.follows
            self._feed = None
        if self._gave:
            feed.tell(now, self._aim)
            feed.wait(feed.given, lambda: not self._closed)
            self.held_up_s = time.monotonic() - began
            _log.warning(
                "%s has handed %s over to %s in %.3f s: %s",
                self._task,
                self._called,
                self._other,
                self.held_up_s,
                now,
            )
        feed.end()
