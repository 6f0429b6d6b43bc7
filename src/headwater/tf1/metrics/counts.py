"""Counts of right and wrong predictions: true and false positives and negatives, precision, recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.weights import broadcast_weights
from headwater.tf1.metrics.state import Metric, as_metric, collect, metric_variable, same_shape
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike


def _count(
    labels: object,
    predictions: object,
    weights: object,
    of: tuple[bool, bool],
    collections: tuple[object, object],
    name: str | None,
    default: str,
) -> Metric:
    """Counts examples with the label ``of[0]`` and the prediction ``of[1]``."""
    with variable_scope(name, default, (predictions, labels, weights)):
        labels, predictions, weights = same_shape(
            math.cast(labels, dtypes.bool_), math.cast(predictions, dtypes.bool_), weights
        )
        hit = math.logical_and(math.equal(labels, of[0]), math.equal(predictions, of[1]))
        values = math.to_float(hit)
        count = metric_variable([], name="count")
        if weights is not None:
            values = math.multiply(values, broadcast_weights(math.cast(weights, dtypes.float32), values))
        value = arrays.identity(count)
        return collect(value, assign_add(count, reductions.reduce_sum(values)), *collections)


def true_positives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """Counts examples that are predicted and true."""
    both = (metrics_collections, updates_collections)
    return _count(labels, predictions, weights, (True, True), both, name, "true_positives")


def true_negatives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """Counts examples that are neither predicted nor true."""
    both = (metrics_collections, updates_collections)
    return _count(labels, predictions, weights, (False, False), both, name, "true_negatives")


def false_positives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """Counts examples that are predicted and not true."""
    both = (metrics_collections, updates_collections)
    return _count(labels, predictions, weights, (False, True), both, name, "false_positives")


def false_negatives(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """Counts examples that are true and not predicted."""
    both = (metrics_collections, updates_collections)
    return _count(labels, predictions, weights, (True, False), both, name, "false_negatives")


def _share(part: TensorLike, rest: TensorLike, name: str) -> Tensor:
    return math.div_no_nan(part, math.add(part, rest), name=name)


def precision(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """True positives / (true + false positives)."""
    with variable_scope(name, "precision", (predictions, labels, weights)):
        right, more_right = true_positives(labels, predictions, weights)
        wrong, more_wrong = false_positives(labels, predictions, weights)
        return as_metric(_share, (right, wrong), (more_right, more_wrong), metrics_collections, updates_collections)


def recall(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """True positives / (true positives + false negatives)."""
    with variable_scope(name, "recall", (predictions, labels, weights)):
        right, more_right = true_positives(labels, predictions, weights)
        missed, more_missed = false_negatives(labels, predictions, weights)
        return as_metric(_share, (right, missed), (more_right, more_missed), metrics_collections, updates_collections)
