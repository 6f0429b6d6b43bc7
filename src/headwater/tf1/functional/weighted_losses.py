"""Losses of models (TensorFlow 1.15's ``tf.losses``): per element, weighted, reduced to one number and collected.

Every loss takes these arguments:

  weights: a scalar, or a tensor of the same rank as the elements' losses that broadcasts to them.
  scope: name scope of its operations.
  loss_collection: collection to which the result is added; without it, the result is added to no collection.
  reduction: reduction of the elements' losses; see `Reduction`.
"""

from __future__ import annotations

from typing import Any

from headwater import dtypes
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.types import SparseLike, TensorLike
from headwater.tf1.functional import arrays, losses, math, nn, reductions
from headwater.tf1.functional.default_graph import control_dependencies, get_collection
from headwater.tf1.functional.reductions import either
from headwater.tf1.functional.weights import assert_broadcastable, broadcast_weights, match_ranks


class Reduction:
    """Reductions of the weighted losses of elements."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Returns all reductions."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises ValueError unless ``key`` is a reduction."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key {key}.")


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(
    losses: TensorLike,
    weights: TensorLike | None = 1.0,
    scope: str | None = None,
    loss_collection: object = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The losses of elements, weighted and reduced.

    Raises:
      ValueError: the shape of the weights does not match, or ``reduction`` is unknown.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]):
        check = assert_broadcastable(weights, losses)
        with control_dependencies([check]):
            losses = convert_to_tensor(losses)
            kind = losses.dtype.base_dtype
            weighted = _float(losses)
            weights = _float(weights)
            result = math.multiply(weighted, weights)
            if reduction != Reduction.NONE:
                result = reductions.reduce_sum(result)
                if reduction == Reduction.MEAN:
                    result = _mean(result, reductions.reduce_sum(arrays.ones_like(weighted) * weights))
                elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                    result = _mean(result, _num_present(weighted, weights))
                elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                    result = _mean(result, _float(arrays.size(weighted, name="elements")))
            result = math.cast(result, kind)
            add_loss(result, loss_collection)
            return result


def _float(value: Any) -> Tensor:
    return math.cast(convert_to_tensor(value), dtypes.float32)


def _mean(total: Tensor, count: Tensor) -> Tensor:
    return math.div_no_nan(total, count, name="value")


def _num_present(values: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """Returns the number of elements with a nonzero weight; per example with ``per_batch``."""
    with name_scope(None, "num_present", [values, weights]) as scope:
        present = arrays.zeros_like(weights)
        present = math.cast(math.not_equal(weights, present), dtypes.float32)
        present = broadcast_weights(present, values)
        if per_batch:
            return reductions.reduce_sum(present, arrays.range(1, arrays.rank(present)), keepdims=True, name=scope)
        return reductions.reduce_sum(present, name=scope)


def _both(first: object, second: object, names: tuple[str, str]) -> None:
    for value, name in zip((first, second), names, strict=True):
        if value is None:
            raise ValueError(f"{name} must not be None.")


def _floats(labels: TensorLike, predictions: Tensor) -> tuple[Tensor, Tensor]:
    """Converts both to float32, and checks that their static shapes are compatible."""
    _both(labels, predictions, ("labels", "predictions"))
    predictions, labels = _float(predictions), _float(labels)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """|predictions - labels|."""
    _both(labels, predictions, ("labels", "predictions"))
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        found = math.abs(math.subtract(predictions, labels))
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
    dim: int | None = None,
) -> Tensor:
    """1 - Σ predictions labels along ``axis``, for vectors of length 1.

    Raises:
      ValueError: there is no ``axis``.
    """
    axis = either(axis, dim, "axis", "dim")
    if axis is None:
        raise ValueError("You must specify 'axis'.")
    _both(labels, predictions, ("labels", "predictions"))
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        found = 1 - reductions.reduce_sum(math.multiply(predictions, labels), axis=(axis,), keepdims=True)
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: object = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """max(0, 1 - (2 labels - 1) logits) for labels of 0 and 1."""
    _both(labels, logits, ("labels", "logits"))
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as scope:
        labels, logits = _floats(labels, logits)
        ones = arrays.ones_like(labels)
        signs = math.subtract(2 * labels, ones)
        found = nn.relu(math.subtract(ones, math.multiply(signs, logits)))
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def huber_loss(
    labels: TensorLike,
    predictions: Tensor,
    weights: TensorLike = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: object = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Half the squared error up to ``delta``, and from there on linear: delta |error| - delta² / 2."""
    _both(labels, predictions, ("labels", "predictions"))
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        size = math.abs(math.subtract(predictions, labels))
        limit = convert_to_tensor(delta, size.dtype)
        quadratic = math.minimum(size, limit)
        linear = math.subtract(size, quadratic)
        half = convert_to_tensor(0.5, quadratic.dtype)
        found = math.add(half * quadratic * quadratic, limit * linear)
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: TensorLike = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """-labels log(predictions + epsilon) - (1 - labels) log(1 - predictions + epsilon)."""
    _both(labels, predictions, ("labels", "predictions"))
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        yes = math.multiply(labels, math.log(predictions + epsilon))
        found = -yes - math.multiply(1 - labels, math.log(1 - predictions + epsilon))
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: SparseLike,
    predictions: TensorLike,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = GraphKeys.LOSSES,
) -> Tensor:
    """The mean of the squares of ((aᵢ - aⱼ) - (bᵢ - bⱼ)) over pairs of elements of each example.

    Args:
      weights: a scalar, or one for each example.
    """
    return pairwise_squares(labels, predictions, weights, scope, loss_collection, less=1)


def pairwise_squares(
    labels: Any, predictions: Any, weights: TensorLike, scope: str | None, loss_collection: str, less: int
) -> Tensor:
    """`mean_pairwise_squared_error` over the n (n - ``less``) pairs of n elements; pairs of an element with itself
    count 0."""
    _both(labels, predictions, ("labels", "predictions"))
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        labels, predictions = _floats(labels, predictions)
        weights = _float(weights)
        with control_dependencies([assert_broadcastable(weights, labels)]):
            away = math.subtract(predictions, labels)
            axis = arrays.range(1, arrays.rank(away))
            squares = reductions.reduce_sum(math.square(away), axis, keepdims=True)
            count = _num_present(away, weights, per_batch=True)
            first = 2.0 * math.div_no_nan(squares, math.maximum(count - less, 0), name="value")
            total = reductions.reduce_sum(away, axis, keepdims=True)
            pairs = math.maximum(math.multiply(count, count - less), 0)
            second = 2.0 * math.div_no_nan(math.square(total), pairs, name="value")
            result = reductions.reduce_sum(math.multiply(first - second, weights))
            some = reductions.reduce_sum(count) > 0
            result = math.multiply(result, math.cast(some, result.dtype), name="value")
            add_loss(result, loss_collection)
            return result


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: TensorLike = 1.0,
    scope: str | None = None,
    loss_collection: str = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """(predictions - labels)²."""
    _both(labels, predictions, ("labels", "predictions"))
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        labels, predictions = _floats(labels, predictions)
        found = math.squared_difference(predictions, labels)
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: object = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The cross entropy of every label, 0 or 1, with the sigmoid of its logit.

    Args:
      label_smoothing: the share of each label that is replaced by a half.
    """
    _both(multi_class_labels, logits, ("multi_class_labels", "logits"))
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = math.cast(multi_class_labels, logits.dtype.base_dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        found = losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: TensorLike,
    logits: TensorLike,
    weights: TensorLike = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The cross entropy of rows of probabilities with the softmax of the logits.

    Args:
      label_smoothing: the share of each label that is replaced by equal probabilities.
    """
    _both(onehot_labels, logits, ("onehot_labels", "logits"))
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = math.cast(onehot_labels, logits.dtype.base_dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = math.cast(arrays.shape(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = arrays.stop_gradient(labels, name="labels_stop_gradient")
        found = losses.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: object = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The cross entropy of class numbers with the softmax of the logits."""
    _both(labels, logits, ("labels", "logits"))
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        # The classes are the logits' last dimension, which labels and weights do not have.
        labels, logits, weights = match_ranks(labels, logits, weights, expected_rank_diff=1)
        found = losses.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(found, weights, scope, loss_collection, reduction)


# Collected losses -------------------------------------------------------------------------------------------------


def add_loss(loss: TensorLike, loss_collection: object = GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection; does nothing if the collection is None."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses so far, or those with names that start with ``scope``."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Returns the collected losses of regularizers; with ``scope`` only names that match this regular expression."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of `get_regularization_losses`; 0 without any."""
    found = get_regularization_losses(scope)
    return math.add_n(found, name=name) if found else constant(0.0)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """Returns the sum of all collected losses, by default including regularizers' losses."""
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    return math.add_n(found, name=name)
