"""Servers within one process: threads, and channels in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, UnavailableError

#: Serves a channel, whose first frame is given, of the server with this number until the channel ends.
ServeChannel = Callable[[int, Channel, Frame], object]


class MemoryServers:
    """Servers within this process. Each channel is served by a thread of its own.

    Args:
      names: the name of each server.
      serve: serves a channel.
    """

    def __init__(self, names: Sequence[str], serve: ServeChannel) -> None:
        self._task_names = names
        self._serve_channel = serve
        self._channels: list[list[Channel]] = [[] for _ in names]
        self._threads: list[threading.Thread] = []

    def links(self) -> list[tuple[str, MemoryLink]]:
        """Returns the name of each server, and a link to it."""
        return [(name, MemoryLink(self, index)) for index, name in enumerate(self._task_names)]

    def open(self, index: int) -> Channel:
        """Opens a channel to a server."""
        client_end, server_end = self._open_pair(index)
        self._channels[index].append(server_end)
        thread = threading.Thread(target=self._serve, args=(index, server_end), daemon=True)
        self._threads.append(thread)
        thread.start()
        return client_end

    def _open_pair(self, index: int) -> tuple[Channel, Channel]:
        return memory_pair((self._task_names[index], "a worker"))

    def _serve(self, index: int, channel: Channel) -> None:
        try:
            self._serve_channel(index, channel, channel.recv())
        except (UnavailableError, CancelledError):
            return
        finally:
            channel.close()

    def disconnect(self, index: int) -> None:
        """Closes all channels of a server, as the kernel does when a process ends."""
        for channel in self._channels[index]:
            channel.close()

    def stop(self) -> None:
        """Closes all channels, and waits for their threads."""
        for index in range(len(self._task_names)):
            self.disconnect(index)
        for thread in self._threads:
            thread.join()


class MemoryLink:
    """A route to a server within this process."""

    def __init__(self, servers: MemoryServers, index: int) -> None:
        self._servers = servers
        self._index = index

    def reach(self, deadline_s: float | None = None) -> None:
        """Returns at once: the server can be reached."""
        del deadline_s

    def open_channel(self) -> Channel:
        """Opens a channel to the server."""
        return self._servers.open(self._index)

    def release_channel(self, channel: Channel, usable: bool) -> None:
        """Closes a channel after use."""
        del usable
        channel.close()
