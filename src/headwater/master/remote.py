"""Sessions of a master in another process: the graph travels there, and so do feeds and fetches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from headwater.cluster.devices import Device, parse_device
from headwater.errors import CancelledError, DeadlineExceededError, InternalError, UnavailableError
from headwater.graph.graph import Graph
from headwater.graph.graph_def import graph_def
from headwater.master.master import SessionOptions
from headwater.master.protocol import CALL, DONE, ERROR, raise_error
from headwater.master.targets import OpenSession, Runnable
from headwater.passes.prune import Request
from headwater.transport.channel import Channel
from headwater.transport.frames import Frame

_LOOK_AGAIN_S = 1.0


class MasterClient(Protocol):
    """The control plane of a master elsewhere, as `headwater.transport.control` gives it."""

    def create_session(self, config: bytes, graph_def: bytes) -> str: ...

    def extend_session(self, session: str, graph_def: bytes) -> None: ...

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes
    ) -> int: ...

    def close_session(self, session: str) -> None: ...

    def reset(self, containers: Sequence[str]) -> None: ...

    def session_devices(self, session: str) -> Sequence[str]: ...

    def take(self) -> Channel: ...

    def give_back(self, channel: Channel, usable: bool) -> None: ...


class RemoteMaster:
    """The master at another address.

    Args:
      target: as the program wrote it, for messages.
      client: its control plane and channels.
    """

    def __init__(self, target: str, client: MasterClient) -> None:
        self._target = target
        self._client = client

    def open(self, graph: Graph, options: SessionOptions) -> OpenSession:
        return RemoteSession(self._target, self._client, graph, options)

    def reset(self, containers: Sequence[str]) -> None:
        self._client.reset(containers)


class RemoteSession:
    """A session whose master is elsewhere. The graph is sent when the first step is prepared, its growth later."""

    def __init__(self, target: str, client: MasterClient, graph: Graph, options: SessionOptions) -> None:
        self._target = target
        self._client = client
        self._graph = graph
        self._options = options
        self._lock = threading.Lock()
        self._handle: str | None = None
        self._sent = 0
        self._closed = False

    def _session(self) -> str:
        """The session's handle there, with the graph as it is now."""
        with self._lock:
            if self._closed:
                raise CancelledError(None, None, "Session has been closed.")
            version = self._graph.version
            if self._handle is None:
                data = graph_def(self._graph).SerializeToString()
                self._handle = self._client.create_session(self._options.encode(), data)
            elif version > self._sent:
                data = graph_def(self._graph, from_version=self._sent).SerializeToString()
                self._client.extend_session(self._handle, data)
            self._sent = version
            return self._handle

    def devices(self) -> list[Device]:
        return [parse_device(name) for name in self._client.session_devices(self._session())]

    def prepare(self, request: Request) -> Runnable:
        session = self._session()
        number = self._client.make_callable(
            session,
            [t.name for t in request.feeds],
            [t.name for t in request.fetches],
            [op.name for op in request.targets],
            b"",
        )
        return RemoteCallable(self._target, self._client, session, number)

    def close(self) -> None:
        with self._lock:
            handle, self._handle, self._closed = self._handle, None, True
        if handle is not None:
            self._client.close_session(handle)


class RemoteCallable:
    """A request that a master elsewhere has planned."""

    def __init__(self, target: str, client: MasterClient, session: str, number: int) -> None:
        self._target = target
        self._client = client
        self._session = session
        self._number = number

    def run(self, feeds: Sequence[Any], timeout_s: float | None = None) -> list[Any]:
        channel = self._client.take()
        usable = False
        try:
            channel.send(Frame(CALL, (self._session, self._number, timeout_s), feeds))
            frame = self._wait(channel)
            usable = True
            if frame.kind == ERROR:
                raise_error(frame, self._target)
            if frame.kind != DONE:
                usable = False
                raise InternalError(None, None, f"{self._target} answered a step with a frame of kind {frame.kind}")
            return list(frame.tensors)
        except UnavailableError as error:
            raise UnavailableError(
                None, None, f"the master at {self._target} was lost during a step: {error.message}"
            ) from error
        finally:
            self._client.give_back(channel, usable)

    def _wait(self, channel: Channel) -> Frame:
        while True:
            try:
                return channel.recv(_LOOK_AGAIN_S)
            except DeadlineExceededError:
                continue  # the master says when the step's own time is over; this wait only lets Ctrl-C through
