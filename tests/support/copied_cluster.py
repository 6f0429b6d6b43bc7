"""A cluster within this process, whose ``ps`` have backups of each other's variables and can be killed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headwater.cluster.addresses import parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.deposited_states import DepositedStates
from headwater.cluster.task.kinds import OPEN_COPY
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.links import LinkSettings
from headwater.errors import CancelledError, InvalidArgumentError, UnavailableError
from headwater.graph.master.peers import ClusterPeers, PeerStatus
from headwater.graph.master.targets import forget_master, register_master
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.master_service import MasterService
from headwater.graph.server.replicas.copy import SET, GraphCopy, ProcessAccess
from headwater.graph.server.replicas.links import CopiedTaskLink, status_of_primary
from headwater.state.sites import FixedProcesses, Site
from headwater.state.witness import Witnesses
from tests.support.cuts import Cuts
from tests.support.deposits import replica_deposits
from tests.support.witness_requests import WitnessRequests

_SERVERS = 2


class _CopyLink:
    """A task's link to one replica; see `headwater.graph.server.replicas.links.CopyLink`."""

    def __init__(self, cluster: CopiedCluster, me: TaskName, host: int, task: TaskName) -> None:
        self.status: PeerStatus | None = None
        self._cluster = cluster
        self._me = me
        self._host = host
        self._task = task
        self._free: list[Channel] = []

    def reach(self, deadline_s: float | None = None) -> None:
        if self.is_lost():
            raise UnavailableError(None, None, f"ps {self._host} is killed")

    def open_channel(self) -> Channel:
        while self._free:
            channel = self._free.pop()
            if not channel.peer_gone():
                return channel
        channel = self._cluster.open(self._host, self._me)
        self.status = status_of_primary(channel, self._task)
        return channel

    def release_channel(self, channel: Channel, usable: bool) -> None:
        if usable:
            self._free.append(channel)
        else:
            channel.close()

    def is_lost(self) -> bool:
        return self._host in self._cluster.killed


class _PeerLink:
    """The link of one ``ps`` to another; see `headwater.state.sites.PeerServerLink`."""

    def __init__(self, cluster: CopiedCluster, me: int, other: int) -> None:
        self._cluster = cluster
        self._me = me
        self._other = other

    def reach(self, deadline_s: float | None = None) -> None:
        if self.is_lost():
            raise UnavailableError(None, None, "the other ps is killed")

    def open_channel_now(self) -> Channel:
        return self._cluster.open(self._other, TaskName("ps", self._me))

    def release_channel(self, channel: Channel, usable: bool) -> None:
        channel.close()

    def watch(self, channel: Channel) -> None:
        """Does nothing: a server of this cluster is never stopped without closing its channels."""

    def is_lost(self) -> bool:
        return self._cluster.parted or self._other in self._cluster.killed


class CopiedCluster:
    """Two ``ps`` tasks, each with two replicas of its variables, and workers.

    Args:
      workers: number of workers.
      cuts: the frames at which to cut channels.
      processes: number of ``ps`` processes. The first two have the replicas at the beginning.

    Attributes:
      copies: by process, its replicas of both tasks, also unused ones.
      killed: the numbers of the ``ps`` processes that were killed.
      lost: the numbers of the workers that were lost.
      parted: whether the network between the ``ps`` is partitioned.
    """

    def __init__(self, workers: int, cuts: Cuts | None = None, processes: int = _SERVERS) -> None:
        self._processes = range(processes)
        self.spec = ClusterSpec(
            {"ps": [f"ps{i}:1" for i in range(_SERVERS)], "worker": [f"worker{i}:1" for i in range(workers)]}
        )
        self.cuts = cuts or Cuts()
        self.deposits = DepositedStates()
        self.witnesses = Witnesses(self.deposits)
        self.killed: set[int] = set()
        self.lost: set[int] = set()
        self.parted = False
        self.copies: list[list[GraphCopy]] = [[] for _ in self._processes]
        self._asks = [WitnessRequests(self.witnesses.request_view) for _ in self._processes]
        self.masters: dict[str, MasterService] = {}
        self._former: list[GraphCopy] = []
        self._channels: list[list[Channel]] = [[] for _ in self._processes]
        self._of_workers: list[list[Channel]] = [[] for _ in range(workers)]
        self._threads: list[threading.Thread] = []
        self._between: list[Channel] = []
        for index in self._processes:
            self.start(index)
        for index in range(workers):
            name = TaskName("worker", index)
            runtime = TaskRuntime(name.device_prefix)
            master = MasterService(runtime, ClusterPeers(self.spec, name, runtime.devices, self._link_from(name)))
            self.masters[self.target(index)] = master
            register_master(self.target(index), master)

    def target(self, worker: int = 0) -> str:
        return f"grpc://copied-worker-{worker}-in-memory"

    def _link_from(self, me: TaskName) -> Callable[[TaskName], CopiedTaskLink]:
        def link(task: TaskName) -> CopiedTaskLink:
            link_settings = LinkSettings(me=PeerIdentity(task=str(me), generation=1 + me.index))
            # The process that has the primary at the beginning comes first.
            hosts = [task.index, 1 - task.index, *self._processes[_SERVERS:]]
            links: list[Any] = [_CopyLink(self, me, host, task) for host in hosts]
            owner = Claim(task=me.device_prefix, generation=1 + me.index)
            return CopiedTaskLink(link_settings, task, parse_address("ps0:1"), lambda: links, owner)

        return link

    def start(self, index: int) -> None:
        """Starts a ``ps`` process without state."""
        me = TaskName("ps", index)
        peers = ClusterPeers(self.spec, me, list, self._link_from(me))
        around = ProcessAccess(
            push=peers.push,
            watchdog=ProgressWatchdog(lambda _: True),
            address=lambda task: "",
            connected=lambda task, generation: True,
        )
        self.killed.discard(index)
        self._asks[index] = WitnessRequests(self.witnesses.request_view)
        self.copies[index] = [
            GraphCopy(TaskName("ps", served), site=self._site(index, served), around=around)
            # The task with the number of this process comes first.
            for served in sorted(range(_SERVERS), key=lambda task: task != index)
        ]
        for copy in self.copies[index]:
            copy.start()

    def _site(self, index: int, served: int) -> Site:
        others = {
            other: (str(TaskName("ps", other)), _PeerLink(self, index, other))
            for other in self._processes
            if other != index
        }
        processes = FixedProcesses(index, str(TaskName("ps", index)), others)
        return Site(
            ps=index,
            initial=(served, 1 - served),
            processes=processes,
            request_view=self._asks[index],
            deposits=replica_deposits(self.deposits, index),
            grace_s=0.1,
        )

    def kill(self, index: int) -> None:
        """Kills a ``ps`` process: its state is lost, and no other task is notified. Any thread may call this."""
        if index in self.killed:
            return
        # Block requests to the witness before the channels close: a thread of the killed ps would take the loss of the
        # channels for a loss of the other ps, and request a view without it.
        self.killed.add(index)
        self._asks[index].kill()
        for channel in self._channels[index]:
            channel.close()
        copies, self.copies[index] = self.copies[index], []
        self._former += copies
        # Close them in other threads: `close` waits for the threads of this ps, and the caller may be one of them.
        for copy in copies:
            thread = threading.Thread(target=copy.close, daemon=True)
            thread.start()
            self._threads.append(thread)

    def lose(self, worker: int) -> None:
        """Closes a worker's channels, as if it was killed; its program ends with CancelledError. Thread-safe."""
        self.lost.add(worker)
        for channel in self._of_workers[worker]:
            channel.close()

    def end_at_once(self) -> None:
        """Shuts all ``ps`` down gracefully at the same time, and restarts them. Any thread may call this."""
        former = [copy._contents for copies in self.copies for copy in copies]
        for copies in self.copies:
            for copy in copies:
                copy.shut_down()
        for index in self._processes:
            self.kill(index)
        # Threads of these contents wait for masters to reconnect. In a process of its own they would end with it.
        for contents in former:
            contents.cancel()
        for index in self._processes:
            self.start(index)

    def part(self) -> None:
        """Partitions the network between the ``ps``."""
        self.parted = True
        for channel in self._between:
            channel.close()

    def meet(self) -> None:
        """Ends the network partition."""
        self.parted = False

    def feed_bytes(self, index: int) -> int:
        """Returns the number of bytes that a ``ps`` has sent to other ``ps`` so far."""
        mine = set(self._channels[index])
        return sum(channel.statistics().bytes_sent for channel in self._between if channel in mine)

    def open(self, index: int, me: TaskName) -> Channel:
        """Opens a channel from ``me`` to a ``ps``, which serves it in a new thread."""
        if index in self.killed:
            raise UnavailableError(None, None, f"ps {index} is killed")
        if me.job == "worker" and me.index in self.lost:
            raise CancelledError(None, None, f"{me} is lost")
        if self.parted and me.job == "ps":
            raise UnavailableError(None, None, f"ps {index} cannot be reached from {me}")
        pair = memory_pair((str(TaskName("ps", index)), str(me)), generations=(1, 1 + me.index))
        theirs, ours = self.cuts.between(*pair)
        self._channels[index].append(ours)
        if me.job == "ps":
            self._channels[me.index].append(theirs)
            self._between.append(theirs)
        else:
            self._of_workers[me.index].append(theirs)
        thread = threading.Thread(target=self._serve, args=(index, ours), daemon=True)
        thread.start()
        self._threads.append(thread)
        return theirs

    def _serve(self, index: int, channel: Channel) -> None:
        copies = list(self.copies[index])
        with contextlib.suppress(UnavailableError, CancelledError, InvalidArgumentError), contextlib.closing(channel):
            first = channel.recv()
            for copy in copies:
                if first.kind == OPEN_COPY and first.header == (copy.served.index,):
                    copy.serve(channel, lambda: None)
                elif first.header[0] == copy.name:
                    copy.serve_peer(channel, first)

    def primary(self, task: int) -> GraphCopy:
        """Waits until a replica of a task serves in the witness's view; returns this replica."""
        looks = threading.Event()
        while True:
            view = self.witnesses.view(SET, task)
            for copies in self.copies:
                for copy in copies:
                    its = view is not None and f"primary of shard {task}, term {view.term}," in copy.status_text()
                    if copy.served.index == task and copy.serves and its:
                        return copy
            looks.wait(0.01)

    def paired(self) -> None:
        """Waits until each task has a primary and a complete backup."""
        looks = threading.Event()
        while sum(copy.has_complete_backup for copies in self.copies for copy in copies) < _SERVERS:
            looks.wait(0.01)

    def move(self, task: int, primary: int, second: int | None) -> GraphCopy:
        """Moves the replicas of a task to other processes; returns the replica that serves afterwards."""
        looks = threading.Event()
        for copies in self.copies:
            for copy in copies:
                if copy.served.index == task:
                    copy.request_placement(primary, second)
        while True:
            found = self.primary(task)
            if found.has_desired_placement and found in self.copies[primary]:
                return found
            looks.wait(0.01)

    def stop(self) -> None:
        """Ends all tasks."""
        for target, master in self.masters.items():
            forget_master(target)
            master.close()
        for index in self._processes:
            self.kill(index)
        for thread in self._threads:
            thread.join()


@contextmanager
def copied_cluster(workers: int = 1, cuts: Cuts | None = None, processes: int = _SERVERS) -> Iterator[CopiedCluster]:
    """Context manager for a cluster."""
    cluster = CopiedCluster(workers, cuts, processes)
    try:
        yield cluster
    finally:
        cluster.stop()
