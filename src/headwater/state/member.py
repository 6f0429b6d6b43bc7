"""A copy as one of those of its shard: what it knows of them, what it asks the witness, and how it stands."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from typing import Final

from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.handshake import new_generation
from headwater.state.aims import Aim, Move, next_step, settle
from headwater.state.contents import Contents
from headwater.state.feed import Feed
from headwater.state.sites import Site
from headwater.state.views import Copy, Request, Standing, View, Wants, begins_anew, learn

_log = logging.getLogger("headwater")

#: How long a copy tries to reach the other one before it goes on without it, in seconds.
DIAL_S: Final = 0.4
#: Between two attempts, in seconds.
PAUSE_S: Final = 0.5
#: How long the other copy may take to answer, in seconds.
ANSWER_S: Final = 5.0


def new_life(before: int = 0) -> int:
    """A number for another life of a copy of this ``ps``: above ``before``, and above those of former processes."""
    return max(before + 1, (int(time.time() * 1e6) << 10) + new_generation() % 1024)


class Member(Contents):
    """One of the copies of a shard, that knows of the others.

    Args:
      name: of the set that the shard is of, for the witness.
      shard: its number.
      site: where the copy is.
      called: what the shard is called, for people.

    Attributes:
      name: of the shard; that its frames begin with.
    """

    def __init__(self, name: str, shard: int, *, site: Site, called: str) -> None:
        self.name: str = f"{name}/{shard}"
        self._set = name
        self._shard = shard
        self._site = site
        self._processes = site.processes
        self._task = site.task
        self._called = called
        self._changed = threading.Condition()
        self._standing = Standing(me=Copy(site.ps, new_life()))
        # Held by the thread that takes what the primary sends, and by who changes what there is: never while
        # `_changed` is held.
        self._taking = threading.Lock()
        self._asking = threading.Lock()
        self._answering = threading.Lock()
        self._fed: Channel | None = None
        self._feed: Feed | None = None
        # Whether the job is over, and the second of the view was found to be gone for good since there was a feed last.
        self._left = False
        # The feed beside which another one begins.
        self._beside: Feed | None = None
        self._aim: Aim | None = None
        # Whether a primary has handed over to this copy, which has changed nothing since; and whether this copy has
        # handed over, and has changed nothing since.
        self._handed = False
        self._gave = False
        # Whether a primary has sent anything to it in this life.
        self._has_been_fed = False
        # Whether it is to serve as all copies of the view before are lost.
        self._begins_anew = False
        # Whether `leave` was called.
        self._is_left = False
        #: For how long nothing was served when this copy handed over last, in seconds.
        self.held_up_s: float = 0.0
        self._serving = False
        self._over = False
        self._closed = False
        self._begin()

    # What the task asks -----------------------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether this copy serves, and the other one would lose nothing in its place."""
        standing, feed = self._standing, self._feed
        paired = standing.serves and standing.view is not None and standing.view.second is not None
        return paired and feed is not None and not feed.broken.is_set() and not feed.filling

    @property
    def lacks_second(self) -> bool:
        """Whether this copy serves, and there is no other one that would lose nothing in its place, and should be."""
        aim = self._aim
        return self._standing.serves and not self.is_whole and (aim is None or aim.second is not None)

    @property
    def is_missed(self) -> bool:
        """Whether this process would take along what no other one may have, as far as is known."""
        return self.lacks_second and not self._is_left

    @property
    def view(self) -> View | None:
        """The newest that it knows; None before the first."""
        return self._standing.view

    @property
    def serves(self) -> bool:
        """Whether it is the primary, as far as it knows."""
        return self._standing.serves

    @property
    def second(self) -> str:
        """The task that has the second copy, as far as it knows; empty where none has."""
        view = self._standing.view
        return "" if view is None or view.second is None else self._processes.name(view.second.ps)

    @property
    def is_spare(self) -> bool:
        """Whether it has nothing, as it is none of the two copies, and was none at the beginning."""
        standing = self._standing
        at_first = standing.view is None and self._site.ps in self._site.pair
        return not (standing.serves or standing.follows or self._fed is not None or at_first)

    @property
    def is_free(self) -> bool:
        """Whether this process may end without that a copy is missed, as far as is known."""
        return self._is_left or not (self._standing.serves or self._standing.follows)

    @property
    def settled(self) -> bool:
        """Whether this copy serves, and the copies are where they should be."""
        view = self._standing.view
        if not self._standing.serves or view is None:
            return False
        return next_step(view, self._wanted(view)).move is Move.STAY and (view.second is None or self.is_whole)

    @property
    def aimed(self) -> Aim | None:
        """Where the copies were said to be; None where nothing was said."""
        return self._aim

    def aim(self, primary: int, second: int | None) -> None:
        """Says on which ``ps`` the copies should be; counts where this copy serves, or a view makes it serve later.

        Args:
          primary: the number of the one that should serve.
          second: that of the one that should follow; None where one copy is wanted.
        """
        with self._changed:
            self._aim = Aim(primary, second)

    @property
    def behind(self) -> int:
        """Frames that the other copy has yet to confirm to this one."""
        feed = self._feed
        return feed.given - feed.confirmed if self._standing.serves and feed is not None else 0

    def described(self) -> str:
        """How the copies stand, in words."""
        standing, feed = self._standing, self._feed
        term = f"term {standing.view.term}" if standing.view is not None else "no term yet"
        if standing.serves:
            aim = self._aim
            if standing.view is not None and standing.view.second is None and aim is not None and aim.second is None:
                return f"primary of shard {self._shard}, {term}, no second copy is wanted"
            if feed is None or feed.broken.is_set():
                return f"primary of shard {self._shard}, {term}, NO SECOND COPY: {self._other} is away"
            behind = feed.given - feed.confirmed
            if feed.filling or standing.view is None or standing.view.second is None:
                return f"primary of shard {self._shard}, {term}, {self._other} fills up, {behind} frames behind"
            return f"primary of shard {self._shard}, {term}, second on {self._other}, {behind} frames behind"
        if standing.follows:
            return f"second of shard {self._shard}, {term}, primary on {self._other}"
        filling = self._fed is not None
        return f"shard {self._shard}, {term}: {'fills up from' if filling else 'waits for'} {self._other}"

    def job_over(self) -> None:
        """The chief's program has ended."""
        self._over = True

    def _wanted(self, view: View) -> Aim:
        """Where the copies of ``view`` should be."""
        home, beside = self._site.pair
        other = home if view.primary.ps == beside else beside
        return settle(view, self._aim, other, self._processes.staying())

    @property
    def _other(self) -> str:
        """The process that has the other copy, or should have it, as far as is known."""
        view = self._standing.view
        home, beside = self._site.pair
        if view is not None and view.primary != self._standing.me:
            return self._processes.name(view.primary.ps)
        if view is not None and view.second is not None:
            return self._processes.name(view.second.ps)
        if view is not None:
            wanted = self._wanted(view)
            number = wanted.second if wanted.primary == self._site.ps else wanted.primary
            return self._processes.name(number) if number is not None else "no other"
        return self._processes.name(home if self._site.ps != home else beside)

    # Views ------------------------------------------------------------------------------------------------------------

    def _ask(self, wants: Wants, other: Copy | None = None) -> View | None:
        """Asks the witness, and takes note of what it says; None where it does not know the view.

        Raises:
          OpError: there was no answer.
        """
        with self._asking:
            if self._closed:
                return None
            standing = self._standing
            view = self._site.ask(self._set, self._shard, self._request(standing, wants, other))
            if self._standing.me == standing.me:
                self._become(view)
        if view is None:
            self._wake_other()
        return view

    def _request(self, standing: Standing, wants: Wants, other: Copy | None = None) -> Request:
        home, among = self._site.pair[0], tuple(self._processes.numbers())
        return Request(standing.me, standing.view, wants, other or standing.pairing, home, among)

    def _become(self, view: View | None) -> None:
        """Takes note of a view of the witness. No lock is held."""
        if view is None:
            return
        with self._changed:
            known = self._standing.view
            if known is not None and view.term <= known.term:
                pairing = self._standing.pairing if view != known else None
                self._standing = replace(self._standing, pairing=pairing)
                return
            stays = learn(self._standing, view, 0).me == self._standing.me
            if stays:
                self._begins_anew = begins_anew(self._standing, view)
                self._standing = learn(self._standing, view, 0)
                self._changed.notify_all()
            deposed = self._serving and not self._standing.serves
            fed = self._fed
        if stays:
            if deposed:  # what it has may be needed until the primary has fed it
                with self._taking:
                    if self._serving and not self._standing.serves:  # else the primary has come first
                        self._step_down()
            return
        if fed is not None:
            fed.close()
        with self._taking, self._changed:
            self._learn(view)

    def _learn(self, view: View) -> None:
        """Takes note of a view in which this copy is no primary. `_changed` and `_taking` are held."""
        before, self._standing = self._standing, learn(self._standing, view, new_life(self._standing.me.life))
        if self._standing.me != before.me:
            _log.warning("%s drops its copy of %s: %s", self._task, self._called, view)
            self._renew()

    def _renew(self) -> None:
        """Drops what it has. `_changed` and `_taking` are held."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.end()
        self._serving = self._handed = self._gave = self._has_been_fed = False
        self._end()
        self._begin()
        self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)
