"""A task that has no graphs: its place in the cluster, its one port, and its ways to the others.

`headwater.server` is a task for graphs; importing it changes what JAX makes of Python's numbers (64 bits, as graphs
have them), which programs for Keras and JAX do not expect.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, NoReturn

from headwater.cluster.addresses import parse_address
from headwater.cluster.claims import Claim
from headwater.cluster.config import EVALUATOR, TaskConfig, task_config_from_environment
from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.errors import OpError, UnimplementedError
from headwater.task.kinds import LEAVES
from headwater.transport.channel import Channel
from headwater.transport.control_server import ControlServer
from headwater.transport.frames import Frame
from headwater.transport.handlers import DeviceInfo
from headwater.transport.handshake import Identity, new_generation
from headwater.transport.links import Link, Wiring
from headwater.transport.listener import Listener
from headwater.transport.problems import ConnectFailure
from headwater.transport.workplace import Workplace

_log = logging.getLogger("headwater")

#: Between two looks at whether all have left, in seconds.
_LOOK_S = 0.2

#: Answers a channel that begins with this frame, until the channel ends.
Service = Callable[[Channel, Frame], None]


class Members:
    """Who is who in a cluster of parameter servers.

    Args:
      cluster: all tasks.
      me: this one; of job ``ps``, ``worker``, ``chief`` or ``evaluator``.

    Raises:
      ValueError: the cluster has no ``ps``, nobody to compute, or this task has another job.
    """

    def __init__(self, cluster: ClusterSpec, me: TaskName) -> None:
        self.cluster = cluster
        self.me = me
        jobs = cluster.jobs
        self.servers: list[TaskName] = (
            [TaskName("ps", index) for index in cluster.task_indices("ps")] if "ps" in jobs else []
        )
        self.workers: list[TaskName] = [
            TaskName(job, index) for job in ("chief", "worker") if job in jobs for index in cluster.task_indices(job)
        ]
        if not self.servers:
            raise ValueError(f"the cluster has no job 'ps', only {jobs}: there is nowhere to keep parameters")
        if not self.workers:
            raise ValueError(f"the cluster has no job 'worker', only {jobs}: there is nobody to compute gradients")
        if me not in self.servers and me not in self.workers and me.job != EVALUATOR:
            raise ValueError(f"{me} is none of the jobs 'ps', 'worker', 'chief' and 'evaluator'")

    @property
    def is_server(self) -> bool:
        """Whether this task keeps parameters."""
        return self.me in self.servers

    @property
    def is_evaluator(self) -> bool:
        """Whether this task only evaluates."""
        return self.me.job == EVALUATOR

    @property
    def is_chief(self) -> bool:
        """Whether this task is the one worker that brings values and writes files."""
        return self.me == self.workers[0]

    @property
    def number(self) -> int:
        """This task's number among the servers, or among the workers; 0 for an evaluator."""
        if self.is_evaluator:
            return 0
        return (self.servers if self.is_server else self.workers).index(self.me)


def find_members(resolver: Any = None) -> Members | None:
    """The cluster that a resolver knows, or ``TF_CONFIG``; None where neither says anything.

    Args:
      resolver: a cluster resolver with a task type and a task id, or None.

    Raises:
      ClusterConfigError, ValueError: the cluster cannot be one of parameter servers.
    """
    if resolver is not None:
        cluster, job = ClusterSpec(resolver.cluster_spec()), resolver.task_type
        if not cluster:
            return None
        if job is None:
            raise ValueError("the cluster resolver does not say which task this process is (task_type, task_id)")
        return Members(cluster, TaskName(job, int(resolver.task_id or 0)))
    config: TaskConfig | None = task_config_from_environment()
    if config is None or not config.cluster:
        return None
    if config.task is None:
        raise ValueError("TF_CONFIG does not say which task this process is ('task')")
    return Members(config.cluster, config.task)


class PeerLink(Link):
    """The way to another task: channels, which wait for it where it is not there, and a watch over whether it is."""

    def _open(self) -> Channel:
        return self._wait_for(self._attempt, None)

    def tell(self, frame: Frame) -> None:
        """Sends one frame to the task if it is there.

        Raises:
          ConnectFailure, OpError: it is not.
        """
        channel = self._attempt()
        try:
            channel.send(frame)
        finally:
            channel.close()


class Endpoint:
    """This process as a task: it listens at its address, and reaches the others.

    Args:
      members: the cluster, and who we are. An evaluator has no address and listens nowhere.
      devices: gives the type and the number of each of this process's devices.

    Raises:
      AlreadyExistsError: another process holds the port; the message names it.
      PermissionDeniedError: others could reach the task and nothing guards it.
    """

    def __init__(self, members: Members, devices: Callable[[], Sequence[tuple[str, int]]]) -> None:
        self.members = members
        self._devices = devices
        self._generation = new_generation()
        self.identity: Identity = Identity(task=str(members.me), generation=self._generation)
        self._wiring = Wiring(me=self.identity)
        self._services: dict[int, Service] = {}
        self._links: dict[TaskName, PeerLink] = {}
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._shut_down = False
        self._over = False
        # Who has yet to come. A job that is over before a worker has begun does not end without it.
        self._awaited = {str(worker) for worker in members.workers}
        self._workplace: Workplace | None = None
        if not members.is_evaluator:
            self._listen()

    def _listen(self) -> None:
        me = self.members.me
        address = parse_address(self.members.cluster.task_address(me.job, me.index))
        workplace = self._workplace = Workplace()
        control_path = str(workplace.path / "control")
        wiring = self._wiring
        try:
            self._listener = Listener(
                address, me=wiring.me, security=wiring.security, on_channel=self._serve, options=wiring.options,
                workplace=workplace, control_path=control_path,
            )  # fmt: skip
            self._control = ControlServer(
                control_path, me=wiring.me, security=self._listener.security, task=self, master=None,
                on_channel=self._serve, options=wiring.options, on_trusted=self._listener.trust,
            )  # fmt: skip
            self._control.start()
            self._listener.start()
        except BaseException:
            workplace.close()
            raise
        _log.info("%s serves at %s", me, self._listener.address)

    def add_service(self, kind: int, serve: Service) -> None:
        """From now on, ``serve`` answers channels whose first frame is of ``kind``."""
        self._services[kind] = serve

    def _serve(self, channel: Channel) -> None:
        first = channel.recv()
        self._awaited.discard(channel.peer.partition(" ")[0])
        if first.kind == LEAVES:
            self._left(channel.peer, over=first.header == (True,))
            return
        serve = self._services.get(first.kind)
        if serve is None:
            _log.warning(
                "%s: %s wants something of kind %d, unknown here", self.identity.task, channel.peer, first.kind
            )
        else:
            serve(channel, first)

    def link(self, task: TaskName) -> PeerLink:
        """The way to another task."""
        if task not in self._links:
            address = parse_address(self.members.cluster.task_address(task.job, task.index))
            self._links[task] = PeerLink(self._wiring, task, address)
        return self._links[task]

    def serve(self) -> NoReturn:
        """Serves until the job is over, then ends the process with code 0.

        The job is over when the program of the chief has ended without an error, and every other worker has come and
        gone; or when somebody says so (SIGTERM, or a request to end).

        Raises:
          SystemExit: it is over.
        """
        # Not an event: a signal may come while the handler of another one runs, and only `put` may be called then.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._on_signal)
        self._ended.get()
        while self._is_needed():
            # A signal ends the wait.
            with contextlib.suppress(Empty):
                self._ended.get(timeout=_LOOK_S)
                break
        self.stop()
        raise SystemExit(0)

    def _is_needed(self) -> bool:
        """Whether, after the job's end, a worker still finishes, or has yet to begin."""
        if not self._over:
            return False
        return bool(self._listener.statistics().channels) or (not self._shut_down and bool(self._awaited))

    def leave(self) -> None:
        """Tells every ``ps`` that the program of this worker has come to its end, unless by an error: there would be
        another life of it then."""
        if getattr(sys, "last_value", None) is not None:
            return
        for server in self.members.servers:
            try:
                self.link(server).tell(Frame(LEAVES, (self.members.is_chief,)))
            except (ConnectFailure, OpError) as error:
                _log.debug("%s did not hear that %s is done: %s", server, self.identity.task, error)

    def comes_back(self) -> None:
        """The program of this worker ends now, and not because it is done: no ``ps`` is told so."""
        atexit.unregister(self.leave)

    def _left(self, peer: str, *, over: bool) -> None:
        _log.info("%s heard that %s is done", self.identity.task, peer)
        if over:
            self._end(asked=False)

    def _end(self, *, asked: bool) -> None:
        before, self._over = self._over, True
        self._shut_down = self._shut_down or asked
        if not before:
            self._ended.put(None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._ended.put(None)

    def stop(self) -> None:
        """Ends everything and frees the port."""
        atexit.unregister(self.leave)
        self._ended.put(None)
        self._wiring.waiter.cancel()
        if self._workplace is not None:
            self._listener.stop()
            self._control.stop()
            self._workplace.close()
            self._workplace = None
        for link in self._links.values():
            link.close()

    # What the control plane asks (`headwater.transport.handlers.TaskHandler`) -----------------------------------------

    def status_details(self) -> Mapping[str, bytes]:
        return {"host": socket.gethostname().encode(), "pid": str(os.getpid()).encode()}

    def list_devices(self) -> Sequence[DeviceInfo]:
        prefix = self.members.me.device_prefix
        return [
            DeviceInfo(name=f"{prefix}/device:{kind}:{index}", type=kind, incarnation=self._generation)
            for kind, index in self._devices()
        ]

    def add_plan(self, session: str, number: int, plan: bytes, owner: Claim) -> None:
        raise UnimplementedError(None, None, f"{self.identity.task} runs a program without graphs; it takes no plans")

    def release(self, session: str) -> None:
        """There are no sessions here."""

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        """There are no steps of sessions here."""

    def reset(self, containers: Sequence[str]) -> None:
        """There are no containers here."""

    def shutdown(self, reason: str) -> None:
        _log.info("%s was asked to end: %s", self.identity.task, reason)
        self._end(asked=True)

    def join(self, job: str, address: str) -> tuple[int, Mapping[str, str]]:
        raise UnimplementedError(
            None, None, f"{self.identity.task} takes the tasks of its cluster only; {job} at {address} is none of them"
        )
