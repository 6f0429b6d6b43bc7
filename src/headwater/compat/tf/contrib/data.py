"""``tf.contrib.data``: input pipelines under their first names."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.input.dataset": "get_single_element",
    "headwater.input.dataset_groups": "bucket_by_sequence_length group_by_window",
    "headwater.input.iterators": "Iterator",
    "headwater.input.old_dataset": "Dataset FixedLengthRecordDataset TFRecordDataset TextLineDataset",
    "headwater.data.experimental": """
        batch_and_drop_remainder choose_from_datasets enumerate_dataset ignore_errors map_and_batch
        padded_batch_and_drop_remainder parallel_interleave prefetch_to_device sample_from_datasets scan
        shuffle_and_repeat sloppy_interleave=parallel_interleave unbatch""",
    "headwater.data.prefetch": "AUTOTUNE",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
