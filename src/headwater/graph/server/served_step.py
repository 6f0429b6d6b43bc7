"""This task's part of a step that is run for a master in another process.

A resumable step does not end when its channel is lost. It keeps the frames that its master may not have received, and
waits until the master has reconnected on another channel (`ServedStep.attach`). However often the connection is lost,
the step is resumed and never repeated, so its updates are applied once.
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
from headwater.graph.master.protocol import NO_TRANSFER, WANTS_VALUES, transfer_of
from headwater.graph.runtime.first_reads import FirstReads
from headwater.graph.runtime.step import Step, Stopped
from headwater.graph.runtime.task import TaskRuntime

Push = Callable[[str, Frame, Callable[[], None] | None], Confirm]
"""See `headwater.graph.master.peers.ClusterPeers.push`."""

Secured = Callable[[Callable[[str], None]], None]
"""A function that returns once the backup has all changes that the next answer depends on. While it waits, it calls its
argument repeatedly with a description of the wait; an exception raised by the argument ends the wait.

Raises:
  UnavailableError: this replica is no longer the primary.
"""


_log = logging.getLogger("headwater")

#: A drain gives running steps time to end. If a step has waited for other tasks for this long, in seconds, the drain
#: suspends it immediately: the step probably needs an event that will not happen before this task ends.
_STALLED_AFTER_S: Final = 0.5

_LOST = UnavailableError, CancelledError
"""Errors of a lost channel: the first use after the loss raises UnavailableError and closes this end, so that later
uses raise CancelledError."""


class ResumePoint(NamedTuple):
    """The point in its plan that a step had reached when its task ended.

    Attributes:
      plan: number of the plan.
      stopped: position in the plan, with the intermediate values.
      stash: transfers received from the step's master and not yet used.
      seconds: time until the step's deadline; None without a deadline.
    """

    plan: int
    stopped: Stopped
    stash: Mapping[int, Sequence[Any]]
    seconds: float | None


class DepositedStep(NamedTuple):
    """A step in the state that a draining task deposits: an ended step whose answer the master may lack, or a suspended
    step.

    Attributes:
      session, number: identify the step.
      received: numbers of the transfers received from the step's master.
      dropped: number of frames that the step's master has acknowledged.
      frames: the frames sent after the acknowledged ones.
      resume_point: the point at which it resumes; None if it has ended.
    """

    session: str
    number: int
    received: Sequence[int]
    dropped: int
    frames: Sequence[Frame]
    resume_point: ResumePoint | None


class ServedStep(Step):
    """A step run for a master in another process.

    Args:
      number: the number of the step in its session.
      session: the session of the step.
      deadline: the time of `time.monotonic` at which the step fails; None for no limit.
      channel: the channel to the master; used by this step only.
      master: full name of the master's task.
      runtime: this task's runtime.
      push: sends a transfer to another task; see `headwater.graph.master.peers.ClusterPeers.push`.
      secured: see `Secured`; None without a backup.

    Attributes:
      channel: the step's present channel.
      patience_s: how long the step waits for its master to reconnect, in seconds.
      on_lost: called when the step starts to wait for the master.
      gives_values: whether the answer includes the variables' values for the next run. As the update changes these
        values, such an answer can only be sent after the update.
      answered: whether its answer or error was sent, or is kept until its master reconnects.
      unconfirmed: tasks that have not acknowledged a transfer of this step, each with a function that waits for the
        acknowledgement.
      over: whether the step has ended on this task.
      suspended: whether the step was suspended because its task drains.
      resume_plan: number of the plan that the next incarnation resumes for this step; None if the step is not
        suspended, or cannot resume.
      may_lack_transfers: whether a transfer of this step to another task is possibly lost.
    """

    patience_s: float = 0.0
    on_lost: Callable[[], None] | None = None
    answered: bool = False
    gives_values = False
    over = False
    suspended = False
    resume_plan: int | None = None
    # Rarely used attributes are class attributes: `__init__` runs for each step and has to be short.
    may_lack_transfers = False
    _sender: threading.Thread | None = None
    _closing: tuple[int, Sequence[Any]] | None = None
    # For resumable steps: number of frames before those in `_kept`.
    _dropped = 0
    _away_since: float | None = None
    _changed: threading.Condition | None = None
    # Read-ahead (see `read_ahead`): the variables; the version of the values that the master has; the transfer that the
    # master computed from these values.
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
        # For resumable steps: numbers of the received transfers, and sent frames that the master may not have received.
        self._received: set[int] = set()
        self._kept: list[Frame] = []
        self._sending = threading.Lock()

    # Values that the master reads ahead -------------------------------------------------------------------------------

    def read_ahead(self, reads: FirstReads, version: int, given: Sequence[Any]) -> None:
        """Records that the master wants the answer to include the values for the plan's next run. The master may
        already have computed this run's transfer, from values that it received with the previous answer.

        Args:
          reads: the plan's first reads.
          version: the version of the master's values; `WANTS_VALUES` if it has none.
          given: the transfer that the master has computed from its values; empty if it has none.

        Raises:
          InvalidArgumentError: the plan expects another number of tensors.
        """
        awaited = len(reads.exchange.reply.tensors) if version != WANTS_VALUES else 0
        if len(given) != awaited:
            raise InvalidArgumentError(
                f"{self._master} sent {len(given)} precomputed tensors with step {self.number}; "
                f"its plan expects {awaited}"
            )
        self.gives_values, self.has_read_ahead = True, version != WANTS_VALUES
        self._reads, self._read, self._given = reads, version, given

    def pop_given(self) -> Sequence[Any] | None:
        reads, version, given = self._reads, self._read, self._given
        assert reads is not None
        self.has_read_ahead, self._given = False, ()
        # The versions are compared under the lock, and this run counts as having read the variables at that moment.
        # Updates after that moment do not matter, as for any other read.
        current = reads.current(version)
        if current is None:
            # Another worker has updated the variables between two runs of this master. Another update is likely before
            # the next run, so values for that run would be outdated, too: do not send values.
            self._reads, self.gives_values = None, False
            return None
        # The transfer was part of the RUN frame. Count it as received, so that both ends agree on the number of
        # transfers when the step resumes.
        self._received.add(reads.exchange.reply.transfer)
        return [*current, *given]

    # Transfers --------------------------------------------------------------------------------------------------------

    def send(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination != self._master:
            frame = Frame(TRANSFER, (self.session, self.number, transfer), tensors)
            # The receiver may act on the transfer, so the backup must first have all changes on which the transfer
            # depends. Otherwise a failover could undo them.
            if self._secured is not None:
                self._await_backup(self._secured)
            check = self._check_with_master if self.resumes else None
            self.unconfirmed.append((destination, self._push(destination, frame, check)))
            return
        frame = Frame(TENSORS, (self.number, transfer), tensors)
        if self._sender is not None:
            self.wait_until_sent()
        if self.channel.sends_at_once(_nbytes(tensors)):
            self._put(frame)
        else:
            # The master may be sending a large frame to this task at the same time. If both sides sent before
            # receiving, they would deadlock, so a thread sends while this step receives.
            self._sender = threading.Thread(target=self._send_slowly, args=(frame,), daemon=True)
            self._sender.start()

    def send_last(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination == self._master and self.channel.sends_at_once(_nbytes(tensors)):
            # The last transfer travels in the DONE frame, which saves one frame and one wake-up of the master.
            self._closing = transfer, tensors
        else:
            self.send(destination, transfer, tensors)

    def _send_slowly(self, frame: Frame) -> None:
        try:
            self._put(frame)
        except _LOST as error:
            self.cancel(error.message)

    def wait_until_sent(self) -> None:
        """Waits until all frames have been passed to the channel."""
        if self._sender is not None:
            self._sender.join()
            self._sender = None

    def confirm(self) -> None:
        """Waits until all tasks have acknowledged this step's transfers.

        Raises:
          UnavailableError: a task is lost, and the step is not resumable.
          CancelledError, DeadlineExceededError: the step was cancelled or its deadline passed while a task was
            disconnected; see `check`.
        """
        while self.unconfirmed:
            task, confirm = self.unconfirmed[0]
            self.waits_for = f"{task} to acknowledge this step's transfers", time.monotonic()
            try:
                confirm(self._check_with_master)
            except BaseException:
                self.may_lack_transfers = True
                raise
            finally:
                self.waits_for = None
                del self.unconfirmed[0]

    def _check_with_master(self) -> None:
        """Calls `check` during a wait for another task, and checks whether the master is connected. Without this, the
        loss of the master would go unnoticed during the wait, in which nothing is received from the master."""
        channel = self.channel
        if self.resumes and channel.peer_gone():
            self._is_master_still_away(channel)
        self.check()

    def confirm_rest(self) -> None:
        """Like `confirm`, at the end of the step, even if the step has failed; errors are only logged."""
        while self.unconfirmed:
            try:
                self.confirm()
            except OpError as error:
                _log.debug("step %d of %s: %s", self.number, self._master, error)

    def wait_until(self, condition: threading.Condition, ready: Callable[[], bool], what: str) -> None:
        if self.unconfirmed:  # the awaited event may depend on these transfers
            condition.release()
            try:
                self.confirm()
            finally:
                condition.acquire()
        super().wait_until(condition, ready, what)

    def recv(self, source: str, transfer: int) -> Sequence[Any]:
        if source != self._master:
            return self._runtime.rendezvous.pop(self, transfer, source)
        # First wait until the other tasks have this step's transfers, resending them if needed: the master may be
        # waiting for a task that lacks one.
        if self.unconfirmed:
            self.confirm()
        while transfer not in self._stash:
            channel = self.channel
            try:
                frame = channel.recv()
            except _LOST as error:
                self._await_return(channel, error)
            else:
                self._handle_frame(frame)
        return self._stash.pop(transfer)

    def _handle_frame(self, frame: Frame) -> None:
        if self.resumes and frame.kind == GIVE_UP:
            raise CancelledError(f"{self._master} has abandoned step {self.number}")
        if frame.kind != TENSORS:
            raise bad_header(frame, self._master)
        step, transfer, received = transfer_of(frame, self._master)
        if step != self.number:
            raise bad_header(frame, self._master)
        if self.resumes:
            # A transfer from the master acknowledges earlier frames. Dropping them releases the values that they carry,
            # so that the update can overwrite the variables' buffers in place.
            if received > self._dropped:
                self._drop(received)
            if transfer in self._received:  # a duplicate of a transfer received on a lost channel
                return
            self._received.add(transfer)
        self._stash[transfer] = frame.tensors

    # End of the step --------------------------------------------------------------------------------------------------

    @staticmethod
    def without_channel(
        number: int, session: str, master: str, runtime: TaskRuntime, push: Push, secured: Secured | None = None
    ) -> ServedStep:
        """Creates a step for a master that has lost its channel and may reconnect."""
        channel, _ = memory_pair()
        channel.close()
        step = ServedStep(number, session, None, channel, master, runtime, push, secured)
        step.resumes = True
        return step

    @staticmethod
    def of_previous_incarnation(known: DepositedStep, master: str, runtime: TaskRuntime, push: Push) -> ServedStep:
        """Restores a step of the previous incarnation: an ended step, whose master may ask for the answer again, or a
        step to resume."""
        step = ServedStep.without_channel(known.number, known.session, master, runtime, push)
        step._received, step._dropped, step._kept = set(known.received), known.dropped, list(known.frames)
        if known.resume_point is None:
            step.answered = step.over = True
        else:
            step._stash = dict(known.resume_point.stash)
            step.deadline = (
                None if known.resume_point.seconds is None else time.monotonic() + known.resume_point.seconds
            )
        return step

    def answer(self, results: Sequence[Any]) -> None:
        """Sends the results to the master."""
        self.answered = True
        header, tensors = (self.number,), [np.asarray(value) for value in results]
        if self._closing is not None:
            transfer, last = self._closing
            header, tensors = (self.number, transfer, len(last)), [*tensors, *last]
        if self._reads is not None:
            with contextlib.suppress(FailedPreconditionError):  # another session has discarded the values
                # Read after the update, because the next run must use the updated values.
                version, values = self._reads.read()
                header = (*(*header, NO_TRANSFER, 0)[:3], len(values), version)
                tensors = [*tensors, *values]
        self._put(Frame(DONE, header, tensors))

    def answer_early(self, results: Sequence[Any]) -> None:
        """Sends the answer before the step's last update, if that is possible without waiting.

        Does nothing if the task has several sessions, because nothing would be gained: the master would start its next
        step early, and that step would compete with this update for a core, while the other sessions wait for the
        update.
        """
        alone = self._runtime.session_count() == 1
        if alone and not self.unconfirmed and self.channel.sends_at_once(_nbytes(results)):
            if self._sender is not None:
                self.wait_until_sent()
            try:
                self.answer(results)
            except _LOST as error:
                _log.debug("step %d: %s", self.number, error.message)  # the next receive raises this error

    def fail(self, error: BaseException) -> None:
        """Sends the error to the master."""
        self.answered = True
        self._put(error_frame(self.number, error, self._runtime.task))

    def end(self) -> None:
        """Marks the step as ended.

        Its kept frames are discarded when `attach` learns that the master has them, when the master starts its next
        step, or when the time in which the master may reconnect has passed.
        """
        with self._sending:
            self.over = True
        if self._changed is not None:
            with self._changed:
                self._changed.notify_all()

    def is_stalled(self) -> bool:
        """Returns whether the step has waited at least `_STALLED_AFTER_S` for something other than acknowledgements."""
        waits = self.waits_for
        return waits is not None and not self.unconfirmed and time.monotonic() - waits[1] >= _STALLED_AFTER_S

    def call_end_callbacks(self) -> None:
        if not (self.suspended and self.stopped is not None):  # else it may resume; see `end_suspended`
            super().call_end_callbacks()

    def end_suspended(self) -> None:
        """Ends a suspended step that does not resume."""
        self.stopped = None
        self.call_end_callbacks()

    def interrupt_waits(self, reason: str) -> None:
        """Interrupts every wait of the step, because its task drains; see `StepService.suspend`."""
        self.suspended = True
        self.cancel(reason)
        self.channel.break_off(reason)  # wakes the thread that waits for its master

    def to_deposit(self) -> DepositedStep:
        """Returns the state for the task's next incarnation. The step must no longer be running."""
        resume_point, plan = None, self.resume_plan
        if plan is not None:
            assert self.stopped is not None
            resume_point = ResumePoint(plan, self.stopped, self._stash, self.seconds_left())
        return DepositedStep(
            self.session, self.number, sorted(self._received), self._dropped, list(self._kept), resume_point
        )

    def is_delivered(self) -> bool:
        """Returns whether all frames were sent to its master and the channel is not lost."""
        with self._sending:
            return not self.channel.peer_gone()

    # Lost channels ----------------------------------------------------------------------------------------------------

    def _put(self, frame: Frame) -> None:
        if self._secured is not None:
            try:
                self._await_backup(self._secured)
            except _LOST as error:
                if not self.resumes:
                    raise
                # This replica is no longer the primary. The new primary has the step, and answers the master.
                _log.debug("step %d does not answer %s: %s", self.number, self._master, error.message)
                return
        if not self.resumes:
            self.channel.send(frame)
            return
        with self._sending:
            # Keep the frame even if it is sent without an error: the socket may accept it just before the connection
            # breaks.
            self._kept.append(frame)
            try:
                self.channel.send(frame)
            except _LOST as error:
                _log.debug("step %d keeps a frame until %s reconnects: %s", self.number, self._master, error.message)

    def _await_backup(self, secured: Secured) -> None:
        """Waits until the backup has all changes that the next frame depends on."""
        began = time.monotonic()

        def waits(what: str) -> None:
            self.waits_for = what, began
            # Without this check, the loss of the backup could block this thread for a long time, although the master
            # has disconnected and no answer can be delivered.
            if not self.resumes and self.channel.peer_gone():
                raise UnavailableError(f"the connection to {self._master}, which requested step {self.number}, is lost")

        try:
            secured(waits)
        finally:
            self.waits_for = None

    def _drop(self, received: int) -> None:
        """Drops kept frames: the master has received the first ``received`` frames of this step."""
        with self._sending:
            del self._kept[: max(0, received - self._dropped)]
            self._dropped = max(received, self._dropped)

    def _await_return(self, lost: Channel, error: OpError) -> None:
        """Waits until the master has reconnected on another channel than ``lost``; raises ``error`` if it does not."""
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
            self.waits_for = f"{self._master} to reconnect: {error.message}", time.monotonic()
            try:
                while self.channel is lost:
                    if self._cancelled is not None:
                        raise CancelledError(self._cancelled)
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

    def is_master_away(self) -> bool:
        channel = self.channel
        if not channel.peer_gone():
            return False
        while self.resumes:  # frames sent before the connection was lost; one of them may be GIVE_UP
            try:
                frame = channel.recv(0)
            except (*_LOST, DeadlineExceededError):
                return self._is_master_still_away(channel)
            self._handle_frame(frame)
        raise CancelledError(f"the connection to {self._master}, which requested step {self.number}, is lost")

    def _is_master_still_away(self, lost: Channel) -> bool:
        if self.channel is not lost:
            self._away_since = None
            return False
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            if self.on_lost is not None:
                self.on_lost()
        if now - self._away_since >= self.patience_s:
            raise CancelledError(f"{self._master}, which requested step {self.number}, has not reconnected")
        return True

    def attach(self, channel: Channel, received: int, on_lost: Callable[[], None]) -> None:
        """Continues on ``channel``, on which the master has reconnected; returns when the step has ended.

        Args:
          channel: the new channel.
          received: number of frames of this step that the master has received.
          on_lost: called when the step has to wait for the master again.
        """
        changed, former = self._condition(), self.on_lost
        self.channel.break_off(f"{self._master} has reconnected on another connection")  # wakes the threads that use it
        self._drop(received)
        # Under the lock, so that `_put` cannot send a new frame before the kept frames.
        with self._sending:
            self.channel, self.on_lost, self._away_since = channel, on_lost, None
            with contextlib.suppress(*_LOST):  # the master has to reconnect again
                channel.send(Frame(RESUMED, (self.number, len(self._received), len(self._kept)), ()))
                for frame in self._kept:
                    channel.send(frame)
        for condition in list(self._waiting):
            with condition:
                condition.notify_all()
        if former is not None:  # the step may not have noticed the loss, so `on_lost` may not have been called
            former()
        with changed:
            while not self.over:
                changed.wait()


def _nbytes(tensors: Sequence[Any]) -> int:
    return sum([tensor.nbytes for tensor in tensors])
