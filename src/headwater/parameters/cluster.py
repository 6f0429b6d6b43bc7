"""A set of parameters on a cluster: what this task does about it, by its job.

Every task runs the same program, so every task knows layout and optimizer by itself, and nothing that could be run has
to travel. A ``ps`` serves, a worker gets a `ParameterClient`. Without a cluster one process is both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from headwater.consistency import Asynchronous, BoundedStaleness, Consistency, KOfN, Synchronous
from headwater.errors import CancelledError, UnavailableError
from headwater.parameters.client import ParameterClient, ServerLink
from headwater.parameters.host import HostedParameters, ParameterService
from headwater.parameters.layout import Layout
from headwater.parameters.updater import Updater
from headwater.task.endpoint import Endpoint
from headwater.task.kinds import HELLO
from headwater.transport.channel import Channel, memory_pair

#: Makes the updater of a ``ps``'s blocks from its number.
MakeUpdater = Callable[[int], Updater]


def consistency_of(setting: str | Consistency, workers: int) -> Consistency:
    """Reads ``"async"``, ``"sync"``, ``"k=3"`` or ``"staleness=4"``.

    Args:
      setting: one of these, or a choice of `headwater.consistency`.
      workers: how many the job has.

    Raises:
      ValueError: it is none of them.
    """
    if isinstance(setting, Consistency):
        return setting
    word, _, number = setting.partition("=")
    if setting == "async":
        return Asynchronous()
    if setting == "sync":
        return Synchronous(workers=workers)
    if word == "k" and number.isdecimal():
        return KOfN(k=int(number))
    if word == "staleness" and number.isdecimal():
        return BoundedStaleness(steps=int(number))
    raise ValueError(f"consistency must be 'async', 'sync', 'k=3' or 'staleness=4', not {setting!r}")


_services: dict[Endpoint, ParameterService] = {}


def service_of(endpoint: Endpoint) -> ParameterService:
    """The service that answers for all sets of parameters of a ``ps``; made at the first call, so that workers that are
    early are told what they wait for."""
    if endpoint not in _services:
        _services[endpoint] = ParameterService(endpoint.identity.task)
        endpoint.add_service(HELLO, _services[endpoint].serve)
    return _services[endpoint]


def host_parameters(
    endpoint: Endpoint, name: str, layout: Layout, make_updater: MakeUpdater, choice: Consistency
) -> HostedParameters:
    """Makes this task, a ``ps``, serve its part of the set ``name``."""
    index = endpoint.members.number
    parameters = HostedParameters(endpoint.identity.task, index, layout, make_updater(index), choice)
    service_of(endpoint).host(name, parameters)
    return parameters


def connect_parameters(
    endpoint: Endpoint, name: str, layout: Layout, choice: Consistency, initial: Sequence[Any]
) -> ParameterClient:
    """A worker's access to the set ``name``; not connected yet."""
    members = endpoint.members
    return ParameterClient(
        name,
        worker=endpoint.identity.task,
        chief=members.is_chief,
        layout=layout,
        choice=choice,
        links=[(str(task), endpoint.link(task)) for task in members.servers],
        initial=initial,
    )


class LocalServers:
    """Parameter servers within this process: threads, and channels in memory.

    Args:
      name: of the set of parameters.
      layout: what each has.
      make_updater: makes the updater of each.
      choice: how closely workers keep together.
    """

    def __init__(self, name: str, layout: Layout, make_updater: MakeUpdater, choice: Consistency) -> None:
        self.name = name
        self._layout = layout
        self._make_updater = make_updater
        self._choice = choice
        self._channels: list[list[Channel]] = [[] for _ in layout.blocks]
        self._threads: list[threading.Thread] = []
        self._services: list[ParameterService] = []
        self.hosts: list[HostedParameters] = []
        for index in range(len(layout.blocks)):
            self._services.append(ParameterService(f"/job:ps/task:{index}"))
            self.hosts.append(self._host(index))

    def _host(self, index: int) -> HostedParameters:
        host = HostedParameters(f"/job:ps/task:{index}", index, self._layout, self._make_updater(index), self._choice)
        self._services[index].host(self.name, host)
        return host

    def restart(self, index: int) -> None:
        """Ends one of them, with all it has, and starts it anew."""
        for channel in self._channels[index]:
            channel.close()
        self._services[index] = ParameterService(f"/job:ps/task:{index}")
        self.hosts[index] = self._host(index)

    def client(self, initial: Sequence[Any], worker: int = 0) -> ParameterClient:
        """A worker's access, connected when it is number 0: the chief."""
        links: list[tuple[str, ServerLink]] = [
            (f"/job:ps/task:{index}", _MemoryLink(self, index)) for index in range(len(self.hosts))
        ]
        return ParameterClient(
            self.name, worker=f"/job:worker/task:{worker}", chief=worker == 0, layout=self._layout,
            choice=self._choice, links=links, initial=initial,
        )  # fmt: skip

    def open(self, index: int) -> Channel:
        """A channel to one of them, served by a thread of its own."""
        ours, theirs = memory_pair((f"/job:ps/task:{index}", "a worker"))
        self._channels[index].append(theirs)
        thread = threading.Thread(target=self._serve, args=(index, theirs), daemon=True)
        self._threads.append(thread)
        thread.start()
        return ours

    def _serve(self, index: int, channel: Channel) -> None:
        try:
            self._services[index].serve(channel, channel.recv())
        except (UnavailableError, CancelledError):
            return
        finally:
            channel.close()

    def stop(self) -> None:
        """Ends all of them."""
        for channels in self._channels:
            for channel in channels:
                channel.close()
        for thread in self._threads:
            thread.join()


class _MemoryLink:
    """A way to one of the servers within this process."""

    def __init__(self, servers: LocalServers, index: int) -> None:
        self._servers = servers
        self._index = index

    def reach(self, deadline_s: float | None = None) -> None:
        del deadline_s

    def take(self) -> Channel:
        return self._servers.open(self._index)

    def give_back(self, channel: Channel, usable: bool) -> None:
        del usable
        channel.close()
