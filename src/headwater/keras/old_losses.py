"""Losses and metrics of TensorFlow 1.15's ``tf.keras`` that Keras 3 has removed, or has with another sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import keras
import numpy as np

from headwater.keras.types import Value

_keras: Any = keras
ops: Any = keras.ops


class Reduction:
    """The values of ``reduction`` of losses, as ``tf.keras.losses.Reduction`` names them."""

    AUTO: Final = "sum_over_batch_size"
    NONE: Final = "none"
    SUM: Final = "sum"
    SUM_OVER_BATCH_SIZE: Final = "sum_over_batch_size"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Returns all values."""
        return cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError for any other value."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key: {key}. Expected keys are {cls.all()}")


def logcosh(y_true: Value, y_pred: Value) -> Value:
    """The mean over the last dimension of ``log(cosh(y_pred - y_true))``."""
    return _keras.losses.log_cosh(y_true, y_pred)


def cosine_proximity(y_true: Value, y_pred: Value, axis: int = -1) -> Value:
    """The cosine of the angle between two vectors along a dimension."""
    y_true, y_pred = (ops.normalize(ops.convert_to_tensor(y, "float32"), axis=axis) for y in (y_true, y_pred))
    return ops.sum(y_true * y_pred, axis=axis)


@_keras.saving.register_keras_serializable("headwater")
class CosineSimilarity(_keras.losses.Loss):
    """The mean cosine of the angle between two vectors along a dimension; Keras 3 has it with the other sign."""

    def __init__(
        self, axis: int = -1, reduction: str = Reduction.AUTO, name: str = "cosine_similarity", dtype: Any = None
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        self.axis = axis

    def call(self, y_true: Value, y_pred: Value) -> Value:
        """Returns the cosine for each example."""
        return cosine_proximity(y_true, y_pred, self.axis)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this loss."""
        return {**super().get_config(), "axis": self.axis}


class MeanRelativeError(_keras.metrics.Mean):
    """The mean of ``|y_true - y_pred| / normalizer``; 0 where the normaliser is 0.

    Args:
      normalizer: divisors, of a shape that broadcasts to the shape of predictions.
    """

    def __init__(self, normalizer: Value, name: str | None = None, dtype: str | None = None) -> None:
        super().__init__(name=name or "mean_relative_error", dtype=dtype)
        self.normalizer = ops.convert_to_tensor(normalizer, self.dtype)

    def update_state(self, y_true: Value, y_pred: Value, sample_weight: Value | None = None) -> None:
        """Adds a batch."""
        y_true, y_pred = (ops.convert_to_tensor(y, self.dtype) for y in (y_true, y_pred))
        errors = ops.divide_no_nan(ops.abs(y_true - y_pred), self.normalizer)
        super().update_state(errors, sample_weight=sample_weight)

    def get_config(self) -> dict[str, object]:
        """Returns the arguments that recreate this metric."""
        return {**super().get_config(), "normalizer": np.asarray(self.normalizer).tolist()}


class MeanTensor(_keras.metrics.Metric):
    """The mean of each element over all values, which must have the same shape."""

    def __init__(self, name: str = "mean_tensor", dtype: str | None = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self._shape: tuple[int, ...] | None = None

    def _build(self, shape: Sequence[int]) -> None:
        self._shape = tuple(shape)
        self.total = self.add_variable(self._shape, initializer="zeros", name="total")
        self.count = self.add_variable(self._shape, initializer="zeros", name="count")

    def update_state(self, values: Value, sample_weight: Value | None = None) -> None:
        """Adds values with their weights.

        Raises:
          ValueError: the values have a different shape than earlier values.
        """
        values = ops.cast(values, self.dtype)
        if self._shape is None:
            self._build(values.shape)
        elif self._shape != tuple(values.shape):
            raise ValueError(
                "MeanTensor input values must always have the same shape. "
                f"Expected shape (set during the first call): {self._shape}. Got: {tuple(values.shape)}"
            )
        weights = ops.ones_like(values)
        if sample_weight is not None:
            factors = ops.cast(sample_weight, self.dtype)
            while len(factors.shape) < len(values.shape):
                factors = ops.expand_dims(factors, -1)
            weights = weights * factors
        self.total.assign_add(values * weights)
        self.count.assign_add(weights)

    def result(self) -> Value:
        """The means.

        Raises:
          ValueError: there has been no value.
        """
        if self._shape is None:
            raise ValueError(
                "MeanTensor does not have any result yet. Please call the MeanTensor instance or use "
                "`.update_state(value)` before retrieving the result."
            )
        return ops.divide_no_nan(self.total, self.count)

    def reset_state(self) -> None:
        """Drops all values."""
        if self._shape is not None:
            for each in (self.total, self.count):
                each.assign(ops.zeros(self._shape))

    reset_states = reset_state
