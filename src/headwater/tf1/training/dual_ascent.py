"""Helpers for programs that train by stochastic dual coordinate ascent: ``tf.train.sdca_*``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import math
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.control_flow import group

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def sdca_fprint(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns two int64 numbers for each text of a vector: the platform-independent FarmHash fingerprint."""
    return one("SdcaFprint", input, name=name)


def sdca_shrink_l1(weights: Sequence[Any], l1: float, l2: float, name: str | None = None) -> Operation:
    """Returns an operation that moves each of ``weights`` towards 0 by ``l1 / l2``, but not beyond 0.

    Args:
      weights: variables of float32.
      l1: symmetric l1 regularization.
      l2: symmetric l2 regularization, more than 0.
    """
    with name_scope(name, "SdcaShrinkL1") as scope:
        by = l1 / l2
        changes = [each.assign(math.sign(each) * math.maximum(math.abs(each) - by, 0.0)) for each in weights]
        return group(*changes, name=scope)
