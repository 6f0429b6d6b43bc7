"""``tf.estimator.inputs``: input functions of arrays and data frames."""

from __future__ import annotations

from headwater.compat.names import namespace

_NAMES = {"headwater.training.estimator.inputs": "numpy_input_fn pandas_input_fn"}

__getattr__, __dir__ = namespace(__name__, _NAMES)
