"""One of the two copies of what a ``ps`` holds: it serves, or follows the copy that does.

A thread of its own, the *keeper*, asks the witness, feeds the other copy where this one is the primary, and takes over
where the primary is lost. What it may do is decided by `headwater.replicas.views`. What is kept twice, and how the
other copy follows, is up to who derives from `KeptCopy`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.replicas.feed import Feed
from headwater.replicas.views import (
    Copy,
    Request,
    Standing,
    View,
    Wants,
    accepts,
    as_words,
    from_words,
    learn,
)
from headwater.replicas.witness import Ask
from headwater.task import kinds
from headwater.task.answers import bad_header, error_frame
from headwater.task.waiting import LOOK_S, SPEAK_S
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handshake import new_generation

_log = logging.getLogger("headwater")

_Contents = TypeVar("_Contents")

#: How long a second waits for its primary by default, in seconds.
GRACE_S = 0.8
#: How long a primary tries to reach the other copy before it asks to be alone, in seconds.
DIAL_S = 0.4
#: Between two attempts, in seconds.
PAUSE_S = 0.5
#: How long the other copy may take to answer who it is, in seconds.
ANSWER_S = 5.0


class PeerServerLink(Protocol):
    """The way to another ``ps``."""

    def reach(self, deadline_s: float | None = None) -> object: ...

    def take_now(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...

    def watch(self, channel: Channel) -> None: ...

    def lost(self) -> bool: ...


class KeptCopy:
    """One of the two copies of a shard.

    Args:
      name: of the set that the shard is of, for the witness.
      shard: its number, which is that of the ``ps`` that serves it at the beginning.
      ps: number of this ``ps``.
      task: this task's name.
      other: the name of the other copy's task.
      called: what the shard is called, for people.
      link: to the other copy's task.
      ask: asks the witness, see `headwater.replicas.witness`.
      grace_s: how long a second waits for its primary to come back before it asks to serve, in seconds.

    Attributes:
      name: of the shard; that its frames begin with.
    """

    def __init__(
        self,
        name: str,
        shard: int,
        *,
        ps: int,
        task: str,
        other: str,
        called: str,
        link: PeerServerLink,
        ask: Ask,
        grace_s: float = GRACE_S,
    ) -> None:
        self.name: str = f"{name}/{shard}"
        self._set = name
        self._shard = shard
        self._task = task
        self._other = other
        self._called = called
        self._link = link
        self._ask_witness = ask
        self._grace_s = grace_s
        self._changed = threading.Condition()
        self._standing = Standing(me=Copy(ps, new_generation()))
        # Held by the thread that takes what the primary sends, and by who changes what there is: never while
        # `_changed` is held.
        self._taking = threading.Lock()
        self._asking = threading.Lock()
        self._answering = threading.Lock()
        self._fed: Channel | None = None
        self._feed: Feed | None = None
        self._serving = False
        self._over = False
        self._closed = False
        self._begin()
        self._keeper = threading.Thread(target=self._keep, name=f"replica-{self.name}", daemon=True)

    def start(self) -> None:
        """Begins to ask who serves, and to serve or follow."""
        self._keeper.start()

    # What is kept -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Makes what is kept anew, empty."""
        raise NotImplementedError

    def _end(self) -> None:
        """What was kept is dropped: those who are served hear no more of it. `_changed` and `_taking` are held."""
        raise NotImplementedError

    def _apply(self, frame: Frame, channel: Channel) -> None:
        """Makes a change that the primary has sent on ``channel``; whatever it raises, the copy is dropped."""
        raise NotImplementedError

    def _begin_feed(self, channel: Channel, other: Copy) -> Feed:
        """Makes the feed of the other copy, which begins with all there is now, and gives it to `_feeds`, both between
        two changes."""
        raise NotImplementedError

    def _given(self, feed: Feed) -> int:
        """How many frames ``feed`` was given, where no change is half way there."""
        raise NotImplementedError

    def _tell(self, feed: Feed, view: View) -> None:
        """Has ``feed`` tell of a view, between two changes."""
        raise NotImplementedError

    def _take_up(self) -> None:
        """This copy serves from now on: what it was fed is made what is served. `_taking` is held."""
        raise NotImplementedError

    def _is_filled(self) -> bool:
        """Whether there is something to feed the other copy with; may wait for it for a moment."""
        return True

    def _look_after(self) -> None:
        """Called now and then while this copy serves."""

    def _wake_other(self) -> None:
        """Called now and then while the witness waits for the other copy."""

    @property
    def _fills_slowly(self) -> bool:
        """Whether what a feed begins with comes in pieces: meanwhile the other copy is none."""
        return False

    # What the task asks -----------------------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether this copy serves, and the other one would lose nothing in its place."""
        standing, feed = self._standing, self._feed
        paired = standing.serves and standing.view is not None and standing.view.second is not None
        return paired and feed is not None and not feed.broken.is_set() and not feed.filling

    @property
    def lacks_second(self) -> bool:
        """Whether this copy serves, and there is no other one that would lose nothing in its place."""
        return self._standing.serves and not self.is_whole

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

    def close(self) -> None:
        """Ends the keeper, and tells the primary that this copy will never serve, where it has one."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            fed, feed = self._fed, self._feed
        if fed is not None and self._asking.acquire(timeout=PAUSE_S):
            try:
                if not self._standing.serves:
                    with self._answering:
                        fed.send(Frame(kinds.RESIGNS))
            except OpError as error:
                _log.debug("%s does not hear that %s ends: %s", self._other, self._task, error.message)
            finally:
                self._asking.release()
        if fed is not None:
            fed.close()
        if feed is not None:
            feed.end()
        if self._keeper.is_alive() and threading.current_thread() is not self._keeper:
            self._keeper.join(timeout=ANSWER_S)

    # Serving ----------------------------------------------------------------------------------------------------------

    def _is_elsewhere(self) -> bool:
        """Whether the other copy serves, as far as is known, and this one is not to take its place soon."""
        # Without a second there may be no values yet, which the chief, asking here, is to bring.
        view = self._standing.view
        alone = view is not None and view.second is None and not self._standing.serves
        # When the job is over, the witness makes no other views.
        return self._fed is not None or self._closed or self._over or alone

    def _await_serving(self, channel: Channel, contents: Callable[[], _Contents]) -> _Contents | None:
        """What is served to a worker, as ``contents`` gives it, as soon as this copy serves; None where the worker has
        gone, or was told to try the other copy, which does."""
        spoken = time.monotonic()
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
            if time.monotonic() - spoken >= SPEAK_S:
                spoken = time.monotonic()
                channel.send(Frame(kinds.WAIT, (f"{self._task} to hear who serves {self._called}",)))
        return None

    def _secure_answer(self, channel: Channel, feed: Feed | None, number: int, serves: Callable[[], bool]) -> None:
        """Does `_await_second` for an answer to a worker, and tells it what it waits for.

        Raises:
          UnavailableError: this copy does not serve any more, or the worker is gone.
        """
        spoken = time.monotonic()

        def waits(what: str) -> None:
            nonlocal spoken
            if channel.peer_gone():
                raise UnavailableError(None, None, f"{channel.peer} is gone")
            if time.monotonic() - spoken >= SPEAK_S:
                spoken = time.monotonic()
                channel.send(Frame(kinds.WAIT, (what,)))

        self._await_second(feed, number, serves, waits)

    def _feeds(self, feed: Feed) -> None:
        """From now on, changes go to ``feed``, which begins with all that there is."""
        with self._changed:
            self._feed = feed
            self._changed.notify_all()

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
                if not serves() or self._closed:
                    raise UnavailableError(None, None, f"{self._task} serves {self._called} no more")
                now = self._feed
                # When the job is over, and the other copy has ended with it, no task is left that says so in a view.
                left = self._over and (now is None or now.broken.is_set())
                alone = self._standing.acknowledges_alone
                if left or (alone and (now is None or now.has_room)):
                    return
                if now is not feed:
                    # It began with all there was when it began, which is later than what is to be secured.
                    feed, number = now, now.begins if now is not None else 0
                if feed is None or feed.broken.is_set():
                    self._changed.wait(LOOK_S)
            if feed is not None and not feed.broken.is_set():
                if alone:
                    feed.wait(feed.confirmed + 1, serves)
                elif feed.wait(number, serves):
                    return
            waits(f"{self._other} to have its copy of {self._called}, or {self._task} to be told to go alone")

    # Following --------------------------------------------------------------------------------------------------------

    def take(self, channel: Channel, first: Frame) -> None:
        """Takes what a primary sends until the channel ends, unless it is one of an older term."""
        match first.header:
            case (str(), words):
                view = from_words(words)
            case _:
                raise bad_header(first, channel.peer)
        if view is None:
            raise bad_header(first, channel.peer)
        with self._changed:
            before = self._fed if accepts(self._standing, view) else None
        if before is not None:
            before.close()
        with self._taking:
            with self._changed:
                taken = accepts(self._standing, view) and not self._closed
                if taken:
                    self._fed = channel
                    self._learn(view)
                    self._changed.notify_all()
                standing = self._standing
            try:
                channel.send(Frame(kinds.DONE, (taken, *standing.me, as_words(standing.view))))
                if not taken:
                    return
                self._watch(channel)
                while True:
                    frame = channel.recv()
                    with self._answering:
                        channel.send(Frame(kinds.DONE, (frame.header[0],)))
                    self._follow_frame(frame, channel)
            finally:
                with self._changed:
                    if self._fed is channel:
                        self._fed = None
                        self._changed.notify_all()
                self._link.give_back(channel, False)

    def _watch(self, channel: Channel) -> None:
        """From now on a primary that is stopped, or whose machine is gone, is noticed."""
        try:
            self._link.reach(DIAL_S)
        except OpError as error:
            raise UnavailableError(None, None, f"{self._task} cannot reach {self._other}: {error.message}") from error
        self._link.watch(channel)

    def _follow_frame(self, frame: Frame, channel: Channel) -> None:
        try:
            match frame.kind, frame.header:
                case kinds.NEW_VIEW, (int(), words):
                    view = from_words(words)
                    with self._changed:
                        if view is not None and self._standing.me in view:
                            self._learn(view)
                case _:
                    self._apply(frame, channel)
        except Exception as error:
            # It has confirmed what it cannot do: what it has is of no use any more.
            _log.exception("%s drops its copy of %s: it could not follow", self._task, self._called)
            with self._changed:
                me = Copy(self._standing.me.ps, new_generation())
                self._standing = replace(self._standing, me=me)
                self._renew()
            raise UnavailableError(None, None, f"{self._task} could not follow") from error

    def _renew(self) -> None:
        """Drops what it has. `_changed` and `_taking` are held."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.end()
        self._serving = False
        self._end()
        self._begin()
        self._changed.notify_all()

    def _learn(self, view: View) -> None:
        """Takes note of a view in which this copy is no primary. `_changed` and `_taking` are held."""
        before, self._standing = self._standing, learn(self._standing, view, new_generation())
        if self._standing.me != before.me:
            _log.warning("%s drops its copy of %s: %s", self._task, self._called, view)
            self._renew()

    def _become(self, view: View | None) -> None:
        """Takes note of a view of the witness. No lock is held."""
        if view is None:
            return
        with self._changed:
            known = self._standing.view
            if known is not None and view.term <= known.term:
                self._standing = replace(self._standing, pairing=self._standing.pairing and view != known)
                return
            stays = learn(self._standing, view, 0).me == self._standing.me
            if stays:
                self._standing = learn(self._standing, view, 0)
                self._changed.notify_all()
                return
            fed = self._fed
        if fed is not None:
            fed.close()
        with self._taking, self._changed:
            self._learn(view)

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

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

    def _ask(self, wants: Wants, other: Copy | None = None) -> None:
        """Asks the witness, and takes note of what it says.

        Raises:
          OpError: there was no answer.
        """
        with self._asking:
            if self._closed:
                return
            standing = self._standing
            view = self._ask_witness(self._set, self._shard, Request(standing.me, standing.view, wants, other))
            if self._standing.me == standing.me:
                self._become(view)
        if view is None:
            self._wake_other()

    def _follow(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fed is None)
            follows = self._standing.follows
            if self._changed.wait_for(lambda: self._closed or self._fed is not None, self._grace_s if follows else 0):
                return
        if follows:
            log = _log.info if self._over else _log.warning
            log("%s lost %s, the primary of %s", self._task, self._other, self._called)
        self._ask(Wants.ALONE if follows else Wants.VIEW)
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._fed is not None or self._standing.serves or self._standing.follows, LOOK_S
            )

    def _lead(self) -> None:
        if not self._serving:
            self._take_over()
        standing = self._standing
        view = standing.view
        self._look_after()
        if view is None or not self._is_filled():
            return
        if standing.pairing:  # whether it is a pair is not known
            self._ask(Wants.PAIR, self._feed.target if self._feed is not None else None)
            return
        paired = view.second is not None
        if paired and self._fills_slowly and not standing.resigned:
            # Those that are served do not wait for it, and it cannot serve with some of the pieces.
            self._ask(Wants.ALONE)
            if self._standing.view == view:
                self._pause(PAUSE_S)
            return
        feed = self._dial(view, paired)
        if feed is None:
            if paired and self._standing.view == view and not self._standing.resigned:
                log = _log.info if self._over else _log.warning
                log("%s has no second copy now: %s is away", self._called, self._other)
                self._ask(Wants.ALONE)
            else:
                self._pause(PAUSE_S)
            return
        feed.fill()
        if not paired:
            self._pair(feed)
        if not feed.broken.is_set() and self._standing.serves:
            _log.warning("%s has a copy of %s now", self._other, self._called)
        while self._standing.serves and not self._closed and not feed.broken.wait(LOOK_S):
            feed.look()
            self._look_after()
        feed.end()
        with self._changed:
            if feed.resigned:
                self._standing = replace(self._standing, resigned=True)
            self._changed.notify_all()

    def _take_over(self) -> None:
        with self._changed:
            fed = self._fed
        if fed is not None:
            fed.close()
        # What was confirmed is applied first.
        with self._taking:
            self._take_up()
            with self._changed:
                self._serving = True
                self._changed.notify_all()

    def _dial(self, view: View, paired: bool) -> Feed | None:
        """Begins to feed the other copy with all that there is; None where it cannot be reached or takes nothing."""
        link = self._link
        if paired and link.lost():
            return None
        try:
            link.reach(DIAL_S)
            channel = link.take_now()
        except CancelledError:
            raise
        except OpError as error:
            _log.debug("%s cannot reach %s: %s", self._task, self._other, error.message)
            return None
        try:
            channel.send(Frame(kinds.SECOND, (self.name, as_words(view))))
            answer = channel.recv(ANSWER_S)
            match answer.kind, answer.header:
                case kinds.DONE, (bool(taken), int(ps), int(life), words):
                    other, its_view = Copy(ps, life), from_words(words)
                case _:
                    raise bad_header(answer, self._other)
        except (OpError, ValueError) as error:
            _log.debug("%s does not take its copy: %s", self._other, error)
            link.give_back(channel, False)
            return None
        if not taken or (paired and other != view.second):
            link.give_back(channel, False)
            self._become(its_view)
            return None
        return self._begin_feed(channel, other)

    def _pair(self, feed: Feed) -> None:
        """Makes the other copy the second. From here on nothing counts that it does not have."""
        with self._changed:
            self._standing = replace(self._standing, pairing=True)
        if not feed.wait(self._given(feed), lambda: not self._closed):
            with self._changed:  # the witness was not asked
                self._standing = replace(self._standing, pairing=False)
                self._changed.notify_all()
            return
        self._ask(Wants.PAIR, feed.target)
        view = self._standing.view
        if view is not None and view.second == feed.target:
            self._tell(feed, view)
