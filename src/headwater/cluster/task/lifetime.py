"""Who is connected to a task, who belongs to its cluster, and when its job is over. Pure.

A job is over when the program of its chief has ended without an error, each worker of the cluster has come, and none is
connected any more; or when the task itself is told to end. `decide` takes a state and an event and gives the next
state, whether the task ends, and what is to be said. The shell (`headwater.cluster.task.shell`) performs it.
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

#: A task and its generation.
Life = tuple[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """What a task knows of its cluster.

    Attributes:
      tasks: the addresses of the tasks of the cluster spec.
      joined: those of tasks that joined later, by name.
      left: tasks of the cluster spec that have come and gone. Their numbers stay theirs: they may come back.
      awaited: tasks that have yet to come. A job that is over before a worker has begun does not end without it.
      connected: how many channels each life of a task, or of a client, has open.
      over: whether the chief's program has ended without an error.
    """

    tasks: Mapping[str, str]
    joined: Mapping[str, str] = field(default_factory=dict[str, str])
    left: frozenset[str] = frozenset()
    awaited: frozenset[str] = frozenset()
    connected: Mapping[Life, int] = field(default_factory=dict[Life, int])
    over: bool = False

    @property
    def cluster(self) -> dict[str, str]:
        """Every task and its address."""
        return {**self.tasks, **self.joined}


def first_state(cluster: ClusterSpec, me: TaskName, ended: Collection[str] = (), come: Collection[str] = ()) -> State:
    """The state of a task ``me`` that has just started, after the programs of others have ``ended``, or others have
    ``come`` to the former life that it goes on as."""
    tasks = {str(name): address for name, address in cluster.tasks()}
    others = {name for name, _ in cluster.tasks() if name.job not in (PS, me.job, EVALUATOR)}
    return State(
        tasks=tasks, left=frozenset(come), awaited=frozenset(map(str, others)).difference(ended).difference(come)
    )


def have_come(state: State) -> frozenset[str]:
    """Tasks of the cluster spec that have come, whether or not they are still connected."""
    return state.left | {task for task in _users(state) if task in state.tasks and task not in state.awaited}


@dataclass(frozen=True, slots=True)
class Connected:
    """A channel of ``life`` has opened."""

    life: Life


@dataclass(frozen=True, slots=True)
class Came:
    """The first frame of a channel of ``life`` is there: it does not only look whether this task is there."""

    life: Life


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A channel of ``life`` has ended; ``served``: it has had something done, rather than only looked whether this task
    is there."""

    life: Life
    served: bool


@dataclass(frozen=True, slots=True)
class JobOver:
    """The program of the chief has ended without an error.

    ``chief`` is the task that says so. It need not come any more, where it has had nothing to do here. Nor need those
    that are ``gone``: a ``ps`` that was started anew has not seen them, others have.
    """

    chief: str = ""
    gone: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Joined:
    """A task joins the cluster: its name, and the address where it listens."""

    task: str
    address: str


@dataclass(frozen=True, slots=True)
class Expected:
    """Tasks will come, as what they talk to elsewhere is here now; or are ``coming`` no more."""

    tasks: frozenset[str]
    coming: bool = True


Event = Connected | Came | Disconnected | JobOver | Joined | Expected


@dataclass(frozen=True, slots=True)
class Decision:
    """What an event leads to.

    Attributes:
      state: the next state.
      lost: the life whose last channel has ended, where it has.
      ends: whether the job is over, so that this task ends.
      reason: what is to be said; empty where there is nothing.
    """

    state: State
    lost: Life | None = None
    ends: bool = False
    reason: str = ""


def decide(state: State, event: Event) -> Decision:
    """What ``event`` leads to."""
    match event:
        case Connected(life):
            connected = {**state.connected, life: state.connected.get(life, 0) + 1}
            return Decision(replace(state, connected=connected, left=state.left - {life[0]}))
        case Came(life):
            return Decision(replace(state, awaited=state.awaited - {life[0]}))
        case Disconnected(life, served):
            return _disconnected(state, life, served)
        case JobOver(chief, gone):
            state = replace(state, over=True, awaited=state.awaited - {chief} - gone)
            return Decision(state, ends=is_over(state), reason=f"the job is over{_missing(state)}")
        case Expected(tasks, coming):
            awaited = state.awaited | tasks if coming else state.awaited - tasks
            state = replace(state, awaited=awaited)
            return Decision(state, ends=not coming and is_over(state))
        case Joined(task, address):
            joined = {**state.joined, task: address}
            return Decision(replace(state, joined=joined), reason=f"{task} joins the cluster at {address}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Whereabouts:
    """What a task tells of others.

    Attributes:
      here: tasks and clients that are connected, and are no parameter servers.
      left: tasks of the cluster spec that have come and gone.
    """

    here: frozenset[str]
    left: frozenset[str]

    def encode(self) -> bytes:
        return json.dumps([sorted(self.here), sorted(self.left)]).encode()

    @staticmethod
    def decode(data: bytes) -> Whereabouts:
        here, left = json.loads(data)
        return Whereabouts(here=frozenset(here), left=frozenset(left))


def whereabouts(state: State) -> Whereabouts:
    """What is told of others."""
    return Whereabouts(here=frozenset(_users(state)), left=state.left)


def gone_from_all(told: Sequence[Whereabouts]) -> frozenset[str]:
    """Tasks that have left some servers, and are at none."""
    nowhere: frozenset[str] = frozenset()
    return nowhere.union(*(each.left for each in told)) - nowhere.union(*(each.here for each in told))


def place_in(state: State, job: str, most: int | None) -> TaskName:
    """The name of a task that joins ``job``.

    Args:
      state: of the task that gives places.
      job: such as ``worker``.
      most: the greatest number of tasks that the job may have; None for any.

    Raises:
      ResourceExhaustedError: the job has as many as it may have.
    """
    taken = {name.index for name in map(TaskName.parse, state.cluster) if name.job == job}
    gone = sum(TaskName.parse(name).job == job for name in state.left)
    if most is not None and len(taken) - gone >= most:
        raise ResourceExhaustedError(None, None, f"no more than {most} tasks of job {job} may be in the cluster")
    return TaskName(job, next(index for index in itertools.count() if index not in taken))


def _disconnected(state: State, life: Life, served: bool) -> Decision:
    task, _ = life
    open_now = state.connected.get(life, 1) - 1
    connected = {**state.connected, life: open_now}
    if open_now:
        return Decision(replace(state, connected=connected))
    del connected[life]
    state, reason = replace(state, connected=connected), ""
    if served and task in state.joined:
        joined = {name: address for name, address in state.joined.items() if name != task}
        state, reason = replace(state, joined=joined), f"{task} has left the cluster"
    elif served and task in state.tasks:
        state = replace(state, left=state.left | {task})
    return Decision(state, lost=life, ends=is_over(state), reason=reason)


def is_over(state: State) -> bool:
    """Whether the job is over, and no task or client uses this one or has yet to come."""
    return state.over and not state.awaited and not _users(state)


def is_needed(state: State) -> bool:
    """Whether the job goes on, and somebody is connected that is no parameter server."""
    return not state.over and bool(_users(state))


def _users(state: State) -> list[str]:
    """Tasks and clients that are connected and are no parameter servers."""
    return sorted({task for task, _ in state.connected if not task.startswith(_PS_TASKS)})


def _missing(state: State) -> str:
    """For which tasks a task that is to end waits, in words."""
    parts = [
        f"{', '.join(names)} {what}"
        for names, what in ((_users(state), "to leave"), (sorted(state.awaited), "to come and to leave"))
        if names
    ]
    return f"; waits for {' and '.join(parts)}" if parts else ""
