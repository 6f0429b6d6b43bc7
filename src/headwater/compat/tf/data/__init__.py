"""``tf.data``: input pipelines."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.input.dataset": """
        Dataset FixedLengthRecordDataset TFRecordDataset TextLineDataset get_output_classes get_output_shapes
        get_output_types make_initializable_iterator make_one_shot_iterator""",
    "headwater.input.iterators": "Iterator",
    "headwater.data.node": "INFINITE_CARDINALITY=INFINITE UNKNOWN_CARDINALITY=UNKNOWN",
    "headwater.data.options": "Options",
    "headwater.data.prefetch": "AUTOTUNE",
}

__getattr__, __dir__ = namespace(__name__, _NAMES, {"experimental": "headwater.compat.tf.data.experimental"})
