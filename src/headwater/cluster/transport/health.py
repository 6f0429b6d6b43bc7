"""The health of a task, as gRPC defines it: for probes, and for tasks that hear so at once when another one ends."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_Reply = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):
    """Says that services serve. They do as long as anything is answered; who watches sees the stream end then.

    The servicer that comes with gRPC answers a new watcher under a lock. The one thread that takes note of the end of
    sending waits for this lock when another watcher leaves; then neither goes on, and no call is answered any more.

    Args:
      services: their names.
    """

    def __init__(self, services: Collection[str]) -> None:
        self._services = {"", *services}

    def Check(self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext) -> _Reply:
        if request.service in self._services:
            return _Reply(status=_Reply.SERVING)
        context.set_code(grpc.StatusCode.NOT_FOUND)
        return _Reply()

    def Watch(
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.ServicerContext,
        send_response_callback: Callable[[_Reply], None] | None = None,
    ) -> None:
        """Answers once. The stream stays open, and keeps no thread."""
        del context
        assert send_response_callback is not None, "gRPC does not know that this does not block"
        known = request.service in self._services
        send_response_callback(_Reply(status=_Reply.SERVING if known else _Reply.SERVICE_UNKNOWN))

    cast(Any, Watch).experimental_non_blocking = True
