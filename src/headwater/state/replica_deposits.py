"""Handoff of the last replica of a shard to the chief, which keeps it until a process of job ``ps`` serves again.

If all processes that have a replica shut down while the job continues, the last primary feeds the chief as it would
feed a backup (`headwater.state.feed`). The chief keeps the frames as the parts of a deposited state
(`headwater.cluster.task.deposited_states`). Part ``n`` has the tensors of frame ``n``. Its words (the values beside the
tensors) are the frame's kind and header. The words of the whole state are (number of parts,).

The key of a deposited state is the name of the replica and the *term* in which the replica served. If all replicas of a
view are lost, the witness creates a view with the next term. The primary of this view is empty, and restores the state
that was deposited in the preceding term, if any. State deposited in earlier terms is outdated, because later primaries
may have changed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.deposited_states import DepositedStates, FetchedState, StateAtChief
from headwater.cluster.task.exchange import ChannelSource
from headwater.cluster.transport.frames import Frame

_PREFIX: Final = "copy "


class ChiefFeedChannel:
    """The channel of a feed to the chief; `send` returns once the chief has the frame.

    Args:
      storage: stores the frames on the chief.

    Attributes:
      peer: the chief's name.
    """

    def __init__(self, storage: StateAtChief) -> None:
        self.peer: str = storage.chief
        self._storage = storage
        self._count = 0
        self._last: object = 0

    def send(self, frame: Frame) -> None:
        """Stores a frame on the chief.

        Raises:
          OpError: the chief has not confirmed the frame, but may have stored it.
        """
        self._storage.deposit_part(self._count, (frame.kind, *frame.header), frame.tensors)
        self._count += 1
        self._last = frame.header[0]

    def recv(self, timeout_s: float | None = None) -> Frame:
        """Returns the confirmation of the last frame sent, without waiting: `send` has waited for it."""
        del timeout_s
        return Frame(kinds.DONE, (self._last,))

    def close(self) -> None:
        """Does nothing, because there is no connection."""

    def end(self) -> None:
        """Completes the deposited state. An incomplete one cannot be restored.

        Raises:
          OpError: the chief has not confirmed the end, but may have completed the state.
        """
        self._storage.deposit((self._count,), ())


class ReplicaDeposits:
    """Deposits the state of replicas with the chief, and restores it. Used on a ``ps``.

    Args:
      chief: the chief's name.
      link: a link to the chief.

    Attributes:
      chief: as given.
    """

    def __init__(self, chief: str, link: ChannelSource) -> None:
        self.chief: str = chief
        self._link = link

    def require_chief(self) -> None:
        """Raises UnavailableError if the chief cannot be reached."""
        self._storage("", 0).require_chief()

    def _storage(self, name: str, term: int) -> StateAtChief:
        return StateAtChief(_PREFIX + name, term, self.chief, self._link)

    def open_feed(self, name: str, term: int) -> ChiefFeedChannel:
        """Returns a channel over which a replica's state is sent to the chief.

        Args:
          name: the name of the replica.
          term: the term in which it serves.
        """
        return ChiefFeedChannel(self._storage(name, term))

    def find(self, name: str, term: int) -> Iterator[Frame]:
        """Yields the frames that a replica deposited in ``term``, if any. After the last, the chief discards them.

        Raises:
          OpError: the chief cannot be reached, or does not answer.
        """
        fetched = self._storage(name, term).fetch()
        if fetched is not None:
            yield from _frames(fetched, self.chief)
            fetched.discard_at_chief()


def _frames(fetched: FetchedState, chief: str) -> Iterator[Frame]:
    match fetched.words:
        case (int(count),):
            pass
        case words:
            raise bad_header(Frame(kinds.DONE, tuple(words)), chief)
    for at in range(count):
        part = fetched.part(at)
        match part.header:
            case (int(kind), *header):
                yield Frame(kind, tuple(header), part.tensors)
            case _:
                raise bad_header(part, chief)


def forget_outdated(deposits: DepositedStates, name: str, shard: int, term: int) -> None:
    """Discards, on the chief, the state of a shard that replicas deposited in terms below ``term``.

    Args:
      deposits: the deposited states.
      name: the name of the set.
      shard: the number of the shard.
      term: the first term whose state is storage.
    """
    deposits.forget(f"{_PREFIX}{name}/{shard}", term)
