"""The control plane of a task: its gRPC server."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME as HEALTH_SERVICE

from headwater import __version__
from headwater.cluster.claims import Claim
from headwater.cluster.transport import control_pb2 as messages
from headwater.cluster.transport.call_proof import PROOF, TIME, ProofChecker
from headwater.cluster.transport.channel import Channel
from headwater.cluster.transport.control_services import add_service
from headwater.cluster.transport.daemon_threads import DaemonThreads
from headwater.cluster.transport.grpc_channel import serve_channel
from headwater.cluster.transport.grpc_settings import COMMON_OPTIONS, OWN_STATUS
from headwater.cluster.transport.handlers import MasterHandler, TaskHandler
from headwater.cluster.transport.handshake import PeerIdentity
from headwater.cluster.transport.health import Health
from headwater.cluster.transport.options import TransportOptions
from headwater.cluster.transport.security import Security, Tokens
from headwater.errors import AbortedError, InternalError, OpError

_log = logging.getLogger("headwater")

# One thread for each concurrent call, started when needed; a channel inside gRPC is one long call.
_MAX_THREADS = 512
#: Maximum number of concurrent calls on one connection.
_MAX_STREAMS = 1024
_SERVICES = ("headwater.Task", "headwater.Master", "headwater.Channels")
_HEALTH = "/grpc.health.v1.Health/"
#: A status message is sent in a header, whose size is limited.
_MAX_MESSAGE = 6000
_CODES = {code.value[0]: code for code in grpc.StatusCode}

_SERVER_OPTIONS = (
    *COMMON_OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", _MAX_STREAMS),
    # Clients ping every 1.5 s, also without calls. By default, gRPC treats such pings as abuse, and disconnects the
    # clients.
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.http2.max_ping_strikes", 0),
)

_Reply = TypeVar("_Reply")


class ControlServer:
    """The gRPC server.

    Args:
      path: the Unix socket to listen at; the task's `Listener` forwards connections to it.
      me: this task.
      security: the security settings at the address of the listener.
      on_trusted: called for each authenticated call, with gRPC's name of the caller's end of the connection.
      task: handles calls of tasks.
      master: handles calls of clients; None if the task has no master.
      on_channel: called with each channel inside gRPC, in a new thread.
      options: limits of those channels.
    """

    def __init__(
        self,
        path: str,
        *,
        me: PeerIdentity,
        security: Security,
        task: TaskHandler,
        master: MasterHandler | None,
        on_channel: Callable[[Channel], None],
        options: TransportOptions,
        on_trusted: Callable[[str], None],
    ) -> None:
        self._path = path
        self._threads = DaemonThreads(f"{me.task} control", _MAX_THREADS)
        self._server = grpc.server(
            cast(ThreadPoolExecutor, self._threads),  # gRPC uses only the methods of every Executor
            interceptors=[_Guard(me.task, security.tokens)],
            options=_SERVER_OPTIONS,
        )
        add_service(self._server, "Task", _Task(me, on_trusted, task))
        if master is not None:
            add_service(self._server, "Master", _Master(me, on_trusted, master))
        add_service(self._server, "Channels", _Channels(me, on_trusted, on_channel, options))
        cast(Any, health_pb2_grpc).add_HealthServicer_to_server(Health(_SERVICES), self._server)
        _enable_reflection(self._server)
        credentials = _credentials(security)
        if credentials is None:
            self._server.add_insecure_port(f"unix:{path}")
        else:
            self._server.add_secure_port(f"unix:{path}", credentials)

    def start(self) -> None:
        """Starts the server."""
        os.chmod(self._path, 0o600)  # before the server answers: no other user may connect
        self._server.start()

    def stop(self, grace_s: float = 0.5) -> None:
        """Rejects new calls, and cancels running ones after ``grace_s`` seconds. Idempotent."""
        # Health watchers notice the end of their streams.
        self._server.stop(grace_s).wait()
        self._threads.shutdown(wait=False)


def _credentials(security: Security) -> grpc.ServerCredentials | None:
    if security.certificate_file is None or security.key_file is None:
        return None
    authority = security.authority_file.read_bytes() if security.authority_file is not None else None
    return grpc.ssl_server_credentials(
        [(security.key_file.read_bytes(), security.certificate_file.read_bytes())],
        root_certificates=authority,
        require_client_auth=authority is not None,
    )


class _Guard(grpc.ServerInterceptor):
    """Rejects calls without a valid proof. Health checks need none, as probes cannot know the token."""

    def __init__(self, task: str, tokens: Callable[[], Tokens]) -> None:
        self._task = task
        self._checker = ProofChecker(tokens)

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        method = str(handler_call_details.method)
        if method.startswith(_HEALTH):
            return continuation(handler_call_details)
        metadata = dict(handler_call_details.invocation_metadata)
        proof = metadata.get(PROOF)
        problem = self._checker.problem_with(method, proof)
        if problem is None:
            return continuation(handler_call_details)
        signed_time = self._checker.signed_time(method, proof) if proof is not None else None
        _log.warning("%s refused a call of %s: %s", self._task, method, problem)
        refusal = f"{self._task} refused the call: {problem}"

        def refuse(_: object, context: grpc.ServicerContext) -> Iterator[object]:
            context.set_trailing_metadata((OWN_STATUS,) if signed_time is None else (OWN_STATUS, (TIME, signed_time)))
            context.abort(grpc.StatusCode.UNAUTHENTICATED, refusal)
            return iter(())

        # Answer as for a stream, so that the request is not read.
        return cast(Any, grpc.stream_stream_rpc_method_handler)(refuse)


class _Answers:
    """Base of the services: sends errors to the caller with their codes."""

    def __init__(self, me: PeerIdentity, on_trusted: Callable[[str], None]) -> None:
        self._me = me
        self._on_trusted = on_trusted

    def _answer(self, context: grpc.ServicerContext, call: Callable[[], _Reply]) -> _Reply:
        self._on_trusted(context.peer())
        try:
            return call()
        except OpError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - a bug in Headwater: report it to the caller, and continue serving
            _log.exception("%s failed to answer a call", self._me.task)
            failure = InternalError(f"{self._me.task}: {type(error).__name__}: {error}")
        context.set_trailing_metadata((OWN_STATUS,))
        context.abort(_CODES.get(failure.error_code, grpc.StatusCode.UNKNOWN), failure.message[:_MAX_MESSAGE])

    def _complete_call(self, context: grpc.ServicerContext, call: Callable[[], None]) -> messages.Done:
        self._answer(context, call)
        return messages.Done()


class _Task(_Answers):
    def __init__(self, me: PeerIdentity, on_trusted: Callable[[str], None], handler: TaskHandler) -> None:
        super().__init__(me, on_trusted)
        self._handler = handler
        self._started = time.time()

    def GetStatus(self, request: messages.GetStatusRequest, context: grpc.ServicerContext) -> messages.GetStatusReply:
        return self._answer(
            context,
            lambda: messages.GetStatusReply(
                task=self._me.task,
                generation=self._me.generation,
                started=self._started,
                pid=os.getpid(),
                version=__version__,
                details=self._handler.status_details(),
            ),
        )

    def ListDevices(
        self, request: messages.ListDevicesRequest, context: grpc.ServicerContext
    ) -> messages.ListDevicesReply:
        return self._answer(
            context,
            lambda: messages.ListDevicesReply(
                devices=[
                    messages.DeviceInfo(
                        name=device.name,
                        type=device.type,
                        memory_limit=device.memory_limit,
                        incarnation=device.incarnation,
                    )
                    for device in self._handler.list_devices()
                ]
            ),
        )

    def RegisterPlan(self, request: messages.RegisterPlanRequest, context: grpc.ServicerContext) -> messages.Done:
        def register() -> None:
            if request.generation not in (0, self._me.generation):
                raise AbortedError(
                    f"{self._me.task} is of generation {self._me.generation:x}, not {request.generation:x}: it was "
                    "restarted"
                )
            owner = Claim(
                task=request.owner,
                generation=request.owner_generation,
                started=request.owner_started,
                address=request.owner_address,
            )
            self._handler.add_plan(request.session, request.number, request.plan, owner)

        return self._complete_call(context, register)

    def ReleaseSession(self, request: messages.ReleaseSessionRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(context, lambda: self._handler.release(request.session))

    def CancelStep(self, request: messages.CancelStepRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(
            context, lambda: self._handler.cancel_step(request.session, request.step, request.reason)
        )

    def ResetTask(self, request: messages.ResetRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(context, lambda: self._handler.reset(list(request.containers)))

    def Shutdown(self, request: messages.ShutdownRequest, context: grpc.ServicerContext) -> messages.Done:
        claim = Claim(
            task=request.task, generation=request.generation, started=request.started, address=request.address
        )
        return self._complete_call(context, lambda: self._handler.shutdown(request.reason, claim, list(request.gone)))

    def Join(self, request: messages.JoinRequest, context: grpc.ServicerContext) -> messages.JoinReply:
        def join() -> messages.JoinReply:
            index, cluster = self._handler.join(request.job, request.address)
            return messages.JoinReply(index=index, cluster=cluster)

        return self._answer(context, join)


class _Master(_Answers):
    def __init__(self, me: PeerIdentity, on_trusted: Callable[[str], None], handler: MasterHandler) -> None:
        super().__init__(me, on_trusted)
        self._handler = handler

    def CreateSession(
        self, request: messages.CreateSessionRequest, context: grpc.ServicerContext
    ) -> messages.CreateSessionReply:
        return self._answer(
            context,
            lambda: messages.CreateSessionReply(session=self._handler.create_session(request.config, request.graph)),
        )

    def ExtendSession(self, request: messages.ExtendSessionRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(context, lambda: self._handler.extend_session(request.session, request.graph))

    def MakeCallable(
        self, request: messages.MakeCallableRequest, context: grpc.ServicerContext
    ) -> messages.MakeCallableReply:
        return self._answer(
            context,
            lambda: messages.MakeCallableReply(
                number=self._handler.make_callable(
                    request.session, list(request.feeds), list(request.fetches), list(request.targets), request.options
                )
            ),
        )

    def ReleaseCallable(self, request: messages.ReleaseCallableRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(context, lambda: self._handler.release_callable(request.session, request.number))

    def CloseSession(self, request: messages.CloseSessionRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(context, lambda: self._handler.close_session(request.session))

    def Reset(self, request: messages.ResetRequest, context: grpc.ServicerContext) -> messages.Done:
        return self._complete_call(context, lambda: self._handler.reset(list(request.containers)))

    def SessionDevices(
        self, request: messages.SessionDevicesRequest, context: grpc.ServicerContext
    ) -> messages.SessionDevicesReply:
        return self._answer(
            context, lambda: messages.SessionDevicesReply(devices=self._handler.session_devices(request.session))
        )


class _Channels(_Answers):
    def __init__(
        self,
        me: PeerIdentity,
        on_trusted: Callable[[str], None],
        on_channel: Callable[[Channel], None],
        options: TransportOptions,
    ) -> None:
        super().__init__(me, on_trusted)
        self._on_channel = on_channel
        self._options = options

    def Open(self, request_iterator: Iterator[object], context: grpc.ServicerContext) -> Iterator[object]:
        return self._answer(
            context,
            lambda: serve_channel(
                request_iterator, context, me=self._me, on_channel=self._on_channel, options=self._options
            ),
        )


def _enable_reflection(server: grpc.Server) -> None:
    """Enables gRPC reflection for tools such as grpcurl, if the extra ``reflection`` is installed."""
    try:
        from grpc_reflection.v1alpha import reflection  # noqa: PLC0415  an extra
    except ImportError:
        return
    reflection.enable_server_reflection((*_SERVICES, HEALTH_SERVICE, reflection.SERVICE_NAME), server)
