"""``tf.distribute.experimental.partitioners``: which variables to split among parameter servers."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.parameters.layout": """
        FixedShardsPartitioner MaxSizePartitioner MinSizePartitioner Partitioner""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
