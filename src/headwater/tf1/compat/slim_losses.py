"""``tf.contrib.losses`` and ``tf.contrib.slim.losses``: losses with the predictions first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.graph.collections import GraphKeys
from headwater.graph.operation import Tensor
from headwater.tf1.functional import metric_learning, weighted_losses
from headwater.tf1.functional.weighted_losses import (
    add_loss,
    compute_weighted_loss,
    get_losses,
    get_regularization_losses,
    get_total_loss,
)

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


__all__ = [
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "metric_learning",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]


def absolute_difference(
    predictions: Tensor, labels: object = None, weights: TensorLike = 1.0, scope: str | None = None
) -> Tensor:
    """``tf.losses.absolute_difference``."""
    return weighted_losses.absolute_difference(labels, predictions, weights, scope)


def cosine_distance(
    predictions: Tensor,
    labels: Tensor | None = None,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> Tensor:
    """``tf.losses.cosine_distance``."""
    return weighted_losses.cosine_distance(labels, predictions, axis, weights, scope, dim=dim)


def hinge_loss(logits: Tensor, labels: Tensor | None = None, scope: str | None = None) -> Tensor:
    """``tf.losses.hinge_loss`` of each element."""
    return weighted_losses.hinge_loss(labels, logits, 1.0, scope, None, weighted_losses.Reduction.NONE)


def log_loss(
    predictions: Tensor,
    labels: Tensor | None = None,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
) -> Tensor:
    """``tf.losses.log_loss``."""
    return weighted_losses.log_loss(labels, predictions, weights, epsilon, scope)


def mean_pairwise_squared_error(
    predictions: Tensor, labels: Tensor | None = None, weights: TensorLike = 1.0, scope: str | None = None
) -> Tensor:
    """Like ``tf.losses.mean_pairwise_squared_error``, but also counts the pair of each element with itself."""
    return weighted_losses.pairwise_squares(labels, predictions, weights, scope, GraphKeys.LOSSES, less=0)


def mean_squared_error(
    predictions: Tensor, labels: Tensor | None = None, weights: TensorLike = 1.0, scope: str | None = None
) -> Tensor:
    """``tf.losses.mean_squared_error``."""
    return weighted_losses.mean_squared_error(labels, predictions, weights, scope)


def sigmoid_cross_entropy(
    logits: TensorLike,
    multi_class_labels: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> Tensor:
    """``tf.losses.sigmoid_cross_entropy``."""
    return weighted_losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


def softmax_cross_entropy(
    logits: TensorLike,
    onehot_labels: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
) -> Tensor:
    """``tf.losses.softmax_cross_entropy``."""
    return weighted_losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(
    logits: TensorLike, labels: TensorLike, weights: TensorLike = 1.0, scope: str | None = None
) -> Tensor:
    """``tf.losses.sparse_softmax_cross_entropy``."""
    return weighted_losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)
