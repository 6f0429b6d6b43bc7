"""A step that a master elsewhere asked this task to take part in.

A step that may resume outlives its channel. What it has sent and its master may not have received, it keeps; what it
waits for, it goes on waiting for when its master has come back on another channel (`ServedStep.attach`). So nothing of
it happens twice, however often the connection is lost: it is always the same step, not a repetition.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.kinds import DONE, GIVE_UP, RESUMED, TENSORS, TRANSFER
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
)
from headwater.graph.master.peers import Confirm
from headwater.graph.master.protocol import WANTS_VALUES, transfer_of
from headwater.graph.runtime.first_reads import FirstReads
from headwater.graph.runtime.step import Step, Stopped
from headwater.graph.runtime.task import TaskRuntime

Push = Callable[[str, Frame, Callable[[], None] | None], Confirm]
"""See `headwater.graph.master.peers.Peers.push`."""

Secured = Callable[[Callable[[str], None]], None]
"""Returns once another copy of the task has all that an answer says. What it is given is called now and then with what
is waited for, in words; what that raises ends the wait.

Raises:
  UnavailableError: this copy does not serve any more.
"""


_log = logging.getLogger("headwater")

#: How long a step has waited for others that does not go on by itself, as far as is known, in seconds.
_STANDS_S: Final = 0.5

_LOST = UnavailableError, CancelledError
"""What using a channel raises that was lost: the first time, and when it is closed here for that."""


class InMidst(NamedTuple):
    """Where in its plan a step was when its task ended.

    Attributes:
      plan: its number.
      stopped: where in it.
      stash: the transfers that have come from its master, and were not taken yet.
      seconds: until its deadline; None without one.
    """

    plan: int
    stopped: Stopped
    stash: Mapping[int, Sequence[Any]]
    seconds: float | None


class LeftStep(NamedTuple):
    """What is left of a step that is over, whose master may not have its answer, or that is to go on.

    Attributes:
      session, number: of the step.
      came: the transfers that have come from its master.
      dropped: how many frames its master has had, and confirmed.
      kept: the frames after those.
      midst: where it is to go on; None where it is over.
    """

    session: str
    number: int
    came: Sequence[int]
    dropped: int
    kept: Sequence[Frame]
    midst: InMidst | None


class ServedStep(Step):
    """A step of a master elsewhere.

    Args:
      channel: to the master; the step has it for itself.
      master: full name of the master's task.
      runtime: this task's.
      push: sends a transfer to another task; see `headwater.graph.master.peers.Peers.push`.
      secured: see `Secured`; None where there is no other copy.

    Attributes:
      channel: the one that the step uses now.
      patience_s: how long it waits for its master to come back, in seconds.
      on_lost: called when it waits for that.
      gives_values: whether the values of the next run are to go with the answer, so that it has to follow the update.
      answered: whether its end was told, or is kept for its master.
      unconfirmed: tasks that may not have what was sent to them, each with what waits until it has.
      over: whether nothing of it runs any more.
      put_off: whether it was stopped since its task ends.
      goes_on_with: the plan in whose midst it was put off, to go on in the task's next life; None where it was not.
      lacking: whether another task may lack what it was sent.
    """

    patience_s: float = 0.0
    on_lost: Callable[[], None] | None = None
    answered: bool = False
    gives_values = False
    over = False
    put_off = False
    goes_on_with: int | None = None
    # What few steps have stands here rather than in `__init__`, which each of them calls.
    lacking = False
    _sender: threading.Thread | None = None
    _closing: tuple[int, Sequence[Any]] | None = None
    # Of a step that resumes: how many frames there were before those that it keeps.
    _dropped = 0
    _away_since: float | None = None
    _changed: threading.Condition | None = None
    # What its master reads ahead, of which version it has what it has sent already, and that.
    _reads: FirstReads | None = None
    _read = WANTS_VALUES
    _given: Sequence[Any] = ()

    def __init__(
        self,
        number: int,
        session: str,
        deadline: float | None,
        channel: Channel,
        master: str,
        runtime: TaskRuntime,
        push: Push,
        secured: Secured | None = None,
    ) -> None:
        super().__init__(number, session, deadline)
        self._secured = secured
        self.channel: Channel = channel
        self._master = master
        self._runtime = runtime
        self._push = push
        self._stash: dict[int, Sequence[Any]] = {}
        self.unconfirmed: list[tuple[str, Confirm]] = []
        # Of a step that resumes: the transfers that have come, and what was sent that the master may lack.
        self._came: set[int] = set()
        self._kept: list[Frame] = []
        self._sending = threading.Lock()

    # What its master reads ahead --------------------------------------------------------------------------------------

    def read_ahead(self, reads: FirstReads, version: int, given: Sequence[Any]) -> None:
        """The master wants the values that the plan's next run reads, and has perhaps read those of this run ahead.

        Args:
          reads: what the plan reads first.
          version: of the values that the master has; `WANTS_VALUES` where it has none.
          given: the transfer that it has computed from these.

        Raises:
          InvalidArgumentError: that is not what the plan awaits.
        """
        awaited = len(reads.exchange.given.tensors) if version != WANTS_VALUES else 0
        if len(given) != awaited:
            raise InvalidArgumentError(
                None,
                None,
                f"step {self.number} of {self._master} brings {len(given)} tensors after its feeds, not {awaited}",
            )
        self.gives_values, self.has_read_ahead = True, version != WANTS_VALUES
        self._reads, self._read, self._given = reads, version, given

    def take_given(self) -> Sequence[Any] | None:
        reads, version, given = self._reads, self._read, self._given
        assert reads is not None
        self.has_read_ahead, self._given = False, ()
        kept = reads.current(version)
        if kept is None:
            # Others update in between: the next run's values would be outdated, too.
            self._reads, self.gives_values = None, False
            return None
        self._came.add(reads.exchange.given.transfer)
        return [*kept, *given]

    # Transfers --------------------------------------------------------------------------------------------------------

    def send(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination != self._master:
            frame = Frame(TRANSFER, (self.session, self.number, transfer), tensors)
            if self._secured is not None:
                self._await_second(self._secured)
            check = self._check_and_look if self.resumes else None
            self.unconfirmed.append((destination, self._push(destination, frame, check)))
            return
        frame = Frame(TENSORS, (self.number, transfer), tensors)
        if self._sender is not None:
            self.settle()
        if self.channel.sends_at_once(_nbytes(tensors)):
            self._put(frame)
        else:
            # The master may be sending as much to us at this moment, and neither would get to receive.
            self._sender = threading.Thread(target=self._send_slowly, args=(frame,), daemon=True)
            self._sender.start()

    def send_last(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination == self._master and self.channel.sends_at_once(_nbytes(tensors)):
            self._closing = transfer, tensors
        else:
            self.send(destination, transfer, tensors)

    def _send_slowly(self, frame: Frame) -> None:
        try:
            self._put(frame)
        except _LOST as error:
            self.cancel(error.message)

    def settle(self) -> None:
        """Waits until all that was sent has left."""
        if self._sender is not None:
            self._sender.join()
            self._sender = None

    def confirm(self) -> None:
        """Waits until all tasks have what this step has sent them.

        Raises:
          UnavailableError: one is lost, and the step does not resume.
          CancelledError, DeadlineExceededError: one is away; see `check`.
        """
        while self.unconfirmed:
            task, confirm = self.unconfirmed[0]
            self.waits_for = f"{task} to have what it was sent", time.monotonic()
            try:
                confirm(self._check_and_look)
            except BaseException:
                self.lacking = True
                raise
            finally:
                self.waits_for = None
                del self.unconfirmed[0]

    def _check_and_look(self) -> None:
        """As `check`; and looks whether the master is there, of which no frame is awaited while another task is."""
        channel = self.channel
        if self.resumes and channel.peer_gone():
            self._still_away(channel)
        self.check()

    def confirm_rest(self) -> None:
        """The same at the end of the step, also where it has failed; what cannot be sent is logged."""
        while self.unconfirmed:
            try:
                self.confirm()
            except OpError as error:
                _log.debug("step %d of %s: %s", self.number, self._master, error)

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        if self.unconfirmed:  # what is waited for may need them
            condition.release()
            try:
                self.confirm()
            finally:
                condition.acquire()
        super().wait_until(condition, ready, what)

    def recv(self, source: str, transfer: int) -> Sequence[Any]:
        if source != self._master:
            return self._runtime.rendezvous.take(self, transfer, source)
        if self.unconfirmed:
            self.confirm()
        while transfer not in self._stash:
            channel = self.channel
            try:
                frame = channel.recv()
            except _LOST as error:
                self._await_return(channel, error)
            else:
                self._take(frame)
        return self._stash.pop(transfer)

    def _take(self, frame: Frame) -> None:
        if self.resumes and frame.kind == GIVE_UP:
            raise CancelledError(None, None, f"{self._master} has given up step {self.number}")
        if frame.kind != TENSORS:
            raise bad_header(frame, self._master)
        step, transfer, received = transfer_of(frame, self._master)
        if step != self.number:
            raise bad_header(frame, self._master)
        if self.resumes:
            if received > self._dropped:
                self._drop(received)
            if transfer in self._came:  # it came before, on a channel that was lost
                return
            self._came.add(transfer)
        self._stash[transfer] = frame.tensors

    # The end ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def without_channel(
        number: int, session: str, master: str, runtime: TaskRuntime, push: Push, secured: Secured | None = None
    ) -> ServedStep:
        """A step whose master has lost its channel, and may come back on another one."""
        channel, _ = memory_pair()
        channel.close()
        step = ServedStep(number, session, None, channel, master, runtime, push, secured)
        step.resumes = True
        return step

    @staticmethod
    def of_former_life(known: LeftStep, master: str, runtime: TaskRuntime, push: Push) -> ServedStep:
        """A step that is over, whose master may ask for its answer again, or that is to go on."""
        step = ServedStep.without_channel(known.number, known.session, master, runtime, push)
        step._came, step._dropped, step._kept = set(known.came), known.dropped, list(known.kept)
        if known.midst is None:
            step.answered = step.over = True
        else:
            step._stash = dict(known.midst.stash)
            step.deadline = None if known.midst.seconds is None else time.monotonic() + known.midst.seconds
        return step

    def answer(self, results: Sequence[Any]) -> None:
        """Tells the master that the step is done."""
        self.answered = True
        header, tensors = (self.number,), [np.asarray(value) for value in results]
        if self._closing is not None:
            transfer, last = self._closing
            header, tensors = (self.number, transfer, len(last)), [*tensors, *last]
        if self._reads is not None:
            with contextlib.suppress(FailedPreconditionError):  # another session has thrown the values away
                version, values = self._reads.read()
                header = (*(*header, 0, 0)[:3], len(values), version)
                tensors = [*tensors, *values]
        self._put(Frame(DONE, header, tensors))

    def answer_early(self, results: Sequence[Any]) -> None:
        """The same while an update is left to do, if that can be said without waiting.

        With several sessions it gains nothing: the master's next step would keep this one from its core while the
        others wait for the update.
        """
        alone = self._runtime.session_count() == 1
        if alone and not self.unconfirmed and self.channel.sends_at_once(_nbytes(results)):
            if self._sender is not None:
                self.settle()
            try:
                self.answer(results)
            except _LOST as error:
                _log.debug("step %d: %s", self.number, error.message)  # the next frame that is awaited says so

    def fail(self, error: BaseException) -> None:
        """Tells the master why there is no answer."""
        self.answered = True
        self._put(error_frame(self.number, error, self._runtime.task))

    def end(self) -> None:
        """Nothing of the step runs any more. What it has kept stays until `attach` or the master's next step."""
        with self._sending:
            self.over = True
        if self._changed is not None:
            with self._changed:
                self._changed.notify_all()

    def stands(self) -> bool:
        """Whether it has waited for a while, and for more than that other tasks have what it has sent."""
        waits = self.waits_for
        return waits is not None and not self.unconfirmed and time.monotonic() - waits[1] >= _STANDS_S

    def ended(self) -> None:
        if not (self.put_off and self.stopped is not None):  # it may go on; see `give_up`
            super().ended()

    def give_up(self) -> None:
        """It was put off, and does not go on."""
        self.stopped = None
        self.ended()

    def put_it_off(self, reason: str) -> None:
        """The task ends: the step is to wait for nothing any more. See `StepService.hold`."""
        self.put_off = True
        self.cancel(reason)
        self.channel.break_off(reason)  # wakes who waits for its master

    def left(self) -> LeftStep:
        """What the task's next life has to know of it, once nothing of it runs."""
        midst, plan = None, self.goes_on_with
        if plan is not None:
            assert self.stopped is not None
            midst = InMidst(plan, self.stopped, self._stash, self.seconds_left())
        return LeftStep(self.session, self.number, sorted(self._came), self._dropped, list(self._kept), midst)

    def delivered(self) -> bool:
        """Whether what it has sent has gone to its master, by a channel that is not lost."""
        with self._sending:
            return not self.channel.peer_gone()

    # A channel that is lost -------------------------------------------------------------------------------------------

    def _put(self, frame: Frame) -> None:
        if self._secured is not None:
            try:
                self._await_second(self._secured)
            except _LOST as error:
                if not self.resumes:
                    raise
                # The other copy has the step, and answers.
                _log.debug("step %d does not answer %s: %s", self.number, self._master, error.message)
                return
        if not self.resumes:
            self.channel.send(frame)
            return
        with self._sending:
            self._kept.append(frame)
            try:
                self.channel.send(frame)
            except _LOST as error:
                _log.debug("step %d keeps a frame for %s's return: %s", self.number, self._master, error.message)

    def _await_second(self, secured: Secured) -> None:
        """Waits until another copy of the task has all that the next frame says."""
        began = time.monotonic()

        def waits(what: str) -> None:
            self.waits_for = what, began
            if not self.resumes and self.channel.peer_gone():
                raise UnavailableError(None, None, f"{self._master}, which asked for step {self.number}, is gone")

        try:
            secured(waits)
        finally:
            self.waits_for = None

    def _drop(self, received: int) -> None:
        """The master has ``received`` of this step's frames: they need not be kept."""
        with self._sending:
            del self._kept[: max(0, received - self._dropped)]
            self._dropped = max(received, self._dropped)

    def _await_return(self, lost: Channel, error: OpError) -> None:
        """Waits until the master has come back on another channel than ``lost``; raises ``error`` when it does not."""
        if not self.resumes:
            raise error
        if self.on_lost is not None:
            self.on_lost()
        give_up_at = time.monotonic() + self.patience_s
        if self.deadline is not None:
            give_up_at = min(give_up_at, self.deadline)
        changed = self._condition()
        with changed:
            self._waiting.add(changed)
            self.waits_for = f"{self._master} to come back: {error.message}", time.monotonic()
            try:
                while self.channel is lost:
                    if self._cancelled is not None:
                        raise CancelledError(None, None, self._cancelled)
                    left = give_up_at - time.monotonic()
                    if left <= 0:
                        raise error
                    changed.wait(left)
            finally:
                self._waiting.discard(changed)
                self.waits_for = None

    def _condition(self) -> threading.Condition:
        with self._sending:
            if self._changed is None:
                self._changed = threading.Condition()
            return self._changed

    def away(self) -> bool:
        channel = self.channel
        if not channel.peer_gone():
            return False
        while self.resumes:  # what it sent before it went, which may be that it gives the step up
            try:
                frame = channel.recv(0)
            except (*_LOST, DeadlineExceededError):
                return self._still_away(channel)
            self._take(frame)
        raise CancelledError(None, None, f"{self._master}, which asked for step {self.number}, is gone")

    def _still_away(self, lost: Channel) -> bool:
        if self.channel is not lost:
            self._away_since = None
            return False
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            if self.on_lost is not None:
                self.on_lost()
        if now - self._away_since >= self.patience_s:
            raise CancelledError(None, None, f"{self._master}, which asked for step {self.number}, has not come back")
        return True

    def attach(self, channel: Channel, received: int, on_lost: Callable[[], None]) -> None:
        """The master is back on ``channel``; returns when the step has ended.

        Args:
          received: how many transfers of this step have come to the master.
          on_lost: called when it waits for the master's return once more.
        """
        changed, former = self._condition(), self.on_lost
        self.channel.break_off(f"{self._master} came back on another connection")  # wakes who uses it
        self._drop(received)
        with self._sending:
            self.channel, self.on_lost, self._away_since = channel, on_lost, None
            with contextlib.suppress(*_LOST):  # it has to come back once more
                channel.send(Frame(RESUMED, (self.number, len(self._came), len(self._kept)), ()))
                for frame in self._kept:
                    channel.send(frame)
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()
        if former is not None:  # a step that has not looked meanwhile has not said so
            former()
        with changed:
            while not self.over:
                changed.wait()


def _nbytes(tensors: Sequence[Any]) -> int:
    return sum([tensor.nbytes for tensor in tensors])
