"""The shell of a task: its listener, generation, control plane, status, and shutdown.

A task provides services to others (`headwater.cluster.task.service`): steps of graphs, parameters, collectives, calls
of a coordinator. The first frame of a channel selects the service.
"""

from __future__ import annotations

import atexit
import dataclasses
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from headwater.cluster.addresses import Address, parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.config import chief_of, ended_tasks
from headwater.cluster.machine_memory import keep_freed_memory
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task import lifetime
from headwater.cluster.task.activity_reports import ActivityReporter
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.ending import Ending
from headwater.cluster.task.garbage import keep_survivors
from headwater.cluster.task.kinds import LEAVES, WHERE
from headwater.cluster.task.links import WaitingLink
from headwater.cluster.task.metrics_address import METRICS, metrics_address
from headwater.cluster.task.progress_watch import ProgressWatch, behind_after_s
from headwater.cluster.task.service import Service
from headwater.cluster.telemetry.snapshot import SNAPSHOT_DETAIL, Snapshot, total_traffic
from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.cluster.telemetry.watchdog import ProgressWatchdog
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.control_client import ControlClient
from headwater.cluster.transport.control_server import ControlServer
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handlers import DeviceInfo, MasterHandler
from headwater.cluster.transport.handshake import PeerIdentity, new_generation
from headwater.cluster.transport.links import Link, LinkSettings
from headwater.cluster.transport.listener import Listener
from headwater.cluster.transport.problems import ConnectFailure
from headwater.cluster.transport.workplace import Workplace
from headwater.cluster.variables import MAX_WORKERS
from headwater.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    UnavailableError,
    UnimplementedError,
)

if TYPE_CHECKING:
    from headwater.cluster.task.metrics import MetricsServer

_log = logging.getLogger("headwater")
L = TypeVar("L", bound=Link)

CHANNELS_DETAIL = "channels"
"""Key of the status detail with the number of channels that others have opened to a task, except inside gRPC."""

TASKS_DETAIL = "whereabouts"
"""Key of the status detail with the tasks that are or were connected; see `lifetime.ConnectionReport`."""

OVER_DETAIL = "over"
"""Key of the status detail of a task that knows that the job is over, and waits for tasks to leave."""


class PlanHandler(Protocol):
    """Calls of the control plane that a task with steps of graphs answers.

    See `headwater.cluster.transport.handlers.TaskHandler`.
    """

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None: ...

    def release(self, session: str) -> None: ...

    def cancel_step(self, session: str, step: int, reason: str) -> None: ...

    def reset(self, containers: Sequence[str]) -> None: ...


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Predecessor:
    """An incarnation that has passed its whole state on to the next incarnation. Both have the same generation.

    Attributes:
      generation: the generation of both incarnations.
      connected_before: tasks that have connected to the earlier incarnation. The next incarnation does not wait for
        them.
    """

    generation: int
    connected_before: frozenset[str] = frozenset()


class TaskShell:
    """This process as a task of a cluster.

    Args:
      cluster: all tasks.
      me: this task.
      listens: whether this task listens at its address in the cluster. An evaluator does not.
      elastic: whether tasks that are not in the cluster spec may join.
      inside_grpc: whether tensors are sent inside gRPC.
      devices: returns the devices of this process.
      link_settings: creates the settings of connections from the identity of this task; None to read them from the
        environment.
      predecessor: the incarnation from whose state this task continues; None if this task starts with a new generation.

    Attributes:
      me: this task.
      cluster: all tasks of the cluster spec.
      identity: name and generation.
      claim: the claim to this task's place in the cluster.
      link_settings: the settings of this task's connections to others.
      watchdog: records workers' steps, and reports workers that make no steps.
      address: the address where this task listens; empty if it does not listen.
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        me: TaskName,
        *,
        devices: Callable[[], Sequence[DeviceInfo]],
        listens: bool = True,
        elastic: bool = True,
        inside_grpc: bool = False,
        link_settings: Callable[[PeerIdentity], LinkSettings] | None = None,
        predecessor: Predecessor | None = None,
    ) -> None:
        keep_freed_memory()
        self.me: TaskName = me
        self.cluster: ClusterSpec = cluster
        self.identity: PeerIdentity = PeerIdentity(
            task=str(me), generation=predecessor.generation if predecessor is not None else new_generation()
        )
        self.claim: Claim = Claim(
            task=str(me),
            generation=self.identity.generation,
            started=time.time(),
            address=cluster.task_address(me.job, me.index) if listens else "",
        )
        self.link_settings: LinkSettings = (
            link_settings(self.identity) if link_settings else LinkSettings(me=self.identity, inside_grpc=inside_grpc)
        )
        self.address: str = ""
        self.watchdog: ProgressWatchdog = ProgressWatchdog(self._is_open, least_s=behind_after_s())
        self._devices = devices
        self._listens = listens
        self._elastic = elastic
        self._watch = ProgressWatch(self.watchdog, str(me))
        self._services: list[Service] = []
        self._by_kind: dict[int, Service] = {}
        self._links: list[tuple[TaskName, Link]] = []
        self._waiting_links: dict[tuple[TaskName, str], WaitingLink] = {}
        self._plans: PlanHandler | None = None
        self._ending = Ending()
        self._lock = threading.Lock()
        self._open: dict[Channel, lifetime.Incarnation] = {}
        self._ended = frozenset(map(str, ended_tasks(cluster)))
        self._state = lifetime.first_state(
            cluster, me, self._ended, predecessor.connected_before if predecessor is not None else ()
        )
        self._listener: Listener | None = None
        self._control: ControlServer | None = None
        self._metrics: MetricsServer | None = None
        self._activity_reporter: ActivityReporter | None = None
        self._workplace: Workplace | None = None

    # Lifecycle --------------------------------------------------------------------------------------------------------

    def add_service(self, service: Service) -> None:
        """Routes channels whose first frame is of one of the service's kinds to ``service``."""
        self._services.append(service)
        self._by_kind |= dict.fromkeys(service.kinds, service)

    def start(self, *, plans: PlanHandler | None = None, master: MasterHandler | None = None) -> None:
        """Starts to listen and to serve.

        Args:
          plans: handles plans of graphs; None if the task runs none.
          master: handles sessions of clients; None if the task has none.

        Raises:
          AlreadyExistsError: another process holds the port; the message names it.
          PermissionDeniedError: other machines could reach the task, and no authentication is configured.
          UnavailableError: the address for metrics is not available.
        """
        if not self._listens:
            return
        self._plans = plans
        for task in sorted(self._ended):
            for service in self._services:
                service.handle_program_end(task)
        self._workplace = Workplace()
        try:
            self._listen(self._workplace, master)
            wanted = metrics_address()
            if wanted is not None:
                self._metrics = _metrics_server(wanted, self.identity.task, self.snapshot)
        except BaseException:
            self.stop()
            raise
        self._watch.start()
        self._activity_reporter = ActivityReporter(self.identity.task, self.snapshot)
        _log.info("%s serves at %s", self.me, self.address)

    def _listen(self, workplace: Workplace, master: MasterHandler | None) -> None:
        link_settings, control_path = self.link_settings, str(workplace.path / "control")
        listener = Listener(
            parse_address(self.cluster.task_address(self.me.job, self.me.index)),
            me=self.identity,
            security=link_settings.security,
            on_channel=self._serve,
            options=link_settings.options,
            workplace=workplace,
            control_path=control_path,
        )
        self._listener = listener
        self.address = str(listener.address)
        self._control = ControlServer(
            control_path,
            me=self.identity,
            security=listener.security,
            task=self,
            master=master,
            on_channel=self._serve,
            options=link_settings.options,
            on_trusted=listener.trust,
        )
        self._control.start()  # start it before the listener, which forwards connections to it
        listener.start()

    def wait_until_over(self) -> None:
        """Waits until the job is over or the process gets SIGTERM, then shuts the task down gracefully.

        In the main thread, SIGTERM ends the wait instead of the process, so that services can drain first.
        """
        # If the main thread waits here, the process only serves from now on, and its present objects never become
        # garbage. If another thread waits here, the main thread still runs a program whose objects may become garbage.
        if threading.current_thread() is threading.main_thread():
            keep_survivors()
        self._ending.wait()
        for service in list(self._services):
            service.before_end(over=self._state.over)
        self.stop()

    def end(self) -> None:
        """Makes `wait_until_over` return, so that the task shuts down."""
        self._ending.set()

    def stop(self) -> None:
        """Stops the services, closes all connections and frees the port. Idempotent."""
        atexit.unregister(self.announce_departure)
        self._ending.set()
        if self._metrics is not None:
            self._metrics.stop()
            self._metrics = None
        self._watch.stop()
        if self._activity_reporter is not None:
            self._activity_reporter.close()
        self.link_settings.waiter.cancel()  # cancel waits first, because threads of services may wait for other tasks
        for service in self._services:
            service.close()
        if self._listener is not None:
            self._listener.stop()
        if self._control is not None:
            self._control.stop()
        for _, link in self._links:
            link.close()
        if self._workplace is not None:
            self._workplace.close()

    @property
    def is_chief(self) -> bool:
        """Whether this task is the chief: the end of its program ends the job."""
        return self.me == self.chief

    @property
    def is_over(self) -> bool:
        """Whether the job is over, and no task or client is connected or awaited."""
        return lifetime.is_over(self._state)

    @property
    def is_needed(self) -> bool:
        """Whether the job is running, and a worker or a client is connected to this task."""
        return lifetime.is_needed(self._state)

    @property
    def chief(self) -> TaskName:
        """The chief of a cluster with a chief or workers: the end of its program ends the job."""
        return chief_of(self.cluster)

    @property
    def ever_connected(self) -> frozenset[str]:
        """The tasks of the cluster spec that have connected to this task."""
        return lifetime.ever_connected(self._state)

    def announce_departure(self) -> None:
        """Tells every ``ps`` that the program of this worker has ended. If this is the chief, the job is over then.

        Does nothing if the program ends with an error, because the worker will be restarted.
        """
        if getattr(sys, "last_value", None) is not None:  # set by the interpreter after an uncaught exception
            return
        if self.is_chief:
            self.announce_end()
            return
        missed = self._servers()
        # A ps that is starting cannot be notified yet. When that ps runs, it asks the other ps which workers have
        # ended, but perhaps before the other ps were notified. So try the starting ps once more after all others have
        # been notified.
        for _ in range(2):
            missed = [task for task in missed if not self._notify_of_departure(task)]

    def _notify_of_departure(self, server: TaskName) -> bool:
        try:
            self.link(server).send_once(Frame(LEAVES))
        except (ConnectFailure, OpError) as error:
            _log.debug("%s could not be notified that %s is done: %s", server, self.me, error)
            return False
        return True

    def announce_end(self) -> None:
        """Tells every ``ps``, and every task to which this task has a link, that the job is over."""
        known = dict(self._links)
        # Tell each ps which tasks have left: a restarted ps would otherwise wait for tasks that left before its
        # restart.
        gone = lifetime.left_everywhere(self._connection_reports())
        # Tell the parameter servers first. A parameter server refuses the message if another incarnation has taken this
        # task's place; then the job continues, and no other task may be notified.
        for task in dict.fromkeys([*self._servers(), *known]):
            if task == self.me:
                continue
            link = known.get(task) or self.link(task)
            # A ps needs this message and may be restarting, so retry. A worker that cannot be reached has already left.
            may_restart = task.job == lifetime.PS
            try:
                link.call(
                    lambda control: control.shutdown(f"{self.me} is done", self.claim, gone), may_restart=may_restart
                )
            except FailedPreconditionError as error:
                _log.warning("%s", error.message)
                return
            except OpError as error:
                # The task may have exited; then it need not be notified.
                _log.debug("%s could not be notified that the job is over: %s", task, error.message)

    def _connection_reports(self) -> list[lifetime.ConnectionReport]:
        """Returns the reports of the ``ps`` that answer on connected and departed tasks."""
        reports: list[lifetime.ConnectionReport] = []
        for server in self._servers():
            try:
                data = self.link(server).call(ControlClient.status).details.get(TASKS_DETAIL)
            except OpError as error:
                _log.debug("%s does not list the tasks that were connected: %s", server, error.message)
            else:
                reports += [lifetime.ConnectionReport.decode(data)] if data is not None else []
        return reports

    def _servers(self) -> list[TaskName]:
        return [name for name, _ in self.cluster.tasks() if name.job == lifetime.PS]

    def unregister_departure(self) -> None:
        """Unregisters `announce_departure`, because this worker's program ends unfinished and will be restarted."""
        atexit.unregister(self.announce_departure)

    # Other tasks ------------------------------------------------------------------------------------------------------

    def add_link(self, task: TaskName, link: L) -> L:
        """Registers a link to ``task``, and returns it. Snapshots include its traffic; `stop` closes it."""
        self._links.append((task, link))
        return link

    def link(self, task: TaskName, address: str = "") -> WaitingLink:
        """Returns the link to another task, at ``address`` or at its address in the cluster spec."""
        address = address or self.cluster.task_address(task.job, task.index)
        with self._lock:
            if (task, address) not in self._waiting_links:
                link = WaitingLink(self.link_settings, task, parse_address(address))
                self._waiting_links[task, address] = self.add_link(task, link)
            return self._waiting_links[task, address]

    def present_cluster(self) -> dict[str, str]:
        """Returns the address of every task of the cluster, including tasks that joined, by name."""
        with self._lock:
            return self._state.cluster

    def is_connected(self, task: str, generation: int) -> bool:
        """Returns whether an incarnation of a task has a channel to this task."""
        return (task, generation) in self._state.connected

    def _serve(self, channel: Channel) -> None:
        incarnation = channel.peer.partition(" (")[0], channel.peer_generation  # the peer's name, without its address
        self._open[channel] = incarnation
        self._handle_event(lifetime.Connected(incarnation))
        try:
            first = channel.recv()
            if first.kind != WHERE:  # WHERE only asks for places of shards: its sender may never use this task
                self._handle_event(lifetime.FirstFrame(incarnation))
            service = self._by_kind.get(first.kind)
            if service is not None:
                service.serve(channel, first)
            elif first.kind == LEAVES:
                for one in list(self._services):
                    one.handle_program_end(incarnation[0])
            else:
                raise bad_header(first, channel.peer)
        except (UnavailableError, CancelledError):
            return
        except OpError as error:
            _log.warning("%s closes the channel to %s: %s", self.me, channel.peer, error.message)
        finally:
            channel.close()
            self.record_disconnect(channel)

    def record_disconnect(self, channel: Channel) -> None:
        """Records that a channel is lost. Idempotent.

        Called by a service that has lost a channel, but needs more time to complete the request before it returns.
        """
        incarnation = self._open.pop(channel, None)
        if incarnation is not None:
            served = any(service.has_served(incarnation[1]) for service in self._services)
            self._handle_event(lifetime.Disconnected(incarnation, served))

    def _handle_event(self, event: lifetime.Event) -> None:
        with self._lock:
            decision = lifetime.decide(self._state, event)
            self._state = decision.state
        # Release the lock first: services may call back into the shell.
        if decision.lost is not None:
            for service in self._services:
                service.handle_loss(*decision.lost)
        if decision.reason:
            _log.warning("%s: %s", self.me, decision.reason)
        if decision.ends:
            self.end()

    def expect(self, tasks: Collection[str], *, awaited: bool = True) -> None:
        """Makes this task wait, before it ends with the job, until ``tasks`` have connected.

        Args:
          tasks: the names of the tasks.
          awaited: False to cancel the wait for these tasks.
        """
        self._handle_event(lifetime.Expected(frozenset(tasks), awaited))

    def end_with_job(self, reason: str) -> None:
        """Ends this task immediately, as the job was over before it started."""
        _log.warning("%s ends, because the job is already over: %s", self.me, reason)
        for service in list(self._services):
            service.job_over(reason)
        self._handle_event(lifetime.JobOver(gone=self._state.awaited))

    def _is_open(self, session: str) -> bool:
        return any(service.is_open(session) for service in self._services)

    # Status -----------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Returns a snapshot of the task's status."""
        channels = self._listener.channels() if self._listener is not None else []
        for _, link in list(self._links):
            channels += link.channels()
        snapshot = Snapshot(
            at=time.monotonic(),
            peers=total_traffic([_traffic(channel) for channel in channels]),
            workers=tuple(self.watchdog.progress()),
            troubles=TROUBLES.all_failures(),
            cluster=self.present_cluster(),
            metrics=self._metrics.address if self._metrics is not None else "",
        )
        for service in list(self._services):
            snapshot = service.add_to(snapshot)
        return snapshot

    # Interface of the control plane: `headwater.cluster.transport.handlers.TaskHandler` -------------------------------

    def status_details(self) -> Mapping[str, bytes]:
        assert self._listener is not None
        details = {
            CHANNELS_DETAIL: str(self._listener.statistics().channels).encode(),
            SNAPSHOT_DETAIL: self.snapshot().encode(),
            TASKS_DETAIL: lifetime.connection_report(self._state).encode(),
        }
        if self._state.over:
            details[OVER_DETAIL] = b""
        for service in list(self._services):
            details |= service.details()
        return details

    def list_devices(self) -> Sequence[DeviceInfo]:
        generation = self.identity.generation
        return [dataclasses.replace(device, incarnation=generation) for device in self._devices()]

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        if self._plans is None:
            raise UnimplementedError(f"{self.me} runs a program without graphs; it does not accept plans")
        self._plans.add_plan(session, number, plan, owner)

    def release(self, session: str) -> None:
        if self._plans is not None:
            self._plans.release(session)

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        if self._plans is not None:
            self._plans.cancel_step(session, step, reason)

    def reset(self, containers: Sequence[str]) -> None:
        if self._plans is None:
            raise UnimplementedError(f"{self.me} runs a program without graphs; it has no containers")
        self._plans.reset(containers)

    def shutdown(self, reason: str, chief: Claim, gone: Collection[str]) -> None:
        # Ask all services first: no service may end if one of them rejects the claim.
        for service in list(self._services):
            refusal = service.refusal(chief)
            if refusal:
                message = f"{self.me} continues, although {chief} reports that the job is over: {refusal}"
                _log.warning("%s", message)
                raise FailedPreconditionError(message)
        _log.info("%s was notified that the job is over: %s", self.me, reason)
        for service in list(self._services):
            service.job_over(reason)
        if self.me.job == lifetime.PS and self.chief.job in self.cluster.jobs:
            self.link(self.chief).check = self._stop_awaiting_workers
        self._handle_event(lifetime.JobOver(chief.task, frozenset(gone)))

    def _stop_awaiting_workers(self) -> None:
        """Stops awaiting workers that have yet to connect, because the chief's program has ended.

        Called when a service has failed to reach the chief, without which it cannot serve such workers.

        Raises:
          UnavailableError: always.
        """
        self.expect(self._state.awaited, awaited=False)
        raise UnavailableError(f"the program of {self.chief} has ended")

    def join(self, job: str, address: str) -> tuple[int, Mapping[str, str]]:
        if not self._elastic:
            raise UnimplementedError(
                f"{job} at {address} cannot join: {self.me} is one of a group of processes of fixed size"
            )
        try:
            parse_address(address)
        except ValueError as error:
            raise InvalidArgumentError(f"a task cannot join at {address!r}: {error}") from error
        most = os.environ.get(MAX_WORKERS, "")
        if self._state.over:
            raise OutOfRangeError(f"{job} at {address} cannot join: the job is already over")
        with self._lock:
            task = lifetime.place_in(self._state, job, int(most) if most.isdecimal() else None)
            decision = lifetime.decide(self._state, lifetime.Joined(str(task), address))
            self._state = decision.state
            cluster = decision.state.cluster
        _log.warning("%s: %s", self.me, decision.reason)
        return task.index, cluster


def _traffic(channel: Channel) -> tuple[str, int, int]:
    statistics = channel.statistics()
    return channel.peer.partition(" (")[0], statistics.bytes_sent, statistics.bytes_received


def _metrics_server(address: Address, task: str, snapshot: Callable[[], Snapshot]) -> MetricsServer:
    try:
        from headwater.cluster.task.metrics import MetricsServer  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UnimplementedError(
            f"{METRICS} asks for metrics, which need {error.name}: pip install 'headwater[metrics]'"
        ) from error
    return MetricsServer(address, task, snapshot)
