"""Embedding tables on a cluster, or within one process."""

from __future__ import annotations

from headwater.cluster.task.memory_servers import MemoryServers
from headwater.ps.process import ParameterTask
from headwater.ps.protocol import TABLES
from headwater.ps.row_table import RowTable
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.host import TableService
from headwater.ps.tables.saver import TableSaver
from headwater.state.state_saver import Saves
from headwater.tables.description import TableConfig
from headwater.tables.initializers import Initializer
from headwater.tables.optimizers import SGD
from headwater.tables.policies import Admission

__all__ = ["SGD", "Admission", "Initializer", "LocalTables", "RowTable", "TableConfig", "connect_tables"]


def connect_tables(task: ParameterTask, replicas: int = 1, shards: int | None = None) -> TableClient:
    """Creates a worker's client of all tables, which have ``replicas`` replicas of ``shards`` parts."""
    links = task.server_links(TABLES, replicas, shards)
    on_handshake = task.handshake_callback(TABLES, replicas, shards)
    return TableClient(str(task.members.me), links, replicas=replicas, shards=shards, on_handshake=on_handshake)


class LocalTables(MemoryServers):
    """Servers of tables within this process: threads, and channels in memory.

    Args:
      servers: number of servers.
      saves: where each server saves its own rows for its next incarnation. Saves are made only through `savers`.

    Attributes:
      services: the service of each server.
      savers: saves the tables of each server, by its number.
    """

    def __init__(self, servers: int = 1, *, saves: Saves | None = None) -> None:
        self._saves = saves
        self._count = servers
        self.savers: dict[int, TableSaver] = {}
        self.services: list[TableService] = [self._service(index) for index in range(servers)]
        names = [f"/job:ps/task:{index}" for index in range(servers)]
        super().__init__(names, lambda index, channel, first: self.services[index].serve(channel, first))

    def _service(self, index: int) -> TableService:
        service = TableService(f"/job:ps/task:{index}", index, self._count)
        if self._saves is not None:
            service.saver = self.savers[index] = TableSaver(service, self._saves, index=index, tasks=self._count)
        return service

    def client(self, worker: int = 0) -> TableClient:
        """Creates a worker's client."""
        return TableClient(f"/job:worker/task:{worker}", self.links())

    def restart(self, index: int) -> None:
        """Stops a server, discarding its tables, and starts it again."""
        # Replace the service before closing the channels: a client reconnects immediately.
        self.services[index] = self._service(index)
        self.disconnect(index)
