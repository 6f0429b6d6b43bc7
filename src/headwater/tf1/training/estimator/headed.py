"""Estimators with a given head, estimators that learn only the labels' mean, and `add_metrics`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headwater import dtypes
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.nn import relu
from headwater.tf1.functional.weighted_losses import Reduction
from headwater.tf1.training.estimator.canned import (
    DEEP_RATE,
    LINEAR_RATE,
    Canned,
    Part,
    both_parts,
    deep_part,
    linear_part,
    optimizer_of,
)
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.heads import Head, class_head, number_head
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.variables.initializers import Zeros
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.feature_columns.base import Column, ColumnsLike, DenseColumn
    from headwater.tf1.metrics.state import Metric
    from headwater.tf1.training.estimator.run_config import RunConfig
    from headwater.tf1.training.optimizer import OptimizerLike
    from headwater.tf1.variables.partitioned import Partitioner


_BASELINE_RATE = 0.3


class BaselineEstimator(Canned):
    """Learns one number for each logit, independent of the features: the labels' mean.

    Args:
      head: interprets the logits.
      optimizer: a name, an optimizer, or a function that returns one.
      model_dir, config: see `Estimator`.
    """

    def __init__(
        self, head: Head, model_dir: str | None = None, optimizer: OptimizerLike = "Ftrl", config: Any = None
    ) -> None:
        def logits(features: Mapping[str, Tensor], mode: str, units: int) -> Tensor:
            del mode
            first = next(iter(features.values()))
            with variable_scope("baseline"):
                bias = get_variable("bias", shape=[units], initializer=Zeros())
            count = (
                math.cast(first.dense_shape[0], dtypes.int32)
                if isinstance(first, SparseTensor)
                else arrays.shape(first)[0]
            )
            return bias * arrays.ones(arrays.stack([count, units]))

        part = Part("baseline", logits, lambda: optimizer_of(optimizer, _BASELINE_RATE))
        super().__init__(head, [part], model_dir, config)


class BaselineClassifier(BaselineEstimator):
    """Predicts the frequency of each class among the labels. See `DNNClassifier` for the arguments."""

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: str | DenseColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        head = class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


class BaselineRegressor(BaselineEstimator):
    """Predicts the labels' mean. See `DNNRegressor` for the arguments."""

    def __init__(
        self,
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: str | None = None,
        optimizer: OptimizerLike = "Ftrl",
        config: RunConfig | None = None,
        loss_reduction: str = Reduction.SUM,
    ) -> None:
        head = number_head(label_dimension, weight_column, loss_reduction)
        super().__init__(head, model_dir, optimizer, config)


class DNNEstimator(Canned):
    """A deep model with a head. See `DNNClassifier` for the arguments."""

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Tensor], Tensor] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: Any = None,
        warm_start_from: Structure = None,
        batch_norm: bool = False,
    ) -> None:
        network = (hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm)
        super().__init__(head, [deep_part(optimizer, DEEP_RATE, *network)], model_dir, config, warm_start_from)


class LinearEstimator(Canned):
    """A linear model with a head. See `LinearClassifier` for the arguments."""

    def __init__(
        self,
        head: Head,
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Partitioner | None = None,
        sparse_combiner: str = "sum",
    ) -> None:
        part = linear_part(optimizer, LINEAR_RATE, feature_columns, partitioner, sparse_combiner)
        super().__init__(head, [part], model_dir, config)


class DNNLinearCombinedEstimator(Canned):
    """A linear and a deep model together, with a head. See `DNNLinearCombinedClassifier` for the arguments."""

    def __init__(
        self,
        head: Head,
        model_dir: str | None = None,
        linear_feature_columns: ColumnsLike | None = None,
        linear_optimizer: OptimizerLike = "Ftrl",
        dnn_feature_columns: ColumnsLike | None = None,
        dnn_optimizer: OptimizerLike = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] = relu,
        dnn_dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: Any = None,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        wide = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        deep = (dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout)
        super().__init__(head, both_parts(*wide, *deep, input_layer_partitioner, False), model_dir, config)


_METRIC_ARGUMENTS = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable[..., dict[str, Metric]]) -> Estimator:
    """Returns an estimator like ``estimator`` with further metrics in its evaluations.

    Args:
      metric_fn: a function of any of ``features``, ``labels``, ``predictions`` and ``config`` that returns metrics by
        name.

    Raises:
      ValueError: ``metric_fn`` has another parameter.
    """
    taken = list(inspect.signature(metric_fn).parameters)
    wrong = [name for name in taken if name not in _METRIC_ARGUMENTS]
    if wrong:
        raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {wrong}")

    def model_fn(features: Structure, labels: TensorLike, mode: str, config: RunConfig) -> EstimatorSpec:
        spec = estimator.model_fn(features, labels, mode, config)
        if mode != ModeKeys.EVAL:
            return spec
        given = {"features": features, "labels": labels, "predictions": spec.predictions, "config": config}
        more = metric_fn(**{name: given[name] for name in taken})
        return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **more})

    return Estimator(model_fn, estimator.model_dir, estimator.config)


def call_logit_fn(
    logit_fn: Callable[..., Structure], features: Structure, mode: str, params: Structure, config: RunConfig
) -> Structure:
    """Calls ``logit_fn`` with the features, and with the other arguments that it has parameters for.

    Raises:
      ValueError: it returns neither a tensor nor a dictionary of tensors.
    """
    names = inspect.signature(logit_fn).parameters
    given = {"mode": mode, "params": params, "config": config}
    found = logit_fn(features=features, **{name: value for name, value in given.items() if name in names})
    parts = list(cast("dict[str, Any]", found).values()) if isinstance(found, dict) else [found]
    if not all(isinstance(part, Tensor) for part in parts):
        raise ValueError("model_fn should return a Tensor or a dictionary of Tensors")
    return found  # pyright: ignore[reportUnknownVariableType]
