"""The witness, which creates the views of all shards. It runs on the chief.

The witness stores nothing on disk: after a restart of the chief, the replicas report the current views to it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Protocol

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, raise_error
from headwater.cluster.task.deposited_states import DepositedStates
from headwater.cluster.task.service import Service
from headwater.cluster.task.waiting import SILENCE_S
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import InvalidArgumentError, UnavailableError
from headwater.state.replica_deposits import forget_outdated
from headwater.state.views import Copy, RequestKind, View, Witness, WitnessRequest, apply_request, as_words, from_words

_log = logging.getLogger("headwater")

#: Sends a replica's request to the witness: (set, shard, request). Returns the view of the shard; None while the
#: witness waits for reports of other replicas.
RequestView = Callable[[str, int, WitnessRequest], "View | None"]


class Witnesses:
    """The witness's knowledge of all shards of all sets.

    Args:
      deposits: the states that replicas have deposited with the chief.
    """

    def __init__(self, deposits: DepositedStates) -> None:
        self._lock = threading.Lock()
        self._deposits = deposits
        self._known: dict[tuple[str, int], Witness] = {}

    def request_view(self, name: str, shard: int, request: WitnessRequest) -> View | None:
        """Returns the view of a shard after ``request``; None until the replicas have reported their views."""
        with self._lock:
            before = self._known.get((name, shard)) or Witness()
            after = self._known[name, shard] = apply_request(before, request)
        if after.view is not None and after.view != before.view:
            _log.log(
                logging.INFO if after.view.backup is not None else logging.WARNING,
                "the witness has created a view of shard %d of %r: %s",
                shard,
                name,
                after.view,
            )
            if before.view is not None:
                continues = after.view.primary in before.view
                forget_outdated(self._deposits, name, shard, after.view.term if continues else before.view.term)
        return after.view

    def view(self, name: str, shard: int) -> View | None:
        """Returns the current view of a shard; None before the first."""
        with self._lock:
            known = self._known.get((name, shard))
            return known.view if known is not None else None


class WitnessService(Service):
    """Answers requests of replicas, on the chief.

    Args:
      deposits: the states that replicas have deposited with the chief.
    """

    kinds: ClassVar[Collection[int]] = (kinds.VIEW,)

    def __init__(self, deposits: DepositedStates) -> None:
        self._witnesses = Witnesses(deposits)

    def serve(self, channel: Channel, first: Frame) -> None:
        frame = first
        while True:
            match frame.kind, frame.header:
                case kinds.VIEW, (str(name), int(shard), request):
                    view = self._witnesses.request_view(name, shard, _request_of(request, channel))
                    channel.send(Frame(kinds.DONE, (as_words(view),)))
                case _:
                    raise bad_header(frame, channel.peer)
            frame = channel.recv()


def _request_of(words: Any, channel: Channel) -> WitnessRequest:
    try:
        match words:
            case ((int(ps), int(incarnation)), view, int(kind), other, int(home), [*among]):
                me, numbers = Copy(ps, incarnation), tuple(int(number) for number in among)
                return WitnessRequest(me, from_words(view), RequestKind(kind), _copy_of(other), home, numbers)
            case _:
                raise ValueError(f"malformed request: {words!r}")
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{channel.peer} sent a malformed request for a view") from error


def _copy_of(words: object) -> Copy | None:
    match words:
        case None:
            return None
        case (int(ps), int(incarnation)):
            return Copy(ps, incarnation)
        case _:
            raise ValueError(f"malformed replica: {words!r}")


class ChannelLink(Protocol):
    """A link to another task."""

    def open_channel(self) -> Channel:
        """Returns a channel to the task; end it with `release_channel`."""
        ...

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Returns a channel after use. If ``usable`` is False, the channel is closed instead of being reused."""
        ...


class RemoteWitness:
    """Asks the witness on another task. Any thread may use it.

    Args:
      link: a link to that task.
      task: the name of that task.
    """

    def __init__(self, link: ChannelLink, task: str) -> None:
        self._link = link
        self._task = task
        self._lock = threading.Lock()
        self._channel: Channel | None = None

    def request_view(self, name: str, shard: int, request: WitnessRequest) -> View | None:
        """Sends a request to the witness, and returns its answer; see `Witnesses.request_view`.

        Raises:
          UnavailableError: the witness cannot be reached, or its answer was lost; ask again.
          CancelledError: this task is stopping.
        """
        me, other = tuple(request.me), request.other and tuple(request.other)
        words = (me, as_words(request.view), request.kind.value, other, request.home, list(request.among))
        with self._lock:
            if self._channel is None:
                self._channel = self._link.open_channel()
            try:
                self._channel.send(Frame(kinds.VIEW, (name, shard, words)))
                answer = self._channel.recv(SILENCE_S)
            except BaseException:
                self._link.release_channel(self._channel, False)
                self._channel = None
                raise
        match answer.kind, answer.header:
            case kinds.DONE, (view,):
                return from_words(view)
            case kinds.ERROR, _:
                raise_error(answer, self._task)
            case _:
                pass
        raise UnavailableError(f"{self._task} sent a malformed view")
