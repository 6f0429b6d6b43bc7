"""Parameter servers within this process that keep a backup of each other's part, and can be killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from headwater.cluster.task.deposited_states import DepositedStates
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import CancelledError, OpError, UnavailableError
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import Consistency, from_text
from headwater.ps.conversation import ServerLink
from headwater.ps.host import HostedParameters
from headwater.ps.layout import FixedShardsPartitioner, Layout, make_layout
from headwater.ps.optax_updates import OptaxUpdater, leaf_specs
from headwater.ps.replicas.links import EitherLink
from headwater.ps.replicas.recorded import RecordedUpdater
from headwater.ps.replicas.shard import ShardCopy, shard_name
from headwater.ps.service import ParameterService
from headwater.ps.updater import Updater
from headwater.state.sites import FixedProcesses, Site
from headwater.state.witness import Witnesses
from tests.support.cuts import Cuts
from tests.support.deposits import replica_deposits
from tests.support.witness_requests import WitnessRequests

_tree: Any = jax.tree


class _Link:
    """The link to one of the servers."""

    def __init__(self, servers: TwoServers, index: int) -> None:
        self._servers = servers
        self._index = index

    def reach(self, deadline_s: float | None = None) -> None:
        if self.is_lost():
            raise UnavailableError(None, None, f"ps {self._index} is killed")

    def open_channel(self) -> Channel:
        return self.open_channel_now()

    def open_channel_now(self) -> Channel:
        return self._servers.open(self._index)

    def release_channel(self, channel: Channel, usable: bool) -> None:
        channel.close()

    def watch(self, channel: Channel) -> None:
        """Does nothing: a server here is killed with its channels, and never only stopped."""

    def is_lost(self) -> bool:
        return self._index in self._servers.killed or self._index >= len(self._servers.services)


class TwoServers:
    """Two servers with replicas of each part.

    Args:
      layout: the layout of each part.
      make_updater: makes the updater of a part, given its number.
      initial: the initial values by variable; None for tables that are initialised on the servers.
      cuts: where to cut channels.
      log_dir: the folder of journals.
      replicas: number of replicas of each part.
      choice: the consistency between workers.
    """

    def __init__(
        self,
        layout: Layout,
        make_updater: Callable[[int], Updater],
        initial: Sequence[Any],
        *,
        cuts: Cuts | None = None,
        log_dir: str = "",
        replicas: int = 2,
        choice: Consistency | None = None,
    ) -> None:
        self._replicas = replicas
        self._choice = choice or from_text("async", 1)
        self._initial = initial
        self._layout = layout
        self._make_updater = make_updater
        self._cuts = cuts or Cuts()
        self._log_dir = log_dir
        self._threads: list[threading.Thread] = []
        self._channels: dict[int, list[Channel]] = {0: [], 1: []}
        self.name = "params"
        self.deposits = DepositedStates()
        self.witnesses = Witnesses(self.deposits)
        self.killed: set[int] = set()
        self.copies: list[list[Any]] = []
        self.services: list[ParameterService] = []
        self._asks = [WitnessRequests(self.witnesses.request_view) for _ in range(2)]
        for index in range(2):
            self.copies.append([])
            self.services.append(_service(index))
            self._begin(index)

    def _make(
        self, index: int, shard: int, updater: RecordedUpdater | None
    ) -> tuple[HostedParameters, RecordedUpdater]:
        updater = updater or RecordedUpdater(self._make_updater(shard))
        host = HostedParameters(
            shard_name("params", shard),
            f"/job:ps/task:{index}",
            shard,
            self._layout,
            updater,
            self._choice,
            log_dir=self._log_dir,
        )
        return host, updater

    def _begin(self, index: int) -> None:
        self.copies[index] = []
        for shard in (0, 1):
            others = {1 - index: (f"/job:ps/task:{1 - index}", _Link(self, 1 - index))}
            processes = FixedProcesses(index, f"/job:ps/task:{index}", others)
            site = Site(
                ps=index,
                initial=(shard, 1 - shard)[: self._replicas],
                processes=processes,
                request_view=self._asks[index],
                deposits=replica_deposits(self.deposits, index),
                grace_s=0.1,
            )
            copy = self._copy(index, shard, site)
            self.copies[index].append(copy)
            self.services[index].host(copy.name, copy)

    def _copy(self, index: int, shard: int, site: Site) -> Any:
        return ShardCopy("params", shard, make=partial(self._make, index, shard), site=site)

    def kill(self, index: int) -> None:
        """Kills a server with all of its state, without notice."""
        self.killed.add(index)
        self._asks[index].kill()
        for channel in self._channels[index]:
            channel.close()
        self.services[index].close()

    def end(self, index: int) -> None:
        """Shuts a server down gracefully; returns when the other one has been notified."""
        feeds = [copy._feed for copy in self.copies[1 - index] if copy.serves]
        self.services[index].close()
        for feed in feeds:
            feed.ended.wait()
        self.kill(index)

    def end_at_once(self) -> None:
        """Shuts both servers down at the same moment, and restarts them."""

        def end(index: int) -> None:
            self.services[index].before_end(over=False)
            self.kill(index)

        together(*(partial(end, index) for index in range(2)))
        for index in range(2):
            self.start(index)

    def start(self, index: int) -> None:
        """Restarts a server."""
        self.killed.discard(index)
        self.services[index] = _service(index)
        self._asks[index] = WitnessRequests(self.witnesses.request_view)
        self._begin(index)

    def open(self, index: int) -> Channel:
        """Opens a channel to one of them, which a thread serves."""
        if index in self.killed:
            raise UnavailableError(None, None, f"ps {index} is killed")
        ours, theirs = self._cuts.between(*memory_pair((f"/job:ps/task:{index}", "another task")))
        self._channels[index].append(theirs)
        thread = threading.Thread(target=self._serve, args=(self.services[index], theirs), daemon=True)
        self._threads.append(thread)
        thread.start()
        return ours

    def _serve(self, service: ParameterService, channel: Channel) -> None:
        try:
            self._serve_first(service, channel, channel.recv())
        except (UnavailableError, CancelledError):
            return
        finally:
            channel.close()

    def _serve_first(self, service: ParameterService, channel: Channel, first: Frame) -> None:
        service.serve(channel, first)

    def server_links(self) -> list[tuple[str, ServerLink]]:
        """Returns a worker's links to both servers."""
        links = [_Link(self, 0), _Link(self, 1)]
        return [
            ("/job:ps/task:0", EitherLink([links[0], links[1]])),
            ("/job:ps/task:1", EitherLink([links[1], links[0]])),
        ]

    def client(self, worker: int = 0) -> ParameterClient:
        """Returns a worker's client, connected."""
        client = ParameterClient(
            "params",
            worker=f"/job:worker/task:{worker}",
            chief=worker == 0,
            layout=self._layout,
            choice=self._choice,
            links=self.server_links(),
            initial=self._initial,
            shard_names=[shard_name("params", shard) for shard in (0, 1)],
        )
        client.connect()
        client.pull()
        return client

    def until(self, shard: int, words: str) -> int:
        """Waits until a replica of a shard has the given state; returns its server's number."""
        looks = threading.Event()
        while True:
            for index in (0, 1):
                if index not in self.killed and words in self._says(index, shard):
                    return index
            looks.wait(0.01)

    def primary(self, shard: int) -> int:
        """Returns the number of the server that serves a shard, once it does; a previous primary may still believe that
        it serves.
        """
        looks = threading.Event()
        while True:
            view = self.witnesses.view(self.name, shard)
            if view is not None:
                at = view.primary.ps
                if at not in self.killed and f"primary of shard {shard}, term {view.term}" in self._says(at, shard):
                    return at
            looks.wait(0.01)

    def hand_off(self, shard: int) -> None:
        """Hands a shard off to its other replica."""
        looks, before = threading.Event(), self.primary(shard)
        for copies in self.copies:
            copies[shard].request_placement(1 - before, before)
        while self.primary(shard) == before:
            looks.wait(0.01)
        self.paired()

    def _says(self, index: int, shard: int) -> str:
        return self.copies[index][shard].status_text()

    def paired(self) -> None:
        """Waits until each shard has two equal replicas."""
        for shard in (0, 1):
            self.until(shard, "backup on")
            self.until(shard, "backup of shard")

    def stop(self) -> None:
        """Ends all of them."""
        for index in (0, 1):
            self.kill(index)
        for thread in self._threads:
            thread.join()


class Replicated(TwoServers):
    """Two servers with replicas of each part of a tree.

    Args:
      params: the parameters.
      optimizer: an optax optimizer.
      others: see `TwoServers`.
    """

    def __init__(self, params: Any, optimizer: Any, **others: Any) -> None:
        layout, structure = make_layout(leaf_specs(params), 2, FixedShardsPartitioner(2)), _tree.structure(params)

        def make(shard: int) -> OptaxUpdater:
            return OptaxUpdater(layout, shard, structure, optimizer)

        super().__init__(layout, make, _tree.leaves(params), **others)


def _service(index: int) -> ParameterService:
    return ParameterService(f"/job:ps/task:{index}", ProgressWatchdog(lambda _: True), is_needed=lambda: True)


def ones(params: Any) -> list[Any]:
    """Returns gradients that add 1 to every element with a learning rate of 1."""
    return [np.full(np.shape(leaf), -1, np.float32) for leaf in _tree.leaves(params)]


def together(*works: Callable[[], object]) -> None:
    """Runs all actions at the same time; raises the first error."""
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except (OpError, AssertionError) as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
