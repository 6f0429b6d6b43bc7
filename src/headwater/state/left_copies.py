"""A copy that no other process of job ``ps`` will have: the chief keeps it until one serves in its place.

Where all processes that have a copy end, though the job goes on, the primary feeds the chief as it would feed a second
copy (`headwater.state.feed`), and the chief keeps the frames (`headwater.cluster.task.left_states`): part ``n`` of what
is left has the words (kind, header...) and the tensors of frame ``n``, and the words of the whole are (how many,).

It is kept under the name of the copy and the *term* in which that served. Where all copies of a view are lost, the
witness makes the view of the next term, whose primary has nothing: it goes on with what was left in the term before,
if anything was. From what was left in a term before that, others have gone on since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headwater.cluster.task import kinds
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.exchange import GivesChannels
from headwater.cluster.task.left_states import FetchedState, LeftStates, StateAtChief
from headwater.cluster.transport.frames import Frame

_PREFIX: Final = "copy "


class ChiefFeedChannel:
    """The channel of a feed to the chief: each frame is confirmed once the chief has it.

    Args:
      kept: where the frames go.

    Attributes:
      peer: the chief.
    """

    def __init__(self, kept: StateAtChief) -> None:
        self.peer: str = kept.chief
        self._kept = kept
        self._count = 0
        self._last: object = 0

    def send(self, frame: Frame) -> None:
        """Has the chief keep a frame.

        Raises:
          OpError: it does not have it, as far as is known.
        """
        self._kept.leave_part(self._count, (frame.kind, *frame.header), frame.tensors)
        self._count += 1
        self._last = frame.header[0]

    def recv(self, timeout_s: float | None = None) -> Frame:
        """What confirms the last frame."""
        del timeout_s
        return Frame(kinds.DONE, (self._last,))

    def close(self) -> None:
        """Nothing is held open."""

    def end(self) -> None:
        """All frames have come: from now on what they bring is left.

        Raises:
          OpError: the chief has not heard so, as far as is known.
        """
        self._kept.leave((self._count,), ())


class LeftCopies:
    """On a ``ps``: leaves copies with the chief, and finds those that were left.

    Args:
      chief: its name.
      link: to that.

    Attributes:
      chief: as given.
    """

    def __init__(self, chief: str, link: GivesChannels) -> None:
        self.chief: str = chief
        self._link = link

    def require_chief(self) -> None:
        """Raises UnavailableError where the chief cannot be reached."""
        self._kept("", 0).require_chief()

    def _kept(self, name: str, term: int) -> StateAtChief:
        return StateAtChief(_PREFIX + name, term, self.chief, self._link)

    def leave(self, name: str, term: int) -> ChiefFeedChannel:
        """A channel to feed the chief with what a copy has.

        Args:
          name: of the copy.
          term: in which it serves.
        """
        return ChiefFeedChannel(self._kept(name, term))

    def find(self, name: str, term: int) -> Iterator[Frame]:
        """The frames of a copy that served in a term, where that was left; after the last, it is left no more.

        Raises:
          OpError: the chief cannot be reached, or does not answer.
        """
        fetched = self._kept(name, term).fetch()
        if fetched is not None:
            yield from _frames(fetched, self.chief)
            fetched.taken()


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


def forget_outdated(left: LeftStates, name: str, shard: int, term: int) -> None:
    """On the chief: drops what copies of a shard have left in terms below ``term``, as no process goes on with it.

    Args:
      left: what was left.
      name: of the set.
      shard: its number.
      term: see above.
    """
    left.forget(f"{_PREFIX}{name}/{shard}", term)
