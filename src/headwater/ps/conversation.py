"""A worker's connections to all ``ps`` of a set of parameters: it sends each ``ps`` one frame and gets one answer.

The worker reconnects to a lost ``ps``, however long that takes, and repeats its request if the ``ps`` still has its
values. While the worker waits for one ``ps``, it also watches the connections to other ``ps``, and reconnects to a
``ps`` that was lost. Otherwise the wait might never end: the update it waits for can depend on a gradient that was sent
to the lost ``ps`` and has to be sent again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.shell import OVER_DETAIL
from headwater.cluster.task.waiting import SILENCE_S
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.waiting import Patience
from headwater.errors import AbortedError, DeadlineExceededError, GaveUpError, OpError, UnavailableError
from headwater.ps.layout import Block
from headwater.ps.updater import Array
from headwater.state.witness import ChannelLink

_log = logging.getLogger("headwater")


class ReportedStatus(Protocol):
    """Status that a ``ps`` reports when it is reached."""

    @property
    def details(self) -> Mapping[str, bytes]:
        """Status details of the ``ps``, by key; see `Service.details`."""
        ...


class ServerLink(ChannelLink, Protocol):
    """A worker's route to one ``ps``."""

    def reach(self, deadline_s: float | None = None) -> ReportedStatus | None:
        """Waits until the ``ps`` can be reached.

        Args:
          deadline_s: the time limit of the wait, in seconds; None for the limit of this process.

        Returns:
          The status of the ``ps``; None if the ``ps`` is in this process.
        """
        ...


@dataclass(kw_only=True, slots=True)
class ServerSession:
    """A worker's knowledge of one ``ps``.

    Attributes:
      task: the name of the ``ps``.
      link: the route to the ``ps``.
      channel: the open channel to the ``ps``; None if there is none.
      filled: the generation of the values of the ``ps``; 0 before there are values.
      version: the version of these values, according to the latest answer.
      incarnation: incarnation of the ``ps`` that serves the channel.
      answer_incarnation: incarnation of the ``ps`` that gave the latest answer.
      pieces: the values of the blocks of the ``ps`` when they were last read, in the layout's order.
      read: the version of ``pieces``.
      read_incarnation: incarnation of the ``ps`` from which ``pieces`` were read.
      optimized: the blocks that the optimizer updates. In this and the two following lists, each block has its position
        in the layout's order.
      added: the blocks to which workers add changes.
      tables: the blocks of which a step reads and updates only some rows.
      waits_for: reason and start of a long wait for this ``ps``; None while there is none.
    """

    task: str
    link: ServerLink
    optimized: Sequence[tuple[int, Block]]
    added: Sequence[tuple[int, Block]]
    tables: Sequence[tuple[int, Block]]
    channel: Channel | None = None
    filled: int = 0
    version: int = 0
    incarnation: int = 0
    answer_incarnation: int = 0
    pieces: list[Array] = field(default_factory=list[Array])
    read: int = 0
    read_incarnation: int = 0
    waits_for: tuple[str, float] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """Amount of data exchanged between a worker and all ``ps``.

    Attributes:
      sent_bytes: bytes of tensors sent.
      received_bytes: bytes of tensors received.
      round_trips: number of times that the worker has waited for answers.
      rows: number of rows read from tables.
    """

    sent_bytes: int = 0
    received_bytes: int = 0
    round_trips: int = 0
    rows: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            sent_bytes=self.sent_bytes + other.sent_bytes,
            received_bytes=self.received_bytes + other.received_bytes,
            round_trips=self.round_trips + other.round_trips,
            rows=self.rows + other.rows,
        )


class JobOverError(GaveUpError):
    """A ``ps`` cannot be reached because the job is over. The ``ps`` will not restart, and this worker does not need
    it."""


class _ReconnectedError(UnavailableError):
    """The awaited ``ps`` was lost and reconnected during the wait, so its answer will not arrive on the old channel.

    Two losses lead to this: another ``ps`` is lost during the wait, so the worker reconnects to that other ``ps``;
    meanwhile the awaited ``ps`` is lost, too, and the worker reconnects to both.
    """


class Conversation:
    """The connections of a worker to all ``ps``. Used by one thread at a time.

    Args:
      worker: this worker's name.
      sessions: one for each ``ps``.
      greet: opens a channel to the ``ps`` with a given number, and makes the handshake.
      may_leave: returns whether this worker can stop waiting for a lost ``ps`` once the job is over, because it only
        reads values or has finished.

    Attributes:
      sessions: one for each ``ps``.
      rows_read: number of rows of tables that were read.
      lost_first: whether the first ``ps`` was lost. This object sets the attribute, and the owner of this object resets
        it.
    """

    def __init__(
        self,
        worker: str,
        sessions: Sequence[ServerSession],
        greet: Callable[[int], None],
        *,
        may_leave: Callable[[], bool],
    ) -> None:
        self.sessions = sessions
        self.rows_read = 0
        self.lost_first = False
        self._worker = worker
        self._greet = greet
        self._may_leave = may_leave
        self._sent_bytes = 0
        self._received_bytes = 0
        self._round_trips = 0
        self._asked: dict[int, Channel | None] = {}
        #: Answers that arrived while the answer of another ``ps`` was awaited.
        self._early: dict[Channel, Frame] = {}
        #: Whether a ``ps`` has rejected the gradients of the latest push, or has lost them in a restart.
        self._late = False
        #: Requests to repeat after reconnecting, by the number of the ``ps``. Beside each is the generation of values
        #: for which it is valid; None if it is valid for any generation.
        self._repeated: dict[int, tuple[Frame, int | None]] = {}

    def connect(self, index: int) -> None:
        """Opens a channel to a ``ps`` as soon as it can be reached.

        Raises:
          GaveUpError: the ``ps`` could not be reached before the deadline.
          JobOverError: the job is over, and this worker only reads values, or has finished.
        """
        session, deadline_s = self.sessions[index], Patience.from_environment().deadline_s
        give_up_at = time.monotonic() + deadline_s
        while True:
            try:
                self._greet(index)
                return
            except (UnavailableError, AbortedError) as error:
                # The ps has not started yet, or was lost again during the handshake.
                if self._may_leave() and self.others_are_over(index):
                    raise JobOverError(f"{session.task} has ended with the job: {error.message}") from error
                if time.monotonic() >= give_up_at:
                    if isinstance(error, GaveUpError):
                        raise
                    waited = f"{self._worker} has waited {deadline_s:g} s for {session.task}"
                    raise GaveUpError(f"{waited}: {error.message}") from error
                _log.info("%s connects again to %s: %s", self._worker, session.task, error.message)

    def others_are_over(self, index: int) -> bool:
        """Returns whether a ``ps`` other than number ``index`` reports that the chief's program has ended."""
        for other in (*self.sessions[:index], *self.sessions[index + 1 :]):
            try:
                status = other.link.reach(0.0)
            except OpError as error:
                _log.debug("%s does not say whether the job is over: %s", other.task, error.message)
                continue
            if status is not None and OVER_DETAIL in status.details:
                return True
        return False

    def drop(self, session: ServerSession) -> None:
        """Closes the channel to a ``ps``, if there is one."""
        if session.channel is not None:
            session.link.release_channel(session.channel, False)
            session.channel = None

    def exchange(
        self,
        frames: Sequence[Frame | None],
        *,
        again: bool = False,
        always: bool = False,
        after_first: Callable[[Frame | None], None] | None = None,
    ) -> list[Frame | None]:
        """Sends a frame to each ``ps``, then receives an answer from each.

        Args:
          frames: the frame for each ``ps``; None for a ``ps`` that gets none.
          again: whether to repeat the frame to a ``ps`` that was lost, after reconnecting to it, if it still has its
            values. Required if another ``ps`` answers only after the lost one has received its frame.
          always: with ``again``, whether to repeat the frame also to a ``ps`` that was restarted without its values.
          after_first: called with the answer of the first ``ps``, before the answers of other ``ps`` are received.

        Returns:
          The answers; None from a ``ps`` that was lost before it answered, or that got no frame.
        """
        self._asked, self._early, self._late = {}, {}, False
        answers: list[Frame | None] = []
        self._repeated = {
            index: (frame, None if always else session.filled)
            for index, (session, frame) in enumerate(zip(self.sessions, frames, strict=True))
            if again and frame is not None
        }
        # Send all frames before receiving any answer, so that all ps work concurrently. This order also avoids a
        # deadlock: this worker could wait for the answer of a ps that answers only after another ps has received a
        # frame.
        for index in range(len(self.sessions)):
            frame = frames[index]
            if frame is not None and index not in self._asked:  # otherwise it was already sent after reconnecting
                try:
                    self._send_asked(index, frame)
                except (UnavailableError, AbortedError) as error:
                    self.reconnect(index, error)
        for index in range(len(self.sessions)):
            answers.append(self._answer(index))
            if index == 0 and after_first is not None:
                after_first(answers[0])
        self._round_trips += 1
        return answers

    def _answer(self, index: int) -> Frame | None:
        """Returns the answer of a ``ps`` to the frame that `exchange` sent; None if it was lost meanwhile."""
        session, answer = self.sessions[index], None
        # If the frame was sent on an earlier channel of the session, this worker lost the ps and reconnected to it
        # while it waited for another answer. No answer to the frame will arrive then.
        while answer is None and index in self._asked and self._asked[index] is session.channel:
            try:
                answer = self._receive(session)
            except _ReconnectedError:
                continue  # receive again: if the ps still has its values, the frame was repeated on the new channel
            except (UnavailableError, AbortedError) as error:
                self.reconnect(index, error)
        frame, _ = self._repeated.pop(index, (None, None))
        self._late = self._late or (frame is not None and answer is not None and _is_late(frame, answer))
        return answer

    def repeat_instead(self, frame: Callable[[int, Frame], Frame]) -> None:
        """Replaces the frames that are repeated after a loss.

        Args:
          frame: called with the number of a ``ps`` and the frame pending there; returns the frame to repeat instead.
        """
        self._repeated = {index: (frame(index, former), filled) for index, (former, filled) in self._repeated.items()}

    def _send_asked(self, index: int, frame: Frame) -> None:
        self._send(self.sessions[index], frame)
        self._asked[index] = self.sessions[index].channel

    def reconnect(self, index: int, error: OpError) -> None:
        """Reconnects to a ``ps`` that was lost, and repeats its pending request if it still has its values."""
        session = self.sessions[index]
        while True:
            self.lost_first = self.lost_first or index == 0
            _log.warning("%s lost %s and waits for it: %s", self._worker, session.task, error.message)
            self._asked.pop(index, None)  # no answer to the earlier frame can arrive on the new channel
            self.connect(index)
            frame, filled = self._repeated.get(index, (None, None))
            if frame is None:
                return
            # The ps restarted without its values, and has lost the gradients of this worker that it had accepted.
            if filled not in (None, session.filled):
                self._late = self._late or frame.kind == kinds.PUSH
                return
            try:
                self._send_asked(index, frame)
                return
            except (UnavailableError, AbortedError) as again:
                error = again

    def request(self, session: ServerSession, frame: Frame, waiting: Callable[[], None] | None = None) -> Frame:
        """Sends a frame to one ``ps`` and returns the answer. ``waiting`` is called at each WAIT frame of the ``ps``.

        Raises:
          UnavailableError, AbortedError: the ``ps`` is lost, or was restarted without its values.
        """
        self._send(session, frame)
        return self._receive(session, waiting)

    def request_until_answered(self, index: int, frame: Frame) -> Frame:
        """Sends a frame, repeating it after each loss, until the ``ps`` answers.

        Only for requests that a ``ps`` can also answer after a restart without its values.
        """
        while True:
            try:
                return self.request(self.sessions[index], frame)
            except (UnavailableError, AbortedError) as error:
                self.reconnect(index, error)

    def _send(self, session: ServerSession, frame: Frame) -> None:
        if session.channel is None or session.channel.closed:
            raise UnavailableError(f"there is no channel to {session.task}")
        session.channel.send(frame)
        self._sent_bytes += sum(tensor.nbytes for tensor in frame.tensors)

    def _receive(self, session: ServerSession, waiting: Callable[[], None] | None = None) -> Frame:
        channel = session.channel
        assert channel is not None
        while True:
            # `_handle_wait` reconnects to lost ps. If this ps was among them, no answer will arrive on the old channel.
            if session.channel is not channel:
                raise _ReconnectedError(f"{session.task} was reconnected, and the request was not repeated")
            if channel.closed:  # this worker noticed the loss while it waited for another ps
                raise UnavailableError(f"the channel to {session.task} is gone")
            try:
                frame = self._early.pop(channel, None) or channel.recv(SILENCE_S)
            except DeadlineExceededError:
                self._handle_wait(session, "its answer; it has sent nothing")
                continue
            if frame.kind == kinds.ERROR:
                raise_error(frame, session.task)
            if frame.kind != kinds.WAIT:
                break
            self._handle_wait(session, str(frame.header[0]) if frame.header else "")
            if waiting is not None:
                waiting()
            # End a wait that may be a deadlock: the update that this worker waits for may need this worker's next
            # gradient.
            if self._is_too_late(session):
                self._send(session, Frame(kinds.RELEASE))
        session.waits_for, session.answer_incarnation = None, session.incarnation
        if frame.kind not in (kinds.WELCOME, kinds.VALUES, kinds.DONE):
            raise bad_header(frame, session.task)
        self._received_bytes += sum(tensor.nbytes for tensor in frame.tensors)
        return frame

    def _is_too_late(self, waiting_for: ServerSession) -> bool:
        """Returns whether a ``ps`` has rejected the gradients of this push, so that this worker must stop waiting.

        Suppose ``ps`` A has rejected the gradients, and this worker waits for an update on ``ps`` B. That update may
        need the next gradient of a second worker. The second worker may in turn wait on A, for an update that needs the
        next gradient of this worker: a deadlock.

        Args:
          waiting_for: the ``ps`` that this worker waits for.
        """
        for index, (frame, _) in self._repeated.items():
            session, channel = self.sessions[index], self._asked.get(index)
            if session is waiting_for or channel is None or channel is not session.channel or channel in self._early:
                continue
            try:
                answer = channel.recv(0)
            except (DeadlineExceededError, UnavailableError):
                continue
            if answer.kind != kinds.WAIT:
                self._early[channel] = answer  # `_receive` must still find it
                self._late = self._late or _is_late(frame, answer)
        return self._late

    def _handle_wait(self, session: ServerSession, what: str) -> None:
        """Logs that this worker waits for a ``ps``, and reconnects to other ``ps`` that were lost meanwhile."""
        _log.info("%s waits for %s: %s", self._worker, session.task, what)
        since = session.waits_for[1] if session.waits_for is not None else time.monotonic()
        session.waits_for = f"{session.task}: {what}", since
        self._reconnect_lost(session)

    def traffic(self) -> Traffic:
        """Returns the amount of data exchanged so far."""
        return Traffic(
            sent_bytes=self._sent_bytes,
            received_bytes=self._received_bytes,
            round_trips=self._round_trips,
            rows=self.rows_read,
        )

    def waits(self) -> list[tuple[str, float]]:
        """Returns the long waits of this worker: the reason of each and its start (`time.monotonic`)."""
        return [wait for session in self.sessions if (wait := session.waits_for) is not None]

    def _reconnect_lost(self, waiting_for: ServerSession) -> None:
        """Reconnects to all lost ``ps`` except ``waiting_for``, and repeats the requests that were lost with them.

        The awaited ``ps`` may be unable to answer before another ``ps`` has received such a repeated request.
        """
        for index, session in enumerate(self.sessions):
            channel = session.channel
            if session is not waiting_for and channel is not None and channel.peer_gone():
                self.reconnect(index, UnavailableError(f"the channel to {session.task} is gone"))


def _is_late(asked: Frame, answer: Frame) -> bool:
    """Returns whether ``asked`` is a push of gradients, and ``answer`` rejects them."""
    return asked.kind == kinds.PUSH and answer.kind == kinds.VALUES and answer.header[1] is False
