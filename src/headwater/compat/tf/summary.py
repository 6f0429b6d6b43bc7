"""``tf.summary``: what TensorBoard shows."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.functional.summary": "audio histogram image merge merge_all scalar tensor_summary text",
    "headwater.training.file_writer": "FileWriter FileWriterCache",
    "tensorboard.compat.proto.event_pb2": "Event SessionLog TaggedRunMetadata",
    "tensorboard.compat.proto.summary_pb2": "Summary SummaryDescription SummaryMetadata",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
