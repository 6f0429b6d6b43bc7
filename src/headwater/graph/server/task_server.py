"""A task that runs steps of graphs: the service behind a `Server`, and its shell."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar

from headwater.cluster.addresses import parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.deposited_states import DepositedStates
from headwater.cluster.task.kinds import HOLD, RESUME, RUN, RUN_CALLABLE, TENSORS, TRANSFER
from headwater.cluster.task.lifetime import PS
from headwater.cluster.task.service import Service
from headwater.cluster.task.shell import TaskShell
from headwater.cluster.telemetry.snapshot import Snapshot
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.handlers import DeviceInfo
from headwater.cluster.variables import REPLICAS
from headwater.errors import FailedPreconditionError
from headwater.graph.master.links import SESSIONS_DETAIL, STEPS_DETAIL, TaskLink
from headwater.graph.master.peers import ClusterPeers, PeerLink
from headwater.graph.master.targets import forget_master, register_master
from headwater.graph.passes.plan import decode_plan
from headwater.graph.runtime.devices import memory_bytes, share_machine_with_tasks, use_cpu_only
from headwater.graph.runtime.process import ProcessSettings, configure
from headwater.graph.runtime.task import TaskRuntime
from headwater.graph.server import deposited_state
from headwater.graph.server.master_service import MasterService
from headwater.graph.server.own_state import FOLDER, saver_for, saves_of_environment
from headwater.graph.server.replicas.copy import GraphCopy, ProcessAccess
from headwater.graph.server.replicas.limits import replicas_of, tasks_of
from headwater.graph.server.replicas.links import CopiedTaskLink, CopyLink
from headwater.graph.server.replicas.processes import GraphProcesses
from headwater.graph.server.replicas.service import CopyService
from headwater.graph.server.snapshot import add_state
from headwater.graph.server.steps import StepService
from headwater.state.replica_deposits import ReplicaDeposits
from headwater.state.sites import Site
from headwater.state.witness import RemoteWitness, WitnessService

_log = logging.getLogger("headwater")

# Limit for an ending process to send its last answers, in seconds.
_LAST_ANSWERS_TIMEOUT_S = 2.0
# Limit for masters that have lost their channels to reconnect to an ending process for the answer to their last step,
# in seconds.
_RECONNECT_TIMEOUT_S = 15.0


class TaskServer(Service):
    """Runs a task that executes steps of graphs.

    Args:
      cluster: all tasks.
      task: the name of this task. A task of job ``ps`` uses no GPU.
      inside_grpc: whether tensors are sent inside gRPC; see `Server`.
      device_counts: number of devices of each type that the task offers.
      settings: the program's device settings.

    Attributes:
      shell: the task.
      target: the target of sessions that use this task.
      runtime: the task's state and plans.
    """

    kinds: ClassVar[Collection[int]] = (RUN, RESUME, TENSORS, TRANSFER, RUN_CALLABLE, HOLD)

    def __init__(
        self,
        cluster: ClusterSpec,
        task: TaskName,
        *,
        inside_grpc: bool,
        device_counts: Mapping[str, int] | None = None,
        settings: ProcessSettings | None = None,
    ) -> None:
        if task.job == PS:
            use_cpu_only()
        share_machine_with_tasks(cluster, task)
        configure(settings or ProcessSettings())
        self.runtime: TaskRuntime = TaskRuntime(task.device_prefix, device_counts)
        self._is_replicated = replicas_of(cluster) > 1
        # A drained ps deposits its state with the chief only if the state is stored nowhere else: neither on a backup
        # nor in saved states.
        deposits = task.job == PS and not self._is_replicated and saves_of_environment() is None
        # Fetch before the shell exists: the fetched state has the generation with which the shell must start.
        deposited = deposited_state.fetch(cluster, task, inside_grpc=inside_grpc) if deposits else None
        predecessor = None if deposited is None else deposited.predecessor
        self.shell: TaskShell = TaskShell(
            cluster, task, devices=self._devices, inside_grpc=inside_grpc, predecessor=predecessor
        )
        self._claim = dataclasses.replace(self.shell.claim, task=self.runtime.task)
        self._deposits = DepositedStates()
        self._processes = self._find_processes(cluster) if self._is_replicated else None
        tasks = _tasks_of_graph(cluster, self._processes)
        self._peers = ClusterPeers(tasks, task, self.runtime.devices, self._link)
        self._steps = StepService(self.runtime, self._peers.push, self.shell.watchdog)
        if deposited is not None:
            # Restore before the shell serves, so that no master finds an empty task with the previous generation.
            deposited.restore(self.runtime, self._steps)
        self._deposit = deposited_state.StateDeposit(self.shell, self.runtime, self._steps) if deposits else None
        has_copies = self._is_replicated and task.job == PS
        self._master = MasterService(self.runtime, self._peers, refuses=self._master_refusal() if has_copies else "")
        #: Generations of the masters that this incarnation has served.
        self._served_generations: set[int] = set()
        #: Replicas of tasks that this process holds or may hold; None without replication.
        self.copies: CopyService | None = None
        if self._processes is not None and task.job == PS:
            self.copies = self._create_copies(self._processes)
        # Restores the saved state, so it must precede `shell.start`, too.
        self._saver = saver_for(self.runtime.resources, task, len(cluster.task_indices(PS))) if task.job == PS else None
        self.shell.add_service(self)
        if self.copies is not None:
            self.shell.add_service(self.copies)
        if self._is_replicated and self.shell.is_chief:
            # The witness is on the chief, which every job has. On a ps, in a job with two ps, the loss of one process
            # could remove both the witness and a replica, and no failover would be possible.
            self.shell.add_service(WitnessService(self._deposits))
        if self.shell.is_chief:
            self.shell.add_service(self._deposits)
        self.shell.start(plans=self, master=self._master)
        if self._saver is not None:
            self._saver.start()
        if self.copies is not None:
            self.copies.start()
        self.target: str = f"grpc://{self.shell.address}"
        register_master(self.target, self._master)

    def _link(self, task: TaskName) -> PeerLink:
        shell = self.shell
        address = parse_address(shell.cluster.task_address(task.job, task.index))
        if self._processes is not None and task.job == PS:
            return CopiedTaskLink(shell.link_settings, task, address, self._links_to_copies(task), self._claim)
        on_connected = (
            partial(self._deposits.discard_outdated, FOLDER, task.index) if shell.is_chief and task.job == PS else None
        )
        return shell.add_link(task, TaskLink(shell.link_settings, task, address, self._claim, on_connected))

    def _links_to_copies(self, task: TaskName) -> Callable[[], Sequence[CopyLink]]:
        """Returns a function that lists the links to the processes that may hold replicas of a task."""
        shell, processes = self.shell, self._processes
        assert processes is not None
        pair = processes.pair(task.index)
        lock, made = threading.Lock(), dict[tuple[int, str], CopyLink]()

        def merge_records(words: Sequence[object]) -> None:
            processes.merge_records(words)

        def links() -> Sequence[CopyLink]:
            with lock:
                present = processes.present()
                # The initial primary first, then the initial backup: in most jobs no failover has happened, and the
                # first attempt finds the primary.
                for number, address in sorted(present, key=lambda each: (each[0] != pair[0], each[0] != pair[1])):
                    if (number, address) not in made:
                        host = TaskName(PS, number)
                        link = CopyLink(shell.link_settings, host, parse_address(address), task, merge_records)
                        made[number, address] = shell.add_link(host, link)
                return list(made.values())

        return links

    def _find_processes(self, cluster: ClusterSpec) -> GraphProcesses:
        """Returns the processes that may hold replicas of tasks of job ``ps``."""
        me, tasks = self.shell.me, cluster.task_indices(PS)[: tasks_of(cluster)]
        addresses = {index: cluster.task_address(PS, index) for index in tasks}
        if me.job == PS:  # processes beyond the initial ones may not have started
            addresses[me.index] = cluster.task_address(PS, me.index)
        return GraphProcesses(
            addresses,
            tasks=tasks,
            link=lambda number, address: self.shell.link(TaskName(PS, number), address),
            me=me.index if me.job == PS else None,
        )

    def _create_copies(self, processes: GraphProcesses) -> CopyService:
        """Creates this process's replicas, one of each task, and the service for them."""
        shell = self.shell
        chief, me = shell.chief, shell.me
        witness, deposits = RemoteWitness(shell.link(chief), str(chief)), ReplicaDeposits(str(chief), shell.link(chief))
        around = ProcessAccess(
            push=self._peers.push,
            watchdog=shell.watchdog,
            address=lambda task: shell.present_cluster().get(task, ""),
            connected=shell.is_connected,
            processes=processes.words,
        )
        copies = [
            GraphCopy(
                TaskName(PS, task),
                site=Site(
                    ps=me.index,
                    initial=processes.pair(task),
                    processes=processes,
                    request_view=witness.request_view,
                    deposits=deposits,
                ),
                around=around,
                aims=partial(processes.desired_placement, task),
            )
            for task in processes.tasks
        ]
        return CopyService(shell, copies, around, processes)

    def _master_refusal(self) -> str:
        return (
            f"the variables of {self.shell.me} are replicated ({REPLICAS}=2), but a session whose master is this task "
            "would be lost with it: use the target of a worker"
        )

    def _devices(self) -> Sequence[DeviceInfo]:
        return [
            DeviceInfo(
                name=device.name(),
                type=device.device_type or "",
                memory_limit=memory_bytes(f"{device.device_type}:{device.device_index}"),
            )
            for device in self.runtime.devices()
        ]

    def stop(self) -> None:
        """Stops everything and frees the port. Idempotent."""
        forget_master(self.target)
        self.shell.stop()
        if self._saver is not None:
            self._saver.end()

    def answer_all(self) -> None:
        """Waits until the running steps of other tasks have been answered; see `StepService.answer_all`."""
        self._steps.answer_all(_LAST_ANSWERS_TIMEOUT_S, _RECONNECT_TIMEOUT_S)

    def announce_departure(self) -> None:
        """Notifies each ``ps`` process that this worker's program has ended, including processes without a primary, to
        which this worker may never have connected. Does nothing without replication."""
        if self._is_replicated and not self._peers.refused:
            self.shell.announce_departure()

    def announce_end(self) -> None:
        """Declares the job over if this task's master has opened sessions and no other task has refused this task."""
        if self._master.sessions and not self._peers.refused:
            self.shell.announce_end()

    # Service interface (`headwater.cluster.task.service.Service`)
    # -----------------------------------------------------------

    def serve(self, channel: Channel, first: Frame) -> None:
        def handle_master_frame(frame: Frame) -> bool:
            if frame.kind == RUN_CALLABLE:
                self._master.call(channel, frame)
            elif frame.kind == HOLD:
                self._master.attach_session(channel, frame)
            return frame.kind in (RUN_CALLABLE, HOLD)

        self._served_generations.add(channel.peer_generation)
        try:
            self._steps.serve(channel, first, handle_master_frame, lambda: self.shell.record_disconnect(channel))
        finally:
            self._master.detach_sessions(channel)

    def has_served(self, generation: int) -> bool:
        return self.runtime.has_served(generation)

    def refusal(self, task: Claim) -> str:
        if not task.task:
            return ""
        name = TaskName.parse(task.task)
        return self.runtime.refusal(
            dataclasses.replace(task, task=name.device_prefix),
            address=self.shell.present_cluster().get(str(name), ""),
            connected=lambda generation: self.shell.is_connected(str(name), generation),
        )

    def handle_loss(self, task: str, generation: int) -> None:
        # A master that is not in `_served_generations` has run no steps on this incarnation. It has only checked
        # whether the task has restarted, to resume a step of the previous incarnation.
        if (
            generation
            and generation in self._served_generations
            and self.runtime.lose(generation, "its last connection has ended")
        ):
            _log.warning(
                "%s has lost %s: its last connection has ended, and its sessions are still open", self.shell.me, task
            )

    def is_open(self, session: str) -> bool:
        return self.runtime.has_session(session)

    def job_over(self, reason: str) -> None:
        if self._saver is not None:
            self._saver.job_over = True
        self._master.over = reason
        self.runtime.resources.job_over(reason)

    def before_end(self, *, over: bool) -> None:
        if self._deposit is not None and not over and self.shell.chief.job in self.shell.cluster.jobs:
            # Sessions of this process's own master end with the process anyway. Close them first, so that the handoff
            # does not wait for their steps.
            self._master.close()
            self._deposit.deposit_state()

    def close(self) -> None:
        self._steps.stop()
        self._master.close()

    def details(self) -> Mapping[str, bytes]:
        return {
            STEPS_DETAIL: str(self._steps.steps).encode(),
            SESSIONS_DETAIL: str(self.runtime.session_count()).encode(),
        }

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        found = add_state(snapshot, self.runtime)
        if self._saver is None:
            return found
        return dataclasses.replace(found, groups=(*found.groups, self._saver.group()))

    # Control plane (`headwater.cluster.task.shell.PlanHandler`)
    # -------------------------------------------------

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        if self.copies is not None:
            raise FailedPreconditionError(
                f"the variables of {self.shell.me} are replicated, but {owner.task or 'a client'} was started without "
                f"replication: set {REPLICAS}=2 for that process, too"
            )
        name = str(TaskName.parse(owner.task)) if owner.task else ""
        self.runtime.add_plan(
            session,
            number,
            decode_plan(plan),
            owner,
            address=self.shell.present_cluster().get(name, ""),
            connected=lambda generation: self.shell.is_connected(name, generation),
        )
        self._steps.require_not_frozen()

    def release(self, session: str) -> None:
        self.runtime.release(session)

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        self.runtime.cancel(session, step, reason)

    def reset(self, containers: Sequence[str]) -> None:
        self.runtime.reset(list(containers))
        self._steps.require_not_frozen()


def _tasks_of_graph(cluster: ClusterSpec, processes: GraphProcesses | None) -> ClusterSpec:
    """Returns the cluster without the ``ps`` that are not tasks of the graph, but may hold replicas of such tasks."""
    if processes is None:
        return cluster
    jobs = {
        job: {index: cluster.task_address(job, index) for index in cluster.task_indices(job)} for job in cluster.jobs
    }
    jobs[PS] = {index: address for index, address in jobs[PS].items() if index in processes.tasks}
    return ClusterSpec(jobs)
