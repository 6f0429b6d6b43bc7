"""``ServerDef``: the message with a server's cluster and its task.

TensorBoard's package has the messages of the fields, but not ``ServerDef`` itself. ``ServerDef`` is built here from
these messages, with TensorFlow's field numbers, so that the bytes are interchangeable with TensorFlow's.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from headwater.cluster.names import TaskName
from headwater.cluster.spec import ClusterSpec
from headwater.tensorboard_protos import cluster_pb2, config_pb2


def _message_class() -> type[object]:
    parts = [cluster_pb2.DESCRIPTOR, config_pb2.DESCRIPTOR]
    field = descriptor_pb2.FieldDescriptorProto
    package = parts[0].package
    file = descriptor_pb2.FileDescriptorProto(
        name="headwater/cluster/server_def.proto",
        package="headwater.cluster",
        syntax="proto3",
        dependency=[part.name for part in parts],
    )
    message = file.message_type.add(name="ServerDef")
    for name, number, kind, type_name in (
        ("cluster", 1, field.TYPE_MESSAGE, f".{package}.ClusterDef"),
        ("job_name", 2, field.TYPE_STRING, None),
        ("task_index", 3, field.TYPE_INT32, None),
        ("default_session_config", 4, field.TYPE_MESSAGE, f".{package}.ConfigProto"),
        ("protocol", 5, field.TYPE_STRING, None),
    ):
        message.field.add(name=name, number=number, type=kind, type_name=type_name, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.Default()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("headwater.cluster.ServerDef"))


#: The message class: fields ``cluster``, ``job_name``, ``task_index``, ``default_session_config`` and ``protocol``.
ServerDef: type[Any] = _message_class()


def make_server_def(cluster: ClusterSpec, task: TaskName, *, protocol: str = "grpc", config: object = None) -> Any:
    """Returns a ``ServerDef`` message.

    Args:
      cluster: all tasks.
      task: the server's task.
      protocol: the protocol for tensors, ``"grpc"`` or another name that the server knows.
      config: a ``ConfigProto`` that sessions on the server start from, or None.
    """
    message = ServerDef(cluster=cluster.as_cluster_def(), job_name=task.job, task_index=task.index, protocol=protocol)
    if config is not None:
        message.default_session_config.CopyFrom(config)
    return message
