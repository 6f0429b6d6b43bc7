"""Regularizers: losses that penalise large weights of a model."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import math, nn, reductions

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


Regularizer = Callable[[Any], "Tensor | None"]


def l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """Returns a function from weights to ``scale`` · Σ|w|; None if ``scale`` is 0.

    Raises:
      ValueError: ``scale`` is negative or an integer.
    """
    return _scaled(scale, scope, "l1_regularizer", lambda weights: reductions.reduce_sum(math.abs(weights)))


def l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """Returns a function from weights to ``scale`` · Σw² / 2; None if ``scale`` is 0.

    Raises:
      ValueError: ``scale`` is negative or an integer.
    """
    return _scaled(scale, scope, "l2_regularizer", nn.l2_loss)


def _scaled(scale: float, scope: str | None, default: str, size: Callable[[Tensor], Tensor]) -> Regularizer:
    if isinstance(scale, numbers.Integral):
        raise ValueError(f"scale cannot be an integer: {scale}")
    if scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}")
    if scale == 0.0:
        return lambda weights: None

    def regularizer(weights: TensorLike) -> Tensor:
        with name_scope(scope, default, [weights]) as name:
            tensor = convert_to_tensor(weights)
            factor = convert_to_tensor(scale, tensor.dtype.base_dtype, name="scale")
            return math.multiply(factor, size(tensor), name=name)

    return regularizer


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Regularizer:
    """The sum of `l1_regularizer` and `l2_regularizer`."""
    scope = scope or "l1_l2_regularizer"
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Sequence[Regularizer | None], scope: str | None = None) -> Regularizer:
    """Returns the sum of several regularizers; entries that are None are ignored."""
    used = [regularizer for regularizer in regularizer_list if regularizer is not None]

    def regularizer(weights: TensorLike) -> Tensor | None:
        with name_scope(scope, "sum_regularizer", [weights]) as name:
            parts = [part for part in (item(weights) for item in used) if part is not None]
            return math.add_n(parts, name=name) if parts else None

    return regularizer


def apply_regularization(regularizer: Regularizer, weights_list: Sequence[TensorLike] | None = None) -> Tensor:
    """The sum of ``regularizer`` over weights, which also joins the collection ``REGULARIZATION_LOSSES``.

    Args:
      weights_list: the collection ``WEIGHTS`` if None.

    Raises:
      ValueError: there are no weights.
    """
    graph = get_default_graph()
    weights = graph.get_collection(GraphKeys.WEIGHTS) if weights_list is None else list(weights_list)
    if not weights:
        raise ValueError("No weights to regularize.")
    with name_scope(None, "get_regularization_penalty", weights) as name:
        parts = [part for part in (regularizer(item) for item in weights) if part is not None]
        penalty = math.add_n(parts, name=name) if parts else convert_to_tensor(0.0)
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, penalty)
        return penalty
