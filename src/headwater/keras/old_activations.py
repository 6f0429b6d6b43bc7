"""Activations of TensorFlow 1.15 that Keras 3 defines differently."""

from __future__ import annotations

from typing import Any, cast

import keras

from headwater.keras.types import Value

_keras: Any = keras


@_keras.saving.register_keras_serializable("headwater")
def hard_sigmoid(x: Value) -> Value:
    """Returns ``0.2 * x + 0.5``, limited to 0 to 1. Keras 3's own ``hard_sigmoid`` has the slope 1/6."""
    return _keras.ops.clip(cast("Value", 0.2 * x) + 0.5, 0.0, 1.0)
