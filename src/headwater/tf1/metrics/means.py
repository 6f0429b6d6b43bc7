"""Means, and the metrics that are means of something per element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.indexing import where
from headwater.tf1.metrics.state import Metric, as_metric, collect, metric_variable, same_shape, weighted
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope


def mean(
    values: object,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean of ``values``: Σ weight value / Σ weight."""
    with variable_scope(name, "mean", (values, weights)):
        values = math.cast(values, dtypes.float32)
        total, count = metric_variable([], name="total"), metric_variable([], name="count")
        values, weights = weighted(values, weights)
        size = math.cast(arrays.size(values), dtypes.float32) if weights is None else reductions.reduce_sum(weights)
        new_total = assign_add(total, reductions.reduce_sum(values))
        with control_dependencies([values]):
            new_count = assign_add(count, size)
        return as_metric(_ratio, (total, count), (new_total, new_count), metrics_collections, updates_collections)


def _ratio(total: TensorLike, count: TensorLike, name: str) -> Tensor:
    return math.div_no_nan(total, math.maximum(count, 0), name=name)


def mean_tensor(
    values: Tensor,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean of each element over the batches."""
    with variable_scope(name, "mean", (values, weights)):
        values = math.cast(values, dtypes.float32)
        total = metric_variable(values.shape, name="total_tensor")
        count = metric_variable(values.shape, name="count_tensor")
        size = arrays.ones_like(values)
        values, weights = weighted(values, weights)
        if weights is not None:
            size = math.multiply(size, weights)
        new_total = assign_add(total, values)
        with control_dependencies([values]):
            new_count = assign_add(count, size)
        return as_metric(_ratio, (total, count), (new_total, new_count), metrics_collections, updates_collections)


def accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The share of predictions that equal their labels."""
    labels, predictions, weights = same_shape(labels, predictions, weights)
    if labels.dtype.base_dtype != predictions.dtype.base_dtype:
        predictions = math.cast(predictions, labels.dtype.base_dtype)
    correct = math.to_float(math.equal(predictions, labels))
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


def _floats(
    labels: TensorLike, predictions: Tensor, weights: TensorLike | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    return same_shape(math.cast(labels, dtypes.float32), math.cast(predictions, dtypes.float32), weights)


def mean_absolute_error(
    labels: TensorLike,
    predictions: Tensor,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean of |predictions - labels|."""
    labels, predictions, weights = _floats(labels, predictions, weights)
    error = math.abs(predictions - labels)
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean of (predictions - labels)²."""
    labels, predictions, weights = _floats(labels, predictions, weights)
    error = math.squared_difference(labels, predictions)
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The root of `mean_squared_error`."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return collect(math.sqrt(value), math.sqrt(update), metrics_collections, updates_collections)


def mean_relative_error(
    labels: TensorLike,
    predictions: Any,
    normalizer: Any,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean of |labels - predictions| / ``normalizer``, 0 where that is 0."""
    labels, predictions, weights = _floats(labels, predictions, weights)
    _, normalizer, _ = same_shape(predictions, normalizer, None)
    normalizer = math.cast(normalizer, predictions.dtype)
    away = math.abs(labels - predictions)
    error = where(math.equal(0.0, normalizer), arrays.zeros_like(labels), math.div(away, normalizer))
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: TensorLike,
    predictions: Tensor,
    dim: int,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """1 - the mean of Σ predictions labels along ``dim``, for vectors of length 1."""
    labels, predictions, weights = _floats(labels, predictions, weights)
    products = reductions.reduce_sum(math.multiply(predictions, labels), axis=[dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    return collect(math.subtract(1.0, value), math.subtract(1.0, update), metrics_collections, updates_collections)


def percentage_below(
    values: TensorLike,
    threshold: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Metric:
    """The share of ``values`` below ``threshold``."""
    below = math.to_float(math.less(convert_to_tensor(values), threshold))
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


# Per class ----------------------------------------------------------------------------------------------------------


def mean_per_class_accuracy(
    labels: object,
    predictions: object,
    num_classes: int,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean over the classes of the share of each class's examples that are predicted right.

    Returns:
      The mean, and an operation that updates it and returns the accuracies of all classes.
    """
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels, predictions = (_flat(math.cast(value, dtypes.int64)) for value in (labels, predictions))
        total, count = metric_variable([num_classes], name="total"), metric_variable([num_classes], name="count")
        ones = arrays.ones([arrays.size(labels)], dtypes.float32)
        correct = math.to_float(math.equal(labels, predictions))
        if weights is not None:
            flat = _flat(math.cast(weights, dtypes.float32))
            correct, ones = correct * flat, ones * flat
        new_total = assign_add(total, reductions.unsorted_segment_sum(correct, labels, num_classes))
        new_count = assign_add(count, reductions.unsorted_segment_sum(ones, labels, num_classes))
        value = reductions.reduce_mean(math.div_no_nan(total, math.maximum(count, 0)), name="mean_accuracy")
        update = math.div_no_nan(new_total, math.maximum(new_count, 0), name="update_op")
        return collect(value, update, metrics_collections, updates_collections)


def _flat(value: Tensor) -> Tensor:
    return arrays.reshape(value, [-1])


def mean_iou(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: object = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean over the classes of intersection over union: right / (truth + predicted - right).

    Returns:
      The mean, and an operation that updates it and returns the confusion matrix.
    """
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        labels, predictions, weights = same_shape(labels, predictions, weights)
        taken = metric_variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
        labels, predictions = (_flat(math.cast(value, dtypes.int64)) for value in (labels, predictions))
        ones: Tensor = arrays.ones([arrays.size(labels)], dtypes.float64)
        each = ones if weights is None else _flat(math.cast(weights, dtypes.float64))
        places = labels * num_classes + predictions
        found = reductions.unsorted_segment_sum(each, places, num_classes * num_classes)
        update = assign_add(taken, arrays.reshape(found, [num_classes, num_classes]))
        matrix = math.to_float(taken)
        right = _diagonal(matrix, num_classes)
        union = reductions.reduce_sum(matrix, 0) + reductions.reduce_sum(matrix, 1) - right
        occurring = reductions.reduce_sum(math.to_float(math.not_equal(union, 0)))
        shares = math.div_no_nan(right, union)
        value = math.div_no_nan(reductions.reduce_sum(shares), occurring, name="mean_iou")
        return collect(value, update, metrics_collections, updates_collections)


def _diagonal(matrix: Tensor, size: TensorLike) -> Tensor:
    places = arrays.range(size)
    return reductions.reduce_sum(
        matrix * math.to_float(math.equal(arrays.expand_dims(places, 0), arrays.expand_dims(places, 1))), 1
    )
