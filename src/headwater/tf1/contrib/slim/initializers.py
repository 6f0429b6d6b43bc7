"""Initial values by the number of a layer's inputs and outputs, as ``tf.contrib.layers`` scales them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.dtypes import as_dtype
from headwater.graph.operation import Tensor
from headwater.tf1.functional.random import random_uniform, truncated_normal

if TYPE_CHECKING:
    from headwater.dtypes import DTypeLike
    from headwater.shapes import TensorShape
    from headwater.tf1.variables.partitioned import PartitionInfo


_CUT = 1.3
"""Factor that compensates the lower variance of a normal distribution truncated at two standard deviations."""


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: DTypeLike = dtypes.float32,
) -> Callable[..., Tensor]:
    """Returns an initializer with random values of variance ``factor`` / n (He et al., 2015, with the defaults).

    Args:
      mode: definition of n: the number of inputs (``FAN_IN``), of outputs (``FAN_OUT``), or their mean (``FAN_AVG``).
      uniform: uniform values, else a normal distribution truncated at two standard deviations.

    Raises:
      TypeError: ``dtype`` is not floating, or ``mode`` is unknown.
    """
    if not as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

    def initializer(
        shape: TensorShape, dtype: DTypeLike = dtype, partition_info: PartitionInfo | None = None
    ) -> Tensor:
        if not as_dtype(dtype).is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        whole = [int(size) for size in (shape if partition_info is None else partition_info.full_shape)]
        inputs, outputs = _fans(whole)
        count = {"FAN_IN": inputs, "FAN_OUT": outputs, "FAN_AVG": (inputs + outputs) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / count)
            return random_uniform(shape, -limit, limit, dtype, seed=seed)
        return truncated_normal(shape, 0.0, math.sqrt(_CUT * factor / count), dtype, seed=seed)

    return initializer


def _fans(shape: list[int]) -> tuple[float, float]:
    inputs = float(shape[-2]) if len(shape) > 1 else float(shape[-1]) if shape else 1.0
    outputs = float(shape[-1]) if shape else 1.0
    field = math.prod(shape[:-2])
    return inputs * field, outputs * field


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: DTypeLike = dtypes.float32
) -> Callable[..., Tensor]:
    """Random values of variance 2 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)
