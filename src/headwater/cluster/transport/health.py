"""The gRPC health service of a task: for probes, and for tasks that have to detect its end immediately."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_Reply = health_pb2.HealthCheckResponse


class Health(health_pb2_grpc.HealthServicer):
    """Reports that services are serving, until the server stops and thereby ends the streams of watchers.

    This class replaces the servicer of the package grpcio-health-checking, which can deadlock: that servicer holds a
    lock while it answers a new watcher. When another watcher disconnects, gRPC's only thread that completes sends waits
    for the same lock. Then the answer never completes, and the server answers no further call.

    Args:
      services: the names of the services.
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
        """Answers once. The stream stays open without occupying a thread."""
        del context
        assert send_response_callback is not None, "gRPC does not know that this does not block"
        known = request.service in self._services
        send_response_callback(_Reply(status=_Reply.SERVING if known else _Reply.SERVICE_UNKNOWN))

    cast(Any, Watch).experimental_non_blocking = True
