"""A simulated gRPC for the control plane, over the simulated network of a history (one run of the simulation).

The real `ControlClient` and `ControlServer` use it for calls, and for the watch, a stream that stays open. Calls have
deadlines, can be cancelled, and fail when their connection breaks. As with the real gRPC, a server may execute a call
although its caller has given up meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.problems import ConnectFailure
from tests.simulation.network import Network
from tests.simulation.primitives import Waiters
from tests.simulation.scheduler import Process, running, simulation

_WATCH = "/grpc.health.v1.Health/Watch"
_RETRY_S = 0.3
_CONNECT_S = 5.0


class SimulatedRpcError(grpc.RpcError):
    """The error of a failed call."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(details)
        self._code = code
        self._details = details
        self._trailing = tuple(trailing)

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailing


class _Context:
    """The context of a call, passed to its handler."""

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self.trailing: tuple[tuple[str, str], ...] = ()

    def peer(self) -> str:
        return self._caller

    def set_trailing_metadata(self, trailing: tuple[tuple[str, str], ...]) -> None:
        self.trailing = trailing

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise SimulatedRpcError(code, details, self.trailing)


class _Details:
    invocation_metadata = ()

    def __init__(self, method: str) -> None:
        self.method = method


class SimulatedGrpcServer:
    """Simulates the result of `grpc.server`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._handlers: list[Any] = []
        self._path = ""

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        del service, handlers  # `add_generic_rpc_handlers` gets the same handlers

    def add_insecure_port(self, address: str) -> int:
        self._path = address.removeprefix("unix:")
        return 1

    def start(self) -> None:
        self._network.servers[self._path] = self

    def stop(self, grace: float | None = None) -> Any:
        del grace
        self._network.servers.pop(self._path, None)
        return _Stopped()

    def answer(self, method: str, request: bytes, caller: str) -> bytes:
        """Calls the handler of a method."""
        handler = next(found for its in self._handlers if (found := its.service(_Details(method))) is not None)
        return handler.response_serializer(handler.unary_unary(handler.request_deserializer(request), _Context(caller)))


class _Stopped:
    def wait(self) -> None:
        return


class _Call:
    """A call in progress."""

    def __init__(self, channel: SimulatedGrpcChannel, method: str, request: bytes, decode: Any, timeout: float | None):
        self.processes: tuple[Process, Process] = (channel.process, channel.process)
        self._channel = channel
        self._network = channel.network
        self._method = method
        self._request = request
        self._decode = decode
        self._ended = False
        self._reply: Any = None
        self._error: BaseException | None = None
        self._waiters = Waiters()
        if timeout is not None:
            expired = SimulatedRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
            running().after(timeout, lambda: self._end(error=expired))

    def begin(self, wait: bool) -> None:
        """Sends the request; with ``wait``, retries while no server listens."""
        network, me = self._network, self._channel.process

        def arrives() -> None:
            listener = network.listeners.get(self._channel.address)
            server = network.servers.get(listener.control_path) if listener is not None else None
            # If a server listens, it executes the call even if the caller has given up: the request was sent already.
            if self._ended and server is None:
                return
            if listener is None or server is None:
                if wait:
                    network.simulation.after(_RETRY_S, lambda: None if self._ended else self.begin(wait))
                else:
                    network.send(self._channel.name, me.name, lambda: self._unavailable("connection refused"))
                return
            self.processes = (me, listener.process)
            if not self._ended:
                network.connections[self] = None
            network.simulation.thread(listener.process, self._method, lambda: self._serve(server)).start()

        network.send(me.name, self._channel.name, arrives)

    def _serve(self, server: SimulatedGrpcServer) -> None:
        me, there = self._channel.process, self._channel.name
        try:
            reply = server.answer(self._method, self._request, f"unix:{me.name}")
        except SimulatedRpcError as error:
            failure = error
            self._network.send(there, me.name, lambda: self._end(error=failure))
        else:
            self._network.send(there, me.name, lambda: self._end(reply=reply))

    def handle_break(self, process: Process, reason: str) -> None:
        if process is self._channel.process:
            self._unavailable(reason)

    def _unavailable(self, reason: str) -> None:
        self._end(error=SimulatedRpcError(grpc.StatusCode.UNAVAILABLE, reason))

    def _end(self, *, reply: Any = None, error: BaseException | None = None) -> None:
        if not self._ended:
            self._ended = True
            self._reply, self._error = reply, error
            self._network.connections.pop(self, None)
            self._channel.calls.pop(self, None)
            self._waiters.wake(len(self._waiters))

    def cancel(self) -> None:
        self._end(error=grpc.FutureCancelledError())

    def result(self) -> Any:
        running().pause()
        while not self._ended:
            self._waiters.wait(f"the answer of {self._channel.address} to {self._method}", None)
        if self._error is not None:
            raise self._error
        return self._decode(self._reply)


class _Method:
    def __init__(self, channel: SimulatedGrpcChannel, method: str, encode: Any, decode: Any) -> None:
        self._channel = channel
        self._method = method
        self._encode = encode
        self._decode = decode

    def future(
        self, request: Any, timeout: float | None = None, metadata: Any = None, wait_for_ready: bool | None = None
    ) -> _Call:
        del metadata
        if simulation() is not None:
            running().pause()
        if self._channel.closed or simulation() is None:
            raise ValueError("Cannot invoke RPC on closed channel!")
        call = _Call(self._channel, self._method, self._encode(request), self._decode, timeout)
        self._channel.calls[call] = None
        call.begin(bool(wait_for_ready))
        return call


class _Watch:
    """A stream of a task's health."""

    def __init__(self, channel: SimulatedGrpcChannel) -> None:
        self.processes: tuple[Process, Process] = (channel.process, channel.process)
        self._channel = channel
        self._ended = False
        self._waiters = Waiters()

    def __iter__(self) -> Iterator[Any]:
        channel = self._channel
        try:
            place = channel.network.connect(
                channel.address, channel.process, PeerIdentity(task="", generation=0), _CONNECT_S
            )
        except ConnectFailure as error:
            raise SimulatedRpcError(grpc.StatusCode.UNAVAILABLE, str(error)) from None
        self.processes = (channel.process, place.process)
        channel.network.connections[self] = None
        if not self._ended:
            yield health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)
        while not self._ended:
            self._waiters.wait(f"a change of the health of {channel.address}", None)
        channel.network.connections.pop(self, None)
        raise SimulatedRpcError(grpc.StatusCode.UNAVAILABLE, "the stream has ended")

    def handle_break(self, process: Process, reason: str) -> None:
        del reason
        if process is self._channel.process:
            self.cancel()

    def cancel(self) -> None:
        self._ended = True
        self._waiters.wake(len(self._waiters))


class SimulatedGrpcChannel:
    """Simulates the result of `grpc.insecure_channel`."""

    def __init__(self, network: Network, address: str) -> None:
        self.network = network
        self.address = address
        self.name = address.partition(":")[0]
        self.process = running().current.process
        self.closed = False
        self.calls: dict[_Call, None] = {}
        self._watches: list[_Watch] = []

    def unary_unary(
        self, method: str, request_serializer: Any = None, response_deserializer: Any = None, **more: Any
    ) -> _Method:
        del more
        return _Method(self, method, request_serializer, response_deserializer)

    def unary_stream(self, method: str, **more: Any) -> Callable[..., _Watch]:
        del more
        assert method == _WATCH, method

        def watch(request: Any, **more: Any) -> _Watch:
            del request, more
            if self.closed:
                raise ValueError("Cannot invoke RPC on closed channel!")
            found = _Watch(self)
            self._watches.append(found)
            return found

        return watch

    def stream_stream(self, method: str, **more: Any) -> None:
        """Does nothing: simulated tasks never use channels inside gRPC."""
        del method, more

    def close(self) -> None:
        if simulation() is None or not running().is_alive():
            return
        self.closed = True
        for call in list(self.calls):
            call.cancel()
        for watch in self._watches:
            watch.cancel()


class HeartbeatSocket:
    """The receiving end of a lifeline; used like a socket."""

    def __init__(self, network: Network, server: Process, alive: bytes, stopped: bytes, every_s: float) -> None:
        me = running().current.process
        self.processes = (me, server)
        self.readers = Waiters()
        self._network = network
        self._alive = alive
        self._stopped = stopped
        self._every_s = every_s
        self._come = bytearray()
        self._ended = False
        network.connections[self] = None
        self._beat()

    def _beat(self) -> None:
        me, server = self.processes
        if self._ended or server.dead or me.dead or self not in self._network.connections:
            return
        beat = self._stopped if server.stopped else self._alive

        def arrive() -> None:
            self._come.extend(beat)
            self.readers.wake(len(self.readers))

        self._network.send(server.name, me.name, arrive)
        self._network.simulation.after(self._every_s, self._beat)

    def handle_break(self, process: Process, reason: str) -> None:
        del reason
        if process is self.processes[0]:
            self._ended = True
            self.readers.wake(len(self.readers))

    def readable(self) -> bool:
        return bool(self._come) or self._ended

    def setblocking(self, blocks: bool) -> None:
        assert not blocks

    def recv(self, most: int) -> bytes:
        if self._come:
            taken = bytes(self._come[:most])
            del self._come[:most]
            return taken
        if self._ended:
            return b""
        raise BlockingIOError

    def close(self) -> None:
        self._ended = True
        self._network.connections.pop(self, None)

    def __enter__(self) -> HeartbeatSocket:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


class Waker:
    """An end of a `socket.socketpair`: closing one end wakes the threads that poll the other end."""

    def __init__(self) -> None:
        self.other: Waker
        self.readers = Waiters()
        self._closed = False

    def readable(self) -> bool:
        return self.other._closed

    def close(self) -> None:
        if not self._closed and running().is_alive():
            self._closed = True
            self.other.readers.wake(len(self.other.readers))

    def __enter__(self) -> Waker:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()


def socketpair() -> tuple[Waker, Waker]:
    """Returns two connected ends, as `socket.socketpair`."""
    one, other = Waker(), Waker()
    one.other, other.other = other, one
    return one, other


class Poll:
    """`select.poll` of `HeartbeatSocket` and `Waker`."""

    def __init__(self) -> None:
        self._objects: list[HeartbeatSocket | Waker] = []

    def register(self, something: HeartbeatSocket | Waker, events: int) -> None:
        del events
        self._objects.append(something)

    def poll(self, milliseconds: float) -> list[Any]:
        running().pause()
        if not any(item.readable() for item in self._objects):
            with contextlib.ExitStack() as stack:
                for item in self._objects:
                    stack.enter_context(item.readers.registered())
                running().wait("heartbeats", milliseconds / 1000)
        return [item for item in self._objects if item.readable()]
