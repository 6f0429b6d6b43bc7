"""Common parts of metrics: local variables, weights, collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater import dtypes
from headwater.dtypes import DType
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Tensor
from headwater.graph.types import TensorLike
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.weights import broadcast_weights, match_ranks
from headwater.tf1.variables.variables import Variable

Metric = tuple[Tensor, Tensor]


def metric_variable(
    shape: TensorLike, dtype: DType = dtypes.float32, name: str | None = None, validate_shape: bool = True
) -> Variable:
    """Returns a local variable with initial zeros, also in the collection ``METRIC_VARIABLES``."""
    return Variable(
        lambda: arrays.zeros(shape, dtype),
        trainable=False,
        name=name,
        validate_shape=validate_shape,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
    )


def collect(value: Any, update: Any, metrics_collections: object, updates_collections: object) -> Metric:
    """Adds both to their collections, and returns them."""
    graph = get_default_graph()
    if metrics_collections:
        graph.add_to_collections(metrics_collections, value)
    if updates_collections:
        graph.add_to_collections(updates_collections, update)
    return value, update


def same_shape(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Returns the three with equal ranks; see `match_ranks`.

    Raises:
      ValueError: predictions and labels differ in shape.
    """
    labels, predictions, weights = match_ranks(labels, predictions, weights)
    assert labels is not None
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions, weights


def weighted(values: Any, weights: Any) -> tuple[Tensor, Tensor | None]:
    """Returns ``values`` as float32 times ``weights``, and the weights in the shape of the values."""
    values = math.cast(values, dtypes.float32)
    if weights is None:
        return values, None
    _, values, weights = match_ranks(None, values, weights)
    weights = broadcast_weights(math.cast(weights, dtypes.float32), values)
    return math.multiply(values, weights), weights


def as_metric(
    compute: Callable[..., object],
    states: Sequence[TensorLike],
    updates: Sequence[TensorLike],
    metrics_collections: object,
    updates_collections: object,
) -> Metric:
    """Returns ``compute(*states, name)`` for the current state, and for the updated state."""
    value = compute(*states, "value")
    return collect(value, compute(*updates, "update_op"), metrics_collections, updates_collections)
