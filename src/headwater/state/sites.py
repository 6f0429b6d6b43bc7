"""Where copies are: the processes that may have some, the ways to them, and what a copy knows of its own place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.cluster.transport.channel import Channel
from headwater.errors import UnavailableError
from headwater.state.left_copies import LeftCopies
from headwater.state.witness import Ask

#: How long a second waits for its primary by default, in seconds.
GRACE_S = 0.8


class PeerServerLink(Protocol):
    """The way to another ``ps``."""

    def reach(self, deadline_s: float | None = None) -> object: ...

    def take_now(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...

    def watch(self, channel: Channel) -> None: ...

    def lost(self) -> bool: ...


class Processes(Protocol):
    """The processes of job ``ps`` that may have a copy, by number, as this one knows them. They may change."""

    def numbers(self) -> Sequence[int]:
        """Of all that there are, in order; this one among them."""
        ...

    def staying(self) -> Sequence[int]:
        """Of those of them that are not about to end, in order."""
        ...

    def name(self, number: int) -> str:
        """What a process is called; also one that is gone."""
        ...

    def link(self, number: int) -> PeerServerLink:
        """The way to another process.

        Raises:
          UnavailableError: it is not known.
        """
        ...


def shows_life(processes: Processes, number: int) -> bool:
    """Whether a process may be there, as far as is known."""
    try:
        return not processes.link(number).lost()
    except UnavailableError:
        return False  # it has just gone


@dataclass(frozen=True, slots=True)
class FixedProcesses:
    """`Processes` that stay the same.

    Attributes:
      me: number of this one.
      task: its name.
      others: name of, and way to, each other one, by number.
    """

    me: int
    task: str
    others: Mapping[int, tuple[str, PeerServerLink]]

    def numbers(self) -> Sequence[int]:
        return sorted({self.me, *self.others})

    def staying(self) -> Sequence[int]:
        return self.numbers()

    def name(self, number: int) -> str:
        return self.task if number == self.me else self.others[number][0]

    def link(self, number: int) -> PeerServerLink:
        return self.others[number][1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """Where a copy is, and what it knows of others.

    Attributes:
      ps: number of this ``ps``.
      pair: the numbers of the ``ps`` that have copies at the beginning; first of that which serves.
      processes: that may have copies.
      ask: asks the witness, see `headwater.state.witness`.
      left: where a copy is left that no other process will have; None where that is lost.
      grace_s: how long a second waits for its primary to come back before it asks to serve, in seconds.
    """

    ps: int
    pair: tuple[int, int]
    processes: Processes
    ask: Ask
    left: LeftCopies | None = None
    grace_s: float = GRACE_S

    @property
    def task(self) -> str:
        """This task's name."""
        return self.processes.name(self.ps)
