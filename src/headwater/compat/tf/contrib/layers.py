"""``tf.contrib.layers``: regularizers."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {
    "headwater.build.regularizers": """
        apply_regularization l1_l2_regularizer l1_regularizer l2_regularizer sum_regularizer""",
}

__getattr__, __dir__ = namespace(__name__, _NAMES)
