"""The master of a task: its sessions and their steps."""

from __future__ import annotations

import itertools
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import msgpack

from headwater.cluster.devices import Device, canonical_device_name
from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.errors import CancelledError, InvalidArgumentError, OpError
from headwater.graph.graph import Graph
from headwater.graph.master.ahead import OutdatedError, ReadsAhead
from headwater.graph.passes.ahead import read_ahead_by
from headwater.graph.passes.bags import combine_bags
from headwater.graph.passes.final_reads import read_finally
from headwater.graph.passes.lookups import join_lookups
from headwater.graph.passes.merge import merge_equal
from headwater.graph.passes.partition import partition
from headwater.graph.passes.partition_graphs import partition_graphs
from headwater.graph.passes.place import Placement, Placer
from headwater.graph.passes.plan import TaskPlan
from headwater.graph.passes.prune import Pruned, RunRequest, prune
from headwater.graph.passes.repetition import can_repeat
from headwater.graph.passes.schedule import schedule
from headwater.graph.runtime.executor import CompiledPlan
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.task import TaskRuntime

if TYPE_CHECKING:
    from headwater.graph.master.conversation import ChannelConversation
    from headwater.graph.master.peers import ClusterPeers


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionOptions:
    """The part of a session's configuration that its master applies.

    Attributes:
      soft_placement: whether to use another device if the requested one does not exist.
      log_placement: whether to print each operation's device when it is first placed.
      device_filters: tasks and devices that the session may see; all if empty.
      timeout_s: time limit of a step, in seconds; None: no limit.
      resumes: whether a step that loses its connection to a task waits for the task and then resumes. It still fails if
        the task has restarted with another generation. If False, a step fails with each lost connection.
      isolated: whether the session has separate variables, queues and other resources on every task, which are
        discarded at its end. Sessions without a target are always isolated.
      jit_level: ``global_jit_level`` of the configuration, see `headwater.graph.passes.plan.TaskPlan`.
    """

    soft_placement: bool = False
    log_placement: bool = False
    device_filters: tuple[str, ...] = ()
    timeout_s: float | None = None
    resumes: bool = False
    isolated: bool = False
    jit_level: int = 0

    def encode(self) -> bytes:
        """Encodes these options for a master in another process."""
        return msgpack.packb(asdict(self))

    @staticmethod
    def decode(data: bytes) -> SessionOptions:
        """Decodes the result of `encode`; InvalidArgumentError for anything else."""
        try:
            raw = msgpack.unpackb(data)
            return SessionOptions(
                soft_placement=bool(raw["soft_placement"]),
                log_placement=bool(raw["log_placement"]),
                device_filters=tuple(canonical_device_name(name) for name in raw["device_filters"]),
                timeout_s=None if raw["timeout_s"] is None else float(raw["timeout_s"]),
                resumes=bool(raw["resumes"]),
                isolated=bool(raw["isolated"]),
                jit_level=int(raw["jit_level"]),
            )
        except (ValueError, TypeError, OverflowError, KeyError, AttributeError) as error:
            raise InvalidArgumentError(f"malformed options of a session: {error}") from error


class PreparedStep:
    """A planned request, which can be run any number of times.

    Attributes:
      local: the part of the master's own task, if that task takes part.
      remote: the parts of other tasks.
    """

    def __init__(
        self,
        owner: MasterSession,
        number: int,
        request: RunRequest,
        local: CompiledPlan | None,
        remote: Mapping[str, TaskPlan],
    ) -> None:
        self._owner = owner
        self.number = number
        self.request = request
        self.local = local
        self.remote = remote
        names = [t.name for t in request.feeds]
        self._local_feeds = [names.index(name) for name in local.plan.feeds] if local else []
        self._remote_feeds = {task: [names.index(name) for name in plan.feeds] for task, plan in remote.items()}
        self._sources = _fetch_sources(request, local.plan if local else None, remote)
        self._ahead = None if local is None else _reads_ahead(local.plan, remote)

    def run(self, feeds: Sequence[Any], timeout_s: float | None = None, trace: StepTrace | None = None) -> list[Any]:
        """Runs the step.

        Args:
          feeds: arrays for the request's feeds, in order.
          timeout_s: time limit of operations that wait, in seconds.
          trace: collects the traces of all tasks.

        Returns:
          Arrays for the request's fetches, in order.

        Raises:
          OpError: the error of an operation or a task; ``op`` is the operation if known.
        """
        step = self._owner.new_step(timeout_s)
        step.trace = trace
        if trace is not None and trace.graphs:
            trace.partitions += partition_graphs([*((self.local.plan,) if self.local else ()), *self.remote.values()])
        if self.remote:
            return self._run_everywhere(feeds, step)
        if self.local is None:
            return [feeds[index] for _, index in self._sources]
        results = self._owner.runtime.execute(self.local, [feeds[i] for i in self._local_feeds], step)
        return [results[index] if task is None else feeds[index] for task, index in self._sources]

    def _run_everywhere(self, feeds: Sequence[Any], step: MasterStep) -> list[Any]:
        results: dict[str | None, Sequence[Any]] = {}
        peers = self._owner.peers
        assert peers is not None
        step.conversations = peers.conversations(step, self.number, list(self.remote))
        try:
            ahead = self._ahead if step.trace is None else None
            if ahead is not None and not ahead.pays:
                ahead = self._ahead = None
            # Send RUN to all other tasks before this task begins its part, so that the parts run concurrently.
            for task, conversation in step.conversations.items():
                conversation.start([feeds[i] for i in self._remote_feeds[task]], ahead)
            try:
                self._run_parts(feeds, step, results)
            except OutdatedError:
                # The other task has answered that the values read ahead are outdated, and now sends the present values
                # for this run. These cannot be outdated, so one repetition is enough.
                self._run_parts(feeds, step, results)
        except BaseException as error:
            # Abort the step on all tasks. Otherwise a task that has not failed might wait forever for a transfer from
            # this task or from the failed one.
            for conversation in step.conversations.values():
                conversation.abort(str(error))
            raise
        finally:
            step.conversations = {}  # break the reference cycle between the step and its conversations
        return [feeds[index] if task == "" else results[task][index] for task, index in self._sources]

    def _run_parts(self, feeds: Sequence[Any], step: MasterStep, results: dict[str | None, Sequence[Any]]) -> None:
        """Runs the part of the master's own task, then waits for the results of the other tasks.

        Raises:
          OutdatedError: the own part used outdated values, and has to be run again with the present ones.
        """
        if self.local is not None:
            local_feeds = [feeds[i] for i in self._local_feeds]
            try:
                results[None] = self._owner.runtime.execute(self.local, local_feeds, step)
            except OpError:
                # Outdated values that were read ahead may have caused this error, in which case the error must not be
                # reported. So request the present values and run the part again; the second run has no values read
                # ahead.
                if not any(conversation.request_again() for conversation in step.conversations.values()):
                    raise
                raise OutdatedError from None
        for task, conversation in step.conversations.items():
            results[task] = conversation.finish()
            if step.trace is not None:
                step.trace.merge(results[task][-1], task)


def _reads_ahead(local: TaskPlan, remote: Mapping[str, TaskPlan]) -> ReadsAhead | None:
    """Returns a store for values read ahead; None if runs of the request cannot read ahead.

    Runs can read ahead only if exactly one other task takes part, and that task's plan has the form that
    `read_ahead_by` recognizes.
    """
    if len(remote) != 1:
        return None
    (plan,) = remote.values()
    exchange = read_ahead_by(local, plan)
    return None if exchange is None else ReadsAhead(exchange.read.transfer)


def _fetch_sources(
    request: RunRequest, local: TaskPlan | None, remote: Mapping[str, TaskPlan]
) -> list[tuple[str | None, int]]:
    """Returns the source of each fetch, as (task, index).

    The task is None for the master's own task, and "" for a tensor that is fed. The index is the position of the fetch
    in the results of that task, or in the feeds.
    """
    feeds = {t.name: index for index, t in enumerate(request.feeds)}
    where: dict[str, tuple[str | None, int]] = {name: ("", index) for name, index in feeds.items()}
    for task, plan in remote.items():
        for index, name in enumerate(plan.fetches):
            where.setdefault(name, (task, index))
    if local is not None:
        for index, name in enumerate(local.fetches):
            where.setdefault(name, (None, index))
    return [where[t.name] for t in request.fetches]


class MasterStep(Step):
    """A step on its master: transfers use the step's conversations."""

    conversations: Mapping[str, ChannelConversation] = {}

    def send(self, destination: str, transfer: int, tensors: Sequence[object]) -> None:
        self.conversations[destination].send(transfer, tensors)

    def recv(self, source: str, transfer: int) -> Sequence[Any]:
        return self.conversations[source].recv(transfer)

    def is_master_away(self) -> bool:
        """Handles frames that other tasks have sent while this one waits, and raises the errors that they report.

        Always returns False: this task is the master, so the master cannot be disconnected.
        """
        for conversation in self.conversations.values():
            conversation.handle_received()
        return False


class MasterSession:
    """A session of a master.

    Args:
      runtime: the master's own task.
      graph: the graph of the session's operations; operations may be added later.
      options: see `SessionOptions`.
      peers: the other tasks; None without a cluster.
    """

    def __init__(
        self, runtime: TaskRuntime, graph: Graph, options: SessionOptions, peers: ClusterPeers | None = None
    ) -> None:
        self.runtime = runtime
        self.graph = graph
        self.options = options
        self.peers = peers
        self.handle: str = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._plans = itertools.count(1)
        self._devices: list[Device] | None = None
        self._placer: Placer | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._logged: set[str] = set()

    def devices(self) -> list[Device]:
        """Returns all devices that the session may use; the first call may wait for other tasks."""
        with self._lock:
            if self._devices is None:
                if self.peers is None:
                    self._devices = self.runtime.devices()
                else:
                    self._devices = self.peers.devices(self.options.device_filters)
            return self._devices

    def prepare(self, request: RunRequest) -> PreparedStep:
        """Plans a request and sends each task its part.

        Raises:
          InvalidArgumentError: see `headwater.graph.passes`.
          UnavailableError: a task cannot be reached.
        """
        self._check_open()
        placement = read_finally(self._place(prune(request)), self.runtime.task)
        request = placement.pruned.request
        plans = join_lookups(combine_bags(merge_equal(schedule(partition(placement)))), placement.pruned)
        number = next(self._plans)
        local: CompiledPlan | None = None
        remote: dict[str, TaskPlan] = {}
        for task, shared in plans.items():
            plan = replace(shared, isolated=self.options.isolated, jit_level=self.options.jit_level)
            if task == self.runtime.task:
                local = self.runtime.add_plan(self.handle, number, replace(plan, block=request.block))
            else:
                assert self.peers is not None, task
                block = request.block if can_repeat(plan) else 1
                shown = replace(plan, block=block)
                self.peers.add_plan(task, self.handle, number, shown, resumes=self.options.resumes)
                remote[task] = plan
        return PreparedStep(self, number, request, local, remote)

    def _place(self, pruned: Pruned) -> Placement:
        devices = self.devices()
        with self._lock:
            if self._placer is None:
                if self.options.log_placement:
                    mapping = self.runtime.device_mapping() or ["no known devices."]
                    print("Device mapping:", *mapping, sep="\n", file=sys.stderr, flush=True)
                self._placer = Placer(devices, soft_placement=self.options.soft_placement)
            placement = self._placer.place(pruned)
            if self.options.log_placement:
                self._log_placement(placement)
        return placement

    def new_step(self, timeout_s: float | None = None) -> MasterStep:
        """Creates the next step."""
        self._check_open()
        limit = self.options.timeout_s if timeout_s is None else timeout_s
        deadline = None if limit is None else time.monotonic() + limit
        step = MasterStep(next(self._numbers), self.handle, deadline)
        step.resumes = self.options.resumes
        return step

    def close(self) -> None:
        """Ends the session: running steps raise CancelledError, and all tasks drop the plans of the session."""
        if self._closed:
            return
        self._closed = True
        self.runtime.release(self.handle, "the session was closed")
        if self.peers is not None:
            self.peers.release(self.handle)

    def _check_open(self) -> None:
        if self._closed:
            raise CancelledError("Session has been closed.")

    def _log_placement(self, placement: Placement) -> None:
        """Prints each operation's device once, as TensorFlow does: ``name: (Type): device``."""
        for op, device in placement.devices.items():
            if op.name not in self._logged:
                self._logged.add(op.name)
                print(f"{op.name}: ({op.type}): {device.name()}", file=sys.stderr, flush=True)


def error_with_op(error: OpError, graph: Graph) -> OpError:
    """Returns ``error`` with the operation that its message names, if ``graph`` has it."""
    _, _, rest = error.message.rpartition("operation '")
    name = rest.partition("'")[0]
    if error.op is not None or not name:
        return error
    try:
        op = graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        return error
    return type(error)(op.node_def, op, error.message)
