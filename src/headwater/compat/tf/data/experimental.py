"""``tf.data.experimental``."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.input.dataset": "cardinality get_single_element",
    "headwater.input.dataset_groups": "bucket_by_sequence_length group_by_window",
    "headwater.data.experimental": """
        INFINITE_CARDINALITY UNKNOWN_CARDINALITY choose_from_datasets copy_to_device enumerate_dataset ignore_errors
        map_and_batch parallel_interleave prefetch_to_device sample_from_datasets scan shuffle_and_repeat take_while
        unbatch""",
    "headwater.data.options": """
        AutoShardPolicy DistributeOptions ExternalStatePolicy OptimizationOptions ThreadingOptions""",
    "headwater.data.prefetch": "AUTOTUNE",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
