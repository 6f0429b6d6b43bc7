"""Parameter servers within one process, for programs that run without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.cluster.task.memory_servers import MemoryServers
from headwater.cluster.telemetry.snapshot import GroupProgress, Snapshot
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency
from headwater.ps.host import HostedParameters
from headwater.ps.layout import Layout
from headwater.ps.round_sums import RoundSums, Squares
from headwater.ps.service import ParameterService
from headwater.ps.state_saver import ParameterSaver
from headwater.ps.updater import Updater
from headwater.state.state_saver import Saves

#: Makes the updater of the blocks of a ``ps``, given its number.
MakeUpdater = Callable[[int], Updater]


class LocalServers(MemoryServers):
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
        names = [f"/job:ps/task:{index}" for index in range(len(layout.blocks))]
        super().__init__(names, lambda index, channel, first: self._services[index].serve(channel, first))
        self._services = [_service(name) for name in names]
        self.hosts: list[HostedParameters] = [self._host(index) for index in range(len(layout.blocks))]

    def _host(self, index: int) -> HostedParameters:
        sums, links = None, self.links()
        task, _ = links.pop(index)
        if self._squares is not None:
            sums = RoundSums(self.name, task, links, self._squares(index))
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
        self.disconnect(index)
        self._services[index] = _service(self._task_names[index])
        self.hosts[index] = self._host(index)

    def group(self, index: int) -> GroupProgress:
        """Returns the progress of the training at one server."""
        (group,) = self._services[index].add_to(Snapshot(at=0.0)).groups
        return group

    def client(self, initial: Sequence[Any], worker: int = 0) -> ParameterClient:
        """Creates a worker's client. Number 0 is the chief."""
        return ParameterClient(
            self.name,
            worker=f"/job:worker/task:{worker}",
            chief=worker == 0,
            layout=self._layout,
            choice=self._choice,
            links=self.links(),
            initial=initial,
        )


def _service(task: str) -> ParameterService:
    # No other process could miss the end of the job, so the status need not stay available.
    return ParameterService(task, ProgressWatchdog(lambda _: True), is_needed=lambda: False)
