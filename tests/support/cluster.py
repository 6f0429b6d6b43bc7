"""A cluster within this process: every task has its own runtime, and tasks are connected by channels in memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.transport.channel import Channel, memory_pair
from headwater.cluster.transport.frames import Frame
from headwater.errors import AbortedError, CancelledError, InvalidArgumentError, UnavailableError
from headwater.graph.master.peers import ClusterPeers, PeerStatus
from headwater.graph.master.targets import forget_master, register_master
from headwater.graph.passes.plan import decode_plan
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server.deposited_state import DepositedState, encode_state
from headwater.graph.server.master_service import MasterService
from headwater.graph.server.steps import StepService
from tests.support.cuts import Cuts


class MemoryTask:
    """One task: its runtime, its master, and threads that serve its channels."""

    def __init__(self, cluster: MemoryCluster, name: TaskName, generation: int) -> None:
        self._cluster = cluster
        self.name = name
        self.generation = generation
        self.runtime = TaskRuntime(name.device_prefix)
        self.peers = ClusterPeers(
            cluster.spec, name, self.runtime.devices, lambda other: MemoryLink(cluster, self, other)
        )
        self.steps = StepService(self.runtime, self.peers.push)
        self.master = MasterService(self.runtime, self.peers)
        self._channels: list[Channel] = []
        self._threads: list[threading.Thread] = []

    @property
    def target(self) -> str:
        return f"grpc://{self.name.job}-{self.name.index}-in-memory"

    def connect(self, client: MemoryTask) -> Channel:
        """Opens a channel from ``client`` to this task, which serves it in a new thread."""
        theirs, ours = memory_pair((str(self.name), str(client.name)), generations=(self.generation, client.generation))
        if self._cluster.cuts is not None:
            theirs, ours = self._cluster.cuts.between(theirs, ours)
        thread = threading.Thread(
            target=self._serve, args=(ours,), name=f"{self.name} serves {client.name}", daemon=True
        )
        self._channels.append(ours)
        thread.start()
        # Added only after the start: `stop`, which may run at the same time, cannot join a thread before its start.
        self._threads.append(thread)
        return theirs

    def _serve(self, channel: Channel) -> None:
        def nothing_else(frame: Frame) -> bool:
            return False

        with contextlib.suppress(UnavailableError, CancelledError, InvalidArgumentError), contextlib.closing(channel):
            self.steps.serve(channel, channel.recv(), nothing_else)

    def stop(self) -> None:
        """Closes all channels, as at the end of a task's process, and waits for its threads."""
        self.steps.stop()
        self.master.close()
        for channel in self._channels:
            channel.close()
        for thread in self._threads:
            thread.join()


class MemoryLink:
    """The link of one task to another; see `headwater.graph.master.peers.PeerLink`."""

    def __init__(self, cluster: MemoryCluster, me: MemoryTask, other: TaskName) -> None:
        self._cluster = cluster
        self._me = me
        self._other = other
        self._free: list[Channel] = []

    @property
    def _task(self) -> MemoryTask:
        return self._cluster.tasks[self._other]

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        task = self._task
        devices = tuple(device.name() for device in task.runtime.devices())
        return PeerStatus(generation=task.generation, devices=devices, steps=task.steps.steps)

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None:
        if generation != self._task.generation:
            raise AbortedError(None, None, f"{self._other} was restarted")
        owner = Claim(task=self._me.runtime.task, generation=self._me.generation)
        self._task.runtime.add_plan(session, number, decode_plan(plan), owner)

    def release(self, session: str) -> None:
        self._task.runtime.release(session)

    def reset(self, containers: Sequence[str]) -> None:
        self._task.runtime.reset(list(containers))

    def open_channel(self) -> Channel:
        while self._free:
            channel = self._free.pop()
            if not channel.peer_gone():
                return channel
        return self._task.connect(self._me)

    def wait_for_channel(self, check: Callable[[], None]) -> Channel:
        check()
        return self.open_channel()

    def release_channel(self, channel: Channel, usable: bool) -> None:
        if usable:
            self._free.append(channel)
        else:
            channel.close()


class MemoryCluster:
    """The tasks of a cluster.

    Args:
      jobs: the number of tasks of each job.
      cuts: the frames at which to cut channels.
    """

    def __init__(self, jobs: Mapping[str, int], cuts: Cuts | None = None) -> None:
        self.cuts = cuts
        self.spec = ClusterSpec({job: [f"{job}{index}:1" for index in range(count)] for job, count in jobs.items()})
        self.tasks: dict[TaskName, MemoryTask] = {}
        for number, (name, _) in enumerate(self.spec.tasks(), 1):
            self._start(name, number)

    def _start(self, name: TaskName, generation: int) -> None:
        task = self.tasks[name] = MemoryTask(self, name, generation)
        register_master(task.target, task.master)

    def task(self, job: str, index: int = 0) -> MemoryTask:
        return self.tasks[TaskName(job, index)]

    def target(self, job: str, index: int = 0) -> str:
        """Returns the target of sessions with a task's master."""
        return self.task(job, index).target

    def restart(self, job: str, index: int = 0) -> None:
        """Restarts a task without its state, with another generation."""
        old = self.task(job, index)
        forget_master(old.target)
        old.stop()
        self._start(old.name, old.generation + 1000)

    def drain_and_restart(self, job: str, index: int = 0) -> None:
        """Shuts a task down gracefully; its next incarnation continues with the deposited state."""
        old = self.task(job, index)
        running = old.steps.suspend(60.0)
        assert not running
        self.replace(old)
        old.stop()

    def replace(self, old: MemoryTask) -> None:
        """Starts the next incarnation of a task whose steps are suspended, with the state of the old incarnation."""
        left = DepositedState.of(encode_state(old.runtime, old.steps, old.generation, ()))
        new = MemoryTask(
            self, old.name, left.predecessor.generation if left.predecessor is not None else old.generation + 1000
        )
        left.restore(new.runtime, new.steps)
        forget_master(old.target)
        self.tasks[old.name] = new
        register_master(new.target, new.master)

    def stop(self) -> None:
        """Ends all tasks."""
        for task in self.tasks.values():
            forget_master(task.target)
            task.stop()


@contextmanager
def memory_cluster(cuts: Cuts | None = None, **jobs: int) -> Iterator[MemoryCluster]:
    """Context manager for a cluster, such as ``memory_cluster(ps=2, worker=1)``."""
    cluster = MemoryCluster(jobs, cuts)
    try:
        yield cluster
    finally:
        cluster.stop()
