"""``tf.contrib.metrics``: metrics with the predictions first."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headwater.dtypes import bool_, string
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.contrib.metrics.correlation import streaming_covariance, streaming_pearson_correlation
from headwater.tf1.contrib.metrics.rates import count, streaming_false_negative_rate, streaming_false_positive_rate
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.losses import confusion_matrix
from headwater.tf1.functional.sets import set_difference, set_intersection, set_size, set_union
from headwater.tf1.metrics import counts, means, ranking, thresholds

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import TensorLike
    from headwater.tf1.metrics.state import Metric


def _predictions_first(metric: Callable[..., object]) -> Callable[..., Any]:
    """``metric(labels, predictions, …)`` as ``f(predictions, labels, …)``."""

    def function(predictions: TensorLike, labels: TensorLike, *args: object, **kwargs: object) -> Any:
        return metric(labels, predictions, *args, **kwargs)

    labels_, predictions_, *rest = inspect.signature(metric).parameters.values()
    function.__signature__ = inspect.Signature([predictions_, labels_, *rest])  # pyright: ignore[reportFunctionMemberAccess]
    function.__doc__ = metric.__doc__
    return function


streaming_accuracy: Callable[..., Metric] = _predictions_first(means.accuracy)
streaming_auc: Callable[..., Metric] = _predictions_first(thresholds.auc)
streaming_false_negatives: Callable[..., Metric] = _predictions_first(counts.false_negatives)
streaming_false_negatives_at_thresholds: Callable[..., Metric] = _predictions_first(
    thresholds.false_negatives_at_thresholds
)
streaming_false_positives: Callable[..., Metric] = _predictions_first(counts.false_positives)
streaming_false_positives_at_thresholds: Callable[..., Metric] = _predictions_first(
    thresholds.false_positives_at_thresholds
)
streaming_mean: Callable[..., Metric] = means.mean
streaming_mean_absolute_error: Callable[..., Metric] = _predictions_first(means.mean_absolute_error)
streaming_mean_cosine_distance: Callable[..., Metric] = _predictions_first(means.mean_cosine_distance)
streaming_mean_iou: Callable[..., Metric] = _predictions_first(means.mean_iou)
streaming_mean_relative_error: Callable[..., Metric] = _predictions_first(means.mean_relative_error)
streaming_mean_squared_error: Callable[..., Metric] = _predictions_first(means.mean_squared_error)
streaming_mean_tensor: Callable[..., Metric] = means.mean_tensor
streaming_percentage_less: Callable[..., Metric] = means.percentage_below
streaming_precision: Callable[..., Metric] = _predictions_first(counts.precision)
streaming_precision_at_thresholds: Callable[..., Metric] = _predictions_first(thresholds.precision_at_thresholds)
streaming_recall: Callable[..., Metric] = _predictions_first(counts.recall)
streaming_recall_at_thresholds: Callable[..., Metric] = _predictions_first(thresholds.recall_at_thresholds)
streaming_root_mean_squared_error: Callable[..., Metric] = _predictions_first(means.root_mean_squared_error)
streaming_sensitivity_at_specificity: Callable[..., Metric] = _predictions_first(thresholds.sensitivity_at_specificity)
streaming_sparse_precision_at_k: Callable[..., Metric] = _predictions_first(ranking.precision_at_k)
streaming_sparse_recall_at_k: Callable[..., Metric] = _predictions_first(ranking.recall_at_k)
streaming_specificity_at_sensitivity: Callable[..., Metric] = _predictions_first(thresholds.specificity_at_sensitivity)
streaming_true_negatives: Callable[..., Metric] = _predictions_first(counts.true_negatives)
streaming_true_negatives_at_thresholds: Callable[..., Metric] = _predictions_first(
    thresholds.true_negatives_at_thresholds
)
streaming_true_positives: Callable[..., Metric] = _predictions_first(counts.true_positives)
streaming_true_positives_at_thresholds: Callable[..., Metric] = _predictions_first(
    thresholds.true_positives_at_thresholds
)

__all__ = [
    "accuracy",
    "aggregate_metric_map",
    "aggregate_metrics",
    "confusion_matrix",
    "count",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "streaming_covariance",
    "streaming_false_negative_rate",
    "streaming_false_positive_rate",
    "streaming_pearson_correlation",
]


def accuracy(predictions: Any, labels: Any, weights: TensorLike | None = None, name: str | None = None) -> Tensor:
    """The share of ``predictions`` that equal ``labels``, each with its weight, in this batch alone.

    Raises:
      ValueError: the types or shapes differ, or the type is neither of integers, truth values nor strings.
    """
    with name_scope(name, "accuracy", [predictions, labels]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        kind = predictions.dtype.base_dtype
        if not (kind.is_integer or kind in (bool_, string)):
            raise ValueError(f"Labels should have bool, integer, or string dtype, not {kind.name}")
        if labels.dtype.base_dtype != kind:
            raise ValueError(f"Dtypes of predictions and labels should match. Given: {kind} and {labels.dtype}")
        labels.shape.assert_is_compatible_with(predictions.shape)
        right = math.to_float(math.equal(predictions, labels))
        if weights is None:
            return reductions.reduce_mean(right)
        shares = math.to_float(weights)
        return math.div(reductions.reduce_sum(right * shares), reductions.reduce_sum(arrays.ones_like(right) * shares))


def aggregate_metrics(*value_update_tuples: object) -> tuple[list[Any], list[Any]]:
    """The values and the updates of several metrics.

    Raises:
      ValueError: there are none.
    """
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: Mapping[str, Metric]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The values and the updates of several metrics, by their names."""
    values = {name: pair[0] for name, pair in names_to_tuples.items()}
    return values, {name: pair[1] for name, pair in names_to_tuples.items()}
