"""Locations of replicas: the processes that may have replicas, links to them, and the location of a replica itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.cluster.task.exchange import ChannelSource
from headwater.cluster.transport.channel import Channel
from headwater.errors import UnavailableError
from headwater.state.replica_deposits import ReplicaDeposits
from headwater.state.witness import RequestView

#: How long a backup waits for its primary by default, in seconds.
GRACE_S = 0.8


class PeerServerLink(ChannelSource, Protocol):
    """A link to another ``ps``."""

    def reach(self, deadline_s: float | None = None) -> object:
        """Waits until the ``ps`` can be reached, for at most ``deadline_s`` seconds (0: one attempt).

        Raises:
          OpError: the ``ps`` could not be reached in that time.
        """
        ...

    def watch(self, channel: Channel) -> None:
        """Registers a channel that the other ``ps`` opened: it is closed when that ``ps`` is lost."""
        ...

    def is_lost(self) -> bool:
        """Returns whether the ``ps`` was reachable before and is lost now, as far as is known."""
        ...


class Processes(Protocol):
    """The processes of job ``ps`` that may have a replica, by number, as far as this process knows.

    Processes may be added and removed while the job runs.
    """

    def numbers(self) -> Sequence[int]:
        """Returns the numbers of all processes, this one included, in order."""
        ...

    def staying(self) -> Sequence[int]:
        """Returns the numbers of the processes that are not shutting down, in order."""
        ...

    def name(self, number: int) -> str:
        """Returns the name of a process, even if the process has exited."""
        ...

    def link(self, number: int) -> PeerServerLink:
        """Returns the link to another process.

        Raises:
          UnavailableError: the process is not known.
        """
        ...


def may_be_reachable(processes: Processes, number: int) -> bool:
    """Returns whether a process is known and is not known to be lost."""
    try:
        return not processes.link(number).is_lost()
    except UnavailableError:
        return False  # the process has just been removed


@dataclass(frozen=True, slots=True)
class FixedProcesses:
    """`Processes` that stay the same.

    Attributes:
      me: the number of this process.
      task: the name of this process.
      others: the name of each other process, and the link to it, by number.
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
    """The location of a replica, and its access to the other processes.

    Attributes:
      ps: the number of this ``ps``.
      initial: the numbers of the ``ps`` that have replicas when the job starts, the primary's first. One number: the
        shard has one replica, and a backup only while it moves. Two numbers: the shard always has a backup.
      processes: the processes that may have replicas.
      request_view: sends a request to the witness, see `headwater.state.witness`.
      deposits: deposits the state of a last replica with the chief; None if that state is lost with its process.
      grace_s: how long a backup waits for its primary to reconnect before it asks to serve, in seconds.
    """

    ps: int
    initial: tuple[int, ...]
    processes: Processes
    request_view: RequestView
    deposits: ReplicaDeposits | None = None
    grace_s: float = GRACE_S

    @property
    def has_backup(self) -> bool:
        """Whether the shard always has a backup."""
        return len(self.initial) > 1

    @property
    def task(self) -> str:
        """This task's name."""
        return self.processes.name(self.ps)
