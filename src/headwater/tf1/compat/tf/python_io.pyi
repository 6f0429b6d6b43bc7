# Written by tools/stubs.py from headwater.tf1.compat.tables: change those, then `make stubs`.
# The messages that TensorBoard carries have no types.
# pyright: reportAttributeAccessIssue=false, reportUnknownVariableType=false
from headwater.data.io.tfrecord import TFRecordCompressionType as TFRecordCompressionType
from headwater.data.io.tfrecord import TFRecordOptions as TFRecordOptions
from headwater.data.io.tfrecord import TFRecordWriter as TFRecordWriter
from headwater.data.io.tfrecord import tf_record_iterator as tf_record_iterator

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "tf_record_iterator",
]
