"""The data plane of a task: runs its part of steps for masters elsewhere."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.errors import CancelledError, InvalidArgumentError, OpError, UnavailableError
from headwater.master.protocol import transfer_of
from headwater.runtime.executor import CompiledPlan
from headwater.runtime.step import Step
from headwater.runtime.task import TaskRuntime
from headwater.task.answers import bad_header, error_frame
from headwater.task.kinds import DONE, RUN, TENSORS, TRANSFER
from headwater.telemetry.step_stats import StepTrace
from headwater.telemetry.watchdog import ProgressWatchdog
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")

Push = Callable[[str, Frame], None]

_LOOK_S = 0.005


class ServedStep(Step):
    """A step that a master elsewhere asked this task to take part in.

    Args:
      channel: to the master; the step has it for itself.
      master: full name of the master's task.
      runtime: this task's.
      push: sends a frame to another task.
    """

    def __init__(
        self,
        number: int,
        session: str,
        deadline: float | None,
        channel: Channel,
        master: str,
        runtime: TaskRuntime,
        push: Push,
    ) -> None:
        super().__init__(number, session, deadline)
        self._channel = channel
        self._master = master
        self._runtime = runtime
        self._push = push
        self._stash: dict[int, Sequence[Any]] = {}
        self._sender: threading.Thread | None = None
        self._closing: tuple[int, Sequence[Any]] | None = None
        self.answered = False

    def send(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination != self._master:
            self._push(destination, Frame(TRANSFER, (self.session, self.number, transfer), tensors))
            return
        frame = Frame(TENSORS, (self.number, transfer), tensors)
        self.settle()
        if self._channel.sends_at_once(sum(tensor.nbytes for tensor in tensors)):
            self._channel.send(frame)
        else:
            # The master may be sending as much to us at this moment, and neither would get to receive.
            self._sender = threading.Thread(target=self._send_slowly, args=(frame,), daemon=True)
            self._sender.start()

    def send_last(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination == self._master and self._channel.sends_at_once(sum(tensor.nbytes for tensor in tensors)):
            self._closing = transfer, tensors
        else:
            self.send(destination, transfer, tensors)

    def _send_slowly(self, frame: Frame) -> None:
        try:
            self._channel.send(frame)
        except (UnavailableError, CancelledError) as error:
            self.cancel(error.message)

    def settle(self) -> None:
        """Waits until all that was sent has left."""
        if self._sender is not None:
            self._sender.join()
            self._sender = None

    def answer(self, results: Sequence[Any]) -> None:
        """Tells the master that the step is done."""
        self.answered: bool = True
        header, tensors = (self.number,), [np.asarray(value) for value in results]
        if self._closing is not None:
            transfer, last = self._closing
            header, tensors = (self.number, transfer, len(last)), [*tensors, *last]
        self._channel.send(Frame(DONE, header, tensors))

    def answer_early(self, results: Sequence[Any]) -> None:
        """The same while an update is left to do, if that can be said without waiting.

        With several sessions it gains nothing: the master's next step would keep this one from its core while the
        others wait for the update.
        """
        alone = self._runtime.session_count() == 1
        if alone and self._channel.sends_at_once(sum(value.nbytes for value in results)):
            self.settle()
            with contextlib.suppress(UnavailableError, CancelledError):  # the next frame that is awaited says so
                self.answer(results)

    def recv(self, source: str, transfer: int) -> Sequence[Any]:
        if source != self._master:
            return self._runtime.rendezvous.take(self, transfer, source)
        while transfer not in self._stash:
            frame = self._channel.recv()
            if frame.kind != TENSORS:
                raise bad_header(frame, self._master)
            step, came = transfer_of(frame, self._master)
            if step != self.number:
                raise bad_header(frame, self._master)
            self._stash[came] = frame.tensors
        return self._stash.pop(transfer)

    def interrupted(self) -> bool:
        return self._channel.peer_gone()


class StepService:
    """Serves channels: each in a thread of its own, one step after the other.

    Args:
      runtime: the task's.
      push: sends a frame to another task.

    Attributes:
      steps: how many it has run.
      watchdog: is told of steps of training.
    """

    def __init__(self, runtime: TaskRuntime, push: Push, watchdog: ProgressWatchdog | None = None) -> None:
        self._runtime = runtime
        self._push = push
        self.steps = 0
        self._unanswered: set[ServedStep] = set()
        self.watchdog: ProgressWatchdog = watchdog or ProgressWatchdog(runtime.knows)

    def serve(self, channel: Channel, frame: Frame, other: Callable[[Frame], bool]) -> None:
        """Answers frames until the other end closes the channel.

        Args:
          channel: the channel; the caller closes it.
          frame: the first.
          other: takes frames of kinds that are not of steps; says whether it knew this one.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
          InvalidArgumentError: a frame cannot be understood.
        """
        trained: dict[str, str] = {}
        try:
            while True:
                if frame.kind == RUN:
                    self._run(channel, frame, trained)
                elif frame.kind == TRANSFER:
                    self._take_push(channel, frame)
                elif frame.kind != TENSORS and not other(frame):  # TENSORS are of a step that ended early
                    raise bad_header(frame, channel.peer)
                frame = channel.recv()
        finally:
            for session, worker in trained.items():
                self.watchdog.closed(worker, session)

    def answer_all(self, seconds: float) -> bool:
        """Waits until every step has been answered, but for those that wait for something.

        A program may end because of what a step of another task has brought, such as the last token of a queue; that
        task waits for the answer.

        Args:
          seconds: how long at most.

        Returns:
          Whether all were answered.
        """
        give_up_at = time.monotonic() + seconds
        pause = threading.Event()
        while any(step.waits_for is None for step in list(self._unanswered)):
            if time.monotonic() >= give_up_at:
                return False
            pause.wait(_LOOK_S)
        return True

    def _take_push(self, channel: Channel, frame: Frame) -> None:
        match frame.header:
            case (str(session), int(step), int(transfer)):
                if self._runtime.owner(session):  # else it is over, and no thread would ever take it
                    self._runtime.rendezvous.put(session, step, transfer, frame.tensors)
            case _:
                raise bad_header(frame, channel.peer)

    def _run(self, channel: Channel, frame: Frame, trained: dict[str, str]) -> None:
        """Runs a step. ``trained`` has the sessions of which the channel has brought steps of training, and their
        workers."""
        session, plan, number, seconds, traced = _run_header(channel, frame)
        deadline = None if seconds is None else time.monotonic() + seconds
        runtime = self._runtime
        step = ServedStep(number, session, deadline, channel, runtime.owner(session), runtime, self._push)
        step.trace = StepTrace() if traced else None
        self._unanswered.add(step)
        try:
            self._run_step(channel, frame, step, plan, trained)
        finally:
            self._unanswered.discard(step)

    def _run_step(self, channel: Channel, frame: Frame, step: ServedStep, plan: int, trained: dict[str, str]) -> None:
        session, traced = step.session, step.trace is not None
        try:
            compiled = self._runtime.plan(session, plan)
            if len(frame.tensors) != len(compiled.plan.feeds):
                raise InvalidArgumentError(
                    None, None, f"plan {plan} takes {len(compiled.plan.feeds)} feeds, {len(frame.tensors)} came"
                )
            if compiled.trains and session not in trained:
                trained[session] = channel.peer.partition(" (")[0]
                self.watchdog.opened(trained[session], session)
            answer = None if traced else step.answer_early
            watched = trained.get(session) if compiled.trains else None
            results = self._execute(compiled, frame.tensors, step, answer, plan, watched)
            if step.trace is not None:
                results.append(step.trace.encode())
            step.settle()
        except Exception as error:  # noqa: BLE001 - whatever it is, the master must hear of it
            self._failed(channel, step, error)
            return
        self.steps += 1
        if not step.answered:
            step.answer(results)

    def _execute(
        self, compiled: CompiledPlan, feeds: Sequence[Any], step: ServedStep, answer: Any, plan: int, worker: str | None
    ) -> list[Any]:
        """Runs a plan; where ``worker`` is given, as a step of training of that worker."""
        if worker is None:
            return self._runtime.execute(compiled, feeds, step, wait=False, answer=answer)
        done = False
        self.watchdog.began(worker, step.session, step)
        try:
            results = self._runtime.execute(compiled, feeds, step, wait=False, answer=answer)
            done = True
            return results
        finally:
            self.watchdog.ended(worker, step.session, plan, step, done=done)

    def _failed(self, channel: Channel, step: ServedStep, error: Exception) -> None:
        runtime = self._runtime
        runtime.rendezvous.forget(step.session, step.number)
        if step.answered or not isinstance(error, OpError):
            _log.exception("%s: step %s of session %s failed", runtime.task, step.number, step.session)
        step.settle()
        if step.answered:
            runtime.release(step.session, f"step {step.number} failed after it had been answered: {error}")
        else:
            channel.send(error_frame(step.number, error, runtime.task))


def _run_header(channel: Channel, frame: Frame) -> tuple[str, int, int, float | None, bool]:
    match frame.header:
        case (str(session), int(plan), int(number), float() | int() | None as seconds, bool(traced)):
            return session, plan, number, seconds, traced
        case _:
            raise bad_header(frame, channel.peer)
