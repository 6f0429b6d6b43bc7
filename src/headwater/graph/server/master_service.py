"""The master of a server: runs sessions for the program in the server's process and for clients in other processes."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from headwater.cluster.task.answers import error_frame
from headwater.cluster.task.kinds import DONE, RUN_CALLABLE
from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, OpError
from headwater.graph.graph import Graph
from headwater.graph.importer import extend_graph, load_graph
from headwater.graph.master.master import MasterSession, PreparedStep, SessionOptions
from headwater.graph.master.peers import ClusterPeers
from headwater.graph.passes.prune import RunRequest
from headwater.graph.runtime.task import TaskRuntime
from headwater.tensorboard_protos import graph_pb2

#: Time within which a client has to send HOLD for a session that it has created, in seconds. HOLD binds a channel to
#: the session, and the loss of that channel shows that the client has ended. Without HOLD, the master would not notice
#: the client's end, so it closes the session after this time.
_HOLD_TIMEOUT_S = 60.0


class _ClientSession:
    """A session of a client in another process: the client has sent its graph, and names operations by strings."""

    def __init__(self, session: MasterSession) -> None:
        self.session = session
        self.callables: dict[int, PreparedStep] = {}
        self.numbers = itertools.count(1)


class MasterService:
    """Sessions of one server.

    Args:
      runtime: the server's task.
      peers: the other tasks.
      clock: returns monotonic time in seconds.
      refuses: the reason why this task may not open sessions; empty if it may.

    Attributes:
      sessions: number of sessions opened so far.
      over: see `headwater.graph.master.targets.Master`.
    """

    def __init__(
        self, runtime: TaskRuntime, peers: ClusterPeers, clock: Callable[[], float] = time.monotonic, refuses: str = ""
    ) -> None:
        self._runtime = runtime
        self._peers = peers
        self._refuses = refuses
        self._clients: dict[str, _ClientSession] = {}
        self._clock = clock
        self._sessions_without_hold: dict[str, float] = {}
        self._sessions_of_channel: dict[Channel, list[str]] = {}
        self._lock = threading.Lock()
        self.sessions: int = 0
        self.over: str = ""

    # For this process -------------------------------------------------------------------------------------------

    def open(self, graph: Graph, options: SessionOptions) -> MasterSession:
        """Opens a session that runs operations of ``graph``; the caller may add to the graph later.

        Raises:
          FailedPreconditionError: this task may not open sessions.
        """
        if self._refuses:
            raise FailedPreconditionError(self._refuses)
        self.sessions += 1
        return MasterSession(self._runtime, graph, options, self._peers)

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the contents of ``containers`` (all if empty) on this task and its peers, and ends their
        sessions."""
        self._runtime.reset(list(containers))
        self._peers.reset(containers)

    # For clients elsewhere --------------------------------------------------------------------------------------

    def create_session(self, config: bytes, graph_def: bytes) -> str:
        """Creates a session for a client in another process; returns its handle."""
        graph = _checked_request(lambda: load_graph(graph_pb2.GraphDef.FromString(graph_def)))
        session = self.open(graph, SessionOptions.decode(config))
        now = self._clock()
        with self._lock:
            self._clients[session.handle] = _ClientSession(session)
            self._sessions_without_hold[session.handle] = now + _HOLD_TIMEOUT_S
            overdue = [handle for handle, until in self._sessions_without_hold.items() if until < now]
        for handle in overdue:  # no HOLD in time, so their clients have probably ended
            self.close_session(handle)
        return session.handle

    def extend_session(self, session: str, graph_def: bytes) -> None:
        """Adds operations to a session's graph."""
        graph = self._client(session).session.graph
        _checked_request(lambda: extend_graph(graph, graph_pb2.GraphDef.FromString(graph_def)))

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes = b""
    ) -> int:
        """Prepares repeated runs with the same feeds and fetches; returns the callable's number, for RUN_CALLABLE
        frames (see `call`)."""
        del options
        client = self._client(session)
        graph = client.session.graph
        request = _checked_request(
            lambda: RunRequest(
                tuple(graph.get_tensor_by_name(name) for name in fetches),
                tuple(graph.get_tensor_by_name(name) for name in feeds),
                tuple(graph.get_operation_by_name(name) for name in targets),
            )
        )
        prepared = client.session.prepare(request)
        number = next(client.numbers)
        client.callables[number] = prepared
        return number

    def release_callable(self, session: str, number: int) -> None:
        """Forgets a callable."""
        self._client(session).callables.pop(number, None)

    def session_devices(self, session: str) -> list[str]:
        """Returns the full names of the devices that a session may use."""
        return [device.name() for device in self._client(session).session.devices()]

    def close_session(self, session: str) -> None:
        """Ends a session; does nothing if it has ended already."""
        with self._lock:
            client = self._clients.pop(session, None)
            self._sessions_without_hold.pop(session, None)
        if client is not None:
            client.session.close()

    def close(self) -> None:
        """Ends all sessions."""
        for session in list(self._clients):
            self.close_session(session)

    def attach_session(self, channel: Channel, frame: Frame) -> None:
        """Handles a HOLD frame: binds the session to ``channel``, so that it ends with the channel; see
        `detach_sessions`."""
        match frame.header:
            case (str(session),):
                with self._lock:
                    self._sessions_without_hold.pop(session, None)
                self._sessions_of_channel.setdefault(channel, []).append(session)
            case _:
                raise InvalidArgumentError(f"malformed header of a hold: {str(frame.header)[:80]}")

    def detach_sessions(self, channel: Channel) -> None:
        """Ends the sessions held by ``channel``, which has closed: their client has ended."""
        for session in self._sessions_of_channel.pop(channel, ()):
            self.close_session(session)

    def call(self, channel: Channel, frame: Frame) -> None:
        """Answers a RUN_CALLABLE frame."""
        try:
            session, number, timeout_s, traced = _call_header(frame)
            prepared = self._client(session).callables.get(number)
            if prepared is None:
                raise InvalidArgumentError(f"session {session} has no callable {number}")
            trace = StepTrace(graphs=traced > 1) if traced else None
            results = prepared.run(frame.tensors, timeout_s, trace)
            if trace is not None:
                results.append(trace.encode())
        except OpError as error:
            channel.send(error_frame(0, error, self._runtime.task))
            return
        channel.send(Frame(DONE, (0,), [np.asarray(value) for value in results]))

    def _client(self, session: str) -> _ClientSession:
        try:
            return self._clients[session]
        except KeyError:
            raise NotFoundError(
                f"{self._runtime.task} has no session {session}: it was closed, or the task was restarted"
            ) from None


def _call_header(frame: Frame) -> tuple[str, int, float | None, int]:
    assert frame.kind == RUN_CALLABLE
    match frame.header:
        case (str(session), int(number), float() | int() | None as seconds, int(traced)):
            return session, number, seconds, traced
        case _:
            raise InvalidArgumentError(f"malformed header of a call: {str(frame.header)[:80]}")


def _checked_request(make: Any) -> Any:
    try:
        return make()
    except (DecodeError, ValueError, KeyError, TypeError) as error:
        text = error.args[0] if error.args else error
        raise InvalidArgumentError(f"the graph or the request is not well-formed: {text}") from error
