"""The ``ps`` known to a task that may have replicas of a set's shards."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cluster.names import TaskName
from headwater.errors import UnavailableError
from headwater.ps.shards.directory import Directory
from headwater.state.sites import PeerServerLink


def server_name(number: int) -> str:
    """Returns the name of the ``ps`` with this number."""
    return str(TaskName("ps", number))


def server_number(task: str) -> int:
    """Returns the number of a ``ps``."""
    return TaskName.parse(task).index


class KnownServers:
    """The ``ps`` in a directory; see `headwater.state.sites.Processes`.

    Args:
      directory: the set's directory.

    Attributes:
      leaving: names of ``ps`` that have announced their shutdown.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.leaving: set[str] = set()

    def numbers(self) -> Sequence[int]:
        """Returns the numbers of all known ``ps``, including this one."""
        return sorted(server_number(task) for task in self._directory.servers())

    def staying(self) -> Sequence[int]:
        """Returns the numbers of the ``ps`` that have not announced their shutdown."""
        return [number for number in self.numbers() if server_name(number) not in self.leaving]

    def name(self, number: int) -> str:
        """Returns the name of the ``ps`` with this number."""
        return server_name(number)

    def link(self, number: int) -> PeerServerLink:
        """Returns a link to another ``ps``.

        Raises:
          UnavailableError: the ``ps`` is unknown.
        """
        try:
            return self._directory.link(server_name(number))
        except KeyError as error:
            raise UnavailableError(f"the address of {server_name(number)} is not known") from error
