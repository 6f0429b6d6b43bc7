"""Client of another task's control plane."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, cast

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from headwater.cluster.addresses import Address
from headwater.cluster.claims import Claim
from headwater.cluster.telemetry.clocks import SteadyClock
from headwater.cluster.transport import control_pb2 as messages
from headwater.cluster.transport.call_proof import PROOF, TIME, make_proof, time_of_server
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.connect import dial
from headwater.cluster.transport.control_services import calls, path_of
from headwater.cluster.transport.grpc_channel import open_grpc_channel
from headwater.cluster.transport.grpc_settings import COMMON_OPTIONS, OWN_STATUS
from headwater.cluster.transport.handlers import DeviceInfo, TaskStatus
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.lifeline import NO_HEARTBEAT_S, Lifeline
from headwater.cluster.transport.listener import listens_here
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.problems import ConnectFailure, Problem, failure_of
from headwater.cluster.transport.security import Security
from headwater.errors import (
    ABORTED,
    FAILED_PRECONDITION,
    UNAUTHENTICATED,
    UNAVAILABLE,
    CancelledError,
    OpError,
    make_error,
)

_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Ignore a proxy set in the environment: it is for the internet, not for the cluster.
    ("grpc.enable_http_proxy", 0),
    # Do not share connections with other gRPC channels, so that closing one ends it.
    ("grpc.use_local_subchannel_pool", 1),
)


def _pings(every_ms: int, timeout_ms: int) -> tuple[tuple[str, int], ...]:
    """Returns gRPC options for keepalive pings at that interval and with that timeout.

    Pings pass through Python threads of the other end, so a task that holds the GIL answers them late.
    """
    return (
        ("grpc.keepalive_time_ms", every_ms),
        ("grpc.keepalive_timeout_ms", timeout_ms),
        # By default, gRPC waits a minute.
        ("grpc.http2.ping_timeout_ms", timeout_ms),
    )


#: Pings of a client that makes a single call and disconnects.
_SINGLE_CALL_PINGS = _pings(1500, 2500)
#: Pings in a network that may pass only gRPC, so that there may be no lifeline.
_GRPC_ONLY_PINGS = _pings(10_000, 90_000)
#: Pings in addition to a lifeline, only to keep idle connections alive in firewalls and NAT gateways.
_KEEPALIVE_PINGS = _pings(30_000, 600_000)

#: Timeout of a short call, such as a query, in seconds.
_SHORT_TIMEOUT_S = 10.0
#: Timeout of a short call while heartbeats arrive, in seconds: the task may hold the GIL, or its machine is loaded.
_ALIVE_TIMEOUT_S = 600.0
#: Seconds between two attempts to watch a lost task again.
_WATCH_AGAIN_S = 1.0
#: Timeout of a connection that diagnoses an address, in seconds.
_DIAL_S = 5.0
_log = logging.getLogger("headwater")
#: Differences between clocks below this are ignored, in seconds.
_MIN_CLOCK_DIFFERENCE_S = 1.0
#: Timeout of a call for which the other end plans or compiles, in seconds.
_LONG_TIMEOUT_S = 600.0

#: The two ends of a lifeline: this listener, and any task.
_LISTENS = PeerIdentity(task="a listener for heartbeats", generation=0)
_ANY = PeerIdentity(task="", generation=0)
_PROBLEMS = {UNAUTHENTICATED: Problem.TOKEN, FAILED_PRECONDITION: Problem.OTHER_TASK, ABORTED: Problem.GENERATION}


class ControlClient:
    """Calls the control plane of one task. Thread-safe.

    Args:
      address: the task's address, as in the cluster spec.
      peer: the task's name for messages.
      security: the security settings of this end.
      on_lost: called, in any thread, each time `lost` becomes true. If it is given, the client has a `Lifeline` to the
        task, and running calls fail with UnavailableError when the task is lost. None: neither.
      inside_grpc: whether the network may pass only gRPC, so that heartbeats may never arrive.

    Attributes:
      reason: why the task is lost, in words; empty if it has exited, or is not lost.
    """

    def __init__(
        self,
        address: Address,
        *,
        peer: str,
        security: Security,
        on_lost: Callable[[], None] | None = None,
        inside_grpc: bool = False,
    ) -> None:
        self._address = address
        self._peer = peer
        self._security = security
        pings = _SINGLE_CALL_PINGS if on_lost is None else _GRPC_ONLY_PINGS if inside_grpc else _KEEPALIVE_PINGS
        self._channel = _open(address, security, pings)
        self._on_lost = on_lost
        self._inside_grpc = inside_grpc
        self._lifeline: Lifeline | None = None
        self._calls: set[Any] = set()
        self.reason: str = ""
        self._changed = threading.Condition()
        # Whether the connection was ever established, and whether it is broken now.
        self._stood = False
        self._broken = False
        self._methods = calls(self._channel)
        self._health: Any = cast(Any, health_pb2_grpc).HealthStub(self._channel)
        self._watching: threading.Thread | None = None
        self._watch: Any = None
        self._closing = threading.Event()
        self._clock = SteadyClock()
        self._ahead_s = 0.0

    def is_lost(self) -> bool:
        """Returns whether the connection was established and has broken since.

        The task has exited, was stopped, or its machine is unreachable. False again after a reconnection. With
        ``on_lost``, a stopped task is detected within 5 s, and an unreachable machine within 20 s.
        """
        return self._broken or bool(self.reason)

    def wait_lost(self, timeout_s: float) -> bool:
        """Waits until the connection is lost, or for ``timeout_s`` seconds; returns whether it is lost."""
        with self._changed:
            return self._changed.wait_for(self.is_lost, timeout_s)

    def is_alive(self) -> bool:
        """Returns whether a recent heartbeat shows that the task runs; False if there is no lifeline."""
        return self._lifeline is not None and self._lifeline.is_alive()

    def close(self) -> None:
        """Closes the connection; running calls raise CancelledError."""
        self._closing.set()
        with self._changed:
            watching, watch, lifeline = self._watching, self._watch, self._lifeline
        if lifeline is not None:
            lifeline.close()
        if watch is not None:
            watch.cancel()
        self._channel.close()
        if watching is not None:
            watching.join()

    # --- the task

    def status(self, *, timeout_s: float = _SHORT_TIMEOUT_S, wait: bool = False) -> TaskStatus:
        """Returns the task's identity and status.

        Args:
          timeout_s: timeout of the call, in seconds.
          wait: retry the connection during that time. Otherwise the call fails immediately if the last attempt to
              connect, perhaps a second ago, has failed.
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
        """Returns the task's devices."""
        reply = self._call("Task", "ListDevices", messages.ListDevicesRequest(), self._short_s())
        return [
            DeviceInfo(
                name=device.name, type=device.type, memory_limit=device.memory_limit, incarnation=device.incarnation
            )
            for device in reply.devices
        ]

    def add_plan(
        self, session: str, number: int, plan: bytes, *, generation: int = 0, owner: Claim | None = None
    ) -> None:
        """Sends the task its part of a session's steps; see `TaskHandler.add_plan`.

        Args:
          number: the number by which the plan is run.
          plan: the packed plan.
          generation: the required generation of the task; 0 for any.
          owner: the claim of the task whose master has the session; None for a client that is not a task.

        Raises:
          AbortedError: the task is of another generation.
        """
        owner = owner or Claim()
        request = messages.RegisterPlanRequest(
            session=session,
            number=number,
            plan=plan,
            generation=generation,
            owner=owner.task,
            owner_generation=owner.generation,
            owner_started=owner.started,
            owner_address=owner.address,
        )
        self._call("Task", "RegisterPlan", request, _LONG_TIMEOUT_S)

    def release(self, session: str) -> None:
        """Ends a session on the task; see `TaskHandler.release`."""
        self._call("Task", "ReleaseSession", messages.ReleaseSessionRequest(session=session), self._short_s())

    def cancel_step(self, session: str, step: int, reason: str) -> None:
        """Cancels a step on the task; see `TaskHandler.cancel_step`."""
        request = messages.CancelStepRequest(session=session, step=step, reason=reason)
        self._call("Task", "CancelStep", request, self._short_s())

    def reset_task(self, containers: Sequence[str]) -> None:
        """Discards the state in ``containers`` on the task; see `TaskHandler.reset`."""
        self._call("Task", "ResetTask", messages.ResetRequest(containers=containers), self._short_s())

    def shutdown(self, reason: str, chief: Claim, gone: Collection[str] = ()) -> None:
        """Tells the task that the job is over; see `TaskHandler.shutdown` for arguments and errors."""
        request = messages.ShutdownRequest(
            reason=reason,
            task=chief.task,
            generation=chief.generation,
            started=chief.started,
            address=chief.address,
            gone=gone,
        )
        self._call("Task", "Shutdown", request, self._short_s())

    def join(self, job: str, address: str) -> tuple[int, dict[str, str]]:
        """Asks the task to add a task to the cluster; see `TaskHandler.join` for the result."""
        reply = self._call("Task", "Join", messages.JoinRequest(job=job, address=address), self._short_s())
        return reply.index, dict(reply.cluster)

    # --- its master

    def create_session(self, config: bytes, graph_def: bytes) -> str:
        """Starts a session on the master; returns its handle."""
        request = messages.CreateSessionRequest(config=config, graph=graph_def)
        return str(self._call("Master", "CreateSession", request, _LONG_TIMEOUT_S).session)

    def extend_session(self, session: str, graph_def: bytes) -> None:
        """Adds operations to the graph of a session."""
        request = messages.ExtendSessionRequest(session=session, graph=graph_def)
        self._call("Master", "ExtendSession", request, _LONG_TIMEOUT_S)

    def make_callable(
        self, session: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], options: bytes
    ) -> int:
        """Plans a request of a session; returns the number by which to run it."""
        request = messages.MakeCallableRequest(
            session=session, feeds=feeds, fetches=fetches, targets=targets, options=options
        )
        return int(self._call("Master", "MakeCallable", request, _LONG_TIMEOUT_S).number)

    def release_callable(self, session: str, number: int) -> None:
        """Releases a callable of a session; an unknown one is ignored."""
        request = messages.ReleaseCallableRequest(session=session, number=number)
        self._call("Master", "ReleaseCallable", request, self._short_s())

    def close_session(self, session: str) -> None:
        """Ends a session on the master; an unknown one is ignored."""
        self._call("Master", "CloseSession", messages.CloseSessionRequest(session=session), self._short_s())

    def reset(self, containers: Sequence[str]) -> None:
        """Discards the state in ``containers`` on all tasks of the master; see `MasterHandler.reset`."""
        self._call("Master", "Reset", messages.ResetRequest(containers=containers), _LONG_TIMEOUT_S)

    def session_devices(self, session: str) -> list[str]:
        """Returns the full names of the devices that a session may use."""
        request = messages.SessionDevicesRequest(session=session)
        return list(self._call("Master", "SessionDevices", request, _LONG_TIMEOUT_S).devices)

    # --- channels

    def open_channel(self, *, me: PeerIdentity, wanted: PeerIdentity, options: TransportOptions) -> Channel:
        """Opens a channel inside gRPC.

        Args:
          me: this end.
          wanted: the expected task, ``""`` for any, and its generation, 0 for any.
          options: limits.

        Raises:
          ConnectFailure: the attempt failed; it has the reason.
          CancelledError: `close` was called.
        """
        shown = self._metadata("Channels", "Open")
        try:
            return open_grpc_channel(
                lambda pieces: self._methods[path_of("Channels", "Open")](pieces, metadata=shown),
                me=me,
                wanted=wanted,
                place=str(self._address),
                options=options,
            )
        except grpc.RpcError as error:
            if self._adjust_clock(error, "Channels", "Open", shown):
                return self.open_channel(me=me, wanted=wanted, options=options)
            raise self._failure(error) from error
        except ValueError as error:
            raise self._is_closed() from error

    def _failure(self, error: Any) -> ConnectFailure:
        details = str(error.details() or error.code().name)
        if OWN_STATUS in (error.trailing_metadata() or ()):
            return ConnectFailure(_PROBLEMS.get(error.code().value[0], Problem.OTHER), details)
        if "handshake" in details.lower():
            return ConnectFailure(Problem.CERTIFICATE, f"no TLS connection: {details}")
        try:
            # gRPC's messages differ between releases, so diagnose the problem with a plain connection.
            dial(self._address, timeout_s=_DIAL_S).close()
        except OSError as reason:
            return failure_of(reason)
        return ConnectFailure(Problem.CLOSED, details)

    def _call(self, service: str, method: str, request: Message, timeout_s: float, *, wait: bool = False) -> Any:
        shown = self._metadata(service, method)
        try:
            call = self._methods[path_of(service, method)].future(
                request, timeout=timeout_s, metadata=shown, wait_for_ready=wait or None
            )
        except ValueError as error:  # gRPC's error for a closed channel
            raise self._is_closed() from error
        # Check under the lock, so that either `_handle_report` or this thread cancels the call.
        with self._changed:
            self._calls.add(call)
            lost = bool(self.reason) and not wait
        if lost:
            call.cancel()
        try:
            reply = call.result()
        except grpc.FutureCancelledError as error:
            if self._closing.is_set():
                raise self._is_closed() from error
            raise self._lost_error() from error
        except grpc.RpcError as error:
            if self._adjust_clock(error, service, method, shown):
                return self._call(service, method, request, timeout_s, wait=wait)
            raise self._error(error) from error
        finally:
            with self._changed:
                self._calls.discard(call)
        self._record_contact(True)
        # The first answer starts the lifeline. Wait until it is connected: only then is a loss of the task detected.
        if self._lifeline is not None:
            self._lifeline.wait_tried()
        return reply

    def _short_s(self) -> float:
        """Returns the timeout of a short call, in seconds.

        While heartbeats arrive, the timeout is long: the task may hold the GIL, or its machine may be loaded.
        """
        return _ALIVE_TIMEOUT_S if self.is_alive() else _SHORT_TIMEOUT_S

    def _lost_error(self) -> OpError:
        return make_error(UNAVAILABLE, f"{self._peer} at {self._address} no longer answers: {self.reason}")

    def _metadata(self, service: str, method: str) -> tuple[tuple[str, str], ...]:
        tokens = self._security.for_host(self._address.host).tokens()
        if not tokens.values:
            return ()
        now = self._clock() + self._ahead_s
        return ((PROOF, make_proof(tokens, path_of(service, method), now=now)),)

    def _adjust_clock(self, error: Any, service: str, method: str, shown: tuple[tuple[str, str], ...]) -> bool:
        """Adjusts the known difference of clocks after a refusal; returns whether it changed, so that a retry helps."""
        trailing: dict[str, str | bytes] = dict(error.trailing_metadata() or ())
        signed_time, proof = trailing.get(TIME), dict(shown).get(PROOF)
        if signed_time is None or proof is None:
            return False
        tokens = self._security.for_host(self._address.host).tokens()
        theirs = time_of_server(tokens, path_of(service, method), proof, str(signed_time))
        if theirs is None:
            return False
        ahead_s = theirs - self._clock()
        changed = abs(ahead_s - self._ahead_s) > _MIN_CLOCK_DIFFERENCE_S
        if changed:
            _log.warning("the clock of %s differs from ours by %.0f s", self._peer, ahead_s)
        self._ahead_s = ahead_s
        return changed

    def _is_closed(self) -> OpError:
        return CancelledError(f"the connection to {self._peer} was closed at this end")

    def _error(self, error: Any) -> OpError:
        code = error.code().value[0]
        details = error.details() or error.code().name
        if OWN_STATUS in (error.trailing_metadata() or ()):
            return make_error(code, details)
        if code == UNAVAILABLE:
            self._record_contact(False)
            return make_error(code, f"{self._peer} at {self._address} cannot be reached: {details}")
        return make_error(code, f"a call to {self._peer} at {self._address} failed: {details}")

    def _record_contact(self, stands: bool) -> None:
        with self._changed:
            was_broken = self._broken
            self._broken = self._stood and not stands
            if stands and self.reason:  # the answer shows that the task is not lost
                self.reason = ""
                if self._lifeline is not None:
                    self._lifeline.record_answer()
            self._stood = self._stood or stands
            self._changed.notify_all()
            if self._stood and self._watching is None and not self._closing.is_set():
                # A task of this same process needs no lifeline: it is stopped whenever this end is stopped.
                if self._on_lost is not None and not listens_here(self._address):
                    self._lifeline = Lifeline(
                        self._address,
                        me=_LISTENS,
                        wanted=_ANY,
                        security=self._security,
                        on_change=self._handle_report,
                        unknown_s=math.inf if self._inside_grpc else NO_HEARTBEAT_S,
                    )
                    self._lifeline.start()
                self._watching = threading.Thread(target=self._keep_watching, name=f"watches {self._peer}", daemon=True)
                self._watching.start()
            news = self._broken and not was_broken and not self.reason
        if news and self._on_lost is not None and not self._closing.is_set():
            self._on_lost()

    def _handle_report(self, reason: str) -> None:
        """Handles a report of the lifeline: the reason why the task is lost, or ``""`` when heartbeats arrive again."""
        with self._changed:
            news = bool(reason) and not self.is_lost()
            self.reason = reason
            self._changed.notify_all()
            calls = list(self._calls) if reason else []
        for call in calls:
            call.cancel()
        if news and self._on_lost is not None and not self._closing.is_set():
            self._on_lost()

    def _keep_watching(self) -> None:
        """Keeps a call open; its end shows that the connection is lost."""
        while not self._closing.is_set():
            # gRPC ends a call with an error, and raises ValueError for a call on a closed channel.
            with contextlib.suppress(grpc.RpcError, ValueError):
                watch = self._health.Watch(health_pb2.HealthCheckRequest())
                with self._changed:
                    self._watch = watch
                if self._closing.is_set():
                    watch.cancel()
                for reply in watch:
                    self._record_contact(reply.status == health_pb2.HealthCheckResponse.SERVING)
            self._record_contact(False)
            self._closing.wait(_WATCH_AGAIN_S)


def _open(address: Address, security: Security, pings: Sequence[tuple[str, int]]) -> grpc.Channel:
    target = f"dns:///{address}"
    options = (*_OPTIONS, *pings)
    if not security.tls:
        return grpc.insecure_channel(target, options=options)

    def content(file: Path | None) -> bytes | None:
        return file.read_bytes() if file is not None else None

    credentials = grpc.ssl_channel_credentials(
        root_certificates=content(security.authority_file),
        private_key=content(security.key_file),
        certificate_chain=content(security.certificate_file),
    )
    return grpc.secure_channel(target, credentials, options=options)
