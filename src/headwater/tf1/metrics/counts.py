"""Counts of right and wrong predictions: true and false positives and negatives, precision, recall."""

from __future__ import annotations

from collections.abc import Callable
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


def _counting(label: bool, prediction: bool, default: str, doc: str) -> Callable[..., Metric]:
    def function(
        labels: TensorLike,
        predictions: TensorLike,
        weights: TensorLike | None = None,
        metrics_collections: object = None,
        updates_collections: object = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope(name, default, (predictions, labels, weights)):
            labels, predictions, weights = same_shape(
                math.cast(labels, dtypes.bool_), math.cast(predictions, dtypes.bool_), weights
            )
            hit = math.logical_and(math.equal(labels, label), math.equal(predictions, prediction))
            values = math.to_float(hit)
            count = metric_variable([], name="count")
            if weights is not None:
                values = math.multiply(values, broadcast_weights(math.cast(weights, dtypes.float32), values))
            value = arrays.identity(count)
            update = assign_add(count, reductions.reduce_sum(values))
            return collect(value, update, metrics_collections, updates_collections)

    function.__doc__ = doc
    return function


true_positives: Callable[..., Metric] = _counting(
    True, True, "true_positives", "Counts examples that are predicted and true."
)
true_negatives: Callable[..., Metric] = _counting(
    False, False, "true_negatives", "Counts examples that are neither predicted nor true."
)
false_positives: Callable[..., Metric] = _counting(
    False, True, "false_positives", "Counts examples that are predicted and not true."
)
false_negatives: Callable[..., Metric] = _counting(
    True, False, "false_negatives", "Counts examples that are true and not predicted."
)


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
    """Returns the share of true positives in all positives: true / (true + false positives)."""
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
    """Returns the share of true positives in all true examples: true positives / (true positives + false negatives)."""
    with variable_scope(name, "recall", (predictions, labels, weights)):
        right, more_right = true_positives(labels, predictions, weights)
        missed, more_missed = false_negatives(labels, predictions, weights)
        return as_metric(_share, (right, missed), (more_right, more_missed), metrics_collections, updates_collections)
