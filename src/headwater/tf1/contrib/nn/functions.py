"""Dropout for self-normalising networks, a scaled softplus, and losses with other arguments than in ``tf.nn``."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.constants import constant_value
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.functional import arrays, losses, math, nn
from headwater.tf1.functional.apply import one
from headwater.tf1.functional.gradients import custom_gradient
from headwater.tf1.functional.indexing import gather
from headwater.tf1.functional.random import random_uniform
from headwater.tf1.functional.reductions import reduce_sum
from headwater.tf1.functional.searching import sort
from headwater.tf1.variables.sampled_losses import sampled_logits

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike

# The limit of SELU for x → -∞: -λα of Klambauer et al., 2017.
_LOWEST = -1.7580993408473766


def alpha_dropout(
    x: TensorLike,
    keep_prob: TensorLike,
    noise_shape: TensorLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 (Klambauer et al., Self-Normalizing Neural Networks, 2017).

    Args:
      x: floating.
      keep_prob: the probability that an element is kept. Other elements are set to SELU's lowest value before all are
        scaled and shifted.
      noise_shape: shape of the random choices, which is broadcast; the shape of ``x`` by default.

    Raises:
      ValueError: ``keep_prob`` is a number outside (0, 1].
    """
    with name_scope(name, "alpha_dropout", [x]):
        values = convert_to_tensor(x, name="x")
        if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
            raise ValueError(f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob}")
        kind = values.dtype.base_dtype
        keep = convert_to_tensor(keep_prob, kind, name="keep_prob")
        keep.shape.assert_has_rank(0)
        if constant_value(keep) == 1:
            return values
        drawn = random_uniform(arrays.shape(values) if noise_shape is None else noise_shape, seed=seed, dtype=kind)
        kept = math.cast(math.greater_equal(drawn, 1 - keep), kind)
        scale = math.pow(keep + keep * (1 - keep) * _LOWEST**2, -0.5)
        return scale * (values * kept + _LOWEST * (1 - kept)) - scale * _LOWEST * (1 - keep)


def scaled_softplus(
    x: TensorLike, alpha: TensorLike, clip: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """α·log(1 + exp(x / α)), which approaches relu for α → 0; at most ``clip``."""
    with name_scope(name, "scaled_softplus", [x, alpha] if clip is None else [x, alpha, clip]):
        values = convert_to_tensor(x, name="x")
        kind = values.dtype.base_dtype
        width = convert_to_tensor(alpha, kind, name="alpha")
        if clip is None:
            return width * nn.softplus(values / width)
        return _clipped(width * nn.softplus(values / width), convert_to_tensor(clip, kind, name="clip"))


@custom_gradient
def _clipped(value: Tensor, limit: Tensor) -> Any:
    """min(value, limit); of equal elements, the limit has the gradient."""

    def gradient(grad: Tensor) -> list[Tensor]:
        below = math.cast(math.less(value, limit), grad.dtype)
        return [_summed_to(grad * below, value), _summed_to(grad * (1 - below), limit)]

    return math.minimum(value, limit), gradient


def _summed_to(grad: Tensor, part: Tensor) -> Tensor:
    """The sum of a gradient over the dimensions along which ``part`` was broadcast."""
    axes = one("BroadcastGradientArgs", arrays.shape(part), arrays.shape(grad))
    return arrays.reshape(reduce_sum(grad, axes), arrays.shape(part))


def nth_element(input: TensorLike, n: TensorLike, reverse: bool = False, name: str | None = None) -> Tensor:
    """The element at position ``n`` of each sorted row along the last axis; in descending order if ``reverse``."""
    with name_scope(name, "NthElement", [input, n]):
        values, position = convert_to_tensor(input), constant_value(convert_to_tensor(n))
        if position is not None:
            last = values.dims[-1] if values.dims else None
            if position < 0 or (last is not None and last <= position):
                raise ValueError(
                    f"Input must have last dimension > n >= 0, but n is {position} and the dimension {last}"
                )
        return _nth(values, position=n, reverse=reverse)


@custom_gradient
def _nth(values: Tensor, *, position: TensorLike, reverse: bool) -> Any:
    """Returns the element at a position of each sorted row; its gradient is divided among equal elements."""
    chosen = gather(sort(values, direction="DESCENDING" if reverse else "ASCENDING"), position, axis=-1)

    def gradient(grad: Tensor) -> Tensor:
        equal = math.cast(math.equal(arrays.expand_dims(chosen, -1), values), grad.dtype)
        return equal / reduce_sum(equal, -1, keepdims=True) * arrays.expand_dims(grad, -1)

    return chosen, gradient


def sampled_sparse_softmax_loss(
    weights: TensorLike,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    sampled_values: TensorLike | None = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_sparse_softmax_loss",
) -> Tensor:
    """`tf.nn.sampled_softmax_loss` of one true class for each row; see there.

    Args:
      labels: int64 [batch, 1].
    """
    with name_scope(name, "sampled_sparse_softmax_loss", [biases, inputs, labels]):
        logits, _ = sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            1,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
        )
        first = arrays.zeros(arrays.shape(logits)[:1], dtypes.int64)
        return losses.sparse_softmax_cross_entropy_with_logits(labels=first, logits=logits)


def deprecated_flipped_sigmoid_cross_entropy_with_logits(
    logits: TensorLike, targets: TensorLike, name: str | None = None
) -> Tensor:
    """`tf.nn.sigmoid_cross_entropy_with_logits` with the logits first."""
    return losses.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


def deprecated_flipped_softmax_cross_entropy_with_logits(
    logits: TensorLike, labels: TensorLike, dim: int = -1, name: str | None = None
) -> Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits` with the logits first."""
    return losses.softmax_cross_entropy_with_logits(labels=labels, logits=logits, dim=dim, name=name)


def deprecated_flipped_sparse_softmax_cross_entropy_with_logits(
    logits: TensorLike, labels: TensorLike, name: str | None = None
) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits` with the logits first."""
    return losses.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name=name)
