"""Handoff of the state of a ``ps`` that shuts down: the chief keeps the state until the ``ps`` has restarted.

Used by graphs, Keras and JAX. Frames to the chief, each exchange on a new channel::

    DEPOSIT_PART  (what, number, at, *words)   stores part ``at`` of the state that the ``ps`` will deposit next, for
                                          example rows of tables, which do not fit into one frame; answered by DONE ()
    DEPOSIT_STATE (what, number, *words)  stores a state of the ``ps`` and completes it; answered by DONE ()
    FETCH_STATE   (what, number)          answered by DONE (mark, *words) with the tensors of the state, or by DONE ()
                                          if there is no state
    FETCH_PART    (what, number, mark, at)   part ``at`` of the state with that mark; answered by DONE (*words)
    DROP_STATE    (what, number, mark)    the ``ps`` has restored the state with that mark and is about to serve it: the
                                          chief discards the state, so that no later incarnation restores it; answered
                                          by DONE ()

All requests are idempotent: a request may be repeated if its channel was lost before the answer.

If the chief does not answer, a ``ps`` starts without its deposited state, and workers update other values. Then the
deposited state is outdated, and no later incarnation may restore it. So the chief discards the state once its own
program has connected to an incarnation that started without it; see `DepositedStates.discard_outdated`.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header, error_frame
from headwater.cluster.task.exchange import ChannelSource, exchange, open_channel_within
from headwater.cluster.task.service import Service
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.data.io.array_file import ArrayFile, Stored
from headwater.errors import NotFoundError, OpError

_log = logging.getLogger("headwater")

#: Approximate size of a part of a state, in bytes.
PART_BYTES: Final = 8 << 20
#: How long the chief may take to answer, in seconds: longer than it may hold the GIL (docs/faults.md).
CHIEF_TIMEOUT_S: Final = 30.0
#: Maximum number of attempts to send a request, if channels are lost before the answer.
_TRIES: Final = 3


# The words of a part, and its tensors: their place in the file, or the tensors themselves if they hold Python objects.
_Part = tuple[Sequence[object], "Stored | Sequence[Any]"]


@dataclass(kw_only=True, slots=True)
class _Deposit:
    """The state that one incarnation of a ``ps`` deposits.

    Attributes:
      by: the generation of that incarnation.
      state: the answer to FETCH_STATE; None until all parts have arrived.
      mark: the number that identifies the state.
      parts: the parts, by number.
      file: the file with their tensors; None without parts.
    """

    by: int
    state: Frame | None = None
    mark: int = 0
    parts: dict[int, _Part] = field(default_factory=dict[int, _Part])
    file: ArrayFile | None = None

    def add(self, at: int, words: Sequence[object], tensors: Sequence[Any]) -> None:
        """Stores a part."""
        self.file = self.file or ArrayFile()
        # A file cannot hold references to Python objects, such as strings.
        in_memory = any(np.asarray(tensor).dtype.hasobject for tensor in tensors)
        self.parts[at] = words, tensors if in_memory else self.file.add(tensors)

    def part(self, at: int) -> Frame:
        """Returns the answer to FETCH_PART.

        Raises:
          NotFoundError: there is no such part.
        """
        if self.file is None or at not in self.parts:
            raise NotFoundError(f"the deposited state has no part {at}")
        words, stored = self.parts[at]
        return Frame(kinds.DONE, words, self.file.read(stored) if isinstance(stored, Stored) else stored)


class DepositedStates(Service):
    """Service of the chief: keeps the deposited states of ``ps`` that have shut down, until these have restarted."""

    kinds: ClassVar[Collection[int]] = (
        kinds.DEPOSIT_PART,
        kinds.DEPOSIT_STATE,
        kinds.FETCH_STATE,
        kinds.FETCH_PART,
        kinds.DROP_STATE,
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks = itertools.count(1)
        self._deposits: dict[tuple[str, int], _Deposit] = {}

    def serve(self, channel: Channel, first: Frame) -> None:
        try:
            with self._lock:
                answer = self._answer(channel, first)
        except (OpError, MemoryError) as error:
            answer = error_frame(0, error, "the chief")
        channel.send(answer)

    def _answer(self, channel: Channel, frame: Frame) -> Frame:
        match frame.kind, frame.header:
            case kinds.DEPOSIT_PART, (str(what), int(index), int(at), *words):
                self._entry(what, index, channel.peer_generation).add(at, words, frame.tensors)
            case kinds.DEPOSIT_STATE, (str(what), int(index), *words):
                deposit = self._entry(what, index, channel.peer_generation)
                # A new mark for each state, so that a late FETCH_PART or DROP_STATE cannot refer to a newer state.
                deposit.mark = next(self._marks)
                deposit.state = Frame(kinds.DONE, (deposit.mark, *words), frame.tensors)
            case kinds.FETCH_STATE, (str(what), int(index)):
                deposit = self._deposits.get((what, index))
                if deposit is not None and deposit.state is not None:
                    return deposit.state
            case kinds.FETCH_PART, (str(what), int(index), int(mark), int(at)):
                deposit = self._deposits.get((what, index))
                if deposit is None or deposit.mark != mark:
                    raise NotFoundError(f"no deposited state {mark} of {what!r} of {channel.peer} exists")
                return deposit.part(at)
            case kinds.DROP_STATE, (str(what), int(index), int(mark)):
                deposit = self._deposits.get((what, index))
                if deposit is not None and deposit.mark == mark:
                    del self._deposits[what, index]
            case _:
                raise bad_header(frame, channel.peer)
        return Frame(kinds.DONE)

    def _entry(self, what: str, index: int, by: int) -> _Deposit:
        """Returns the entry for the state of an incarnation. A new entry replaces the entry of an earlier
        incarnation."""
        deposit = self._deposits.get((what, index))
        # Do not mix parts of two incarnations: the earlier incarnation may have ended before its state was complete.
        if deposit is None or deposit.by != by:
            deposit = self._deposits[what, index] = _Deposit(by=by)
        return deposit

    def forget(self, what: str, below: int) -> None:
        """Discards states of ``what`` with a number less than ``below``."""
        with self._lock:
            for key in [key for key in self._deposits if key[0] == what and key[1] < below]:
                del self._deposits[key]

    def discard_outdated(self, what: str, index: int, generation: int) -> None:
        """Discards the deposited state of a ``ps`` to which the chief's program has connected, if it is outdated.

        An incarnation fetches the state before it serves, and the chief drops a state that was restored. So if the
        chief still has a state of an earlier incarnation, the ``ps`` serves without it, and the state is outdated.

        Args:
          what: the name of the state.
          index: the number of the ``ps``.
          generation: the generation of the running incarnation.
        """
        with self._lock:
            deposit = self._deposits.get((what, index))
            if deposit is None or deposit.by == generation:
                return
            del self._deposits[what, index]
        _log.warning("discards the deposited state %r of ps %d: the ps has restarted without it", what, index)


class FetchedState:
    """A deposited state that a ``ps`` has fetched from the chief.

    Args:
      storage: the access to the state on the chief.
      mark: the number that identifies the state.
      words: the words of the state, as they were deposited.
      tensors: the tensors of the state, as they were deposited.
    """

    def __init__(self, storage: StateAtChief, mark: int, words: Sequence[Any], tensors: Sequence[Any]) -> None:
        self._storage = storage
        self._mark = mark
        self.words: Sequence[Any] = words
        self.tensors: Sequence[Any] = tensors

    def part(self, at: int) -> Frame:
        """Fetches a part; returns a frame with its words and tensors.

        Raises:
          OpError: the chief cannot be reached, does not answer, or has no such part.
        """
        return self._storage.request(kinds.FETCH_PART, self._mark, at)

    def discard_at_chief(self) -> None:
        """Discards the state on the chief, as this task is about to serve it.

        Raises:
          OpError: the chief cannot be reached, or does not answer.
        """
        self._storage.request(kinds.DROP_STATE, self._mark)


class StateAtChief:
    """Deposits a state with the chief, and fetches it from there. Used on a ``ps``.

    Args:
      what: the name of the state.
      index: the number of this ``ps``.
      chief: the name of the chief.
      link: a link to the chief.

    Attributes:
      chief: as given.
    """

    def __init__(self, what: str, index: int, chief: str, link: ChannelSource) -> None:
        self.chief: str = chief
        self._place = what, index
        self._link = link

    def require_chief(self) -> None:
        """Raises UnavailableError if the chief cannot be reached."""
        self._link.release_channel(open_channel_within(self._link, self.chief, CHIEF_TIMEOUT_S), False)

    def deposit_part(self, at: int, words: Sequence[object], tensors: Sequence[object]) -> None:
        """Stores a part of the next state on the chief, which discards the parts of an earlier incarnation.

        Raises:
          OpError: the chief has not confirmed the part, but may have stored it.
        """
        self.request(kinds.DEPOSIT_PART, at, *words, tensors=tensors)

    def deposit(self, words: Sequence[object], tensors: Sequence[object]) -> None:
        """Stores the state on the chief, and completes it: from now on it can be fetched.

        Raises:
          OpError: the chief has not confirmed the state, but may have stored it.
        """
        self.request(kinds.DEPOSIT_STATE, *words, tensors=tensors)

    def fetch(self) -> FetchedState | None:
        """Fetches the deposited state; returns None if the chief has none.

        Raises:
          OpError: the chief cannot be reached, or does not answer.
        """
        answer = self.request(kinds.FETCH_STATE)
        match answer.header:
            case ():
                return None
            case (int(mark), *words):
                return FetchedState(self, mark, words, answer.tensors)
            case _:
                raise bad_header(answer, self.chief)

    def request(self, kind: int, *words: object, tensors: Sequence[Any] = ()) -> Frame:
        """Sends a request about this state to the chief (see the module for kinds), and returns the answer.

        Raises:
          OpError: the chief cannot be reached, does not answer, or reports an error.
        """
        return exchange(self._link, self.chief, Frame(kind, (*self._place, *words), tensors), CHIEF_TIMEOUT_S, _TRIES)
