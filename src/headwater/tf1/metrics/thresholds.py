"""Metrics of predictions that count as positive above each of several thresholds; the area under their curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import constant
from headwater.graph.operation import Tensor
from headwater.tf1.functional import arrays, checks, indexing, math, reductions
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.weights import broadcast_weights
from headwater.tf1.metrics.state import Metric, as_metric, collect, metric_variable, same_shape
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike


_CONDITIONS = ("tp", "fn", "tn", "fp")
_NAMES = {"tp": "true_positives", "fn": "false_negatives", "tn": "true_negatives", "fp": "false_positives"}
_MARGIN = 1e-7
"""Distance of the outermost thresholds beyond 0 and 1, so that every prediction is between them."""
_EPSILON = 1e-6
"""Added to numerator and denominator, so that a fraction is never 0 / 0."""


def _confusion(
    labels: object,
    predictions: object,
    thresholds: Sequence[float],
    weights: object,
    wanted: Sequence[str] = _CONDITIONS,
) -> tuple[list[Any], list[Any]]:
    """Returns, for each condition in ``wanted``, the current counts at all thresholds, and the updated ones.

    A step with a prediction outside of [0, 1], as of logits, fails with an InvalidArgumentError.
    """
    predictions = math.cast(predictions, dtypes.float32)
    one, zero = constant(1.0, dtypes.float32), constant(0.0, dtypes.float32)
    in_range = [
        checks.assert_greater_equal(predictions, zero, message="predictions must be in [0, 1]"),
        checks.assert_less_equal(predictions, one, message="predictions must be in [0, 1]"),
    ]
    with control_dependencies(in_range):
        labels, predictions, weights = same_shape(math.cast(labels, dtypes.bool_), predictions, weights)
        flat = arrays.reshape(predictions, [1, -1])
    truth = arrays.reshape(labels, [1, -1])
    above = math.greater(flat, constant(list(thresholds), dtypes.float32, [len(thresholds), 1]))
    of = {
        "tp": lambda: math.logical_and(truth, above),
        "fn": lambda: math.logical_and(truth, math.logical_not(above)),
        "tn": lambda: math.logical_and(math.logical_not(truth), math.logical_not(above)),
        "fp": lambda: math.logical_and(math.logical_not(truth), above),
    }
    each = None
    if weights is not None:
        each = arrays.reshape(broadcast_weights(math.cast(weights, dtypes.float32), predictions), [1, -1])
    states: list[object] = []
    updates: list[Any] = []
    for condition in _CONDITIONS:
        if condition in wanted:
            variable = metric_variable([len(thresholds)], name=_NAMES[condition])
            hits = math.to_float(of[condition]())
            states.append(variable)
            updates.append(assign_add(variable, reductions.reduce_sum(hits if each is None else hits * each, 1)))
    return states, updates


def _even_thresholds(count: int) -> list[float]:
    """Returns ``count`` evenly spaced thresholds from just below 0 to just above 1."""
    inner = [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]
    return [0.0 - _MARGIN, *inner, 1.0 + _MARGIN]


def auc(
    labels: object,
    predictions: object,
    weights: object = None,
    num_thresholds: int = 200,
    metrics_collections: object = None,
    updates_collections: object = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> Metric:
    """The area under a curve of predictions in [0, 1], from its values at several thresholds.

    Args:
      num_thresholds: number of evenly spaced thresholds, unless ``thresholds`` lists the thresholds between 0 and 1.
      curve: ``ROC`` (recall over false positive rate) or ``PR`` (precision over recall).
      summation_method: ``trapezoidal``; ``minoring`` or ``majoring``, by the smaller or larger end of each interval; or
        ``careful_interpolation``, for ``PR`` the interpolation of Davis and Goadrich (2006).

    Raises:
      ValueError: the curve or the method is unknown.
    """
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
        if summation_method not in ("trapezoidal", "minoring", "majoring", "careful_interpolation"):
            raise ValueError(f"Invalid summation_method: {summation_method}")
        places = _even_thresholds(num_thresholds)
        if thresholds is not None:
            places = [0.0 - _MARGIN, *sorted(float(t) for t in thresholds), 1.0 + _MARGIN]
        states, updates = _confusion(labels, predictions, places, weights)

        def area(tp: Any, fn: Callable[..., Structure], tn: TensorLike, fp: Tensor, name: str) -> Tensor:
            if curve == "PR" and summation_method == "careful_interpolation":
                return _interpolated(tp, fp, fn, name)
            recall = math.div(tp + _EPSILON, tp + fn + _EPSILON)
            if curve == "ROC":
                x, y = math.div(fp, fp + tn + _EPSILON), recall
            else:
                x, y = recall, math.div(tp + _EPSILON, tp + fp + _EPSILON)
            widths = x[:-1] - x[1:]
            if summation_method in ("trapezoidal", "careful_interpolation"):
                heights = (y[:-1] + y[1:]) / 2.0
            else:
                heights = (math.minimum if summation_method == "minoring" else math.maximum)(y[:-1], y[1:])
            return reductions.reduce_sum(math.multiply(widths, heights), name=name)

        return as_metric(area, states, updates, metrics_collections, updates_collections)


def _interpolated(tp: Tensor, fp: Tensor, fn: Any, name: str) -> Tensor:
    """Returns ∫ precision d recall; between thresholds, true positives are linear in all positives.

    With P predicted positives and T true ones, T = b + s P on an interval: the area is (s dT + b s log(P₂ / P₁)) / all.
    """
    fewer = tp[:-1] - tp[1:]
    positives = tp + fp
    slope = math.div_no_nan(fewer, math.maximum(positives[:-1] - positives[1:], 0))
    intercept = tp[1:] - math.multiply(slope, positives[1:])
    valid = math.logical_and(positives[:-1] > 0, positives[1:] > 0)
    ratio = indexing.where(
        valid, math.div_no_nan(positives[:-1], math.maximum(positives[1:], 0)), arrays.ones_like(positives[1:])
    )
    parts = math.div_no_nan(
        slope * (fewer + intercept * math.log(ratio)), math.maximum(tp[1:] + fn[1:], 0), name="pr_auc_increment"
    )
    return reductions.reduce_sum(parts, name=name)


def _at_thresholds(
    wanted: Sequence[str], default: str, compute: Callable[..., object] | None, doc: str
) -> Callable[..., Metric]:
    def metric(
        labels: object,
        predictions: object,
        thresholds: Sequence[float],
        weights: object = None,
        metrics_collections: object = None,
        updates_collections: object = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope(name, default, (predictions, labels, weights)):
            states, updates = _confusion(labels, predictions, list(thresholds), weights, wanted)
            if compute is None:
                return collect(arrays.identity(states[0]), updates[0], metrics_collections, updates_collections)
            return as_metric(compute, states, updates, metrics_collections, updates_collections)

    metric.__doc__ = doc
    return metric


def _share(prefix: str) -> Callable[..., Tensor]:
    def compute(part: Tensor, rest: Tensor, name: str) -> Tensor:
        return math.div(part, part + rest + _MARGIN, name=f"{prefix}_{name}")

    return compute


true_positives_at_thresholds: Callable[..., Metric] = _at_thresholds(
    ["tp"], "true_positives", None, "Counts the true examples that are predicted above each threshold."
)
false_negatives_at_thresholds: Callable[..., Metric] = _at_thresholds(
    ["fn"], "false_negatives", None, "Counts the true examples that are not predicted above each threshold."
)
true_negatives_at_thresholds: Callable[..., Metric] = _at_thresholds(
    ["tn"], "true_negatives", None, "Counts the examples that are neither true nor predicted above each threshold."
)
false_positives_at_thresholds: Callable[..., Metric] = _at_thresholds(
    ["fp"], "false_positives", None, "Counts the false examples that are predicted above each threshold."
)
precision_at_thresholds: Callable[..., Metric] = _at_thresholds(
    ["tp", "fp"],
    "precision_at_thresholds",
    _share("precision"),
    "True positives / (true + false positives) at each threshold.",
)
recall_at_thresholds: Callable[..., Metric] = _at_thresholds(
    ["tp", "fn"],
    "recall_at_thresholds",
    _share("recall"),
    "True positives / (true positives + false negatives) at each threshold.",
)


def sensitivity_at_specificity(
    labels: object,
    predictions: object,
    specificity: float,
    weights: object = None,
    num_thresholds: int = 200,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """tp / (tp + fn) at the threshold where tn / (tn + fp) is nearest to ``specificity``.

    Raises:
      ValueError: ``specificity`` is not in [0, 1].
    """
    if not 0 <= specificity <= 1:
        raise ValueError("`specificity` must be in the range [0, 1].")
    with variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights)):
        states, updates = _confusion(labels, predictions, _even_thresholds(num_thresholds), weights)

        def at(tp: TensorLike, fn: Any, tn: Tensor, fp: TensorLike, name: str) -> Tensor:
            found = math.div(tn, tn + fp + _MARGIN)
            best = math.cast(reductions.argmin(math.abs(found - specificity), 0), dtypes.int32)
            right, missed = indexing.gather(tp, best), indexing.gather(fn, best)
            return math.div(right, right + missed + _MARGIN, name)

        return as_metric(at, states, updates, metrics_collections, updates_collections)


def specificity_at_sensitivity(
    labels: object,
    predictions: object,
    sensitivity: float,
    weights: object = None,
    num_thresholds: int = 200,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """tn / (tn + fp) at the threshold where tp / (tp + fn) is nearest to ``sensitivity``.

    Raises:
      ValueError: ``sensitivity`` is not in [0, 1].
    """
    if not 0 <= sensitivity <= 1:
        raise ValueError("`sensitivity` must be in the range [0, 1].")
    with variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights)):
        states, updates = _confusion(labels, predictions, _even_thresholds(num_thresholds), weights)

        def at(tp: Any, fn: Callable[..., Structure], tn: TensorLike, fp: TensorLike, name: str) -> Tensor:
            found = math.div(tp, tp + fn + _MARGIN)
            # Select the highest of equally near thresholds.
            away = arrays.reverse(math.abs(found - sensitivity), [0])
            best = len(_even_thresholds(num_thresholds)) - 1 - math.cast(reductions.argmin(away, 0), dtypes.int32)
            right, wrong = indexing.gather(tn, best), indexing.gather(fp, best)
            return math.div(right, right + wrong + _MARGIN, name)

        return as_metric(at, states, updates, metrics_collections, updates_collections)
