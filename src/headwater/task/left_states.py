"""The state of a ``ps`` that was told to end, which the chief keeps until that ``ps`` is back.

For graphs, Keras and JAX. Frames to the chief, on a channel of their own::

    LEAVE_STATE (what, number, *words)   the state of something on that ``ps``; answered by DONE ()
    FETCH_STATE (what, number)           answered by DONE (mark, *words) with the same tensors, and with DONE () where
                                         there is none
    DROP_STATE  (what, number, mark)     the ``ps`` has that state, and is about to go on with it: the chief has it no
                                         more, so that no later life begins with it; answered by DONE ()

Each may be said again where the channel is lost before the answer.

A ``ps`` whose chief does not answer begins without its state, which is old when a later life asks for it. So the chief
drops it once its own program has met a life that began without it, see `LeftStates.met`.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final

from headwater.task import kinds
from headwater.task.answers import bad_header
from headwater.task.exchange import GivesChannels, exchange, take_within
from headwater.task.service import Service
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")

#: How long the chief may take to answer, in seconds: longer than it may hold the interpreter's lock (docs/faults.md).
CHIEF_S: Final = 30.0
#: How often it is asked where a channel is lost before the answer.
_TRIES: Final = 3


class LeftStates(Service):
    """On the chief: keeps the states of ``ps`` that have ended, until they are back."""

    kinds: ClassVar[Collection[int]] = (kinds.LEAVE_STATE, kinds.FETCH_STATE, kinds.DROP_STATE)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks = itertools.count(1)
        #: With the generation of the life that has left it.
        self._kept: dict[tuple[str, int], tuple[int, Frame]] = {}

    def serve(self, channel: Channel, first: Frame) -> None:
        answer = Frame(kinds.DONE)
        with self._lock:
            match first.kind, first.header:
                case kinds.LEAVE_STATE, (str(what), int(index), *words):
                    kept = Frame(kinds.DONE, (next(self._marks), *words), first.tensors)
                    self._kept[what, index] = channel.peer_generation, kept
                case kinds.FETCH_STATE, (str(what), int(index)):
                    _, answer = self._kept.get((what, index), (0, answer))
                case kinds.DROP_STATE, (str(what), int(index), int(mark)):
                    _, kept = self._kept.get((what, index), (0, answer))
                    if kept.header[:1] == (mark,):
                        del self._kept[what, index]
                case _:
                    raise bad_header(first, channel.peer)
        channel.send(answer)

    def met(self, what: str, index: int, generation: int) -> None:
        """The chief's program has met a life of a ``ps`` that has begun, and so has asked for its state: what another
        life has left is of no use any more.

        Args:
          what: of which the state would be.
          index: its number.
          generation: of that life.
        """
        with self._lock:
            left_by, _ = self._kept.get((what, index), (generation, None))
            if left_by == generation:
                return
            del self._kept[what, index]
        _log.warning("what a ps has left of %r, number %d, is kept no more: it went on without that", what, index)


class StateAtChief:
    """On a ``ps``: leaves the state of something with the chief, and fetches it.

    Args:
      what: its name.
      index: the number of this ``ps``.
      chief: the name of the chief.
      link: to that.

    Attributes:
      chief: as given.
    """

    def __init__(self, what: str, index: int, chief: str, link: GivesChannels) -> None:
        self.chief: str = chief
        self._place = what, index
        self._link = link

    def require_chief(self) -> None:
        """Raises UnavailableError where the chief cannot be reached."""
        self._link.give_back(take_within(self._link, self.chief, CHIEF_S), False)

    def leave(self, words: Sequence[object], tensors: Sequence[Any]) -> None:
        """Leaves a state.

        Raises:
          OpError: the chief does not have it, as far as is known.
        """
        self._ask(Frame(kinds.LEAVE_STATE, (*self._place, *words), tensors))

    def fetch(self) -> Frame | None:
        """A frame with the words and tensors that were left, which the chief has no more then; None where it has none.

        Raises:
          OpError: the chief cannot be reached, or does not answer.
        """
        answer = self._ask(Frame(kinds.FETCH_STATE, self._place))
        match answer.header:
            case ():
                return None
            case (int(mark), *words):
                self._ask(Frame(kinds.DROP_STATE, (*self._place, mark)))
                return answer._replace(header=words)
            case _:
                raise bad_header(answer, self.chief)

    def _ask(self, frame: Frame) -> Frame:
        return exchange(self._link, self.chief, frame, CHIEF_S, _TRIES)
