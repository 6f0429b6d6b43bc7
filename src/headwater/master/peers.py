"""The other tasks of a cluster, as a master reaches them: control plane, channels, and waiting for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headwater.cluster.devices import Device, parse_device
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.errors import AbortedError, OpError, UnavailableError
from headwater.master.conversation import ChannelConversation
from headwater.master.master import Conversation
from headwater.passes.plan import TaskPlan, encode_plan
from headwater.runtime.step import Step
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_log = logging.getLogger("headwater")


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerStatus:
    """What a task says of itself.

    Attributes:
      generation: of its present life.
      devices: full names of its devices.
      steps: how many steps it has run for masters elsewhere since it started.
    """

    generation: int
    devices: tuple[str, ...]
    steps: int


class PeerLink(Protocol):
    """How one other task is reached; made by the server over `headwater.transport`."""

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        """Waits until the task answers, saying so now and then; UnavailableError after the deadline."""
        ...

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None: ...

    def release(self, session: str) -> None: ...

    def reset(self, containers: Sequence[str]) -> None: ...

    def take(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...


class ClusterPeers:
    """The tasks of a cluster other than this one.

    Args:
      cluster: the cluster.
      me: this task.
      own_devices: its devices.
      link: gives the link to a task.
      courtesy_s: how long a new session waits for tasks that it does not need, in seconds, before the cluster has run
        its first step. (TensorFlow waits for every task without end; then one dead worker keeps a restarted chief
        from going on.)
    """

    def __init__(
        self,
        cluster: ClusterSpec,
        me: TaskName,
        own_devices: Callable[[], list[Device]],
        link: Callable[[TaskName], PeerLink],
        courtesy_s: float = 60.0,
    ) -> None:
        self._me = me
        self._own_devices = own_devices
        self._tasks = [name for name, _ in cluster.tasks()]
        self._make_link = link
        self._courtesy_s = courtesy_s
        self._lock = threading.Lock()
        self._links: dict[TaskName, PeerLink] = {}
        self._known: dict[TaskName, PeerStatus] = {}
        self._generations: dict[str, dict[TaskName, int]] = {}

    def devices(self, filters: Sequence[str]) -> list[Device]:
        found = self._own_devices()
        wanted = [task for task in self._tasks if task != self._me and _visible(task, filters)]
        for task in wanted:
            status = self._known.get(task)
            if status is None:
                status = self._get_to_know(task)
            if status is None:
                _log.warning("%s does not answer; the session goes on without it", task)
                found.append(parse_device(f"{task.device_prefix}/device:CPU:0"))
            else:
                found.extend(parse_device(name) for name in status.devices)
        return found

    def _get_to_know(self, task: TaskName) -> PeerStatus | None:
        """Waits for ``task``: as a courtesy when it is a worker and the cluster runs already without it."""
        running = any(status.steps for status in self._known.values())
        try:
            status = self._link(task).wait(0.0 if running else self._courtesy_s)
        except UnavailableError:
            return None
        self._known[task] = status
        return status

    def _link(self, task: TaskName) -> PeerLink:
        with self._lock:
            if task not in self._links:
                self._links[task] = self._make_link(task)
            return self._links[task]

    def add_plan(self, task: str, session: str, number: int, plan: TaskPlan) -> None:
        name = TaskName.parse(task)
        link = self._link(name)
        generations = self._generations.setdefault(session, {})
        if name not in generations:
            status = link.wait()
            self._known[name] = status
            generations[name] = status.generation
        link.add_plan(session, number, encode_plan(plan), generations[name])

    def conversations(self, step: Step, plan: int, tasks: Sequence[str]) -> Mapping[str, Conversation]:
        found: dict[str, ChannelConversation] = {}
        generations = self._generations[step.session]
        try:
            for task in tasks:
                name = TaskName.parse(task)
                link = self._link(name)
                channel = link.take()
                found[task] = ChannelConversation(step, plan, task, channel, link.give_back, found)
                if channel.peer_generation != generations[name]:
                    raise AbortedError(
                        None, None, f"{task} was started anew: its state is gone, and so is this session's part of it"
                    )
        except OpError:
            for conversation in found.values():
                conversation.abort("another task could not be reached")
            raise
        return found

    def push(self, task: str, frame: Frame) -> None:
        """Sends a frame to a task, outside of any conversation."""
        link = self._link(TaskName.parse(task))
        channel = link.take()
        usable = False
        try:
            channel.send(frame)
            usable = True
        finally:
            link.give_back(channel, usable)

    def release(self, session: str) -> None:
        for task in self._generations.pop(session, {}):
            _try(task, lambda task=task: self._link(task).release(session))

    def reset(self, containers: Sequence[str]) -> None:
        """Forgets the state of every task that can be reached."""
        for task in self._tasks:
            if task != self._me:
                _try(task, lambda task=task: self._link(task).reset(containers))


def _try(task: TaskName, action: Callable[[], Any]) -> None:
    """Does what a task that is gone need not hear of."""
    try:
        action()
    except OpError as error:
        _log.debug("%s did not hear that a session ended: %s", task, error.message)


def _visible(task: TaskName, filters: Iterable[str]) -> bool:
    """Whether a session with these device filters sees ``task``: without any, it sees all."""
    parsed = [parse_device(item) for item in filters]
    return not parsed or any(
        (item.job is None or item.job == task.job) and (item.task is None or item.task == task.index) for item in parsed
    )
