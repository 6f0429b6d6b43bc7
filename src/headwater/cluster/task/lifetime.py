"""Lifetime of a task: the connected tasks, the members of the cluster, and the end of the job. Pure.

A job is over when the program of its chief has ended without an error, and each worker of the cluster has connected
once and disconnected again; or when the task itself is shut down. `decide` takes a state and an event and returns the
next state, whether the task ends, and a message. The shell (`headwater.cluster.task.shell`) executes the decision.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headwater.cluster.config import EVALUATOR
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.errors import ResourceExhaustedError

PS = "ps"
_PS_TASKS = f"/job:{PS}/"

#: An incarnation of a task or client: its name and generation.
Incarnation = tuple[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class LifetimeState:
    """A task's knowledge of its cluster.

    Attributes:
      tasks: the addresses of the tasks of the cluster spec, by name.
      joined: the addresses of tasks that joined later, by name.
      left: tasks of the cluster spec that have connected and then left. They may return, so their numbers stay
        reserved.
      awaited: tasks that have yet to connect. Even if the job is over, this task ends only after each of them has
        connected and left.
      connected: the number of open channels of each incarnation of a task or client.
      over: whether the chief's program has ended without an error.
    """

    tasks: Mapping[str, str]
    joined: Mapping[str, str] = field(default_factory=dict[str, str])
    left: frozenset[str] = frozenset()
    awaited: frozenset[str] = frozenset()
    connected: Mapping[Incarnation, int] = field(default_factory=dict[Incarnation, int])
    over: bool = False

    @property
    def cluster(self) -> dict[str, str]:
        """Every task and its address."""
        return {**self.tasks, **self.joined}


def first_state(
    cluster: ClusterSpec, me: TaskName, ended: Collection[str] = (), connected_before: Collection[str] = ()
) -> LifetimeState:
    """Returns the state of a task that has just started.

    Args:
      cluster: all tasks.
      me: this task.
      ended: tasks whose programs have already ended.
      connected_before: tasks that have connected to the preceding incarnation, if this incarnation continues from the
        preceding one's state.
    """
    tasks = {str(name): address for name, address in cluster.tasks()}
    # Await only tasks that use this task: not the other ps, nor an evaluator, which may never start.
    others = {name for name, _ in cluster.tasks() if name.job not in (PS, me.job, EVALUATOR)}
    return LifetimeState(
        tasks=tasks,
        left=frozenset(connected_before),
        awaited=frozenset(map(str, others)).difference(ended).difference(connected_before),
    )


def ever_connected(state: LifetimeState) -> frozenset[str]:
    """Returns the tasks of the cluster spec that have ever connected, including those that have left."""
    return state.left | {task for task in _users(state) if task in state.tasks and task not in state.awaited}


@dataclass(frozen=True, slots=True)
class Connected:
    """A channel of ``incarnation`` has opened."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class FirstFrame:
    """The first frame of a channel of ``incarnation`` has arrived, so the channel is not merely a probe of this
    task."""

    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A channel of ``incarnation`` has ended. ``served``: a service has worked for the incarnation."""

    incarnation: Incarnation
    served: bool


@dataclass(frozen=True, slots=True)
class JobOver:
    """The program of the chief has ended without an error.

    This task stops awaiting ``chief`` and ``gone``. ``chief`` is the task that reports the end; it may never have
    connected to this task. ``gone`` are tasks that have left other ``ps``; they may have left before this task was
    restarted.
    """

    chief: str = ""
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Joined:
    """A task joins the cluster: its name and its address."""

    task: str
    address: str


@dataclass(frozen=True, slots=True)
class Expected:
    """This task awaits ``tasks`` from now on, because the state that they use has moved here.

    If ``awaited`` is False, this task no longer awaits ``tasks``.
    """

    tasks: frozenset[str]
    awaited: bool = True


Event = Connected | FirstFrame | Disconnected | JobOver | Joined | Expected


@dataclass(frozen=True, slots=True)
class LifetimeDecision:
    """The consequences of an event.

    Attributes:
      state: the next state.
      lost: the incarnation whose last channel has ended, if any.
      ends: whether the job is over, so that this task ends.
      reason: a message for the log; empty for none.
    """

    state: LifetimeState
    lost: Incarnation | None = None
    ends: bool = False
    reason: str = ""


def decide(state: LifetimeState, event: Event) -> LifetimeDecision:
    """Returns the consequences of ``event``."""
    match event:
        case Connected(incarnation):
            connected = {**state.connected, incarnation: state.connected.get(incarnation, 0) + 1}
            return LifetimeDecision(replace(state, connected=connected, left=state.left - {incarnation[0]}))
        case FirstFrame(incarnation):
            return LifetimeDecision(replace(state, awaited=state.awaited - {incarnation[0]}))
        case Disconnected(incarnation, served):
            return _decide_disconnect(state, incarnation, served)
        case JobOver(chief, gone):
            state = replace(state, over=True, awaited=state.awaited - {chief} - gone)
            return LifetimeDecision(state, ends=is_over(state), reason=f"the job is over{_missing(state)}")
        case Expected(tasks, awaits):
            awaited = state.awaited | tasks if awaits else state.awaited - tasks
            state = replace(state, awaited=awaited)
            return LifetimeDecision(state, ends=not awaits and is_over(state))
        case Joined(task, address):
            joined = {**state.joined, task: address}
            return LifetimeDecision(replace(state, joined=joined), reason=f"{task} joins the cluster at {address}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionReport:
    """A task's report of the tasks that it has seen.

    Attributes:
      here: connected tasks and clients, except parameter servers.
      left: tasks of the cluster spec that have connected and left.
    """

    here: frozenset[str]
    left: frozenset[str]

    def encode(self) -> bytes:
        return json.dumps([sorted(self.here), sorted(self.left)]).encode()

    @staticmethod
    def decode(data: bytes) -> ConnectionReport:
        connected, left = json.loads(data)
        return ConnectionReport(here=frozenset(connected), left=frozenset(left))


def connection_report(state: LifetimeState) -> ConnectionReport:
    """Returns the report of ``state``."""
    return ConnectionReport(here=frozenset(_users(state)), left=state.left)


def left_everywhere(reports: Sequence[ConnectionReport]) -> frozenset[str]:
    """Returns the tasks that have left at least one server, and are connected to none."""
    nowhere: frozenset[str] = frozenset()
    return nowhere.union(*(each.left for each in reports)) - nowhere.union(*(each.here for each in reports))


def place_in(state: LifetimeState, job: str, most: int | None) -> TaskName:
    """Returns the name for a task that joins ``job``, with the lowest free number.

    Args:
      state: the state of the task that assigns names.
      job: the job, such as ``worker``.
      most: the maximum number of tasks of the job; None for any number.

    Raises:
      ResourceExhaustedError: the job has that many tasks.
    """
    # The number of a task that has left is not free, as the task may return. But such a task does not count towards the
    # maximum.
    taken = {name.index for name in map(TaskName.parse, state.cluster) if name.job == job}
    gone = sum(TaskName.parse(name).job == job for name in state.left)
    if most is not None and len(taken) - gone >= most:
        raise ResourceExhaustedError(f"no more than {most} tasks of job {job} may be in the cluster")
    return TaskName(job, next(index for index in itertools.count() if index not in taken))


def _decide_disconnect(state: LifetimeState, incarnation: Incarnation, served: bool) -> LifetimeDecision:
    task, _ = incarnation
    open_now = state.connected.get(incarnation, 1) - 1
    connected = {**state.connected, incarnation: open_now}
    if open_now:
        return LifetimeDecision(replace(state, connected=connected))
    del connected[incarnation]
    state, reason = replace(state, connected=connected), ""
    if served and task in state.joined:
        joined = {name: address for name, address in state.joined.items() if name != task}
        state, reason = replace(state, joined=joined), f"{task} has left the cluster"
    # Only a task that was served counts as having left: a probe also disconnects, before its task begins to work.
    elif served and task in state.tasks:
        state = replace(state, left=state.left | {task})
    return LifetimeDecision(state, lost=incarnation, ends=is_over(state), reason=reason)


def is_over(state: LifetimeState) -> bool:
    """Returns whether the job is over, and no task or client is connected or awaited."""
    return state.over and not state.awaited and not _users(state)


def is_needed(state: LifetimeState) -> bool:
    """Returns whether the job is running, and a task or client other than a parameter server is connected."""
    return not state.over and bool(_users(state))


def _users(state: LifetimeState) -> list[str]:
    """Returns the connected tasks and clients, except parameter servers."""
    return sorted({task for task, _ in state.connected if not task.startswith(_PS_TASKS)})


def _missing(state: LifetimeState) -> str:
    """Returns, in words, the tasks that still prevent the end of this task; empty if there are none."""
    parts = [
        f"{', '.join(names)} {what}"
        for names, what in ((_users(state), "to leave"), (sorted(state.awaited), "to connect and to leave"))
        if names
    ]
    return f"; waits for {' and '.join(parts)}" if parts else ""
