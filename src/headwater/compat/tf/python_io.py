"""``tf.python_io``: TFRecord files."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.io.tfrecord": "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
