"""Parameter servers within one process, for programs that run without a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from headwater.cluster.telemetry.snapshot import GroupProgress, Snapshot
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.errors import CancelledError, UnavailableError
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency
from headwater.ps.conversation import ServerLink
from headwater.ps.host import HostedParameters
from headwater.ps.layout import Layout
from headwater.ps.round_sums import RoundSums, Squares
from headwater.ps.service import ParameterService
from headwater.ps.state_saver import ParameterSaver
from headwater.ps.updater import Updater
from headwater.state.state_saver import Saves

#: Makes the updater of the blocks of a ``ps``, given its number.
MakeUpdater = Callable[[int], Updater]


class LocalServers:
    """Parameter servers within this process: threads, and channels in memory.

    Args:
      name: the name of the set of parameters.
      layout: the placement of all blocks on the servers.
      make_updater: makes the updater of each server.
      choice: the consistency between workers.
      staleness_aware, log_dir: see `HostedParameters`.
      saves: where each server saves its own state for its next incarnation. Saves are made only through `savers`.
      squares: see `headwater.ps.process.ParameterTask.host`.

    Attributes:
      hosts: the host of each server.
      savers: saves the state of each server, by its number.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        make_updater: MakeUpdater,
        choice: Consistency,
        *,
        staleness_aware: bool = False,
        log_dir: str | None = None,
        saves: Saves | None = None,
        squares: Callable[[int], Squares] | None = None,
    ) -> None:
        self.name = name
        self._layout = layout
        self._make_updater = make_updater
        self._choice = choice
        self._staleness_aware = staleness_aware
        self._log_dir = log_dir
        self._saves = saves
        self._squares = squares
        self.savers: dict[int, ParameterSaver] = {}
        self._channels: list[list[Channel]] = [[] for _ in layout.blocks]
        self._threads: list[threading.Thread] = []
        self._services = [_service(index) for index in range(len(layout.blocks))]
        self.hosts: list[HostedParameters] = [self._host(index) for index in range(len(layout.blocks))]

    def _host(self, index: int) -> HostedParameters:
        sums, task = None, f"/job:ps/task:{index}"
        if self._squares is not None:
            others = [(f"/job:ps/task:{n}", _MemoryLink(self, n)) for n in range(len(self._services)) if n != index]
            sums = RoundSums(self.name, task, others, self._squares(index))
        host = HostedParameters(
            self.name,
            task,
            index,
            self._layout,
            self._make_updater(index),
            self._choice,
            staleness_aware=self._staleness_aware,
            log_dir=self._log_dir,
            round_sums=sums,
        )
        if self._saves is not None:
            self.savers[index] = ParameterSaver(host, self._saves, index=index, tasks=len(self._layout.blocks))
        self._services[index].host(self.name, host, self.savers.get(index))
        return host

    def restart(self, index: int) -> None:
        """Stops a server, discarding its state, and starts it again."""
        for channel in self._channels[index]:
            channel.close()  # as the kernel does when a process ends
        self._services[index] = _service(index)
        self.hosts[index] = self._host(index)

    def group(self, index: int) -> GroupProgress:
        """Returns the progress of the training at one server."""
        (found,) = self._services[index].add_to(Snapshot(at=0.0)).groups
        return found

    def client(self, initial: Sequence[Any], worker: int = 0) -> ParameterClient:
        """Creates a worker's client. Number 0 is the chief."""
        links: list[tuple[str, ServerLink]] = [
            (f"/job:ps/task:{index}", _MemoryLink(self, index)) for index in range(len(self.hosts))
        ]
        return ParameterClient(
            self.name,
            worker=f"/job:worker/task:{worker}",
            chief=worker == 0,
            layout=self._layout,
            choice=self._choice,
            links=links,
            initial=initial,
        )

    def open(self, index: int) -> Channel:
        """Opens a channel to a server, served by a thread of its own."""
        ours, theirs = self._open_pair(index)
        self._channels[index].append(theirs)
        thread = threading.Thread(target=self._serve, args=(index, theirs), daemon=True)
        self._threads.append(thread)
        thread.start()
        return ours

    def _open_pair(self, index: int) -> tuple[Channel, Channel]:
        return memory_pair((f"/job:ps/task:{index}", "a worker"))

    def _serve(self, index: int, channel: Channel) -> None:
        try:
            self._services[index].serve(channel, channel.recv())
        except (UnavailableError, CancelledError):
            return
        finally:
            channel.close()

    def stop(self) -> None:
        """Stops all servers."""
        for channels in self._channels:
            for channel in channels:
                channel.close()
        for thread in self._threads:
            thread.join()


def _service(index: int) -> ParameterService:
    task = f"/job:ps/task:{index}"
    # No other process could miss the end of the job, so the status need not stay available.
    return ParameterService(task, ProgressWatchdog(lambda _: True), is_needed=lambda: False)


class _MemoryLink:
    """A route to one of the servers within this process."""

    def __init__(self, servers: LocalServers, index: int) -> None:
        self._servers = servers
        self._index = index

    def reach(self, deadline_s: float | None = None) -> None:
        del deadline_s

    def open_channel(self) -> Channel:
        return self._servers.open(self._index)

    def release_channel(self, channel: Channel, usable: bool) -> None:
        del usable
        channel.close()
