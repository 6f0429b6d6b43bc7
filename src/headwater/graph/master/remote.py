"""Sessions with a master in another process: graph, feeds and fetches are sent over the network."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from headwater.cluster.addresses import parse_address
from headwater.cluster.devices import Device, parse_device
from headwater.cluster.task.answers import raise_error
from headwater.cluster.task.kinds import DONE, ERROR, HOLD, RUN_CALLABLE
from headwater.cluster.telemetry.step_stats import StepTrace
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.frames import Frame
from headwater.cluster.transport.links import Link, client_link_settings
from headwater.errors import CancelledError, DeadlineExceededError, InternalError, OpError, UnavailableError
from headwater.graph.graph import Graph
from headwater.graph.graph_def import graph_def
from headwater.graph.master.master import SessionOptions
from headwater.graph.master.targets import OpenSession, Runnable
from headwater.graph.passes.prune import RunRequest

_log = logging.getLogger("headwater")

SCHEME = "grpc://"

# Python handles signals such as Ctrl-C only between two receive calls, so each waits at most this long, in seconds.
_SIGNAL_CHECK_INTERVAL_S = 1.0


class RemoteMaster:
    """The master at another address.

    Args:
      target: ``grpc://host:port``.
      timeout_s: how long `reset` waits for the master, in seconds; None: as long as the process waits for any task.
    """

    def __init__(self, target: str, timeout_s: float | None = None) -> None:
        self.over: str = ""
        self._target = target
        self._timeout_s = timeout_s
        self._address = parse_address(target.removeprefix(SCHEME))

    def _link(self) -> Link:
        return Link(client_link_settings(), None, self._address)

    def open(self, graph: Graph, options: SessionOptions) -> OpenSession:
        return RemoteSession(self._target, self._link(), graph, options)

    def reset(self, containers: Sequence[str]) -> None:
        link = self._link()
        try:
            _reach(link, self._target, self._timeout_s)
            link.control.reset(containers)
        finally:
            link.close()


def _reach(link: Link, target: str, timeout_s: float | None) -> None:
    """Waits for a master.

    Raises:
      DeadlineExceededError: the master did not answer within ``timeout_s`` seconds.
    """
    try:
        link.reach(timeout_s)
    except UnavailableError as error:
        if timeout_s is None:
            raise
        raise DeadlineExceededError(
            f"the master at {target} did not answer within operation_timeout_in_ms={timeout_s * 1e3:g}: {error.message}"
        ) from error


class RemoteSession:
    """A session with a master in another process. The graph is sent when the first step is prepared; later additions
    are sent when a step needs them."""

    def __init__(self, target: str, link: Link, graph: Graph, options: SessionOptions) -> None:
        self._target = target
        self._link = link
        self._graph = graph
        self._options = options
        self._lock = threading.Lock()
        self._handle: str | None = None
        self._lifeline: Channel | None = None
        self._sent = 0
        self._closed = False

    def _session(self) -> str:
        """Returns the session's handle at the master, after sending new parts of the graph."""
        with self._lock:
            if self._closed:
                raise CancelledError("Session has been closed.")
            version = self._graph.version
            if self._handle is None:
                _reach(self._link, self._target, self._options.timeout_s)
                data = graph_def(self._graph).SerializeToString()
                self._handle = self._link.control.create_session(self._options.encode(), data)
                # The master ends the session when this channel closes, so a client that is killed leaves no session.
                self._lifeline = self._link.open_channel()
                self._lifeline.send(Frame(HOLD, (self._handle,), ()))
            elif version > self._sent:
                data = graph_def(self._graph, from_version=self._sent).SerializeToString()
                self._link.control.extend_session(self._handle, data)
            self._sent = version
            return self._handle

    def devices(self) -> list[Device]:
        return [parse_device(name) for name in self._link.control.session_devices(self._session())]

    def prepare(self, request: RunRequest) -> Runnable:
        session = self._session()
        number = self._link.control.make_callable(
            session,
            [t.name for t in request.feeds],
            [t.name for t in request.fetches],
            [op.name for op in request.targets],
            b"",
        )
        return RemoteCallable(self._target, self._link, session, number)

    def close(self) -> None:
        with self._lock:
            handle, self._handle, self._closed = self._handle, None, True
            lifeline, self._lifeline = self._lifeline, None
        if handle is not None:
            try:
                self._link.control.close_session(handle)
            except OpError as error:
                _log.debug("cannot notify %s that a session has ended: %s", self._target, error.message)
        if lifeline is not None:
            # Closing this channel ends the session at the master, even if the request above has not reached it.
            self._link.release_channel(lifeline, False)
        self._link.close()


class RemoteCallable:
    """A request that a master in another process has planned."""

    def __init__(self, target: str, link: Link, session: str, number: int) -> None:
        self._target = target
        self._link = link
        self._session = session
        self._number = number

    def run(self, feeds: Sequence[Any], timeout_s: float | None = None, trace: StepTrace | None = None) -> list[Any]:
        channel = self._link.open_channel()
        # A channel is used again only after its answer: otherwise, a late answer would be taken for the answer to the
        # next step.
        usable = False
        try:
            traced = 0 if trace is None else 2 if trace.graphs else 1
            channel.send(Frame(RUN_CALLABLE, (self._session, self._number, timeout_s, traced), feeds))
            frame = self._wait(channel)
            usable = True
            if frame.kind == ERROR:
                raise_error(frame, self._target)
            if frame.kind != DONE:
                usable = False
                raise InternalError(f"{self._target} answered a step with a frame of kind {frame.kind}")
            results = list(frame.tensors)
            if trace is not None:
                trace.merge(results.pop(), self._target)
            return results
        except UnavailableError as error:
            raise UnavailableError(f"the master at {self._target} was lost during a step: {error.message}") from error
        finally:
            self._link.release_channel(channel, usable)

    def _wait(self, channel: Channel) -> Frame:
        while True:
            try:
                return channel.recv(_SIGNAL_CHECK_INTERVAL_S)
            except DeadlineExceededError:
                continue  # the master enforces the step's deadline; see `_SIGNAL_CHECK_INTERVAL_S`
