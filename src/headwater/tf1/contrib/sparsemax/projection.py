"""Sparsemax (Martins and Astudillo, 2016): a softmax that sets small probabilities to 0, and its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.functional import arrays, math, nn, reductions
from headwater.tf1.functional.indexing import where

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike


def sparsemax(logits: TensorLike, name: str | None = None) -> Tensor:
    """Returns the point of the simplex that is closest to each row z: max(z - τ, 0), with τ such that the sum is 1.

    Args:
      logits: floating [batch, classes]. Rows that contain NaN or +∞, or only -∞, result in NaN.
    """
    with name_scope(name, "sparsemax", [logits]):
        z = convert_to_tensor(logits, name="logits")
        kind = z.dtype.base_dtype
        classes = arrays.shape(z)[1]
        descending = nn.top_k(z, k=classes)[0]
        sums = reductions.cumsum(descending, axis=1)
        ranks = math.cast(arrays.range(1, classes + 1), kind)
        # The largest k elements are positive if 1 + k·zₖ exceeds their sum, which holds for the first ranks.
        inside = math.greater(1 + ranks * descending, sums)
        count = reductions.reduce_sum(math.cast(inside, dtypes.int32), axis=1, keepdims=True)
        total = reductions.reduce_sum(where(inside, descending, arrays.zeros_like(z)), axis=1, keepdims=True)
        points = math.maximum(math.cast(0, kind), z - (total - 1) / math.cast(math.maximum(count, 1), kind))
        invalid = math.logical_or(math.equal(count, 0), math.is_nan(sums[:, -1:]))
        nan = arrays.fill(arrays.shape(z), math.cast(float("nan"), kind))
        return where(math.logical_and(invalid, arrays.ones_like(z, dtypes.bool_)), nan, points)


def sparsemax_loss(logits: TensorLike, sparsemax: TensorLike, labels: TensorLike, name: str | None = None) -> Tensor:
    """Returns for each row the loss whose gradient by the logits is ``sparsemax - labels``.

    Args:
      logits: floating [batch, classes].
      sparsemax: the result of `sparsemax` for these logits.
      labels: rows of probabilities, in the same shape and type.
    """
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        z = convert_to_tensor(logits, name="logits")
        p = convert_to_tensor(sparsemax, name="sparsemax")
        q = convert_to_tensor(labels, name="labels")
        # Where a probability is 0, the logit may be -∞, and 0·∞ would be NaN.
        positive = math.logical_or(math.greater(p, 0), math.is_nan(p))
        chosen = where(positive, p * (z - 0.5 * p), arrays.zeros_like(p))
        unlabelled = math.logical_and(math.equal(q, 0), math.is_inf(z))
        wanted = where(unlabelled, arrays.zeros_like(z), q * (0.5 * q - z))
        return reductions.reduce_sum(chosen + wanted, axis=1)
