"""The gRPC services of ``control.proto``, from its descriptor: calls for a client, and handlers for a server."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from headwater.cluster.transport import control_pb2

_Method = tuple[str, str, str, type[Message], type[Message]]


def path_of(service: str, method: str) -> str:
    """Returns the path of a method in gRPC's requests."""
    return f"/headwater.{service}/{method}"


def calls(channel: grpc.Channel) -> Mapping[str, Any]:
    """Returns gRPC's callable of each method, by its path."""
    return {
        path: getattr(channel, kind)(
            path, request_serializer=request.SerializeToString, response_deserializer=reply.FromString
        )
        for service in control_pb2.DESCRIPTOR.services_by_name
        for _, path, kind, request, reply in _methods(service)
    }


def add_service(server: grpc.Server, service: str, servicer: object) -> None:
    """Adds a service, such as ``Task``. The methods of ``servicer`` with the same names answer its calls."""
    handlers = {
        name: getattr(grpc, f"{kind}_rpc_method_handler")(
            getattr(servicer, name),
            request_deserializer=request.FromString,
            response_serializer=reply.SerializeToString,
        )
        for name, _, kind, request, reply in _methods(service)
    }
    full_name = control_pb2.DESCRIPTOR.services_by_name[service].full_name
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(full_name, handlers),))


@functools.cache
def _methods(service: str) -> Sequence[_Method]:
    """Returns name, path, kind of call, and the classes of request and reply of each method."""
    methods: list[_Method] = []
    for method in control_pb2.DESCRIPTOR.services_by_name[service].methods:
        kind = "_".join(
            "stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming)
        )
        request, reply = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        methods.append((method.name, path_of(service, method.name), kind, request, reply))
    return methods
