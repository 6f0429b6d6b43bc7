"""One of the copies of what a ``ps`` holds: it serves, or follows the copy that does.

A thread of its own, the *keeper*, asks the witness, feeds the other copy where this one is the primary, and takes over
where the primary is lost. What it may do is decided by `headwater.replicas.views`. What is kept twice, and how the
other copy follows, is up to who derives from `KeptCopy`.

Each process of a ``ps`` may have a `KeptCopy` of each shard. Two of them are copies; the others are *spare*: they have
nothing, and wait to be fed. A primary is told where the copies should be with `KeptCopy.aim`, and has them go there one
after the other while it serves (`headwater.replicas.aims`): it feeds a spare one beside its second, which that replaces
then, and hands over to its second. What is served has to be able to `KeptCopy._step_down` for the latter. A process
that is about to end is none of `Processes.staying`, which is enough: its copies go to others, and `KeptCopy.is_free`
says when. Where `aim` is never called and all processes stay, copies stay on two processes, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.replicas.aims import Aim, Move, next_step, settle
from headwater.replicas.feed import Feed, FeedChannel
from headwater.replicas.sites import PeerServerLink, Site, shows_life
from headwater.replicas.views import (
    Copy,
    Request,
    Standing,
    View,
    Wants,
    accepts,
    as_words,
    begins_anew,
    from_words,
    learn,
)
from headwater.task import kinds
from headwater.task.answers import bad_header, error_frame
from headwater.task.waiting import LOOK_S, SPEAK_S
from headwater.transport.channel import Channel, memory_pair
from headwater.transport.frames import Frame
from headwater.transport.handshake import new_generation

_log = logging.getLogger("headwater")

_Contents = TypeVar("_Contents")

#: What the chief is as the other copy of one that ends.
_AT_CHIEF: Final = Copy(-1, 0)

#: How long a primary tries to reach the other copy before it asks to be alone, in seconds.
DIAL_S = 0.4
#: Between two attempts, in seconds.
PAUSE_S = 0.5
#: How long the other copy may take to answer who it is, in seconds.
ANSWER_S = 5.0
#: How often a copy that is spare, or follows, tells the witness what it knows, in seconds: a witness that was started
#: anew may wait for that.
SPARE_S: Final = 2.0


def _new_life(before: int = 0) -> int:
    """A number for another life of a copy of this ``ps``: above ``before``, and above those of former processes."""
    return max(before + 1, (int(time.time() * 1e6) << 10) + new_generation() % 1024)


class KeptCopy:
    """One of the copies of a shard.

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
        self._standing = Standing(me=Copy(site.ps, _new_life()))
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
        # Whether this process is about to end; and whether the primary's has said so before that. With `_answering`.
        self._leaves = False
        self._inherits = False
        # Whether `leave` was called.
        self._is_left = False
        #: For how long nothing was served when this copy handed over last, in seconds.
        self.held_up_s: float = 0.0
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

    def _begin_feed(self, channel: FeedChannel, other: Copy) -> Feed:
        """Makes the feed of the other copy, which begins with all there is now, and gives it to `_feeds`, both between
        two changes. Changes that were noted and not sent yet go to the present feed first."""
        raise NotImplementedError

    def _begin_going_on(self, channel: Channel, other: Copy, view: View) -> Feed:
        """Makes the feed of a copy that has all there is."""
        return Feed(channel, other, [(kinds.NEW_VIEW, (as_words(view), self._aim), ())])

    def _between_changes(self) -> AbstractContextManager[Any]:
        """What is served does not change meanwhile: changes wait."""
        raise NotImplementedError

    def _step_down(self) -> None:
        """This copy serves no more, with `_stops_serving` between two changes: those who are served hear no more of
        it. It is left with what there is at that moment, as a second has it. `_taking` is held."""
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
        """Whether this copy serves, and there is no other one that would lose nothing in its place, and should be."""
        aim = self._aim
        return self._standing.serves and not self.is_whole and (aim is None or aim.second is not None)

    @property
    def is_missed(self) -> bool:
        """Whether this process would take along what no other one may have, as far as is known: it serves, and the
        other copy is not whole, or about to end; or it follows a primary that has ended by now, or is about to."""
        missed = self.lacks_second or self.second_leaves if self._standing.serves else self._inherits
        return missed and not self._is_left

    @property
    def second_leaves(self) -> bool:
        """Whether this copy serves, and the process of the other one, which is still there, is about to end."""
        feed = self._feed
        return self._standing.serves and feed is not None and feed.leaving and not feed.broken.is_set()

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

    def begin_leaving(self) -> None:
        """The process is about to end: the primary hears so, where this copy has one."""
        with self._answering:
            self._leaves = True
            if self._fed is not None:
                with suppress(OpError):
                    self._fed.send(Frame(kinds.LEAVING))

    def tell_second(self) -> None:
        """The process is about to end, and all of its copies know that (`begin_leaving`): the second hears so, where
        this copy has one. Where the processes of both are, one of the two copies knows that of the other, then."""
        feed = self._feed
        if self._standing.serves and feed is not None and not feed.filling:
            with self._between_changes():
                number = feed.leave()
            give_up_at = time.monotonic() + ANSWER_S
            feed.wait(number, lambda: time.monotonic() < give_up_at)

    def leave(self) -> bool:
        """The process ends, and the chief keeps what this copy has, where it serves; see
        `headwater.replicas.left_copies`. From now on it acknowledges nothing.

        Returns:
          Whether the chief could be reached.
        """
        self._stop_keeping()
        self._is_left = True
        left = self._site.left
        if left is None:
            return False
        reached = False
        try:
            left.require_chief()
            reached = True
            view = self._last_view()
            if view is not None and self._is_filled():
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
        except (OpError, MemoryError) as error:
            log = _log.warning if self._standing.serves else _log.info
            what = "%s could not leave its copy of %s with %s, so it is lost where no other one has it: %s"
            log(what, self._task, self._called, left.chief, error)
        return reached

    def _last_view(self) -> View | None:
        """The view in which this copy serves, which has no keeper any more; None where it does not."""
        only_follows = self._standing.follows and not self._inherits
        self._become(self._ask_last(Wants.VIEW if only_follows else Wants.ALONE))
        if self._standing.serves and not self._serving:
            self._take_over()
        return self._standing.view if self._standing.serves else None

    def _ask_last(self, wants: Wants) -> View | None:
        """Asks the witness, without a keeper."""
        return self._site.ask(self._set, self._shard, self._request(self._standing, wants))

    def close(self) -> None:
        """Ends the keeper, and tells the primary that this copy will never serve, where it has one."""
        self._stop_keeping()

    def _stop_keeping(self) -> None:
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
        outside = view is not None and self._standing.me not in view
        # When the job is over, the witness makes no other views.
        return self._fed is not None or self._closed or self._over or outside

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
            if self._beside is not None:
                self._beside.beside = feed
                return
            self._feed = feed
            self._left = False
            self._changed.notify_all()

    def _stops_serving(self) -> None:
        """From now on nothing is served, and no change goes to the other copy: one that comes late has no answer."""
        with self._changed:
            self._serving = False
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

    # Following --------------------------------------------------------------------------------------------------------

    def take(self, channel: Channel, first: Frame) -> None:
        """Takes what a primary sends until the channel ends, unless it is one of an older term."""
        match first.header:
            case (str(), words, bool(goes_on)):
                view = from_words(words)
            case _:
                raise bad_header(first, channel.peer)
        if view is None:
            raise bad_header(first, channel.peer)
        link = self._processes.link(view.primary.ps)
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
                    self._handed = False
                    self._gave = self._gave and goes_on
                    self._has_been_fed = True
                    self._inherits = False
                    self._changed.notify_all()
                standing = self._standing
                deposed = self._serving and not standing.serves
            if deposed:
                self._step_down()
            try:
                channel.send(Frame(kinds.DONE, (taken, *standing.me, as_words(standing.view), self._gave)))
                if not taken or (goes_on and not self._gave):
                    return
                self._watch(link, channel)
                while True:
                    frame = channel.recv()
                    with self._answering:
                        if frame.kind == kinds.LEAVING:
                            self._inherits = not self._leaves
                        channel.send(Frame(kinds.DONE, (frame.header[0],)))
                    self._follow_frame(frame, channel)
            finally:
                with self._changed:
                    if self._fed is channel:
                        self._fed = None
                        self._changed.notify_all()
                link.give_back(channel, False)

    def _watch(self, link: PeerServerLink, channel: Channel) -> None:
        """From now on a primary that is stopped, or whose machine is gone, is noticed."""
        try:
            link.reach(DIAL_S)
        except OpError as error:
            raise UnavailableError(None, None, f"{self._task} cannot reach {self._other}: {error.message}") from error
        link.watch(channel)

    def _follow_frame(self, frame: Frame, channel: Channel) -> None:
        try:
            match frame.kind, frame.header:
                case kinds.LEAVING, (int(),):
                    pass
                case kinds.NEW_VIEW, (int(), words, aim):
                    view = from_words(words)
                    with self._changed:
                        self._aim = Aim(*aim) if aim is not None else self._aim
                        if view is not None and self._standing.me in view:
                            known = self._standing.view
                            self._learn(view)
                            self._handed = self._standing.serves and view != known
                            self._changed.notify_all()
                case _:
                    self._apply(frame, channel)
        except Exception as error:
            # It has confirmed what it cannot do: what it has is of no use any more.
            _log.exception("%s drops its copy of %s: it could not follow", self._task, self._called)
            with self._changed:
                me = Copy(self._standing.me.ps, _new_life(self._standing.me.life))
                self._standing = replace(self._standing, me=me)
                self._renew()
            raise UnavailableError(None, None, f"{self._task} could not follow") from error

    def _renew(self) -> None:
        """Drops what it has. `_changed` and `_taking` are held."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.end()
        self._serving = self._handed = self._gave = self._has_been_fed = self._inherits = False
        self._end()
        self._begin()
        self._changed.notify_all()

    def _learn(self, view: View) -> None:
        """Takes note of a view in which this copy is no primary. `_changed` and `_taking` are held."""
        before, self._standing = self._standing, learn(self._standing, view, _new_life(self._standing.me.life))
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

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed, seconds)

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

    def _follow(self) -> None:
        with self._changed:
            changed = self._changed.wait_for(
                lambda: self._closed or self._fed is None or self._standing.serves, SPARE_S
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
                SPARE_S if rests and self._site.ps not in self._site.pair else LOOK_S,
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

    def _second_again(self, view: View) -> Feed | None:
        """Feeds the second of ``view``, to which there is no channel; None where it is not there, or cannot take what
        it is fed: then this copy goes alone."""
        assert view.second is not None
        resigned = self._standing.resigned
        # With pieces that are slow to come those that are served do not wait, and it cannot serve with some of them.
        # When the job is over they do wait: no witness may be left that lets this copy go alone.
        waits = not self._fills_slowly or resigned or self._over
        if waits and (feed := self._filled(view, view.second.ps)) is not None:
            return feed
        if self._standing.view != view:
            return None
        if resigned and self._over:  # the witness has ended with the job, and makes no other view
            self._pause(PAUSE_S)
            return None
        if not self._fills_slowly:
            log = _log.info if self._over else _log.warning
            log("%s has no second copy now: %s is away", self._called, self._other)
        self._ask(Wants.ALONE)
        if self._standing.view == view:
            self._pause(PAUSE_S)
        return None

    def _look_who_is_left(self, standing: Standing) -> None:
        """Looks whether the processes of copies that have yet to confirm something have ended with the job."""
        feed, second = self._feed, standing.view.second if standing.view is not None else None
        if feed is None or feed.broken.is_set():
            others = {copy.ps for copy in (second, standing.pairing) if copy is not None}
            if not any(self._is_there(ps) for ps in others):
                self._second_is_gone()

    def _second_is_gone(self) -> None:
        """The copy that is the second will never serve: no process has it any more."""
        with self._changed:
            self._left = self._over
            self._changed.notify_all()

    def _is_there(self, ps: int) -> bool:
        """Whether the process of another ``ps`` can be reached."""
        try:
            self._processes.link(ps).reach(DIAL_S)
        except CancelledError:
            raise
        except OpError:
            return False
        return True

    def _second_anew(self, view: View) -> Feed | None:
        """Fills another copy up, and has it as the second; None where no other ``ps`` can be reached, or should."""
        first = next_step(view, self._wanted(view)).ps
        others = [number for number in self._processes.staying() if number not in (first, self._site.ps)]
        for number in [] if first is None else [first, *others]:
            feed = self._filled(view, number)
            if feed is not None:
                self._pair(feed)
                return feed
            if self._standing.view != view:
                return None
        self._pause(PAUSE_S)
        return None

    def _filled(self, view: View, ps: int) -> Feed | None:
        """Has the copy of another ``ps`` get all there is; None where that does not come to its end."""
        try:
            feed = self._dial(view, ps)
            if feed is not None:
                feed.fill()
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - what cannot be sent, others have not: those who are served need not wait
            _log.exception("%s cannot fill up %s with %s", self._task, self._processes.name(ps), self._called)
            return None
        return None if feed is None or feed.broken.is_set() else feed

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

    def _replace_second(self, feed: Feed, view: View, ps: int) -> Feed:
        """Has the copy of another ``ps`` as the second, in the place of that which ``feed`` feeds."""
        before = self._other
        with self._changed:
            self._beside = feed
        try:
            third = self._dial(view, ps)
        finally:
            with self._changed:
                self._beside = None
        if third is None:
            return feed

        def goes_on() -> bool:
            feed.look()
            return not (feed.broken.is_set() or self._closed)

        try:
            third.fill(goes_on)
            if not third.broken.is_set() and goes_on():
                self._pair(third)
        finally:
            self._part_feeds()
        if self._feed is third:
            _log.warning("%s has a copy of %s now, in the place of %s", self._other, self._called, before)
        return self._feed or feed

    def _part_feeds(self) -> None:
        """Where a third copy is fed beside the second, feeds that of both alone which is the second now. As long as
        this is not known, both have to have everything."""
        with self._between_changes(), self._changed:
            feed, view = self._feed, self._standing.view
            third = feed.beside if feed is not None else None
            if feed is None or third is None:
                return
            whole = not feed.broken.is_set()
            if whole and self._standing.pairing is not None:
                return
            feed.beside = None
            replaced = view is not None and view.second == third.target
            if replaced:
                third.secures = third.given
                self._feed = third
            self._changed.notify_all()
        if not whole or not replaced:
            third.end()  # what happened since the other feed was lost it lacks
        if replaced:
            feed.end()

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
                self._gave = self._handed = self._left = self._inherits = self._begins_anew = False
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

    def _dial(self, view: View, ps: int, *, goes_on: bool = False) -> Feed | None:
        """Begins to feed the copy of another ``ps`` with all that there is, or ``goes_on`` with that of one that has
        all; None where it cannot be reached or takes nothing."""
        second = view.second if view.second is not None and view.second.ps == ps else None
        other_name = self._processes.name(ps)
        try:
            link = self._processes.link(ps)
            if second is not None and link.lost():
                return None
            link.reach(DIAL_S)
            channel = link.take_now()
        except CancelledError:
            raise
        except OpError as error:
            _log.debug("%s cannot reach %s: %s", self._task, other_name, error.message)
            return None
        try:
            channel.send(Frame(kinds.SECOND, (self.name, as_words(view), goes_on)))
            answer = channel.recv(ANSWER_S)
            match answer.kind, answer.header:
                case kinds.DONE, (bool(taken), int(number), int(life), words, bool(has_all)):
                    other, its_view = Copy(number, life), from_words(words)
                case _:
                    raise bad_header(answer, other_name)
        except (OpError, ValueError) as error:
            _log.debug("%s does not take its copy: %s", other_name, error)
            link.give_back(channel, False)
            return None
        fits = other == second and has_all if goes_on else second is None or other == second
        if not taken or not fits:
            link.give_back(channel, False)
            if not goes_on:
                self._become(its_view)
                if second is not None and other != second:
                    self._second_is_gone()
            return None
        try:
            if goes_on:
                feed = self._begin_going_on(channel, other, view)
                self._feeds(feed)
            else:
                feed = self._begin_feed(channel, other)
        except BaseException:
            link.give_back(channel, False)
            raise
        feed.at_end(partial(link.give_back, channel, False))
        return feed

    def _pair(self, feed: Feed) -> None:
        """Makes the copy that ``feed`` feeds the second. From here on nothing counts that it does not have."""
        with self._changed:
            self._standing = replace(self._standing, pairing=feed.target)
        if not feed.wait(self._given(feed), lambda: not self._closed):
            with self._changed:  # the witness was not asked
                self._standing = replace(self._standing, pairing=None)
                self._changed.notify_all()
            return
        self._ask_pair(feed.target)

    def _ask_pair(self, other: Copy) -> None:
        """Asks the witness to have ``other`` as the second, and tells it so."""
        self._ask(Wants.PAIR, other)
        view, feed = self._standing.view, self._feed
        if view is None or view.second != other or feed is None:
            return
        for each in (feed, feed.beside):
            if each is not None and each.target == other:
                with self._between_changes():
                    each.tell(view, self._aim)

    def _given(self, feed: Feed) -> int:
        """How many frames ``feed`` was given, where no change is half way there."""
        with self._between_changes():
            return feed.given
