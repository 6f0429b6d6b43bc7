"""What runs behind a `Server`: the listener, both planes, the master, and the links to the other tasks."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.variables import MAX_WORKERS
from headwater.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from headwater.master.links import CHANNELS_DETAIL, SESSIONS_DETAIL, STEPS_DETAIL, TaskLink
from headwater.master.peers import ClusterPeers
from headwater.master.targets import forget_master, register_master
from headwater.passes.plan import decode_plan
from headwater.runtime.devices import memory_bytes, share_machine, use_cpu_only
from headwater.runtime.process import ProcessSettings, configure
from headwater.runtime.task import TaskRuntime
from headwater.server.master_service import MasterService
from headwater.server.snapshot import take_snapshot
from headwater.server.steps import StepService
from headwater.task.kinds import HOLD, RUN_CALLABLE
from headwater.task.metrics import MetricsServer, metrics_address
from headwater.task.progress_watch import ProgressWatch, behind_after_s
from headwater.task.telling import Teller
from headwater.telemetry.snapshot import SNAPSHOT_DETAIL, Snapshot
from headwater.telemetry.watchdog import ProgressWatchdog
from headwater.transport.channel import Channel
from headwater.transport.control_server import ControlServer
from headwater.transport.frames import Frame
from headwater.transport.handlers import DeviceInfo
from headwater.transport.handshake import Identity, new_generation
from headwater.transport.links import Wiring
from headwater.transport.listener import Listener
from headwater.transport.workplace import Workplace

_log = logging.getLogger("headwater")

_PS = "ps"
_PS_TASKS = "/job:ps/"
# How long a process that ends gives its last answers to leave, in seconds.
_LAST_ANSWERS_S = 2.0


class TaskServer:
    """A running task.

    Args:
      cluster: all tasks.
      task: this one. Job ``ps`` stays off GPUs.
      address: where it listens; with port 0 the system chooses.
      inside_grpc: keep tensors inside gRPC.
      on_shutdown: called when the job is over.
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
        if task.job == _PS:
            use_cpu_only()
        _share_machine(cluster, task)
        configure(settings or ProcessSettings())
        self._cluster = cluster
        self._generation = new_generation()
        self._wiring = Wiring(me=Identity(task=str(task), generation=self._generation), inside_grpc=inside_grpc)
        self._on_shutdown = on_shutdown
        self._links: list[TaskLink] = []
        self._lock = threading.Lock()
        self._masters: Counter[tuple[str, int]] = Counter()
        self._joined: dict[str, str] = {}
        self._over = False
        # Who is in the cluster spec, and has come and gone. Its index stays its own: it may come back.
        self._left: set[str] = set()
        # Who has yet to come. A job that is over before a worker has begun does not end without it.
        self._awaited = {str(name) for name, _ in cluster.tasks() if name.job not in (_PS, task.job)}
        self.runtime: TaskRuntime = TaskRuntime(task.device_prefix, device_counts)
        self._claim = Claim(
            task=self.runtime.task, generation=self._generation, started=time.time(),
            address=cluster.task_address(task.job, task.index),
        )  # fmt: skip
        self._peers = ClusterPeers(cluster, task, self.runtime.devices, self._link)
        watchdog = ProgressWatchdog(self.runtime.knows, least_s=behind_after_s())
        self._watch = ProgressWatch(watchdog, str(task))
        self._steps = StepService(self.runtime, self._peers.push, watchdog)
        self._master = MasterService(self.runtime, self._peers)
        self._target = ""
        self._workplace = Workplace()
        try:
            self._start(address)
        except BaseException:
            self._workplace.close()
            raise
        self._metrics: MetricsServer | None = None
        self._teller = Teller(str(task), self.snapshot)
        try:
            wanted = metrics_address()
            if wanted is not None:
                self._metrics = MetricsServer(wanted, str(task), self.snapshot)
        except BaseException:
            self.stop()
            raise
        self._watch.start()
        register_master(self._target, self._master)
        _log.info("%s serves at %s", task, self.address)

    def _start(self, address: Address) -> None:
        wiring = self._wiring
        control_path = str(self._workplace.path / "control")
        self._listener = Listener(
            address, me=wiring.me, security=wiring.security, on_channel=self._serve, options=wiring.options,
            workplace=self._workplace, control_path=control_path,
        )  # fmt: skip
        self.address: Address = self._listener.address
        self._target = f"grpc://{self.address}"
        self._control = ControlServer(
            control_path, me=wiring.me, security=self._listener.security, task=self, master=self._master,
            on_channel=self._serve, options=wiring.options, on_trusted=self._listener.trust,
        )  # fmt: skip
        self._control.start()
        self._listener.start()

    def _link(self, task: TaskName) -> TaskLink:
        address = parse_address(self._cluster.task_address(task.job, task.index))
        link = TaskLink(self._wiring, task, address, self._claim)
        self._links.append(link)
        return link

    def _serve(self, channel: Channel) -> None:
        def other(frame: Frame) -> bool:
            if frame.kind == RUN_CALLABLE:
                self._master.call(channel, frame)
            elif frame.kind == HOLD:
                self._master.hold(channel, frame)
            return frame.kind in (RUN_CALLABLE, HOLD)

        master = channel.peer.partition(" (")[0], channel.peer_generation
        with self._lock:
            self._masters[master] += 1
            self._awaited.discard(master[0])
            self._left.discard(master[0])
        try:
            self._steps.serve(channel, other)
        finally:
            with self._lock:
                self._masters[master] -= 1
                gone = not self._masters[master]
                if gone:
                    del self._masters[master]
            if gone:
                self._lost(*master)
            self._master.let_go(channel)

    def _lost(self, task: str, generation: int) -> None:
        """The last connection to a life of a task, or to a client, has ended."""
        if generation and self.runtime.lose(generation, "its last connection has ended"):
            _log.warning(
                "%s has lost %s: its last connection has ended, and its sessions are still open",
                self._wiring.me.task,
                task,
            )
        # One that only looks around, as every new session does first, has not come yet.
        came = self.runtime.has_served(generation)
        with self._lock:
            left = self._joined.pop(task, None) if came else None
            if came and left is None and task in self._tasks():
                self._left.add(task)
        if left is not None:
            _log.warning("%s has left the cluster", task)
        self._end_if_over()

    def stop(self) -> None:
        """Ends everything and frees the port. May be called again."""
        forget_master(self._target)
        if self._metrics is not None:
            self._metrics.stop()
            self._metrics = None
        self._watch.stop()
        self._teller.close()
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
        with self._lock:
            cluster = self._tasks()
        channels = self._listener.channels()
        for link in list(self._links):
            channels += link.channels()
        return take_snapshot(
            self.runtime,
            channels,
            workers=self._steps.watchdog.progress(),
            cluster=cluster,
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

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        name = str(TaskName.parse(owner.task)) if owner.task else ""

        def connected(generation: int) -> bool:
            return bool(self._masters[name, generation])

        with self._lock:
            address = self._tasks().get(name, "")
        self.runtime.add_plan(session, number, decode_plan(plan), owner, address=address, connected=connected)

    def release(self, session: str) -> None:
        self.runtime.release(session)

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        self.runtime.cancel(session, step, reason)

    def reset(self, containers: Sequence[str]) -> None:
        self.runtime.reset(list(containers))

    def shutdown(self, reason: str) -> None:
        _log.info("%s ends when no worker is connected any more: %s", self._wiring.me.task, reason)
        with self._lock:
            self._over = True
        self.runtime.resources.job_over(reason)
        self._end_if_over()

    def join(self, job: str, address: str) -> tuple[int, Mapping[str, str]]:
        try:
            parse_address(address)
        except ValueError as error:
            raise InvalidArgumentError(None, None, f"a task cannot join at {address!r}: {error}") from error
        with self._lock:
            cluster = self._tasks()
            taken = {TaskName.parse(name).index for name in cluster if TaskName.parse(name).job == job}
            most = os.environ.get(MAX_WORKERS, "")
            if most.isdecimal() and len(taken) - len(self._left) >= int(most):
                raise ResourceExhaustedError(
                    None, None, f"no more than {most} tasks of job {job} may be in the cluster ({MAX_WORKERS})"
                )
            index = next(index for index in itertools.count() if index not in taken)
            name = str(TaskName(job, index))
            self._joined[name] = address
        _log.warning("%s joins the cluster at %s", name, address)
        return index, {**cluster, name: address}

    def answer_all(self) -> None:
        """Gives steps of others that are as good as done the time to be answered; see `StepService.answer_all`."""
        self._steps.answer_all(_LAST_ANSWERS_S)

    def say_over(self) -> None:
        """Tells every ps, and who else has worked for this task, that the job is over, where this task's master has had
        sessions. Those that are gone need not hear of it."""
        if not self._master.sessions:
            return
        links = {link.task: link for link in self._links}
        for name, _ in self._cluster.tasks():
            if name in links or (name.job == _PS and str(name) != self._wiring.me.task):
                link = links.get(name) or self._link(name)
                try:
                    link.control.shutdown(f"{self._wiring.me.task} is done")
                except OpError as error:
                    _log.debug("%s did not hear that the job is over: %s", name, error.message)

    def _tasks(self) -> dict[str, str]:
        """Every task and its address. The lock is held."""
        return {**{str(name): address for name, address in self._cluster.tasks()}, **self._joined}

    def _end_if_over(self) -> None:
        with self._lock:
            connected = any(not task.startswith(_PS_TASKS) for task, _ in self._masters)
            ends = self._over and not connected and not self._awaited
        if ends:
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
