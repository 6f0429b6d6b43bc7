# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.tf1.compat.old_summaries import all_v2_summary_ops as all_v2_summary_ops
from headwater.tf1.compat.old_summaries import get_summary_description as get_summary_description
from headwater.tf1.functional.summary import audio as audio
from headwater.tf1.functional.summary import histogram as histogram
from headwater.tf1.functional.summary import image as image
from headwater.tf1.functional.summary import merge as merge
from headwater.tf1.functional.summary import merge_all as merge_all
from headwater.tf1.functional.summary import scalar as scalar
from headwater.tf1.functional.summary import tensor_summary as tensor_summary
from headwater.tf1.functional.summary import text as text
from headwater.tf1.training.file_writer import FileWriter as FileWriter
from headwater.tf1.training.file_writer import FileWriterCache as FileWriterCache
from tensorboard.compat.proto.event_pb2 import Event as Event
from tensorboard.compat.proto.event_pb2 import SessionLog as SessionLog
from tensorboard.compat.proto.event_pb2 import TaggedRunMetadata as TaggedRunMetadata
from tensorboard.compat.proto.summary_pb2 import Summary as Summary
from tensorboard.compat.proto.summary_pb2 import SummaryDescription as SummaryDescription
from tensorboard.compat.proto.summary_pb2 import SummaryMetadata as SummaryMetadata

__all__ = [
    "Event",
    "FileWriter",
    "FileWriterCache",
    "SessionLog",
    "Summary",
    "SummaryDescription",
    "SummaryMetadata",
    "TaggedRunMetadata",
    "all_v2_summary_ops",
    "audio",
    "get_summary_description",
    "histogram",
    "image",
    "merge",
    "merge_all",
    "scalar",
    "tensor_summary",
    "text",
]
