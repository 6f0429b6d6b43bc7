"""The master of a task: sessions, and the steps they run."""

from __future__ import annotations

import itertools
import secrets
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import msgpack

from headwater.cluster.devices import Device, canonical_device_name
from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.errors import CancelledError, InvalidArgumentError, OpError
from headwater.graph.graph import Graph
from headwater.graph.master.ahead import OutdatedError, ReadsAhead
from headwater.graph.passes.ahead import read_ahead_by
from headwater.graph.passes.lookups import join_lookups
from headwater.graph.passes.partition import partition
from headwater.graph.passes.partition_graphs import partition_graphs
from headwater.graph.passes.place import Placement, Placer
from headwater.graph.passes.plan import TaskPlan
from headwater.graph.passes.prune import Pruned, Request, prune
from headwater.graph.passes.repetition import can_repeat
from headwater.graph.passes.schedule import schedule
from headwater.graph.runtime.executor import CompiledPlan
from headwater.graph.runtime.step import Step
from headwater.graph.runtime.task import TaskRuntime


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionOptions:
    """What a session's configuration means to its master.

    Attributes:
      soft_placement: use another device where the one asked for does not exist.
      log_placement: print the device of every operation when it is first placed.
      device_filters: tasks and devices that the session may see; all when empty.
      timeout_s: longest time of a step, in seconds; None is without end.
      resumes: a step outlives the connections to its tasks: when one is lost, the step waits for the task and goes on
        with it where it was, unless the task was started anew. Otherwise the step fails.
      isolated: the session has variables, queues and the like of its own on every task, which end with it. A session
        without a target always has.
      jit_level: ``global_jit_level`` of its configuration, see `headwater.graph.passes.plan.TaskPlan`.
    """

    soft_placement: bool = False
    log_placement: bool = False
    device_filters: tuple[str, ...] = ()
    timeout_s: float | None = None
    resumes: bool = False
    isolated: bool = False
    jit_level: int = 0

    def encode(self) -> bytes:
        """These options for a master elsewhere."""
        return msgpack.packb(asdict(self))

    @staticmethod
    def decode(data: bytes) -> SessionOptions:
        """What `encode` wrote; InvalidArgumentError for anything else."""
        try:
            raw: dict[str, Any] = msgpack.unpackb(data)
            return SessionOptions(
                soft_placement=bool(raw["soft_placement"]),
                log_placement=bool(raw["log_placement"]),
                device_filters=tuple(canonical_device_name(name) for name in raw["device_filters"]),
                timeout_s=None if raw["timeout_s"] is None else float(raw["timeout_s"]),
                resumes=bool(raw["resumes"]),
                isolated=bool(raw["isolated"]),
                jit_level=int(raw["jit_level"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InvalidArgumentError(None, None, f"not the options of a session: {error}") from error


class StepConversation(Protocol):
    """A step's exchange with one other task."""

    def begin(self, feeds: Sequence[Any], ahead: ReadsAhead | None = None) -> None: ...

    def begin_again(self) -> bool: ...

    def send(self, transfer: int, tensors: Sequence[object]) -> None: ...

    def recv(self, transfer: int) -> Sequence[Any]: ...

    def finish(self) -> Sequence[Any]: ...

    def abort(self, reason: str) -> None: ...

    def look(self) -> None: ...


class Peers(Protocol):
    """The other tasks of a cluster, as a master uses them."""

    def devices(self, filters: Sequence[str]) -> list[Device]:
        """Devices of all tasks that ``filters`` let through; waits for tasks that are not there yet."""
        ...

    def add_plan(self, task: str, session: str, number: int, plan: TaskPlan, *, resumes: bool) -> None:
        """Gives a task its plan; waits for a task that is not there yet, and for one that is lost, where the session's
        steps outlive connections (``resumes``)."""
        ...

    def conversations(self, step: Step, plan: int, tasks: Sequence[str]) -> Mapping[str, StepConversation]:
        """Opens a conversation with each task."""
        ...

    def release(self, session: str) -> None:
        """Tells every task that has plans of ``session`` that it is over."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Forgets the state of every task that can be reached."""
        ...


class PreparedStep:
    """A request that is planned, and can be run any number of times.

    Attributes:
      local: the part of this master's own task, if it has one.
      remote: the parts of the others.
    """

    def __init__(
        self,
        owner: MasterSession,
        number: int,
        request: Request,
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
          timeout_s: longest time for operations that wait, in seconds.
          trace: where all tasks say what they did.

        Returns:
          Arrays for the request's fetches, in order.

        Raises:
          OpError: whatever an operation or a task raised; ``op`` is the operation where that is known.
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
            for task, conversation in step.conversations.items():
                conversation.begin([feeds[i] for i in self._remote_feeds[task]], ahead)
            try:
                self._take_part(feeds, step, results)
            except OutdatedError:
                self._take_part(feeds, step, results)
        except BaseException as error:
            for conversation in step.conversations.values():
                conversation.abort(str(error))
            raise
        finally:
            step.conversations = {}  # they know the step: a circle, which only the garbage collector would find
        return [feeds[index] if task == "" else results[task][index] for task, index in self._sources]

    def _take_part(self, feeds: Sequence[Any], step: MasterStep, results: dict[str | None, Sequence[Any]]) -> None:
        """Runs this master's own part and awaits the others; OutdatedError where it is to be done again."""
        if self.local is not None:
            local_feeds = [feeds[i] for i in self._local_feeds]
            try:
                results[None] = self._owner.runtime.execute(self.local, local_feeds, step)
            except OpError:
                # It may be of values that are not current: only an error of those that are is one.
                if not any(conversation.begin_again() for conversation in step.conversations.values()):
                    raise
                raise OutdatedError from None
        for task, conversation in step.conversations.items():
            results[task] = conversation.finish()
            if step.trace is not None:
                step.trace.merge(results[task][-1], task)


def _reads_ahead(local: TaskPlan, remote: Mapping[str, TaskPlan]) -> ReadsAhead | None:
    """What a request's runs have read ahead, if they may: where one other task takes part in them."""
    if len(remote) != 1:
        return None
    (plan,) = remote.values()
    exchange = read_ahead_by(local, plan)
    return None if exchange is None else ReadsAhead(exchange.read.transfer)


def _fetch_sources(
    request: Request, local: TaskPlan | None, remote: Mapping[str, TaskPlan]
) -> list[tuple[str | None, int]]:
    """For every fetch: the task that gives it (None: this one; "": it is a feed), and which of its results it is."""
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
    """A step as its master runs it: transfers go over the step's own conversations."""

    conversations: Mapping[str, StepConversation] = {}

    def send(self, destination: str, transfer: int, tensors: Sequence[object]) -> None:
        self.conversations[destination].send(transfer, tensors)

    def recv(self, source: str, transfer: int) -> Sequence[Any]:
        return self.conversations[source].recv(transfer)

    def away(self) -> bool:
        """Never; but raises what another task has raised while this one waits."""
        for conversation in self.conversations.values():
            conversation.look()
        return False


class MasterSession:
    """A session of a master.

    Args:
      runtime: the master's own task.
      graph: the graph whose operations are run; may grow.
      options: see `SessionOptions`.
      peers: the other tasks; None without a cluster.
    """

    def __init__(self, runtime: TaskRuntime, graph: Graph, options: SessionOptions, peers: Peers | None = None) -> None:
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
        """All devices that the session may use; the first call may wait for other tasks."""
        with self._lock:
            if self._devices is None:
                if self.peers is None:
                    self._devices = self.runtime.devices()
                else:
                    self._devices = self.peers.devices(self.options.device_filters)
            return self._devices

    def prepare(self, request: Request) -> PreparedStep:
        """Plans a request and gives every task its part.

        Raises:
          InvalidArgumentError: see `headwater.graph.passes`.
          UnavailableError: a task cannot be reached.
        """
        self._check_open()
        placement = self._placed(prune(request))
        plans = join_lookups(schedule(partition(placement)), placement.pruned)
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

    def _placed(self, pruned: Pruned) -> Placement:
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
        """The next step."""
        self._check_open()
        limit = self.options.timeout_s if timeout_s is None else timeout_s
        deadline = None if limit is None else time.monotonic() + limit
        step = MasterStep(next(self._numbers), self.handle, deadline)
        step.resumes = self.options.resumes
        return step

    def close(self) -> None:
        """Ends the session: steps in progress raise CancelledError, its plans are dropped everywhere."""
        if self._closed:
            return
        self._closed = True
        self.runtime.release(self.handle, "the session was closed")
        if self.peers is not None:
            self.peers.release(self.handle)

    def _check_open(self) -> None:
        if self._closed:
            raise CancelledError(None, None, "Session has been closed.")

    def _log_placement(self, placement: Placement) -> None:
        """Prints each operation's device once, as TensorFlow does: ``name: (Type): device``."""
        for op, device in placement.devices.items():
            if op.name not in self._logged:
                self._logged.add(op.name)
                print(f"{op.name}: ({op.type}): {device.name()}", file=sys.stderr, flush=True)


def error_with_op(error: OpError, graph: Graph) -> OpError:
    """``error`` with the operation its message names, where that is one of ``graph``."""
    _, _, rest = error.message.rpartition("operation '")
    name = rest.partition("'")[0]
    if error.op is not None or not name:
        return error
    try:
        op = graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        return error
    return type(error)(op.node_def, op, error.message)
