"""The control plane of another task, as a client sees it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headwater.cluster.addresses import Address
from headwater.errors import (
    ABORTED,
    FAILED_PRECONDITION,
    UNAUTHENTICATED,
    UNAVAILABLE,
    CancelledError,
    OpError,
    make_error,
)
from headwater.transport import control_pb2 as messages
from headwater.transport import control_pb2_grpc
from headwater.transport.call_proof import PROOF, make_proof
from headwater.transport.channel import Channel
from headwater.transport.connect import dial
from headwater.transport.grpc_channel import open_grpc_channel
from headwater.transport.grpc_settings import COMMON_OPTIONS, OURS
from headwater.transport.handlers import DeviceInfo, TaskStatus
from headwater.transport.handshake import Identity
from headwater.transport.options import TransportOptions
from headwater.transport.problems import ConnectFailure, Problem, failure_of
from headwater.transport.security import Security

#: A peer that was stopped, or whose machine is gone, answers no ping: asked this often, in ms ...
_PING_EVERY_MS = 1500
#: ... and given up after this time without an answer. Without the second option gRPC waits a minute.
_PING_TIMEOUT_MS = 2500
_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.keepalive_time_ms", _PING_EVERY_MS),
    ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", _PING_TIMEOUT_MS),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # A proxy of the environment is for the outside world, not for a cluster.
    ("grpc.enable_http_proxy", 0),
    # Connections are ours alone, so that closing one ends it.
    ("grpc.use_local_subchannel_pool", 1),
)

#: How long a call may take that only asks or tells something, in seconds.
_SHORT_S = 10.0
#: How long to wait before watching a task again that was lost, in seconds.
_WATCH_AGAIN_S = 1.0
#: How long to look what is wrong with an address, in seconds.
_DIAL_S = 5.0
#: How long a call may take that lets the other end plan or compile, in seconds.
_LONG_S = 600.0

_PROBLEMS = {UNAUTHENTICATED: Problem.TOKEN, FAILED_PRECONDITION: Problem.OTHER_TASK, ABORTED: Problem.GENERATION}


class ControlClient:
    """Calls one task. Any thread may use it.

    Args:
      address: the task's, as in the cluster spec.
      peer: what messages call it.
      security: what this end shows and asks for.
      on_lost: called each time `lost` becomes true, in some thread.
    """

    def __init__(
        self, address: Address, *, peer: str, security: Security, on_lost: Callable[[], None] | None = None
    ) -> None:
        self._address = address
        self._peer = peer
        self._security = security
        self._channel = _open(address, security)
        self._on_lost = on_lost
        self._changed = threading.Condition()
        self._stood = False
        self._broken = False
        generated = cast(Any, control_pb2_grpc)
        self._stubs: dict[str, Any] = {
            "Task": generated.TaskStub(self._channel),
            "Master": generated.MasterStub(self._channel),
            "Channels": generated.ChannelsStub(self._channel),
        }
        self._health: Any = cast(Any, health_pb2_grpc).HealthStub(self._channel)
        self._watching: threading.Thread | None = None
        self._watch: Any = None
        self._closing = threading.Event()

    def lost(self) -> bool:
        """Whether the connection stood and has broken since: the task ended, was stopped, or its machine is gone.
        False again when the connection stands again. It takes 4 s until a stopped task or a vanished machine is
        noticed."""
        return self._broken

    def wait_lost(self, timeout_s: float) -> bool:
        """Waits until `lost`, or for ``timeout_s`` seconds; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self._broken, timeout_s)

    def close(self) -> None:
        """Ends the connection; calls that run raise CancelledError."""
        self._closing.set()
        with self._changed:
            watching, watch = self._watching, self._watch
        if watch is not None:
            watch.cancel()
        self._channel.close()
        if watching is not None:
            watching.join()

    # --- the task

    def status(self, *, timeout_s: float = _SHORT_S, wait: bool = False) -> TaskStatus:
        """Who the task is and how it fares.

        Args:
          timeout_s: longest time of the call, in seconds.
          wait: try to connect all that time. Otherwise the call fails at once where the last attempt, perhaps of a
            second ago, did.
        """
        reply = self._call("Task", "GetStatus", messages.GetStatusRequest(), timeout_s, wait=wait)
        return TaskStatus(
            task=reply.task,
            generation=reply.generation,
            started=reply.started,
            pid=reply.pid,
            version=reply.version,
            details=dict(reply.details),
        )

    def list_devices(self) -> list[DeviceInfo]:
        """The task's devices."""
        reply = self._call("Task", "ListDevices", messages.ListDevicesRequest(), _SHORT_S)
        return [
            DeviceInfo(
                name=device.name,
                type=device.type,
                memory_limit=device.memory_limit,
                incarnation=device.incarnation,
            )
            for device in reply.devices
        ]

    def add_plan(
        self, session: str, number: int, plan: bytes, *, generation: int = 0, owner: tuple[str, int] = ("", 0)
    ) -> None:
        """Gives the task its part of a session's steps; see `TaskHandler.add_plan`.

        Args:
          session: whose.
          number: to call it by.
          plan: packed.
          generation: that the task must be of; 0 for any.
          owner: the task whose master has the session, and its generation.

        Raises:
          AbortedError: the task is of another generation.
        """
        request = messages.RegisterPlanRequest(
            session=session,
            number=number,
            plan=plan,
            generation=generation,
            owner=owner[0],
            owner_generation=owner[1],
        )
        self._call("Task", "RegisterPlan", request, _LONG_S)

    def release(self, session: str) -> None:
        """See `TaskHandler.release`."""
        self._call("Task", "ReleaseSession", messages.ReleaseSessionRequest(session=session), _SHORT_S)

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        """See `TaskHandler.cancel_step`."""
        request = messages.CancelStepRequest(session=session, step=step, reason=reason)
        self._call("Task", "CancelStep", request, _SHORT_S)

    def reset_task(self, containers: Sequence[str]) -> None:
        """See `TaskHandler.reset`."""
        self._call("Task", "ResetTask", messages.ResetRequest(containers=containers), _SHORT_S)

    def shutdown(self, reason: str) -> None:
        """See `TaskHandler.shutdown`."""
        self._call("Task", "Shutdown", messages.ShutdownRequest(reason=reason), _SHORT_S)

    def join(self, job: str, address: str) -> tuple[int, dict[str, str]]:
        """See `TaskHandler.join`."""
        reply = self._call("Task", "Join", messages.JoinRequest(job=job, address=address), _SHORT_S)
        return reply.index, dict(reply.cluster)

    # --- its master

    def create_session(self, config: bytes, graph_def: bytes) -> str:
        """See `MasterHandler.create_session`."""
        request = messages.CreateSessionRequest(config=config, graph=graph_def)
        return str(self._call("Master", "CreateSession", request, _LONG_S).session)

    def extend_session(self, session: str, graph_def: bytes) -> None:
        """See `MasterHandler.extend_session`."""
        request = messages.ExtendSessionRequest(session=session, graph=graph_def)
        self._call("Master", "ExtendSession", request, _LONG_S)

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes
    ) -> int:
        """See `MasterHandler.make_callable`."""
        request = messages.MakeCallableRequest(
            session=session, feeds=feeds, fetches=fetches, targets=targets, options=options
        )
        return int(self._call("Master", "MakeCallable", request, _LONG_S).number)

    def release_callable(self, session: str, number: int) -> None:
        """See `MasterHandler.release_callable`."""
        request = messages.ReleaseCallableRequest(session=session, number=number)
        self._call("Master", "ReleaseCallable", request, _SHORT_S)

    def close_session(self, session: str) -> None:
        """See `MasterHandler.close_session`."""
        self._call("Master", "CloseSession", messages.CloseSessionRequest(session=session), _SHORT_S)

    def reset(self, containers: Sequence[str]) -> None:
        """See `MasterHandler.reset`."""
        self._call("Master", "Reset", messages.ResetRequest(containers=containers), _LONG_S)

    def session_devices(self, session: str) -> list[str]:
        """See `MasterHandler.session_devices`."""
        request = messages.SessionDevicesRequest(session=session)
        return list(self._call("Master", "SessionDevices", request, _LONG_S).devices)

    # --- channels

    def open_channel(self, *, me: Identity, wanted: Identity, options: TransportOptions) -> Channel:
        """A channel inside gRPC.

        Args:
          me: this end.
          wanted: the task that should be there, ``""`` for any, and its generation, 0 for any.
          options: limits.

        Raises:
          ConnectFailure: it did not work, and why.
          CancelledError: `close` was called.
        """
        try:
            return open_grpc_channel(
                lambda pieces: self._stubs["Channels"].Open(pieces, metadata=self._metadata("Channels", "Open")),
                me=me,
                wanted=wanted,
                place=str(self._address),
                options=options,
            )
        except grpc.RpcError as error:
            raise self._failure(error) from error
        except ValueError as error:
            raise self._is_closed() from error

    def _failure(self, error: Any) -> ConnectFailure:
        details = str(error.details() or error.code().name)
        if OURS in (error.trailing_metadata() or ()):
            return ConnectFailure(_PROBLEMS.get(error.code().value[0], Problem.OTHER), details)
        if "handshake" in details.lower():
            return ConnectFailure(Problem.CERTIFICATE, f"no TLS connection: {details}")
        try:
            # gRPC words differ from release to release; a plain connection tells what is wrong.
            dial(self._address, timeout_s=_DIAL_S).close()
        except OSError as reason:
            return failure_of(reason)
        return ConnectFailure(Problem.CLOSED, details)

    def _call(self, service: str, method: str, request: Any, timeout_s: float, *, wait: bool = False) -> Any:
        stub = getattr(self._stubs[service], method)
        try:
            reply = stub(
                request, timeout=timeout_s, metadata=self._metadata(service, method), wait_for_ready=wait or None
            )
            self._stands(True)
            return reply
        except grpc.RpcError as error:
            raise self._error(error) from error
        except ValueError as error:  # gRPC's word for a channel that is closed
            raise self._is_closed() from error

    def _metadata(self, service: str, method: str) -> tuple[tuple[str, str], ...]:
        tokens = self._security.at(self._address.host).tokens()
        return ((PROOF, make_proof(tokens, f"/headwater.{service}/{method}")),) if tokens.values else ()

    def _is_closed(self) -> OpError:
        return CancelledError(None, None, f"the connection to {self._peer} was closed at this end")

    def _error(self, error: Any) -> OpError:
        code = error.code().value[0]
        details = error.details() or error.code().name
        if OURS in (error.trailing_metadata() or ()):
            return make_error(code, details)
        if code == UNAVAILABLE:
            self._stands(False)
            return make_error(code, f"{self._peer} at {self._address} cannot be reached: {details}")
        return make_error(code, f"a call to {self._peer} at {self._address} failed: {details}")

    def _stands(self, stands: bool) -> None:
        with self._changed:
            was_broken = self._broken
            self._broken = self._stood and not stands
            self._stood = self._stood or stands
            self._changed.notify_all()
            if self._stood and self._watching is None and not self._closing.is_set():
                self._watching = threading.Thread(target=self._keep_watching, name=f"watches {self._peer}", daemon=True)
                self._watching.start()
            news = self._broken and not was_broken
        if news and self._on_lost is not None and not self._closing.is_set():
            self._on_lost()

    def _keep_watching(self) -> None:
        """Has a call open at all times that never ends by itself. Its end is news."""
        while not self._closing.is_set():
            # gRPC ends a call with an error, and refuses one on a channel that is closed with ValueError.
            with contextlib.suppress(grpc.RpcError, ValueError):
                watch = self._health.Watch(health_pb2.HealthCheckRequest())
                with self._changed:
                    self._watch = watch
                if self._closing.is_set():
                    watch.cancel()
                for reply in watch:
                    self._stands(reply.status == health_pb2.HealthCheckResponse.SERVING)
            self._stands(False)
            self._closing.wait(_WATCH_AGAIN_S)


def _open(address: Address, security: Security) -> grpc.Channel:
    target = f"dns:///{address}"
    if not security.tls:
        return grpc.insecure_channel(target, options=_OPTIONS)

    def content(file: Any) -> bytes | None:
        return file.read_bytes() if file is not None else None

    credentials = grpc.ssl_channel_credentials(
        root_certificates=content(security.authority_file),
        private_key=content(security.key_file),
        certificate_chain=content(security.certificate_file),
    )
    return grpc.secure_channel(target, credentials, options=_OPTIONS)
