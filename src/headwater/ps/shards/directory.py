"""What a task knows of where shards are, and how tasks tell each other.

On a channel of its own, whose first frame names the set; an answer may be preceded by WAIT frames::

    WHERE   (set, asker, places, begins, leaves)   answered by DONE (places, whether it takes further shards, whether
                                            the job is over, (shard, bytes, bytes that travel per second, second) of
                                            each that it has). A ``ps`` that ``begins`` has nothing: what it was about
                                            to give before is void; to one that ``leaves``, no copies go. ``second`` is
                                            the ``ps`` that has the other copy of the shard, empty where none has, and
                                            None where there is one copy of each
    MOVE    (set, shard, target, address)   asks the ``ps`` that has a shard to give it to another one; answered by DONE
                                            (seconds for which workers could not have it, bytes)
    MOVE    (set, shard, primary, address, second, address)   the same where there are two copies: the two ``ps`` that
                                            are to have them, the one that serves first. Answered when they do, or when
                                            another one serves, which goes on with that
    OFFER   (set, shard, term, source, places, knobs)   from the ``ps`` that has it: it is about to give a shard;
                                            answered by DONE (whether that is welcome). Then, on the same channel,
    STATE   (names, memory)                 the values of its blocks, then the optimizer's state, of these names; and
                                            what `headwater.ps.host_memory.HostMemory.words` says; answered by
                                            DONE (whether it has the shard now)
    TOOK    (set, shard, term)              whether it has taken the shard with that term; where it has not, it never
                                            will. Answered by DONE (whether it has)

``places`` are as `headwater.ps.shards.places.Places.words` has them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.exchange import exchange
from headwater.cluster.transport.frames import Frame
from headwater.errors import OpError
from headwater.ps.shards.places import Place, Places

if TYPE_CHECKING:
    from headwater.state.sites import PeerServerLink

_log = logging.getLogger("headwater")

#: How long another task may take to say where shards are, in seconds.
TELL_S: Final = 2.0

#: The way to a ``ps``, by its name and address.
LinkTo = Callable[[str, str], "PeerServerLink"]


class Expect(Protocol):
    """Has this task not end with the job before some workers have come to it; see `TaskShell.expect`."""

    def __call__(self, tasks: Collection[str], *, coming: bool = True) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a shard makes its ``ps`` do.

    Attributes:
      nbytes: of its values.
      rate: bytes that travel per second.
      second: the ``ps`` that has its other copy, empty where none has; None where there is one copy of each.
    """

    nbytes: int
    rate: float
    second: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a ``ps`` says of itself.

    Attributes:
      takes: whether it takes further shards.
      over: whether it has heard that the job is over.
      loads: of the shards that it has, by number.
    """

    takes: bool
    over: bool
    loads: Mapping[int, Load]


class Directory:
    """Where the shards of a set are, as far as this task knows. Used by several threads.

    Args:
      name: of the set.
      me: this task's name.
      addresses: of the ``ps`` that are known at the beginning, by name.
      link: gives the way to one.

    Attributes:
      name: of the set.
      me: this task's name.
    """

    def __init__(self, name: str, me: str, addresses: Mapping[str, str], link: LinkTo) -> None:
        self.name: str = name
        self.me: str = me
        self._link = link
        self._lock = threading.Lock()
        self._places = Places(addresses=dict(addresses))

    def of(self, shard: int) -> Place | None:
        """Where a shard is; None where that is not known."""
        with self._lock:
            return self._places.shards.get(shard)

    def words(self) -> Any:
        """What is known, for another task."""
        with self._lock:
            return self._places.words()

    def places(self) -> dict[int, Place]:
        """Where each shard is that is known."""
        with self._lock:
            return dict(self._places.shards)

    def servers(self) -> list[str]:
        """Every ``ps`` that was heard of."""
        with self._lock:
            return sorted(self._places.addresses)

    def address(self, task: str) -> str:
        """Where a ``ps`` is."""
        with self._lock:
            return self._places.addresses[task]

    def learn(self, other: Places) -> list[int]:
        """Takes what another task knows; the shards that are elsewhere than was known."""
        with self._lock:
            return self._places.learn(other)

    def note(self, shard: int, term: int, task: str, address: str = "") -> None:
        """A shard has moved."""
        addresses = {task: address} if address else {}
        self.learn(Places(shards={shard: Place(term, task)}, addresses=addresses))

    def note_address(self, task: str, address: str) -> None:
        """A ``ps`` says where it is; it may have been elsewhere before."""
        with self._lock:
            self._places.addresses[task] = address

    def link(self, task: str) -> PeerServerLink:
        """The way to a ``ps`` that was heard of."""
        return self._link(task, self.address(task))

    def exchange(self, task: str, frame: Frame, within_s: float) -> Frame:
        """The answer of a ``ps`` on a channel of its own.

        Raises:
          OpError: it cannot be reached, does not answer in time, or says that something went wrong.
        """
        return exchange(self.link(task), task, frame, within_s)

    def ask(
        self, task: str, *, begins: bool = False, leaves: bool = False, within_s: float = TELL_S
    ) -> tuple[Told, list[int]]:
        """Asks a ``ps`` what it knows, and tells it what is known here.

        Returns:
          What it says of itself, and the shards that are elsewhere than was known.

        Raises:
          OpError: see `exchange`.
        """
        answer = self.exchange(task, Frame(kinds.WHERE, (self.name, self.me, self.words(), begins, leaves)), within_s)
        match answer.header:
            case (words, bool(takes), bool(over), [*loads]):
                moved = self.learn(Places.of(words))
            case _:
                raise bad_header(answer, task)
        try:
            told = {
                int(shard): Load(nbytes=int(nbytes), rate=float(rate), second=None if second is None else str(second))
                for shard, nbytes, rate, second in loads
            }
        except (TypeError, ValueError) as error:
            raise bad_header(answer, task) from error
        return Told(takes=takes, over=over, loads=told), moved

    def ask_all(self, *, but_lost: bool = False) -> dict[str, Told]:
        """Asks every ``ps`` that was heard of, perhaps all but those that show no sign of life; what those say that
        answer."""
        found: dict[str, Told] = {}
        asked: set[str] = set()
        while left := [task for task in self.servers() if task not in asked and task != self.me]:
            task = left[0]
            asked.add(task)
            if but_lost and self.link(task).lost():
                continue
            try:
                found[task], _ = self.ask(task)
            except OpError as error:
                _log.debug("%s does not say where the shards of %r are: %s", task, self.name, error.message)
        return found
