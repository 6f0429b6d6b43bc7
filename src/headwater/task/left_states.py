"""The state of a ``ps`` that was told to end, which the chief keeps until that ``ps`` is back.

For graphs, Keras and JAX. Frames to the chief, on a channel of their own::

    LEAVE_STATE (what, number, *words)   the state of something on that ``ps``; answered by DONE ()
    FETCH_STATE (what, number)           answered by DONE (mark, *words) with the same tensors, and with DONE () where
                                         there is none
    DROP_STATE  (what, number, mark)     the ``ps`` has that state, and is about to go on with it: the chief has it no
                                         more, so that no later life begins with it; answered by DONE ()

Each may be said again where the channel is lost before the answer.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final

from headwater.task import kinds
from headwater.task.answers import bad_header
from headwater.task.exchange import GivesChannels, exchange
from headwater.task.service import Service
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

#: How long the chief may take to answer, in seconds.
CHIEF_S: Final = 20.0
#: How often it is asked where a channel is lost before the answer.
_TRIES: Final = 3


class LeftStates(Service):
    """On the chief: keeps the states of ``ps`` that have ended, until they are back."""

    kinds: ClassVar[Collection[int]] = (kinds.LEAVE_STATE, kinds.FETCH_STATE, kinds.DROP_STATE)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marks = itertools.count(1)
        self._kept: dict[tuple[str, int], Frame] = {}

    def serve(self, channel: Channel, first: Frame) -> None:
        answer = Frame(kinds.DONE)
        with self._lock:
            match first.kind, first.header:
                case kinds.LEAVE_STATE, (str(what), int(index), *words):
                    self._kept[what, index] = Frame(kinds.DONE, (next(self._marks), *words), first.tensors)
                case kinds.FETCH_STATE, (str(what), int(index)):
                    answer = self._kept.get((what, index), answer)
                case kinds.DROP_STATE, (str(what), int(index), int(mark)):
                    if self._kept.get((what, index), answer).header[:1] == (mark,):
                        del self._kept[what, index]
                case _:
                    raise bad_header(first, channel.peer)
        channel.send(answer)


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
        self._link.give_back(self._link.take_now(), False)

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
