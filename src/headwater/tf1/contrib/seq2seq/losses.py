"""`sequence_loss`: weighted cross entropy of sequences of logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.losses import sparse_softmax_cross_entropy_with_logits

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def sequence_loss(
    logits: TensorLike,
    targets: TensorLike,
    weights: TensorLike,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Tensor] | None = None,
    name: str | None = None,
) -> Tensor:
    """Cross entropy of sequences, averaged by weight over time, the batch or both.

    Args:
      logits: [batch, time, classes].
      targets: the classes, [batch, time].
      weights: the weights of each step, [batch, time]; zeros for padding.
      average_across_timesteps, average_across_batch: divide by the sum of the weights along time and batch.
      sum_over_timesteps, sum_over_batch: divide by the number of weights that are not zero instead.
      softmax_loss_function: ``f(labels=, logits=)``; sparse softmax cross entropy if None.

    Returns:
      A scalar, or [time], [batch] or [batch, time] for the dimensions that are not reduced.

    Raises:
      ValueError: a rank differs, or a dimension is both averaged and summed.
    """
    logits, targets, weights = (convert_to_tensor(each) for each in (logits, targets, weights))
    for word, tensor, rank in (("Logits", logits, 3), ("Targets", targets, 2), ("Weights", weights, 2)):
        if len(tensor.shape) != rank:
            last = " x logits" if rank == 3 else ""
            raise ValueError(f"{word} must be a [batch_size x sequence_length{last}] tensor")
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError("average_across_timesteps and sum_over_timesteps cannot be set to True at same time.")
    if average_across_batch and sum_over_batch:
        raise ValueError("average_across_batch and sum_over_batch cannot be set to True at same time.")
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        flat = arrays.reshape(logits, [-1, arrays.shape(logits)[2]])
        labels = arrays.reshape(targets, [-1])
        loss_of: Any = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        losses: Tensor = loss_of(labels=labels, logits=flat) * arrays.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return math.div_no_nan(reductions.reduce_sum(losses), reductions.reduce_sum(weights))
        if sum_over_timesteps and sum_over_batch:
            return math.div_no_nan(reductions.reduce_sum(losses), _count(weights, None, losses))
        losses = arrays.reshape(losses, arrays.shape(logits)[:2])
        losses.set_shape(logits.shape[:2])
        if average_across_timesteps or average_across_batch:
            axis = [0] if average_across_batch else [1]
            return math.div_no_nan(reductions.reduce_sum(losses, axis), reductions.reduce_sum(weights, axis))
        if sum_over_timesteps or sum_over_batch:
            axis = [0] if sum_over_batch else [1]
            return math.div_no_nan(reductions.reduce_sum(losses, axis), _count(weights, axis, losses))
        return losses


def _count(weights: Tensor, axis: list[int] | None, like: Tensor) -> Tensor:
    return math.cast(reductions.count_nonzero(weights, axis=axis), like.dtype.base_dtype)
