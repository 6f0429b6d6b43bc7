"""The ``ServerDef`` message."""

from __future__ import annotations

from tensorboard.compat.proto import config_pb2

from headwater.cluster.names import TaskName
from headwater.cluster.server_def import ServerDef, make_server_def
from headwater.cluster.spec import ClusterSpec


def test_the_bytes_are_those_of_tensorflow() -> None:
    # What TensorFlow 1.15 writes for such a message.
    written = b"\n\x0e\n\x0c\n\x01a\x12\x07\x08\x00\x12\x03h:1\x12\x01a\x18\x01*\x04grpc"
    message = make_server_def(ClusterSpec({"a": ["h:1"]}), TaskName("a", 1))
    assert ServerDef.FromString(written) == message
    assert message.SerializeToString() == written


def test_round_trip() -> None:
    cluster = ClusterSpec({"ps": ["a:1"], "worker": {3: "b:1"}})
    config = config_pb2.ConfigProto(log_device_placement=True)
    message = make_server_def(cluster, TaskName("worker", 3), protocol="headwater", config=config)
    read = ServerDef.FromString(message.SerializeToString())
    assert read == message
    assert ClusterSpec(read.cluster) == cluster
    assert (read.job_name, read.task_index, read.protocol) == ("worker", 3, "headwater")
    assert read.default_session_config.log_device_placement
