"""A copy of a shard on this ``ps``: it serves workers, or follows the copy that does.

A thread of its own, the *keeper*, asks the witness, feeds the other copy where this one is the primary, and takes over
where the primary is lost. What it may do is decided by `headwater.parameters.replicas.views`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from headwater.cluster.claims import Claim
from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.parameters.host import HostedParameters
from headwater.parameters.recovery import WayBack
from headwater.parameters.replicas.feed import Feed, State
from headwater.parameters.replicas.recorded import RecordedUpdater, Update
from headwater.parameters.replicas.views import (
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
from headwater.parameters.replicas.witness import Ask
from headwater.parameters.waiting import LOOK_S, SPEAK_S
from headwater.task import kinds
from headwater.task.answers import bad_header, error_frame
from headwater.telemetry.snapshot import Group, VariableSize
from headwater.telemetry.watchdog import ProgressWatchdog
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handshake import new_generation

_log = logging.getLogger("headwater")

#: How long a second waits for its primary by default, in seconds.
GRACE_S = 0.8
#: How long a primary tries to reach the other copy before it asks to be alone, in seconds.
DIAL_S = 0.4
#: Between two attempts, in seconds.
PAUSE_S = 0.5
#: How long the other copy may take to answer who it is, in seconds.
ANSWER_S = 5.0
#: How long after a copy has taken over workers may take to come to it, in seconds; see `HostMemory.take_over`.
COME_S = 15.0


class PeerServerLink(Protocol):
    """The way to another ``ps``."""

    def reach(self, deadline_s: float | None = None) -> Any: ...

    def take_now(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...

    def watch(self, channel: Channel) -> None: ...

    def lost(self) -> bool: ...


def shard_name(name: str, shard: int) -> str:
    """What a set's shard is called where each shard has two copies."""
    return f"{name}/{shard}"


class ShardCopy:
    """One of the two copies of a shard.

    Args:
      name: of the set of parameters.
      shard: its number, which is that of the ``ps`` that serves it at the beginning.
      ps: number of this ``ps``.
      task: this task's name.
      other: the name of the other copy's task.
      make: makes what holds the values, empty, with the updater inside.
      link: to the other copy's task.
      ask: asks the witness, see `headwater.parameters.replicas.witness`.
      grace_s: how long a second waits for its primary to come back before it asks to serve, in seconds.
    """

    def __init__(
        self,
        name: str,
        shard: int,
        *,
        ps: int,
        task: str,
        other: str,
        make: Callable[[], tuple[HostedParameters, RecordedUpdater]],
        link: PeerServerLink,
        ask: Ask,
        grace_s: float = GRACE_S,
    ) -> None:
        self.name: str = shard_name(name, shard)
        self._set = name
        self._shard = shard
        self._task = task
        self._other = other
        self._make = make
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
        self._memory: Any = None
        self._told: Any = None
        # Updates whose memory has yet to come: without it, it is not known whose they were.
        self._ahead: list[Update] = []
        self._serving = False
        self._over = False
        self._closed = False
        self._steps = 0
        self._begin()
        self._keeper = threading.Thread(target=self._keep, name=f"replica-{self.name}", daemon=True)
        self._keeper.start()

    def _begin(self) -> None:
        self._memory = self._told = None
        self._ahead = []
        self._serving = False
        host, updater = self._make()
        host.secured = lambda channel: self._secure(host, channel)
        self._host: HostedParameters = host
        self._updater: RecordedUpdater = updater

    # What the task asks -----------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """How many updates the values have seen."""
        memory = self._memory
        return self._host.version if self._serving or memory is None else memory[0][1]

    @property
    def counts_steps(self) -> bool:
        """Whether its version is the job's step."""
        return self._serving and self._host.counts_steps

    @property
    def steps(self) -> int:
        """Gradients of workers that it has answered."""
        return self._steps + self._host.steps

    @property
    def is_whole(self) -> bool:
        """Whether this copy serves, and the other one would lose nothing in its place."""
        standing, feed = self._standing, self._feed
        paired = standing.serves and standing.view is not None and standing.view.second is not None
        return paired and feed is not None and not feed.broken.is_set() and not feed.filling

    @property
    def way_back(self) -> WayBack | None:
        """None: it has no state of its own in a folder."""
        return None

    def sizes(self) -> list[VariableSize]:
        """What it holds; see `HostedParameters.sizes`."""
        return self._host.sizes()

    def group(self) -> Group:
        """How training goes, and how the copies stand."""
        feed, serves = self._feed, self._standing.serves
        return replace(
            self._host.group(),
            updates=self.version,
            copies=self.described(),
            lacks_second=serves and not self.is_whole,
            second_behind=feed.given - feed.confirmed if serves and feed is not None else 0,
        )

    def waits(self) -> list[tuple[str, float]]:
        """Which workers wait here."""
        return self._host.waits()

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

    def refusal(self, task: Claim) -> str:
        """See `HostedParameters.refusal`."""
        return self._host.refusal(task)

    def job_over(self) -> None:
        """The chief's program has ended."""
        self._over = True
        self._host.job_over()

    def worker_ended(self) -> None:
        """See `HostedParameters.worker_ended`."""
        self._host.worker_ended()

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
        if threading.current_thread() is not self._keeper:
            self._keeper.join(timeout=ANSWER_S)

    # Workers ----------------------------------------------------------------------------------------------------------

    def serve(self, channel: Channel, hello: Frame, watchdog: ProgressWatchdog) -> None:
        """Answers a worker, where this copy serves; tells it to try the other one where that does."""
        spoken = time.monotonic()
        while not channel.peer_gone():
            with self._changed:
                self._changed.wait_for(lambda: self._serving or self._is_elsewhere(), LOOK_S)
                serving, elsewhere, host = self._serving, self._is_elsewhere(), self._host
            if serving:
                return host.serve(channel, hello, watchdog)
            if elsewhere:
                reason = f"{self._other} serves shard {self._shard} of {self._set!r}, not {self._task}"
                return channel.send(error_frame(0, UnavailableError(None, None, reason), self._task))
            if time.monotonic() - spoken >= SPEAK_S:
                spoken = time.monotonic()
                what = f"{self._task} to hear who serves shard {self._shard} of {self._set!r}"
                channel.send(Frame(kinds.WAIT, (what,)))
        return None

    def _is_elsewhere(self) -> bool:
        """Whether the other copy serves, as far as is known, and this one is not to take its place soon."""
        # Without a second there may be no values yet, which the chief, asking here, is to bring.
        view = self._standing.view
        alone = view is not None and view.second is None and not self._standing.serves
        # When the job is over, the witness makes no other views.
        return self._fed is not None or self._closed or self._over or alone

    def _secure(self, host: HostedParameters, channel: Channel) -> None:
        """Returns once the other copy has all that the next answer on ``channel`` says, or the view has no other one.

        Raises:
          UnavailableError: this copy does not serve any more, or the worker is gone.
        """
        feed, number = self._note(host)
        spoken = time.monotonic()
        while True:
            with self._changed:
                if self._host is not host or self._closed:
                    raise UnavailableError(None, None, f"{self._task} serves shard {self._shard} no more")
                now = self._feed
                # When the job is over, and the other copy has ended with it, nobody is there to say so in a view.
                left = self._over and (now is None or now.broken.is_set())
                alone = self._standing.acknowledges_alone
                if left or (alone and (now is None or now.has_room)):
                    return
                if now is not feed:
                    # It began with all there was when it began, which is later than what is to be secured.
                    feed, number = now, 1
                if feed is None or feed.broken.is_set():
                    self._changed.wait(LOOK_S)
            if feed is not None and not feed.broken.is_set():
                if alone:
                    feed.wait(feed.confirmed + 1, lambda: self._host is host)
                elif feed.wait(number, lambda: self._host is host):
                    return
            if channel.peer_gone():
                raise UnavailableError(None, None, f"{channel.peer} is gone")
            if time.monotonic() - spoken >= SPEAK_S:
                spoken = time.monotonic()
                what = f"{self._other} to have its copy of shard {self._shard}, or {self._task} to be told to go alone"
                channel.send(Frame(kinds.WAIT, (what,)))

    def _note(self, host: HostedParameters) -> tuple[Feed | None, int]:
        """Sends the other copy what has happened since; the number of the frame that it has to confirm."""
        with host.lock:
            if self._host is not host:
                return None, 0
            noted, feed = self._updater.take(), self._feed
            if feed is None or feed.broken.is_set():
                return feed, 0
            memory = host.memory.words()
            host.updates.accounts.flush()
            if noted.replaced:
                feed.replace(self._state(), memory)
            elif noted.updates:
                for update in noted.updates[:-1]:
                    feed.update(update, None)
                feed.update(noted.updates[-1], memory)
            elif memory != self._told:
                feed.remember(memory)
            self._told = memory
            return feed, feed.given

    def _state(self) -> State:
        state = self._updater.state()
        return State(self._updater.values(None), list(state), list(state.values()))

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
                    self._apply(frame, channel)
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

    def _apply(self, frame: Frame, channel: Channel) -> None:
        updater = self._updater.inner
        try:
            match frame.kind, frame.header:
                case kinds.STATE, (int(), [*names], memory):
                    values = len(frame.tensors) - len(names)
                    updater.fill(frame.tensors[:values], frame.tensors[values:] or None)
                    self._memory, self._ahead = memory, []
                case kinds.UPDATE_SECOND, (int(), [*changes], [*knobs], float(scale), memory):
                    gradients = len(frame.tensors) - len(changes)
                    changed = dict(zip(changes, frame.tensors[gradients:], strict=True))
                    self._ahead.append(
                        Update(gradients=frame.tensors[:gradients], changes=changed, knobs=knobs, scale=scale)
                    )
                    if memory is not None:
                        ahead, self._ahead = self._ahead, []
                        for one in ahead:
                            updater.apply(one.gradients, one.changes, (), one.knobs, one.scale)
                        self._memory = memory
                case kinds.MEMORY, (int(), memory):
                    self._memory = memory
                case kinds.NEW_VIEW, (int(), words):
                    view = from_words(words)
                    with self._changed:
                        if view is not None and self._standing.me in view:
                            self._learn(view)
                case _:
                    raise bad_header(frame, channel.peer)
        except Exception as error:
            # It has confirmed what it cannot do: what it has is of no use any more.
            _log.exception("%s drops its copy of shard %d: it could not follow", self._task, self._shard)
            with self._changed:
                me = Copy(self._standing.me.ps, new_generation())
                self._standing = replace(self._standing, me=me)
                self._renew()
            raise UnavailableError(None, None, f"{self._task} could not follow") from error

    def _renew(self) -> None:
        """Drops what it has. `_changed` and `_taking` are held."""
        before, feed = self._host, self._feed
        self._steps += before.steps
        self._feed = None
        if feed is not None:
            feed.end()
        self._begin()
        before.workers.end_talks()
        self._changed.notify_all()

    def _learn(self, view: View) -> None:
        """Takes note of a view in which this copy is no primary. `_changed` and `_taking` are held."""
        before, self._standing = self._standing, learn(self._standing, view, new_generation())
        if self._standing.me != before.me:
            _log.warning("%s drops its copy of shard %d of %r: %s", self._task, self._shard, self._set, view)
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
                _log.info("%s: shard %d of %r: %s", self._task, self._shard, self._set, error.message)
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

    def _follow(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._fed is None)
            follows = self._standing.follows
            if self._changed.wait_for(lambda: self._closed or self._fed is not None, self._grace_s if follows else 0):
                return
        if follows:
            log = _log.info if self._over else _log.warning
            log("%s lost %s, the primary of shard %d of %r", self._task, self._other, self._shard, self._set)
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
        self._host.workers.leave_absent()
        if view is None or not self._host.turns.wait_filled(LOOK_S):
            return
        if standing.pairing:  # whether it is a pair is not known
            self._ask(Wants.PAIR, self._feed.target if self._feed is not None else None)
            return
        paired = view.second is not None
        feed = self._dial(view, paired)
        if feed is None:
            if paired and self._standing.view == view and not self._standing.resigned:
                log = _log.info if self._over else _log.warning
                log("shard %d of %r has no second copy now: %s is away", self._shard, self._set, self._other)
                self._ask(Wants.ALONE)
            else:
                self._pause(PAUSE_S)
            return
        feed.fill()
        if not paired:
            self._pair(feed)
        if not feed.broken.is_set() and self._standing.serves:
            _log.warning("%s has a copy of shard %d of %r now", self._other, self._shard, self._set)
        while self._standing.serves and not self._closed and not feed.broken.wait(LOOK_S):
            feed.look()
            self._host.workers.leave_absent()
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
            if self._memory is not None:
                self._host.memory.take_over(self._memory, COME_S)
                _log.warning(
                    "%s serves shard %d of %r now, from update %d on: %s",
                    self._task,
                    self._shard,
                    self._set,
                    self._host.version,
                    self._standing.view,
                )
            if self._over:
                self._host.job_over()
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
        host = self._host
        with host.lock:
            self._updater.take()
            memory = self._told = host.memory.words()
            feed = Feed(channel, other, self._state(), memory)
            with self._changed:
                self._feed = feed
                self._changed.notify_all()
        return feed

    def _pair(self, feed: Feed) -> None:
        """Makes the other copy the second. From here on nothing counts that it does not have."""
        with self._changed:
            self._standing = replace(self._standing, pairing=True)
        with self._host.lock:
            number = feed.given
        if not feed.wait(number, lambda: not self._closed):
            with self._changed:  # the witness was not asked
                self._standing = replace(self._standing, pairing=False)
                self._changed.notify_all()
            return
        self._ask(Wants.PAIR, feed.target)
        view = self._standing.view
        if view is not None and view.second == feed.target:
            with self._host.lock:
                feed.tell(view)
