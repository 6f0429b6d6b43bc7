"""Embedding tables on a cluster, or within one process."""

from __future__ import annotations

import threading

from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.errors import CancelledError, UnavailableError
from headwater.ps.conversation import ServerLink
from headwater.ps.process import ParameterTask
from headwater.ps.protocol import TABLES
from headwater.ps.row_table import RowTable
from headwater.ps.tables.client import TableClient
from headwater.ps.tables.host import TableService
from headwater.ps.tables.saver import TableSaver
from headwater.state.state_saver import Saves
from headwater.tables import SGD, Admission, Initializer, TableConfig

__all__ = ["SGD", "Admission", "Initializer", "LocalTables", "RowTable", "TableConfig", "connect_tables"]


def connect_tables(task: ParameterTask, replicas: int = 1, shards: int | None = None) -> TableClient:
    """Creates a worker's client of all tables, which have ``replicas`` replicas of ``shards`` parts."""
    links = task.server_links(TABLES, replicas, shards)
    on_handshake = task.handshake_callback(TABLES, replicas, shards)
    return TableClient(str(task.members.me), links, replicas=replicas, shards=shards, on_handshake=on_handshake)


class LocalTables:
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
        self._channels: list[list[Channel]] = [[] for _ in range(servers)]
        self._threads: list[threading.Thread] = []

    def _service(self, index: int) -> TableService:
        made = TableService(f"/job:ps/task:{index}", index, self._count)
        if self._saves is not None:
            made.saver = self.savers[index] = TableSaver(made, self._saves, index=index, tasks=self._count)
        return made

    def client(self, worker: int = 0) -> TableClient:
        """Creates a worker's client."""
        links: list[tuple[str, ServerLink]] = [
            (f"/job:ps/task:{index}", _MemoryLink(self, index)) for index in range(len(self.services))
        ]
        return TableClient(f"/job:worker/task:{worker}", links)

    def open(self, index: int) -> Channel:
        """Opens a channel to a server, served by a thread of its own."""
        ours, theirs = memory_pair((f"/job:ps/task:{index}", "a worker"))
        self._channels[index].append(theirs)
        thread = threading.Thread(target=self._serve, args=(index, theirs), daemon=True)
        self._threads.append(thread)
        thread.start()
        return ours

    def _serve(self, index: int, channel: Channel) -> None:
        try:
            self.services[index].serve(channel, channel.recv())
        except (UnavailableError, CancelledError):
            return
        finally:
            channel.close()

    def disconnect(self, index: int) -> None:
        """Closes all channels of a server; its tables stay."""
        for channel in self._channels[index]:
            channel.close()

    def restart(self, index: int) -> None:
        """Stops a server, discarding its tables, and starts it again."""
        # Replace the service before closing the channels: a client reconnects immediately.
        self.services[index] = self._service(index)
        self.disconnect(index)

    def stop(self) -> None:
        """Stops all servers."""
        for index in range(len(self.services)):
            self.disconnect(index)
        for thread in self._threads:
            thread.join()


class _MemoryLink:
    """A route to one of the servers within this process."""

    def __init__(self, tables: LocalTables, index: int) -> None:
        self._tables = tables
        self._index = index

    def reach(self, deadline_s: float | None = None) -> None:
        del deadline_s

    def open_channel(self) -> Channel:
        return self._tables.open(self._index)

    def release_channel(self, channel: Channel, usable: bool) -> None:
        del usable
        channel.close()
