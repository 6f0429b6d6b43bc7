"""A step's exchange with one other task, over a channel that it has for itself meanwhile."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.errors import DeadlineExceededError, OpError, UnavailableError
from headwater.master.protocol import transfer_of
from headwater.runtime.step import Step
from headwater.task.answers import bad_header, raise_error
from headwater.task.kinds import DONE, ERROR, RUN, TENSORS
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")

_LOOK_AROUND_S = 0.2
# How long a step may wait for one task before this is said; again after twice the time.
_SAY_AFTER_S = 15.0


class ChannelConversation:
    """One side of a step: this master's, with one task.

    Args:
      step: the step.
      plan: number of the plan that the task runs.
      task: its full name.
      channel: a channel to it, held until the step ends.
      end: called with the channel and whether it can be used again.
      others: all conversations of the step; while this one waits, an error on another ends the wait.
    """

    def __init__(
        self,
        step: Step,
        plan: int,
        task: str,
        channel: Channel,
        end: Callable[[Channel, bool], None],
        others: Mapping[str, ChannelConversation],
    ) -> None:
        self._step = step
        self._plan = plan
        self._task = task
        self._channel = channel
        self._end = end
        self._others: Mapping[str, ChannelConversation] = others
        self._stash: dict[int, Sequence[Any]] = {}
        self._done: Sequence[Any] | None = None
        self._open = True

    def begin(self, feeds: Sequence[Any]) -> None:
        """Asks the task to run its part."""
        step = self._step
        self._put(
            Frame(RUN, (step.session, self._plan, step.number, step.seconds_left(), step.trace is not None), feeds)
        )

    def send(self, transfer: int, tensors: Sequence[Any]) -> None:
        """Sends a transfer."""
        self._put(Frame(TENSORS, (self._step.number, transfer), tensors))

    def recv(self, transfer: int) -> Sequence[Any]:
        """Waits for a transfer; raises what the task raises instead."""
        while transfer not in self._stash:
            self._next()
        return self._stash.pop(transfer)

    def finish(self) -> Sequence[Any]:
        """Waits for the fetches, and ends the conversation."""
        while self._done is None:
            self._next()
        self._close(True)
        return self._done

    def abort(self, reason: str) -> None:
        """Gives the step up. The task notices that the channel is closed."""
        del reason
        if self._open:
            self._close(False)

    def look(self) -> None:
        """Takes in what has come, without waiting; raises what the task raises."""
        while self._open and self._done is None:
            try:
                self._take(self._channel.recv(0))
            except DeadlineExceededError:
                return
            except UnavailableError as error:
                raise self._lost(error) from error

    def _next(self) -> None:
        began = say_at = 0.0
        while True:
            try:
                frame = self._get()
            except DeadlineExceededError:
                self._step.check()
                now = time.monotonic()
                if not began:
                    began, say_at = now - _LOOK_AROUND_S, now + _SAY_AFTER_S
                elif now >= say_at:
                    say_at = now + (now - began)
                    _log.warning(
                        "Step %d waits for %s since %.0f s; the log of that task, and `headwater status` with its "
                        "address, say for what",
                        self._step.number,
                        self._task,
                        now - began,
                    )
                for other in self._others.values():
                    if other is not self:
                        other.look()
                continue
            self._take(frame)
            return

    def _take(self, frame: Frame) -> None:
        if frame.kind == ERROR:
            self._close(True)
            raise_error(frame, self._task)
        if frame.kind == TENSORS:
            step, transfer = transfer_of(frame, self._task)
            if step == self._step.number:
                self._stash[transfer] = frame.tensors
        elif frame.kind == DONE:
            self._take_end(frame)
        else:
            raise bad_header(frame, self._task)

    def _take_end(self, frame: Frame) -> None:
        tensors = frame.tensors
        match frame.header:
            case (int(step),):
                results = tensors
            case (int(step), int(transfer), int(count)) if 0 <= count <= len(tensors):
                results = tensors[: len(tensors) - count]
                if step == self._step.number:
                    self._stash[transfer] = tensors[len(results) :]
            case _:
                raise bad_header(frame, self._task)
        if step == self._step.number:
            self._done = results

    def _get(self) -> Frame:
        try:
            return self._channel.recv(_LOOK_AROUND_S)
        except UnavailableError as error:
            raise self._lost(error) from error

    def _put(self, frame: Frame) -> None:
        try:
            self._channel.send(frame)
        except UnavailableError as error:
            raise self._lost(error) from error

    def _close(self, usable: bool) -> None:
        self._open = False
        self._others = {}  # they know this one: a circle, which only the garbage collector would find
        self._end(self._channel, usable)

    def _lost(self, error: OpError) -> OpError:
        return UnavailableError(None, None, f"{self._task} was lost during step {self._step.number}: {error.message}")
