"""Metrics of the best k classes of each example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue, as_sparse
from headwater.tf1.functional import arrays, indexing, math, nn, reductions
from headwater.tf1.functional.sparse import sparse_tensor_to_dense
from headwater.tf1.metrics.state import Metric, as_metric, metric_variable
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.tf1.variables.variables import Variable


_NO_CLASS = -1


def _hits(labels: Any, chosen: Any, class_id: object) -> tuple[Tensor, Tensor, Tensor]:
    """Counts per example the chosen labels, the chosen classes that are not labels, and the labels not chosen."""
    if isinstance(labels, SparseTensor | SparseTensorValue):
        labels = sparse_tensor_to_dense(as_sparse(labels), _NO_CLASS, False)
    labels = math.cast(convert_to_tensor(labels), dtypes.int64)
    chosen = math.cast(convert_to_tensor(chosen), dtypes.int64)
    if len(labels.dims or ()) == len(chosen.dims or ()) - 1:
        labels = arrays.expand_dims(labels, -1)
    pairs = math.equal(arrays.expand_dims(chosen, -1), arrays.expand_dims(labels, -2))
    chosen_hit = reductions.reduce_any(pairs, -1)
    label_hit = reductions.reduce_any(pairs, -2)
    # Count a repeated label once, at its first position.
    same = math.equal(arrays.expand_dims(labels, -1), arrays.expand_dims(labels, -2))
    count = arrays.shape(labels)[-1]
    earlier = math.less(arrays.expand_dims(arrays.range(count), 0), arrays.expand_dims(arrays.range(count), 1))
    again = reductions.reduce_any(math.logical_and(same, earlier), -1)
    missed = math.logical_and(math.logical_not(label_hit), math.logical_not(again))
    missed = math.logical_and(missed, math.greater_equal(labels, 0))
    if class_id is not None:
        of_class = math.equal(chosen, math.cast(class_id, dtypes.int64))
        wrong = math.logical_and(of_class, math.logical_not(chosen_hit))
        right = math.logical_and(of_class, chosen_hit)
        missed = math.logical_and(missed, math.equal(labels, math.cast(class_id, dtypes.int64)))
    else:
        right, wrong = chosen_hit, math.logical_not(chosen_hit)
    counts = [reductions.reduce_sum(math.to_float(value), -1) for value in (right, wrong, missed)]
    return counts[0], counts[1], counts[2]


def _summed(values: Tensor, weights: object, variable: str) -> tuple[Variable, Tensor]:
    count = metric_variable([], dtypes.float64, variable)
    if weights is not None:
        values = values * math.cast(weights, dtypes.float32)
    return count, assign_add(count, math.cast(reductions.reduce_sum(values), dtypes.float64))


def _share(part: TensorLike, rest: TensorLike, name: str) -> Tensor:
    return math.div(part, math.add(part, rest), name=name)


def _name(base: str, k: object, class_id: object) -> str:
    return f"{base}_at_{k}" + ("" if class_id is None else f"_class{class_id}") if k is not None else f"{base}_at_k"


def precision_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    k: TensorLike | None = None,
    class_id: TensorLike | None = None,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The share of the chosen classes that are labels.

    Args:
      labels: class numbers [..., labels] or [...], dense or sparse.
      predictions_idx: the chosen classes [..., k].
      k: how many are chosen; for names.
      class_id: count this class only.
    """
    with name_scope(name, _name("precision", k, class_id), [predictions_idx, labels, weights]) as scope:
        right, wrong, _ = _hits(labels, predictions_idx, class_id)
        with variable_scope(None, scope.rstrip("/").rpartition("/")[2], auxiliary_name_scope=False):
            hits, more_hits = _summed(right, weights, _name("true_positive", k, class_id))
            misses, more_misses = _summed(wrong, weights, _name("false_positive", k, class_id))
        return as_metric(_share, (hits, misses), (more_hits, more_misses), metrics_collections, updates_collections)


def recall_at_top_k(
    labels: TensorLike,
    predictions_idx: TensorLike,
    k: TensorLike | None = None,
    class_id: TensorLike | None = None,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The share of the labels that are among the chosen classes. See `precision_at_top_k`."""
    with name_scope(name, _name("recall", k, class_id), [predictions_idx, labels, weights]) as scope:
        right, _, missed = _hits(labels, predictions_idx, class_id)
        with variable_scope(None, scope.rstrip("/").rpartition("/")[2], auxiliary_name_scope=False):
            hits, more_hits = _summed(right, weights, _name("true_positive", k, class_id))
            misses, more_misses = _summed(missed, weights, _name("false_negative", k, class_id))
        return as_metric(_share, (hits, misses), (more_hits, more_misses), metrics_collections, updates_collections)


def precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: TensorLike | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Metric:
    """Computes `precision_at_top_k` of the ``k`` classes with the highest ``predictions``."""
    with name_scope(name, _name("precision", k, class_id), [predictions, labels, weights]) as scope:
        _, best = nn.top_k(predictions, k)
        return precision_at_top_k(
            labels, best, k, class_id, weights, metrics_collections, updates_collections, name=scope
        )


def recall_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: TensorLike | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Sequence[str] | None = None,
    updates_collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Metric:
    """Computes `recall_at_top_k` of the ``k`` classes with the highest ``predictions``."""
    with name_scope(name, _name("recall", k, class_id), [predictions, labels, weights]) as scope:
        _, best = nn.top_k(predictions, k)
        return recall_at_top_k(labels, best, k, class_id, weights, metrics_collections, updates_collections, name=scope)


def average_precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    weights: TensorLike | None = None,
    metrics_collections: object = None,
    updates_collections: object = None,
    name: str | None = None,
) -> Metric:
    """The mean over examples of the average precision at ``k``: the precisions at each rank with a label.

    Args:
      labels: class numbers [..., labels] or [...], dense or sparse.
      predictions: [..., classes].
      weights: the weights of each example.

    Raises:
      ValueError: ``k`` is less than 1.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    with name_scope(name, _name("average_precision", k, None), [predictions, labels, weights]) as scope:
        predictions = convert_to_tensor(predictions)
        _, best = nn.top_k(predictions, k)
        average = _average_precision(labels, best, math.to_int64(arrays.shape(predictions)[-1]), k)
        with variable_scope(None, scope.rstrip("/").rpartition("/")[2], auxiliary_name_scope=False):
            most, more_most = _summed(arrays.ones_like(average), weights, "max")
            total, more_total = _summed(average, weights, "total")
        return as_metric(_mean, (total, most), (more_total, more_most), metrics_collections, updates_collections)


def _average_precision(labels: Any, best: Tensor, classes: Tensor, k: int) -> Tensor:
    """Returns, for each example, the mean of the precisions at its labels among the ``best``."""
    if isinstance(labels, SparseTensor | SparseTensorValue):
        labels = sparse_tensor_to_dense(as_sparse(labels), _NO_CLASS, False)
        labels = math.cast(labels, dtypes.int64)
        count = _distinct(labels, classes)
    else:
        labels = math.cast(convert_to_tensor(labels), dtypes.int64)
        if len(labels.dims or ()) == len(best.dims or ()) - 1:
            labels = arrays.expand_dims(labels, -1)
        count = arrays.fill(arrays.shape(labels)[:-1], arrays.shape(labels)[-1])
    pairs = math.equal(arrays.expand_dims(math.cast(best, dtypes.int64), -1), arrays.expand_dims(labels, -2))
    hits = math.to_float(reductions.reduce_any(pairs, -1))
    precision = reductions.cumsum(hits, -1) / math.to_float(arrays.range(1, k + 1))
    relevant = math.to_float(math.minimum(math.to_int32(count), k))
    return math.div(reductions.reduce_sum(precision * hits, -1), relevant)


def _distinct(labels: Tensor, classes: Tensor) -> Tensor:
    """Returns the number of distinct classes in each row of labels."""
    known = math.logical_and(math.greater_equal(labels, 0), math.less(labels, classes))
    hot = indexing.one_hot(indexing.where(known, labels, -arrays.ones_like(labels)), math.to_int32(classes))
    return reductions.reduce_sum(reductions.reduce_max(hot, -2), -1)


def _mean(total: Tensor, most: TensorLike, name: str) -> Tensor:
    return math.div_no_nan(convert_to_tensor(total), convert_to_tensor(most), name=name)
