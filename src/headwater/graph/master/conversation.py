"""A step's exchange with one other task, over a channel reserved for the step."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.kinds import DONE, ERROR, GIVE_UP, RESUME, RESUMED, RUN, TENSORS
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, DeadlineExceededError, OpError, UnavailableError
from headwater.graph.master.ahead import OutdatedError, ReadsAhead, Values
from headwater.graph.master.protocol import NO_TRANSFER, WANTS_VALUES, transfer_of
from headwater.graph.runtime.step import Step

_log = logging.getLogger("headwater")

CHECK_INTERVAL_S = 0.2
# A step's wait for one task is logged after this time, and again each time that the time has doubled, in seconds.
_LOG_AFTER_S = 15.0
# Lengths of the header of DONE: see `headwater.graph.master.protocol`.
_ALONE, _WITH_TRANSFER, _WITH_VALUES = 1, 3, 5
_ENDS, _INT = frozenset((_ALONE, _WITH_TRANSFER, _WITH_VALUES)), {int}

Reconnect = Callable[[Step, str, OpError], Channel]
"""Waits for a task that a step has lost, and returns a new channel to it; raises the error that ends the step."""


class ChannelConversation:
    """The master's side of a step's exchange with one task.

    Args:
      step: the step on the master.
      plan: number of the plan that the task runs.
      task: the full name of the task.
      channel: a channel to the task, reserved until the step ends.
      end: called with the channel and whether it is reusable.
      others: all conversations of the step; an error of any of them ends a wait of this conversation.
      reconnect: waits for a lost task and opens a new channel, on which the conversation resumes; None if the loss of
        the channel ends the step.
    """

    # `_begun`: whether `start` was called; with values read ahead, RUN itself is sent later, by the first `send`.
    # `_given`: the transfer that was sent in RUN. It is kept only for a resumable step, and only until its values have
    # proved outdated.
    _begun = False
    _given: tuple[int, Sequence[Any]] | None = None

    def __init__(
        self,
        step: Step,
        plan: int,
        task: str,
        channel: Channel,
        end: Callable[[Channel, bool], None],
        others: Mapping[str, ChannelConversation],
        reconnect: Reconnect | None = None,
    ) -> None:
        self._step = step
        self._plan = plan
        self._task = task
        self._channel = channel
        self._end = end
        self._others: Mapping[str, ChannelConversation] = others
        self._reconnect = reconnect
        self._stash: dict[int, Sequence[object]] = {}
        self._done: Sequence[object] | None = None
        self._open = True
        # Needed to resume on a new channel: the transfers received, and all frames sent.
        self._received: set[int] = set()
        self._feeds: Sequence[Any] = ()
        self._sent: list[Frame] = []
        self._resuming = False
        # `_values`: values read ahead, until `send` uses them. `_unproved`: the result computed from them was sent, and
        # the task has not yet shown whether the values were current.
        self._ahead: ReadsAhead | None = None
        self._values: Values | None = None
        self._unproved = False

    def start(self, feeds: Sequence[Any], ahead: ReadsAhead | None = None) -> None:
        """Asks the task to run its part. If ``ahead`` has values for this run, `send` later sends RUN together with the
        first transfer."""
        self._feeds, self._begun = feeds, True
        if ahead is not None:
            self._ahead, self._values = ahead, ahead.pop_values()
            if self._values is not None:
                return
            if ahead.wants_values():
                self._send_frame(Frame(RUN, (*self._request(), WANTS_VALUES), feeds))
                return
        self._send_frame(Frame(RUN, self._request(), feeds))

    def request_again(self) -> bool:
        """Requests the present values, after the step's own part has failed with values read ahead.

        Returns:
          Whether the step used values read ahead and had not sent RUN yet; otherwise nothing is done.
        """
        if self._values is None:
            return False
        self._values = None
        self._send_frame(Frame(RUN, self._request(), self._feeds))
        return True

    def _request(self) -> tuple[object, ...]:
        step, left = self._step, None
        if step.deadline is not None:
            left = step.seconds_left()
        return step.session, self._plan, step.number, left, step.trace is not None, self._reconnect is not None

    def send(self, transfer: int, tensors: Sequence[Any]) -> None:
        """Sends a transfer."""
        if self._values is not None:
            self._unproved, version, self._values = True, self._values.version, None
            if self._reconnect is not None:
                self._given = transfer, tensors
            self._send_frame(Frame(RUN, (*self._request(), version), [*self._feeds, *tensors]))
            return
        if self._reconnect is None:
            self._send_frame(Frame(TENSORS, (self._step.number, transfer), tensors))
            return
        frame = Frame(TENSORS, (self._step.number, transfer, len(self._received)), tensors)
        self._sent.append(frame)
        self._send_frame(frame)

    def recv(self, transfer: int) -> Sequence[Any]:
        """Waits for a transfer; raises the task's error if it fails.

        Raises:
          OutdatedError: the values read ahead are outdated; the present values follow as this step's first transfer.
        """
        if self._values is not None:
            return self._values.tensors
        while transfer not in self._stash:
            self._next()
        return self._stash.pop(transfer)

    def finish(self) -> Sequence[Any]:
        """Waits for the fetches, ends the conversation, and returns the fetches; raises the same errors as `recv`."""
        while self._done is None:
            self._next()
        self._close(True)
        return self._done

    def abort(self, reason: str) -> None:
        """Abandons the step: closes the channel, after sending GIVE_UP if the step is resumable."""
        if not self._open:
            return
        if self._reconnect is not None and self._channel.sends_at_once(0):
            # If GIVE_UP is lost, the task ends the step with its session, or when the master's next incarnation
            # connects.
            with contextlib.suppress(UnavailableError, CancelledError):
                self._channel.send(Frame(GIVE_UP, (self._step.number, reason)))
        self._close(False)

    def handle_received(self) -> None:
        """Handles received frames without waiting; raises the task's errors."""
        if not self._begun or self._values is not None:
            return  # RUN was not sent yet: nothing can arrive, and there is no step to resume on a new channel
        while self._open and self._done is None and not self._resuming:
            try:
                frame = self._channel.recv(0)
            except DeadlineExceededError:
                return
            except UnavailableError as error:
                self._handle_loss(error)
            else:
                self._handle_frame(frame)

    def _next(self) -> None:
        began = say_at = 0.0
        while True:
            try:
                frame = self._channel.recv(CHECK_INTERVAL_S)
            except DeadlineExceededError:
                now = time.monotonic()
                if not began:
                    began, say_at = now - CHECK_INTERVAL_S, now + _LOG_AFTER_S
                elif now >= say_at:
                    say_at = now + (now - began)
                    _log.warning(
                        "Step %d has waited for %s for %.0f s; the log of that task, and `headwater status` with its "
                        "address, give the reason",
                        self._step.number,
                        self._task,
                        now - began,
                    )
                before = len(self._stash)
                self._handle_all_received()
                # If another conversation reconnected within `_handle_all_received`, that conversation called
                # `handle_received` of this one. So this conversation may have received the awaited frame already.
                if self._done is not None or len(self._stash) > before:
                    return
            except UnavailableError as error:
                self._handle_loss(error)
                return
            else:
                self._handle_frame(frame)
                return

    def _handle_all_received(self) -> None:
        self._step.check()
        for other in self._others.values():
            if other is not self:
                other.handle_received()

    def _handle_frame(self, frame: Frame) -> None:
        if frame.kind == ERROR:
            self._close(True)
            raise_error(frame, self._task)
        if frame.kind == TENSORS:
            step, transfer, _ = transfer_of(frame, self._task)
            if step == self._step.number:
                self._store_transfer(transfer, frame.tensors)
        elif frame.kind == DONE:
            self._handle_done(frame)
        else:
            raise bad_header(frame, self._task)

    def _store_transfer(self, transfer: int, tensors: Sequence[object]) -> None:
        if transfer not in self._received:  # else a duplicate of a transfer received on a lost channel
            self._received.add(transfer)
            self._stash[transfer] = tensors
            if self._unproved:
                self._prove(transfer)

    def _prove(self, transfer: int | None) -> None:
        """Handles the first frame that arrives after this side has sent a result computed from values read ahead.

        The frame shows whether these values were current.

        Args:
          transfer: the number of the received transfer; None for the end of the step.
        """
        assert self._ahead is not None
        self._unproved = False
        current = transfer != self._ahead.transfer
        self._ahead.record_outcome(current)
        if not current:
            self._given = None
            raise OutdatedError

    def _handle_done(self, frame: Frame) -> None:
        header, results = frame.header, frame.tensors
        said = len(header)
        # These checks run for each step: a match statement would take three times as long.
        if said not in _ENDS or set(map(type, header)) != _INT:
            raise bad_header(frame, self._task)
        if header[0] != self._step.number:
            return  # the late end of an earlier step on this channel
        if said == _WITH_VALUES:
            _, transfer, count, ahead, version = header
            end = len(results) - ahead
            if self._ahead is None or not 0 <= ahead <= len(results) or not 0 <= count <= end:
                raise bad_header(frame, self._task)
            if transfer != NO_TRANSFER:  # without tensors, it still states that the task's operations have run
                self._store_transfer(transfer, results[end - count : end])
            self._ahead.keep_values(Values(version, results[end:]))
            results = results[: end - count]
        elif said == _WITH_TRANSFER:
            _, transfer, count = header
            end = len(results) - count
            if not 0 <= count <= len(results):
                raise bad_header(frame, self._task)
            self._store_transfer(transfer, results[end:])
            results = results[:end]
        if self._unproved:
            self._prove(None)
        self._done = results

    def _send_frame(self, frame: Frame) -> None:
        try:
            self._channel.send(frame)
        except UnavailableError as error:
            self._handle_loss(error)

    def _close(self, usable: bool) -> None:
        self._open = False
        self._others = {}  # break the reference cycle between conversations
        self._end(self._channel, usable)

    # Lost channels ----------------------------------------------------------------------------------------------------

    def _handle_loss(self, error: OpError) -> None:
        """Resumes the step on another channel if it is resumable; else raises."""
        if self._reconnect is None:
            raise UnavailableError(f"{self._task} was lost during step {self._step.number}: {error.message}") from error
        # Other conversations of the step call `handle_received` of this conversation while they wait. During a
        # reconnection such a call would remove RESUMED from the channel, so block these calls.
        self._resuming = True
        try:
            while True:
                self._end(self._channel, False)
                self._channel = self._reconnect(self._step, self._task, error)
                try:
                    self._resume()
                    return
                except UnavailableError as again:
                    if not self._open:  # the task has answered with this error
                        raise
                    error = again
        finally:
            self._resuming = False

    def _resume(self) -> None:
        """Resumes on the new channel: reports how many transfers were received, receives the missing frames, and sends
        again the frames that the task has not received."""
        channel = self._channel
        channel.send(Frame(RESUME, (*self._request(), len(self._received)), self._feeds))
        received, coming = self._receive_resumed()
        for _ in range(coming):
            self._handle_frame(channel.recv())
        if self._done is None:
            sent = self._sent
            # The task counts the transfer in RUN as the first transfer.
            if self._given is not None and not self._unproved:
                transfer, tensors = self._given
                sent = [Frame(TENSORS, (self._step.number, transfer), tensors), *sent]
            for frame in sent[received:]:
                channel.send(frame)

    def _receive_resumed(self) -> tuple[int, int]:
        while True:
            try:
                frame = self._channel.recv(CHECK_INTERVAL_S)
            except DeadlineExceededError:
                self._handle_all_received()
                continue
            match frame.kind, frame.header:
                case int(kind), (int(step), int(received), int(coming)) if (
                    kind == RESUMED and step == self._step.number
                ):
                    return received, coming
                case _:
                    self._handle_frame(frame)  # an ERROR; no other frame is possible here
