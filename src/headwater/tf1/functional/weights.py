"""Weights of examples: checks that they broadcast to values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.checks import Assert
from headwater.tf1.functional.control_flow import no_op, with_dependencies

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def assert_broadcastable(weights: Any, values: TensorLike) -> Operation:
    """Returns an operation that fails unless ``weights`` is a scalar, or has values' rank and broadcasts to values.

    Static shapes are checked immediately.

    Raises:
      ValueError: the static shapes do not match.
    """
    with name_scope(None, "assert_broadcastable", [weights, values]):
        weights, values = convert_to_tensor(weights, name="weights"), convert_to_tensor(values, name="values")
        own, dims = weights.dims, values.dims
        if own == ():
            return no_op("static_scalar_check_success")
        refusal = f"weights can not be broadcast to values. values.shape={values.shape}. weights.shape={weights.shape}."
        if own is not None and dims is not None:
            if len(own) != len(dims):
                raise ValueError(f"{refusal} Their ranks differ.")
            if any(a not in (None, 1) and b is not None and a != b for a, b in zip(own, dims, strict=True)):
                raise ValueError(f"{refusal} Some sizes differ.")
            if all(a == 1 or None not in (a, b) for a, b in zip(own, dims, strict=True)):
                return no_op("static_dims_check_success")
        rank, other_rank = arrays.rank(weights), arrays.rank(values)
        both = math.minimum(rank, other_rank)
        sizes, other_sizes = arrays.shape(weights)[:both], arrays.shape(values)[:both]
        alike = reductions.reduce_all(math.logical_or(math.equal(sizes, 1), math.equal(sizes, other_sizes)))
        of_one_rank = math.logical_and(math.equal(rank, other_rank), alike)
        fits = math.logical_or(of_one_rank, math.equal(rank, 0))
        return Assert(fits, [refusal, arrays.shape(weights), arrays.shape(values)])


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """``weights`` in the shape of ``values``; see `assert_broadcastable`."""
    with name_scope(None, "broadcast_weights", [weights, values]) as scope:
        values = convert_to_tensor(values, name="values")
        weights = math.cast(convert_to_tensor(weights, name="weights"), values.dtype.base_dtype)
        if weights.dims is not None and weights.dims == values.dims and None not in weights.dims:
            return weights
        with_checks = with_dependencies([assert_broadcastable(weights, values)], weights)
        return math.multiply(with_checks, arrays.ones_like(values), name=scope)


def match_ranks(
    labels: Any, predictions: TensorLike, weights: TensorLike | None = None, expected_rank_diff: int = 0
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """Removes a last dimension of size 1 that one of the three arguments has in addition.

    Args:
      labels: the truth, or None.
      predictions: the predictions of the model.
      weights: the weights of the examples, or None; a scalar stays unchanged, and a missing dimension is added.
      expected_rank_diff: expected difference of the ranks of predictions and labels.
    """
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        labels = convert_to_tensor(labels)
        if labels.dims is not None and predictions.dims is not None:
            more = len(predictions.dims) - len(labels.dims)
            if more == expected_rank_diff + 1 and predictions.dims[-1] in (None, 1):
                predictions = arrays.squeeze(predictions, [-1])
            elif more == expected_rank_diff - 1 and labels.dims[-1] in (None, 1):
                labels = arrays.squeeze(labels, [-1])
    if weights is None:
        return labels, predictions, None
    weights = convert_to_tensor(weights)
    against = predictions if labels is None or not expected_rank_diff else labels
    if weights.dims is None or against.dims is None or weights.dims == ():
        return labels, predictions, weights
    more = len(weights.dims) - len(against.dims)
    if more == 1 and weights.dims[-1] in (None, 1):
        weights = arrays.squeeze(weights, [-1])
    elif more == -1 and not expected_rank_diff:
        weights = arrays.expand_dims(weights, -1)
    return labels, predictions, weights
