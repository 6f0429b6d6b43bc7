"""Covariance and correlation of predictions and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import dtypes
from headwater.tf1.functional import arrays, indexing, math, reductions
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.weights import broadcast_weights
from headwater.tf1.metrics.state import Metric, as_metric, collect, metric_variable, same_shape
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.variables import Variable


def streaming_covariance(
    predictions: TensorLike,
    labels: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The covariance, with n - 1 in the denominator; NaN for a weight of at most 1.

    The comoment of two samples A and B is C_A + C_B + (x_A - x_B) (y_A - y_B) n_A n_B / (n_A + n_B), with their means
    x and y (Pébay, 2008).
    """
    with variable_scope(name, "covariance", (predictions, labels, weights)):
        labels, predictions, weights = same_shape(labels, predictions, weights)
        total = metric_variable([], name="count")
        means = [metric_variable([], name=f"mean_{part}") for part in ("prediction", "label")]
        comoment = metric_variable([], name="comoment")
        if weights is None:
            count, share = math.cast(arrays.size(labels), dtypes.float32), None
        else:
            share = broadcast_weights(weights, labels)
            count = reductions.reduce_sum(share)
        more = assign_add(total, count)
        before = more - count
        values = predictions, labels
        of_batch = [math.div_no_nan(reductions.reduce_sum(_times(value, share)), count) for value in values]
        steps = [math.div_no_nan((here - mean) * count, more) for here, mean in zip(of_batch, means, strict=True)]
        moved = [assign_add(mean, step) for mean, step in zip(means, steps, strict=True)]
        apart = [at - step - here for at, step, here in zip(moved, steps, of_batch, strict=True)]
        residuals = (predictions - of_batch[0]) * (labels - of_batch[1])
        step = reductions.reduce_sum(_times(residuals, share)) + apart[0] * apart[1] * (before * count / more)
        update = assign_add(comoment, step)
        value = _unbiased(comoment, total, "covariance")
        with control_dependencies([update]):
            updated = _unbiased(comoment, total, "update_op")
        return collect(value, updated, metrics_collections, updates_collections)


def _times(value: Tensor, share: Tensor | None) -> Tensor:
    return value if share is None else math.multiply(value, share)


def _unbiased(comoment: Variable, total: Variable, name: str) -> Tensor:
    return indexing.where(math.less_equal(total, 1.0), float("nan"), math.truediv(comoment, total - 1.0), name=name)


def streaming_pearson_correlation(
    predictions: TensorLike,
    labels: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The covariance, divided by both standard deviations."""
    with variable_scope(name, "pearson_r", (predictions, labels, weights)):
        labels, predictions, weights = same_shape(labels, predictions, weights)
        if weights is not None:
            weights = broadcast_weights(weights, labels)
        pairs = {
            "covariance": (predictions, labels),
            "variance_predictions": (predictions, predictions),
            "variance_labels": (labels, labels),
        }
        found = [streaming_covariance(*pair, weights, name=each) for each, pair in pairs.items()]

        def correlation(covariance: Tensor, first: Tensor, second: Tensor, name: str) -> Tensor:
            return math.truediv(covariance, math.multiply(math.sqrt(first), math.sqrt(second)), name=name)

        values, updates = zip(*found, strict=True)
        return as_metric(correlation, values, updates, metrics_collections, updates_collections)
