"""``tf.contrib.framework``: the global step, and names that moved to ``tf``."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.training_util": """
        assert_global_step create_global_step get_global_step get_or_create_global_step""",
    "headwater.build.default_graph": "is_tensor",
    "headwater.training.checkpoint_reader": "list_variables load_checkpoint load_variable",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
