"""The data plane of a task: runs its part of steps for masters elsewhere."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headwater.errors import CancelledError, InvalidArgumentError, OpError, UnavailableError
from headwater.master.protocol import DONE, PUSH, RUN, TENSORS, bad_header, error_frame, transfer_of
from headwater.runtime.step import Step
from headwater.runtime.task import TaskRuntime
from headwater.telemetry.step_stats import StepTrace
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")

_LARGE_BYTES = 64 << 10

Push = Callable[[str, Frame], None]


class ServedStep(Step):
    """A step that a master elsewhere asked this task to take part in.

    Args:
      channel: to the master; the step has it for itself.
      master: full name of the master's task.
      runtime: this task's.
      push: sends a frame to another task.
    """

    def __init__(
        self, number: int, session: str, deadline: float | None, channel: Channel, master: str, runtime: TaskRuntime,
        push: Push,
    ) -> None:  # fmt: skip
        super().__init__(number, session, deadline)
        self._channel = channel
        self._master = master
        self._runtime = runtime
        self._push = push
        self._stash: dict[int, Sequence[Any]] = {}
        self._sender: threading.Thread | None = None

    def send(self, destination: str, transfer: int, tensors: Sequence[Any]) -> None:
        if destination != self._master:
            self._push(destination, Frame(PUSH, (self.session, self.number, transfer), tensors))
            return
        frame = Frame(TENSORS, (self.number, transfer), tensors)
        self.settle()
        if sum(tensor.nbytes for tensor in tensors) < _LARGE_BYTES:
            self._channel.send(frame)
        else:
            # The master may be sending as much to us at this moment, and neither would get to receive.
            self._sender = threading.Thread(target=self._send_large, args=(frame,), daemon=True)
            self._sender.start()

    def _send_large(self, frame: Frame) -> None:
        try:
            self._channel.send(frame)
        except (UnavailableError, CancelledError) as error:
            self.cancel(error.message)

    def settle(self) -> None:
        """Waits until all that was sent has left."""
        if self._sender is not None:
            self._sender.join()
            self._sender = None

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
    """

    def __init__(self, runtime: TaskRuntime, push: Push) -> None:
        self._runtime = runtime
        self._push = push
        self.steps = 0

    def serve(self, channel: Channel, other: Callable[[Frame], bool]) -> None:
        """Answers frames until the other end closes the channel.

        Args:
          other: takes frames of kinds that are not of steps; says whether it knew this one.
        """
        try:
            while True:
                frame = channel.recv()
                if frame.kind == RUN:
                    self._run(channel, frame)
                elif frame.kind == PUSH:
                    self._take_push(channel, frame)
                elif frame.kind != TENSORS and not other(frame):  # TENSORS are of a step that ended early
                    raise bad_header(frame, channel.peer)
        except (UnavailableError, CancelledError):
            return
        except OpError as error:
            _log.warning("%s closes the channel to %s: %s", self._runtime.task, channel.peer, error.message)
        finally:
            channel.close()

    def _take_push(self, channel: Channel, frame: Frame) -> None:
        match frame.header:
            case (str(session), int(step), int(transfer)):
                if self._runtime.owner(session):  # else it is over, and nobody would ever take it
                    self._runtime.rendezvous.put(session, step, transfer, frame.tensors)
            case _:
                raise bad_header(frame, channel.peer)

    def _run(self, channel: Channel, frame: Frame) -> None:
        session, plan, number, seconds, traced = _run_header(channel, frame)
        deadline = None if seconds is None else time.monotonic() + seconds
        runtime = self._runtime
        step = ServedStep(number, session, deadline, channel, runtime.owner(session), runtime, self._push)
        step.trace = StepTrace() if traced else None
        try:
            compiled = runtime.plan(session, plan)
            if len(frame.tensors) != len(compiled.plan.feeds):
                raise InvalidArgumentError(
                    None, None, f"plan {plan} takes {len(compiled.plan.feeds)} feeds, {len(frame.tensors)} came"
                )
            results = runtime.execute(compiled, frame.tensors, step, wait=False)
            if step.trace is not None:
                results.append(step.trace.encode())
            step.settle()
        except Exception as error:  # noqa: BLE001 - whatever it is, the master must hear of it
            runtime.rendezvous.forget(session, number)
            if not isinstance(error, OpError):
                _log.exception("%s: step %s of session %s failed", runtime.task, number, session)
            step.settle()
            channel.send(error_frame(number, error, runtime.task))
            return
        self.steps += 1
        channel.send(Frame(DONE, (number,), [np.asarray(value) for value in results]))


def _run_header(channel: Channel, frame: Frame) -> tuple[str, int, int, float | None, bool]:
    match frame.header:
        case (str(session), int(plan), int(number), float() | int() | None as seconds, bool(traced)):
            return session, plan, number, seconds, traced
        case _:
            raise bad_header(frame, channel.peer)
