"""Decays of the weight of signs in `AddSignOptimizer` and `PowerSignOptimizer`, as functions of the global step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headwater.dtypes import float32
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.indexing import where

SignDecay = Callable[[Any], Any]


def _completed(global_step: object, decay_steps: int, decay: str) -> Any:
    if global_step is None:
        raise ValueError(f"global_step is required for {decay}_decay.")
    return ops.cast(ops.minimum(global_step, decay_steps), float32)


def _cosine(fraction: Any, zero_from: Any) -> Any:
    decayed = 0.5 * (1.0 + ops.cos(convert_to_tensor(math.pi) * fraction))
    return decayed if zero_from is None else where(zero_from, convert_to_tensor(0.0), decayed)


def get_linear_decay_fn(decay_steps: int) -> SignDecay:
    """Returns a function of the global step t: 1 − t/n, and 0 after ``decay_steps`` n."""

    def linear_decay_fn(global_step: object) -> Any:
        return ops.maximum(0.0, (decay_steps - _completed(global_step, decay_steps, "linear")) / float(decay_steps))

    return linear_decay_fn


def get_cosine_decay_fn(decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None) -> SignDecay:
    """Returns a function of the global step t: (1 + cos(2π·p·t/n)) / 2 with ``num_periods`` p.

    Args:
      decay_steps: n; t stays at n after it.
      zero_after: number of periods after which the value is 0.
    """

    def cosine_decay_fn(global_step: object) -> Any:
        fraction = 2.0 * num_periods * (_completed(global_step, decay_steps, "cosine") / float(decay_steps))
        return _cosine(fraction, None if zero_after is None else ops.greater_equal(fraction, 2.0 * zero_after))

    return cosine_decay_fn


def get_restart_decay_fn(decay_steps: int, num_periods: int = 1, zero_after: float | None = None) -> SignDecay:
    """Returns a function of the global step t: (1 + cos(π·f)) / 2, where f is the fraction of the current period.

    Args:
      decay_steps: number of steps of all ``num_periods`` periods.
      zero_after: number of periods after which the value is 0.
    """

    def restart_decay_fn(global_step: object) -> Any:
        passed = num_periods * _completed(global_step, decay_steps, "cosine")
        zero_from = None if zero_after is None else ops.greater_equal(passed / float(decay_steps), float(zero_after))
        return _cosine(ops.floormod(passed, float(decay_steps)) / float(decay_steps), zero_from)

    return restart_decay_fn
