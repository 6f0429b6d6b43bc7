"""``tf.contrib.slim.learning``: a training operation and a loop around it."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.training.train_ops": """
        add_gradients_summaries clip_gradient_norms create_train_op multiply_gradients""",
    "headwater.training.slim_training": "train train_step",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
