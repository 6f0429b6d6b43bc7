"""What runs behind a `Server`: the listener, both planes, the master, and the links to the other tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.errors import OpError
from headwater.master.peers import ClusterPeers, PeerLink
from headwater.master.protocol import CALL
from headwater.master.targets import forget_master, register_master
from headwater.passes.plan import decode_plan
from headwater.runtime.devices import use_cpu_only
from headwater.runtime.task import TaskRuntime
from headwater.server.links import ADMIN, TaskLink
from headwater.server.master_service import MasterService
from headwater.server.steps import StepService
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame
from headwater.transport.handshake import Identity, new_generation
from headwater.transport.listener import Listener
from headwater.transport.options import TransportOptions
from headwater.transport.security import Security
from headwater.transport.waiting import Waiter
from headwater.transport.workplace import Workplace

_log = logging.getLogger("headwater")


class TaskServer:
    """A running task.

    Args:
      cluster: all tasks.
      task: this one.
      address: where it listens; with port 0 the system chooses.
      inside_grpc: keep tensors inside gRPC.
      on_shutdown: called when somebody who may asks the task to end.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        task: TaskName,
        address: Address,
        *,
        inside_grpc: bool,
        on_shutdown: Callable[[], None],
    ) -> None:
        if task.job == "ps":
            use_cpu_only()
        self._cluster = cluster
        self._options = TransportOptions()
        self._security = Security.from_environment()
        self._identity = Identity(task=str(task), generation=new_generation())
        self._waiter = Waiter()
        self.runtime = TaskRuntime(task.device_prefix)
        self.peers = ClusterPeers(cluster, task, self.runtime.devices, self._link)
        self._steps = StepService(self.runtime, self.peers.push)
        self.master = MasterService(self.runtime, self.peers)
        self._workplace = Workplace()
        self._listener = Listener(
            address, me=self._identity, security=self._security, on_channel=self._serve, options=self._options,
            workplace=self._workplace,
        )  # fmt: skip
        self.address = self._listener.address
        self._listener.start()
        register_master(f"grpc://{self.address}", self.master)
        _log.info("%s serves at %s", task, self.address)

    def _link(self, task: TaskName) -> PeerLink:
        address = parse_address(self._cluster.task_address(task.job, task.index))
        return TaskLink(self._identity, task, address, self._security, self._options, self._waiter)

    def _serve(self, channel: Channel) -> None:
        def other(frame: Frame) -> bool:
            if frame.kind == CALL:
                self.master.call(channel, frame)
                return True
            if frame.kind == ADMIN:
                try:
                    channel.send(Frame(ADMIN, (0, self._admin(*frame.header)), ()))
                except OpError as e:
                    channel.send(Frame(ADMIN, (e.error_code, e.message), ()))
                return True
            return False

        self._steps.serve(channel, other)

    def _admin(self, what, *args):
        if what == "status":
            return [self._identity.generation, [d.name() for d in self.runtime.devices()], self._steps.steps]
        if what == "add_plan":
            self.runtime.add_plan(args[0], args[1], decode_plan(args[2]), ("/job:worker/replica:0/task:0", 1))
        if what == "release":
            self.runtime.release(args[0])
        if what == "reset":
            self.runtime.reset(list(args[0]))

    def stop(self) -> None:
        forget_master(f"grpc://{self.address}")
        self._waiter.cancel()
        self.master.close()
        self._listener.stop()
        self._workplace.close()
