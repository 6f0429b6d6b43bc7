"""``tf.contrib.training``: where variables go."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.device_setter": "GreedyLoadBalancingStrategy RandomStrategy byte_size_load_fn",
    "headwater.training.training_util": "get_or_create_global_step",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
