"""A master's access to the other tasks of a cluster: control plane, channels, and waiting for tasks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.cluster.devices import Device, parse_device
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.cluster.task.answers import bad_header
from headwater.cluster.task.kinds import TAKEN
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    GaveUpError,
    OpError,
    UnavailableError,
)
from headwater.graph.master.conversation import CHECK_INTERVAL_S, ChannelConversation
from headwater.graph.master.master import MasterStep
from headwater.graph.passes.plan import TaskPlan, encode_plan
from headwater.graph.runtime.step import Step

_log = logging.getLogger("headwater")

Confirm = Callable[[Callable[[], None]], None]
"""A function that waits until a task has acknowledged a transfer. It calls its argument repeatedly; an exception
raised by the argument ends the wait."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerStatus:
    """A task's answer to a request for its status.

    Attributes:
      generation: the generation of its present incarnation.
      devices: full names of its devices.
      steps: number of steps that it has run for masters in other processes since its start.
    """

    generation: int
    devices: tuple[str, ...]
    steps: int


class PeerLink(Protocol):
    """A link to one other task; implemented by the server over `headwater.cluster.transport`."""

    def wait(self, deadline_s: float | None = None) -> PeerStatus:
        """Waits until the task answers, logging the wait repeatedly; UnavailableError after the deadline."""
        ...

    def add_plan(self, session: str, number: int, plan: bytes, generation: int) -> None: ...

    def release(self, session: str) -> None: ...

    def reset(self, containers: Sequence[str]) -> None: ...

    def open_channel(self) -> Channel: ...

    def wait_for_channel(self, check: Callable[[], None]) -> Channel:
        """Waits until a channel can be opened; ``check`` is called repeatedly, and an exception that it raises ends
        the wait."""
        ...

    def release_channel(self, channel: Channel, usable: bool) -> None: ...


class ClusterPeers:
    """The tasks of a cluster other than this one.

    Args:
      cluster: all tasks of the cluster, with their addresses.
      me: this task.
      own_devices: returns the devices of this task.
      link: creates the link to a task.
      courtesy_s: limit of a new session's wait for a task that does not answer, in seconds, if the cluster has not run
        a step yet. In a cluster that has run steps, a session does not wait. (TensorFlow waits for every task forever,
        so one lost worker blocks a restarted chief.)

    Attributes:
      refused: whether a task has refused a plan of this task, because another process has taken this task's place or
        their configurations differ; this process must then not declare the job over.
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
        self._missing: set[TaskName] = set()
        # Keys are session handles and full task names, as in plans, so that a step need not parse names to look them
        # up.
        self._generations: dict[str, dict[str, int]] = {}
        self._routes: dict[str, PeerLink] = {}
        self._met: set[str] = set()
        self.refused: bool = False

    def devices(self, filters: Sequence[str]) -> list[Device]:
        """Returns the devices of all tasks that match ``filters``; waits for tasks that have not started yet."""
        devices = self._own_devices()
        wanted = [task for task in self._tasks if task != self._me and _visible(task, filters)]
        for task in wanted:
            status = self._known.get(task)
            if status is None:
                status = self._wait_for_status(task)
            if status is None:
                _log.warning("%s does not answer; the session continues without it", task)
                devices.append(parse_device(f"{task.device_prefix}/device:CPU:0"))
            else:
                devices.extend(parse_device(name) for name in status.devices)
        return devices

    def _wait_for_status(self, task: TaskName) -> PeerStatus | None:
        """Waits for ``task``; only briefly if the cluster already runs steps or an earlier session has waited in
        vain."""
        running = any(status.steps for status in self._known.values()) or task in self._missing
        try:
            status = self._link(task).wait(0.0 if running else self._courtesy_s)
        except UnavailableError:
            self._missing.add(task)
            return None
        self._missing.discard(task)
        self._known[task] = status
        return status

    def _link(self, task: TaskName) -> PeerLink:
        with self._lock:
            if task not in self._links:
                self._links[task] = self._make_link(task)
            return self._links[task]

    def add_plan(self, task: str, session: str, number: int, plan: TaskPlan, *, resumes: bool) -> None:
        """Sends a plan to a task, and waits for a task that has not started; with ``resumes``, for a lost task, too."""
        name = TaskName.parse(task)
        link = self._link(name)
        generations = self._generations.setdefault(session, {})
        if task not in generations:
            status = link.wait()
            self._known[name] = status
            generations[task] = status.generation
            self._routes[task] = link
        while True:
            try:
                return link.add_plan(session, number, encode_plan(plan), generations[task])
            except FailedPreconditionError:
                self.refused = True
                raise
            except UnavailableError as error:
                # The task is lost while a plan is added; wait for it, too. A hook may run a new request late in a
                # session. An error would end the session, and the steps since the last checkpoint would be lost.
                if not resumes or isinstance(error, GaveUpError):
                    raise
                _log.warning("%s lost %s and waits for it, to give it a plan: %s", self._me, task, error.message)
            # A task with another generation has lost the session's earlier plans and the variables that they use.
            if link.wait().generation != generations[task]:
                raise _restart_error(task)

    def conversations(self, step: Step, plan: int, tasks: Sequence[str]) -> Mapping[str, ChannelConversation]:
        """Opens a conversation with each task."""
        conversations: dict[str, ChannelConversation] = {}
        generations = self._generations[step.session]
        resumes = isinstance(step, MasterStep) and step.resumes
        try:
            for task in tasks:
                link = self._routes[task]
                try:
                    channel = link.open_channel()
                except UnavailableError as error:
                    if not resumes:
                        raise
                    channel = self._reconnect(step, task, error)
                conversations[task] = ChannelConversation(
                    step, plan, task, channel, link.release_channel, conversations, self._reconnect if resumes else None
                )
                if channel.peer_generation != generations[task]:
                    raise _restart_error(task)
        except OpError:
            # A conversation owns its channel; `abort` returns it to the link.
            for conversation in conversations.values():
                conversation.abort("another task could not be reached")
            raise
        return conversations

    def _reconnect(self, step: Step, task: str, error: OpError) -> Channel:
        """Waits for a task that a step has lost.

        Raises:
          AbortedError: the task has restarted with another generation.
          CancelledError: the session was closed meanwhile.
          DeadlineExceededError: the step's deadline has passed, or the task did not return before this process's
            deadline.
        """
        _log.warning(
            "%s lost %s and waits for it, to continue with step %d: %s", self._me, task, step.number, error.message
        )
        channel = self._routes[task].wait_for_channel(lambda: self._check(step))
        if channel.peer_generation != self._generations.get(step.session, {}).get(task):
            self._routes[task].release_channel(channel, True)
            raise _restart_error(task)
        _log.warning("%s reached %s again and continues with step %d", self._me, task, step.number)
        return channel

    def _check(self, step: Step) -> None:
        step.check()
        if step.session not in self._generations:
            raise CancelledError("Session has been closed.")

    def push(self, task: str, frame: Frame, check: Callable[[], None] | None = None) -> Confirm:
        """Sends a transfer to a task, on a channel outside of conversations.

        Args:
          task: the full name of the task.
          frame: the frame with the transfer.
          check: called regularly while the task is unreachable; an error that it raises ends the wait. None does not
            wait for an unreachable task.

        Returns:
          A function that waits for the acknowledgement and has to be called soon. If the channel breaks before the
          acknowledgement, the function sends the transfer again: frames sent just before a break may be lost.

        Raises:
          UnavailableError: the task is lost, and there is no ``check``; also raised by the returned function.
          InvalidArgumentError: raised by the returned function: the answer is not an acknowledgement.
        """
        link = self._link(TaskName.parse(task))
        while True:
            try:
                # The first connection takes several round trips, so `wait_for_channel` is only used until one has
                # succeeded.
                channel = link.open_channel() if check is None or task in self._met else link.wait_for_channel(check)
                self._met.add(task)
                try:
                    channel.send(frame)
                except BaseException:
                    link.release_channel(channel, False)
                    raise
            except UnavailableError:
                if check is None:
                    raise
                self._met.discard(task)
            else:
                return lambda look: self._confirm(task, link, channel, frame, check, look)

    def _confirm(
        self,
        task: str,
        link: PeerLink,
        channel: Channel,
        frame: Frame,
        check: Callable[[], None] | None,
        look: Callable[[], None],
    ) -> None:
        usable, answer = False, None
        try:
            while answer is None:
                try:
                    answer = channel.recv(CHECK_INTERVAL_S)
                except DeadlineExceededError:
                    look()
            if (answer.kind, answer.header) != (TAKEN, frame.header):
                raise bad_header(answer, channel.peer)
            usable = True
        except UnavailableError:
            if check is None:
                raise
        finally:
            link.release_channel(channel, usable)
        if not usable:
            # The frame may have been lost with the channel, so send it again. A second copy does no harm, because the
            # receiver stores transfers by session, step and number.
            self._met.discard(task)
            self.push(task, frame, check)(look)

    def release(self, session: str) -> None:
        """Ends ``session`` on every task that has plans of it."""
        for task in self._generations.pop(session, {}):
            _try(task, lambda task=task: self._routes[task].release(session))

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the state of every reachable task."""
        for task in self._tasks:
            if task != self._me:
                _try(task, lambda task=task: self._link(task).reset(containers))


def _restart_error(task: str) -> AbortedError:
    return AbortedError(f"{task} was restarted: its state and this session's part of it are lost")


def _try(task: object, action: Callable[[], object]) -> None:
    """Runs a request whose failure does not matter, because the task may have ended."""
    try:
        action()
    except OpError as error:
        _log.debug("cannot notify %s that a session has ended: %s", task, error.message)


def _visible(task: TaskName, filters: Iterable[str]) -> bool:
    """Returns whether a session with these device filters sees ``task``; without filters it sees all tasks."""
    parsed = [parse_device(item) for item in filters]
    return not parsed or any(
        (item.job is None or item.job == task.job) and (item.task is None or item.task == task.index) for item in parsed
    )
