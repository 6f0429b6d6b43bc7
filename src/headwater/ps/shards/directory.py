"""A task's knowledge of the places of shards, and the frames by which tasks exchange it.

Each exchange has a channel of its own, whose first frame names the set. WAIT frames may precede an answer::

    WHERE   (set, asker, places, begins, leaves)   asks a ``ps`` for its known places; ``places`` are the asker's.
                                            Answered by DONE (places, whether it accepts further shards, whether the job
                                            is over, (shard, bytes, bytes transferred per second, backup) of each shard
                                            for which it has the primary). ``begins``: the asker is a ``ps`` that
                                            starts. ``leaves``: the asker is a ``ps`` that shuts down, so no replicas
                                            are sent to it. ``backup`` is the ``ps`` of the shard's backup, empty if
                                            there is none, and None if shards have one replica each
    MOVE    (set, shard, primary, address, backup, address)   asks the ``ps`` with the primary to move the shard to
                                            the ``ps`` for its primary and for its backup; the backup and its address
                                            are empty for a shard with one replica. Answered by DONE (seconds for which
                                            workers could not use the shard, bytes) when the replicas are there, or when
                                            another primary serves, which completes the move

``places`` are the result of `headwater.ps.shards.places.Places.words`.
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
from headwater.ps.shards.places import Places, ShardPlace

if TYPE_CHECKING:
    from headwater.state.sites import PeerServerLink

_log = logging.getLogger("headwater")

#: Timeout of a WHERE request, in seconds.
WHERE_TIMEOUT_S: Final = 2.0

#: Creates a link to a ``ps``, from its name and address.
LinkTo = Callable[[str, str], "PeerServerLink"]


class Expect(Protocol):
    """Makes this task wait, before it ends with the job, until some workers have connected; see `TaskShell.expect`."""

    def __call__(self, tasks: Collection[str], *, awaited: bool = True) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """Load of a shard on its ``ps``.

    Attributes:
      nbytes: size of its values, in bytes.
      rate: bytes sent and received per second.
      backup: the ``ps`` of its backup, empty if there is none; None if shards have one replica each.
    """

    nbytes: int
    rate: float
    backup: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardReport:
    """Report of a ``ps`` on itself.

    Attributes:
      takes: whether the ``ps`` accepts further shards.
      over: whether the ``ps`` knows that the job is over.
      loads: the load of each shard of the ``ps``, by number.
    """

    takes: bool
    over: bool
    loads: Mapping[int, Load]


class Directory:
    """This task's knowledge of the places of a set's shards. Used by several threads.

    Args:
      name: the name of the set.
      me: this task's name.
      addresses: the addresses of the ``ps`` known at the beginning, by name.
      link: creates a link to a ``ps``.

    Attributes:
      name: the name of the set.
      me: this task's name.
    """

    def __init__(self, name: str, me: str, addresses: Mapping[str, str], link: LinkTo) -> None:
        self.name: str = name
        self.me: str = me
        self._link = link
        self._lock = threading.Lock()
        self._places = Places(addresses=dict(addresses))

    def of(self, shard: int) -> ShardPlace | None:
        """Returns the place of a shard; None if it is unknown."""
        with self._lock:
            return self._places.shards.get(shard)

    def words(self) -> Any:
        """Returns the known places, for another task."""
        with self._lock:
            return self._places.words()

    def places(self) -> dict[int, ShardPlace]:
        """Returns the known places, by shard."""
        with self._lock:
            return dict(self._places.shards)

    def servers(self) -> list[str]:
        """Returns the names of all known ``ps``."""
        with self._lock:
            return sorted(self._places.addresses)

    def address(self, task: str) -> str:
        """Returns the address of a ``ps``."""
        with self._lock:
            return self._places.addresses[task]

    def merge(self, other: Places) -> list[int]:
        """Adopts newer places that another task knows.

        Returns:
          The shards whose known place has changed.
        """
        with self._lock:
            return self._places.merge(other)

    def record_move(self, shard: int, term: int, task: str, address: str = "") -> None:
        """Records the move of a shard."""
        addresses = {task: address} if address else {}
        self.merge(Places(shards={shard: ShardPlace(term, task)}, addresses=addresses))

    def record_address(self, task: str, address: str) -> None:
        """Records the address that a ``ps`` reports, which may be a new one."""
        with self._lock:  # `merge` would keep the address that is known already
            self._places.addresses[task] = address

    def link(self, task: str) -> PeerServerLink:
        """Returns a link to a known ``ps``."""
        return self._link(task, self.address(task))

    def exchange(self, task: str, frame: Frame, within_s: float) -> Frame:
        """Sends a frame to a ``ps`` on a new channel, and returns the answer.

        Args:
          task: the name of the ``ps``.
          frame: the request.
          within_s: how long the answer may take, in seconds.

        Raises:
          OpError: the ``ps`` cannot be reached, does not answer in time, or answers with an error.
        """
        return exchange(self.link(task), task, frame, within_s)

    def exchange_places(
        self, task: str, *, begins: bool = False, leaves: bool = False, within_s: float = WHERE_TIMEOUT_S
    ) -> tuple[ShardReport, list[int]]:
        """Sends the known places of shards to a ``ps``, and adopts the places that the ``ps`` knows.

        Args:
          task: the name of the ``ps``.
          begins: this task is a ``ps`` that starts.
          leaves: this task is a ``ps`` that shuts down.
          within_s: how long the answer may take, in seconds.

        Returns:
          The report of the ``ps`` on itself, and the shards whose known place has changed.

        Raises:
          OpError: see `exchange`.
        """
        answer = self.exchange(task, Frame(kinds.WHERE, (self.name, self.me, self.words(), begins, leaves)), within_s)
        match answer.header:
            case (words, bool(takes), bool(over), [*loads]):
                moved = self.merge(Places.of(words))
            case _:
                raise bad_header(answer, task)
        try:
            parsed = {
                int(shard): Load(nbytes=int(nbytes), rate=float(rate), backup=None if backup is None else str(backup))
                for shard, nbytes, rate, backup in loads
            }
        except (TypeError, ValueError) as error:
            raise bad_header(answer, task) from error
        return ShardReport(takes=takes, over=over, loads=parsed), moved

    def query_all(self, *, skip_lost: bool = False) -> dict[str, ShardReport]:
        """Exchanges known places with every other ``ps``; returns the reports of all ``ps`` that answer, by name.

        Args:
          skip_lost: whether to skip a ``ps`` that sends no heartbeats.
        """
        reports: dict[str, ShardReport] = {}
        asked: set[str] = set()
        # An answer may name a ps that was unknown here: ask that ps, too.
        while unasked := [task for task in self.servers() if task not in asked and task != self.me]:
            task = unasked[0]
            asked.add(task)
            if skip_lost and self.link(task).is_lost():
                continue
            try:
                reports[task], _ = self.exchange_places(task)
            except OpError as error:
                _log.debug("%s does not report the places of the shards of %r: %s", task, self.name, error.message)
        return reports
