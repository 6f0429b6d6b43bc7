"""What runs behind a `Server`: the listener, both planes, the master, and the links to the other tasks."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.master.links import CHANNELS_DETAIL, SESSIONS_DETAIL, STEPS_DETAIL, TaskLink, Wiring
from headwater.master.peers import ClusterPeers, PeerLink
from headwater.master.protocol import CALL, HOLD
from headwater.master.targets import forget_master, register_master
from headwater.passes.plan import decode_plan
from headwater.runtime.devices import memory_bytes, share_machine, use_cpu_only
from headwater.runtime.process import ProcessSettings, configure
from headwater.runtime.task import TaskRuntime
from headwater.server.master_service import MasterService
from headwater.server.metrics import MetricsServer, metrics_address
from headwater.server.snapshot import take_snapshot
from headwater.server.steps import StepService
from headwater.telemetry.snapshot import SNAPSHOT_DETAIL, Snapshot
from headwater.transport.channel import Channel
from headwater.transport.control_server import ControlServer
from headwater.transport.frames import Frame
from headwater.transport.handlers import DeviceInfo
from headwater.transport.handshake import Identity, new_generation
from headwater.transport.listener import Listener
from headwater.transport.workplace import Workplace

_log = logging.getLogger("headwater")


class TaskServer:
    """A running task.

    Args:
      cluster: all tasks.
      task: this one. Job ``ps`` stays off GPUs.
      address: where it listens; with port 0 the system chooses.
      inside_grpc: keep tensors inside gRPC.
      on_shutdown: called when somebody who may asks the task to end.
      device_counts: how many devices of each type the task shows.
      settings: what the program wants of its devices.

    Attributes:
      address: where it listens.
      runtime: its state and plans.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        task: TaskName,
        address: Address,
        *,
        inside_grpc: bool,
        on_shutdown: Callable[[], None],
        device_counts: Mapping[str, int] | None = None,
        settings: ProcessSettings | None = None,
    ) -> None:
        if task.job == "ps":
            use_cpu_only()
        _share_machine(cluster, task)
        configure(settings or ProcessSettings())
        self._cluster = cluster
        self._generation = new_generation()
        self._wiring = Wiring(me=Identity(task=str(task), generation=self._generation), inside_grpc=inside_grpc)
        self._on_shutdown = on_shutdown
        self._links: list[TaskLink] = []
        self._lock = threading.Lock()
        self._masters: Counter[int] = Counter()
        self.runtime = TaskRuntime(task.device_prefix, device_counts)
        self._peers = ClusterPeers(cluster, task, self.runtime.devices, self._link)
        self._steps = StepService(self.runtime, self._peers.push)
        self._master = MasterService(self.runtime, self._peers)
        self._target = ""
        self._workplace = Workplace()
        try:
            self._start(address)
        except BaseException:
            self._workplace.close()
            raise
        self._metrics: MetricsServer | None = None
        try:
            wanted = metrics_address()
            if wanted is not None:
                self._metrics = MetricsServer(wanted, str(task), self.snapshot)
        except BaseException:
            self.stop()
            raise
        register_master(self._target, self._master)
        _log.info("%s serves at %s", task, self.address)

    def _start(self, address: Address) -> None:
        wiring = self._wiring
        control_path = str(self._workplace.path / "control")
        self._listener = Listener(
            address, me=wiring.me, security=wiring.security, on_channel=self._serve, options=wiring.options,
            workplace=self._workplace, control_path=control_path,
        )  # fmt: skip
        self.address = self._listener.address
        self._target = f"grpc://{self.address}"
        self._control = ControlServer(
            control_path, me=wiring.me, security=wiring.security, task=self, master=self._master,
            on_channel=self._serve, options=wiring.options,
        )  # fmt: skip
        self._control.start()
        self._listener.start()

    def _link(self, task: TaskName) -> PeerLink:
        address = parse_address(self._cluster.task_address(task.job, task.index))
        link = TaskLink(self._wiring, task, address, self.runtime.task)
        self._links.append(link)
        return link

    def _serve(self, channel: Channel) -> None:
        def other(frame: Frame) -> bool:
            if frame.kind == CALL:
                self._master.call(channel, frame)
            elif frame.kind == HOLD:
                self._master.hold(channel, frame)
            return frame.kind in (CALL, HOLD)

        master = channel.peer_generation
        with self._lock:
            self._masters[master] += 1
        try:
            self._steps.serve(channel, other)
        finally:
            with self._lock:
                self._masters[master] -= 1
                gone = not self._masters[master]
                if gone:
                    del self._masters[master]
            if gone and master:  # clients that are no tasks have no generation
                self.runtime.lose(master, "its last connection has ended")
            self._master.let_go(channel)

    def stop(self) -> None:
        """Ends everything and frees the port. May be called again."""
        forget_master(self._target)
        if self._metrics is not None:
            self._metrics.stop()
            self._metrics = None
        self._wiring.waiter.cancel()
        self._master.close()
        self._listener.stop()
        self._control.stop()
        for link in self._links:
            link.close()
        self._workplace.close()

    # What the control plane asks (`headwater.transport.handlers.TaskHandler`) -----------------------------------------

    def status_details(self) -> Mapping[str, bytes]:
        counts = {
            STEPS_DETAIL: self._steps.steps,
            SESSIONS_DETAIL: self.runtime.session_count(),
            CHANNELS_DETAIL: self._listener.statistics().channels,
        }
        details = {name: str(count).encode() for name, count in counts.items()}
        return {**details, SNAPSHOT_DETAIL: self.snapshot().encode()}

    def snapshot(self) -> Snapshot:
        """How the task fares now."""
        channels = self._listener.channels()
        for link in list(self._links):
            channels += link.channels()
        return take_snapshot(
            self.runtime,
            channels,
            cluster={str(name): address for name, address in self._cluster.tasks()},
            metrics=self._metrics.address if self._metrics is not None else "",
        )

    def list_devices(self) -> Sequence[DeviceInfo]:
        return [
            DeviceInfo(
                name=device.name(),
                type=device.device_type or "",
                memory_limit=memory_bytes(f"{device.device_type}:{device.device_index}"),
                incarnation=self._generation,
            )
            for device in self.runtime.devices()
        ]

    def add_plan(self, session: str, number: int, plan: bytes, owner: tuple[str, int]) -> None:
        self.runtime.add_plan(session, number, decode_plan(plan), owner)

    def release(self, session: str) -> None:
        self.runtime.release(session)

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        self.runtime.cancel(session, step, reason)

    def reset(self, containers: Sequence[str]) -> None:
        self.runtime.reset(list(containers))

    def shutdown(self, reason: str) -> None:
        _log.info("%s was asked to end: %s", self._wiring.me.task, reason)
        self._on_shutdown()


def _share_machine(cluster: ClusterSpec, task: TaskName) -> None:
    """A core for each ``ps`` of this machine, which works in short bursts; the others divide what is left."""
    host = parse_address(cluster.task_address(task.job, task.index)).host
    here = [name.job for name, address in cluster.tasks() if parse_address(address).host == host]
    servers = here.count("ps")
    if task.job == "ps":
        share_machine(beside=len(here), sparing=0)
    else:
        share_machine(beside=len(here) - servers, sparing=servers)
