"""Shares of false predictions, and number of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.metrics.counts import false_negatives, false_positives, true_negatives, true_positives
from headwater.tf1.metrics.state import Metric, as_metric, collect, metric_variable, weighted
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike


def _share(part: TensorLike, rest: TensorLike, name: str) -> Tensor:
    return math.div_no_nan(part, math.add(part, rest), name=name)


def streaming_false_positive_rate(
    predictions: TensorLike,
    labels: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """False positives / (false positives + true negatives)."""
    with variable_scope(name, "false_positive_rate", (predictions, labels, weights)):
        wrong, more_wrong = false_positives(labels, predictions, weights)
        right, more_right = true_negatives(labels, predictions, weights)
        return as_metric(_share, (wrong, right), (more_wrong, more_right), metrics_collections, updates_collections)


def streaming_false_negative_rate(
    predictions: TensorLike,
    labels: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """False negatives / (false negatives + true positives)."""
    with variable_scope(name, "false_negative_rate", (predictions, labels, weights)):
        wrong, more_wrong = false_negatives(labels, predictions, weights)
        right, more_right = true_positives(labels, predictions, weights)
        return as_metric(_share, (wrong, right), (more_wrong, more_right), metrics_collections, updates_collections)


def count(
    values: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The number of values, or the sum of their weights."""
    with variable_scope(name, "count", (values, weights)):
        total = metric_variable([], name="count")
        _, shares = weighted(values, weights)
        found = math.cast(arrays.size(values), dtypes.float32) if shares is None else reductions.reduce_sum(shares)
        with control_dependencies([found]):
            update = assign_add(total, found)
        return collect(arrays.identity(total), update, metrics_collections, updates_collections)
