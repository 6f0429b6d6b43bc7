"""The norm of a round's mean gradient over all ``ps``, for optimizers that clip by it.

In synchronous training each ``ps`` has the mean gradient of its own blocks once all workers have pushed, and none has
the whole gradient. With g_b the mean gradient of block b, the norm is the root of the sum over all ``ps`` of Σ_b
‖g_b‖². So before an update, each ``ps`` requests the parts of the sum from all other ``ps``.

Any gradient of a round identifies the round: (worker, incarnation of its program, number of the push). A version cannot
identify it, because a restarted ``ps`` may have another version in the same round. If a ``ps`` was lost with its
gradients, its part counts as zero, because that ``ps`` does not apply the gradients either.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.waiting import CHECK_INTERVAL_S, SILENCE_S, Reminder
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import DeadlineExceededError, InvalidArgumentError, OpError, UnavailableError
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.ps.conversation import ServerLink

_log = logging.getLogger("headwater")

Source = tuple[str, int, int]
"""Identifies a gradient of a round: worker, incarnation of its program, number of its push."""

Squares = Callable[[Sequence[Array]], float]
"""Computes one ``ps``'s part of a sum of squares over all ``ps``, from the mean gradients of its optimized blocks."""

#: Number of rounds to remember. A small number suffices, because a worker pushes again only after every ``ps`` has made
#: the previous update.
_KEPT = 4


def sum_of_squares(gradients: Sequence[Array]) -> float:
    """Returns Σ ‖g‖² over arrays of real numbers, of any shapes."""
    return math.fsum(float(np.square(gradient, dtype=np.float32).sum(dtype=np.float64)) for gradient in gradients)


class RoundSums:
    """This task's part of the sums of rounds, and access to the parts of the other ``ps``.

    Args:
      name: the name of the set of parameters.
      task: this task's name.
      others: every other ``ps``, with its name.
      squares: computes this task's part from the mean gradients of its blocks.
    """

    def __init__(self, name: str, task: str, others: Sequence[tuple[str, ServerLink]], squares: Squares) -> None:
        self._task = task
        self._others = [_Other(name, task, other, link) for other, link in others]
        self._squares = squares
        self._changed = threading.Condition()
        self._rounds: deque[tuple[frozenset[Source], float]] = deque(maxlen=_KEPT)
        self._acceptances: dict[str, tuple[int, int, bool]] = {}

    def record_acceptance(self, worker: str, incarnation: int, number: int, *, taken: bool) -> None:
        """Records whether a worker's latest gradient is part of a round here.

        Args:
          worker: the name of the worker.
          incarnation: the incarnation of the worker's program.
          number: the number of the push.
          taken: whether the gradient was accepted.
        """
        with self._changed:
            self._acceptances[worker] = incarnation, number, taken
            self._changed.notify_all()

    def total(self, sources: Sequence[Source], gradients: Sequence[Array]) -> float:
        """Returns the sum of squares over all ``ps`` of the mean gradient of a round.

        Waits until every other ``ps`` has the round. The sum is the same on all of them, to the last bit.

        Args:
          sources: the gradients in the round.
          gradients: their mean, for this task's optimized blocks.

        Raises:
          DeadlineExceededError: a ``ps`` could not be reached for as long as this process waits for others.
          CancelledError: this task stops.
        """
        mine = self._squares(gradients)
        # Publish this part before asking for other parts: every ps waits for the parts of all others.
        with self._changed:
            self._rounds.append((frozenset(sources), mine))
            self._changed.notify_all()
        # fsum rounds the exact sum once, so all ps get the same bits, independent of the order of the parts.
        return math.fsum([mine, *(other.part(sources) for other in self._others)])

    def serve(self, channel: Channel, first: Frame) -> None:
        """Answers another ``ps`` until its channel ends.

        Raises:
          UnavailableError, CancelledError: the channel has ended.
        """
        frame = first
        while True:
            match frame.kind, frame.header:
                case kinds.ROUND_SUM, (str(), [*sources]):
                    part = self._await_part(channel, [_source(source, channel) for source in sources])
                    channel.send(Frame(kinds.DONE, (part,)))
                case _:
                    raise bad_header(frame, channel.peer)
            frame = channel.recv()

    def _await_part(self, channel: Channel, sources: Sequence[Source]) -> float:
        reminder = Reminder()
        with self._changed:
            while not self._changed.wait_for(lambda: self._part(sources) is not None, CHECK_INTERVAL_S):
                if channel.peer_gone():
                    raise UnavailableError(f"{channel.peer} has disconnected")
                workers = ", ".join(sorted({worker for worker, _, _ in sources}))
                reminder.send_if_due(channel, f"the gradients of {workers} to reach {self._task}")
            part = self._part(sources)
        assert part is not None
        return part

    def _part(self, sources: Sequence[Source]) -> float | None:
        """Returns this task's part of a round; None if the round may still be completed here."""
        # One common gradient is enough to identify the round. This ps may lack other gradients that the asking ps has.
        for known, part in self._rounds:
            if not known.isdisjoint(sources):
                return part
        # If this ps has dropped all of these gradients, it will never make this round, and contributes zero. Without an
        # answer, the ps that asks would wait forever.
        return 0.0 if all(map(self._is_over, sources)) else None

    def _is_over(self, source: Source) -> bool:
        """Returns whether a gradient will not be part of a round here.

        A worker reads here before it pushes. So if the worker of a gradient is unknown here, it has pushed the gradient
        to an earlier incarnation of this task.
        """
        worker, incarnation, number = source
        its, latest, taken = self._acceptances.get(worker, (0, 0, False))
        return its != incarnation or latest > number or (latest == number and not taken)


class _Other:
    """The connection to another ``ps``, used by one thread at a time."""

    def __init__(self, name: str, task: str, other: str, link: ServerLink) -> None:
        self._name = name
        self._task = task
        self._other = other
        self._link = link
        self._channel: Channel | None = None

    def part(self, sources: Sequence[Source]) -> float:
        """Returns the other task's part of a round; see `RoundSums.total`."""
        # The request only reads, so it can be repeated after a lost connection.
        frame = Frame(kinds.ROUND_SUM, (self._name, list(sources)))
        while True:
            try:
                if self._channel is None:
                    self._link.reach()
                    self._channel = self._link.open_channel()
                self._channel.send(frame)
                return self._answer(self._channel)
            except UnavailableError as error:
                _log.warning("%s lost %s, which must send a part of a norm: %s", self._task, self._other, error.message)
                self._drop()
            except OpError:
                self._drop()
                raise

    def _drop(self) -> None:
        if self._channel is not None:
            self._link.release_channel(self._channel, False)
            self._channel = None

    def _answer(self, channel: Channel) -> float:
        while True:
            try:
                frame = channel.recv(SILENCE_S)
            except DeadlineExceededError:
                _log.info("%s waits for %s to send a part of a norm", self._task, self._other)
                continue
            match frame.kind, frame.header:
                case kinds.DONE, (float(part),):
                    return part
                case kinds.WAIT, (str(what),):
                    _log.info("%s waits for %s: %s", self._task, self._other, what)
                case kinds.ERROR, _:
                    raise_error(frame, self._other)
                case _:
                    raise bad_header(frame, self._other)


def _source(words: object, channel: Channel) -> Source:
    match words:
        case (str(worker), int(incarnation), int(number)):
            return worker, incarnation, number
        case _:
            raise InvalidArgumentError(f"{channel.peer} asked for a part of a norm of {words!r}")
