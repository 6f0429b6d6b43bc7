"""The ``ps`` that may have copies of a set's shards, as far as a task has heard of them."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cluster.names import TaskName
from headwater.errors import UnavailableError
from headwater.ps.shards.directory import Directory
from headwater.state.sites import PeerServerLink


def server_name(number: int) -> str:
    """What the ``ps`` of a number is called."""
    return str(TaskName("ps", number))


def server_number(task: str) -> int:
    """The number of a ``ps``."""
    return TaskName.parse(task).index


class KnownServers:
    """Those that a directory knows; see `headwater.state.sites.Processes`.

    Args:
      directory: of the set.

    Attributes:
      leaving: names of those that are about to end.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.leaving: set[str] = set()

    def numbers(self) -> Sequence[int]:
        """Of all that were heard of, this one among them."""
        return sorted(server_number(task) for task in self._directory.servers())

    def staying(self) -> Sequence[int]:
        """Of those that are not about to end."""
        return [number for number in self.numbers() if server_name(number) not in self.leaving]

    def name(self, number: int) -> str:
        """What it is called."""
        return server_name(number)

    def link(self, number: int) -> PeerServerLink:
        """The way to another one.

        Raises:
          UnavailableError: nothing was heard of it.
        """
        try:
            return self._directory.link(server_name(number))
        except KeyError as error:
            raise UnavailableError(None, None, f"it is not known where {server_name(number)} is") from error
