"""Estimators with predefined models: linear, deep, and a combination of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.operation import Tensor
from headwater.tf1.feature_columns.dense import input_layer, linear_model
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies, get_collection
from headwater.tf1.functional.nn import relu
from headwater.tf1.functional.weighted_losses import Reduction
from headwater.tf1.layers.core import dense, dropout
from headwater.tf1.layers.normalization import batch_normalization
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.heads import Head, RegressionHead, class_head
from headwater.tf1.training.estimator.run_config import RunConfig
from headwater.tf1.training.estimator.specs import ModeKeys
from headwater.tf1.training.train_ops import OPTIMIZER_CLS_NAMES
from headwater.tf1.training.training_util import get_global_step
from headwater.tf1.variables.initializers import GlorotUniform
from headwater.tf1.variables.partitioned import min_max_variable_partitioner
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import Structure, TensorLike
    from headwater.tf1.feature_columns.base import Column, ColumnsLike, DenseColumn
    from headwater.tf1.training.optimizer import Optimizer
    from headwater.tf1.variables.partitioned import Partitioner


_MIN_SLICE_BYTES = 64 << 20
_DEEP, _LINEAR = "dnn", "linear"
DEEP_RATE, LINEAR_RATE = 0.05, 0.2
_TOGETHER_DEEP_RATE, _TOGETHER_LINEAR_RATE = 0.001, 0.005


def optimizer_of(given: Structure, rate: float) -> Any:
    """Returns an optimizer, given by its name, by a function that returns it, or directly.

    Raises:
      ValueError: the name is unknown, or it is an object of another type.
    """
    if isinstance(given, str):
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(f"Unsupported optimizer name: {given}. Supported names are: {sorted(OPTIMIZER_CLS_NAMES)}")
        return OPTIMIZER_CLS_NAMES[given](learning_rate=rate)
    found = given() if callable(given) and not hasattr(given, "minimize") else given
    if not hasattr(found, "minimize"):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {found}")
    return found


def linear_rate(most: float, columns: int) -> float:
    """Returns the learning rate of a linear model: 1/√columns, but at most ``most``."""
    return min(most, 1.0 / math.sqrt(columns))


def _spread(partitioner: Partitioner) -> Callable[..., Sequence[int]]:
    """Returns ``partitioner``, or a partitioner that cuts large tables into a part per ps; None without ps."""
    count = RunConfig().num_ps_replicas if partitioner is None else 0
    return min_max_variable_partitioner(count, min_slice_size=_MIN_SLICE_BYTES) if count else partitioner


def _deep_logits(features: Mapping[str, Any], mode: str, units: int, *settings: Any) -> Tensor:
    """Returns the result of `_network` in the scope of an estimator's deep part; the last of ``settings`` is the
    partitioner."""
    with variable_scope(_DEEP, values=tuple(features.values()), partitioner=_spread(settings[-1])):
        return _network(features, mode, units, *settings)


def _network(
    features: Mapping[str, Any],
    mode: str,
    units: int,
    hidden_units: Sequence[int],
    columns: Any,
    activation: Callable[..., Tensor],
    drop: float | None,
    normalize: bool,
    partitioner: Partitioner,
) -> Tensor:
    training = mode == ModeKeys.TRAIN
    partitioner = _spread(partitioner)
    with variable_scope("input_from_feature_columns", partitioner=partitioner):
        net = input_layer(features, columns)
    for index, size in enumerate(hidden_units):
        with variable_scope(f"hiddenlayer_{index}", values=(net,)) as scope:
            net = dense(net, size, activation=activation, kernel_initializer=GlorotUniform(), name=scope)
            if drop is not None and training:
                net = dropout(net, rate=drop, training=True)
            if normalize:
                net = batch_normalization(net, momentum=0.999, training=training, name=f"batchnorm_{index}")
    with variable_scope("logits", values=(net,)) as scope:
        return dense(net, units, kernel_initializer=GlorotUniform(), name=scope)


def _linear_logits(
    features: Mapping[str, Tensor], units: int, columns: Any, partitioner: Partitioner, combiner: str
) -> Tensor:
    with variable_scope(_LINEAR, values=tuple(features.values()), partitioner=_spread(partitioner)):
        return linear_model(features, columns, units=units, sparse_combiner=combiner)


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: object,
    activation_fn: Callable[[Tensor], Tensor],
    dropout: float | None,
    input_layer_partitioner: Callable[..., Sequence[int]],
    batch_norm: bool,
) -> Callable[[Mapping[str, object], str], Tensor]:
    """Returns a function from features and a mode to the logits of a network; see `DNNEstimator`.

    Raises:
      ValueError: ``units`` is not an int.
    """
    _check_units(units)

    def logits(features: Mapping[str, object], mode: str) -> Tensor:
        return _network(
            features,
            mode,
            units,
            hidden_units,
            feature_columns,
            activation_fn,
            dropout,
            batch_norm,
            input_layer_partitioner,
        )

    return logits


def linear_logit_fn_builder(
    units: int, feature_columns: Any, sparse_combiner: str = "sum"
) -> Callable[[Mapping[str, Any]], Tensor]:
    """Returns a function from features to the logits of a linear model; see `LinearEstimator`."""

    def logits(features: Mapping[str, Any]) -> Tensor:
        return linear_model(features, feature_columns, units=units, sparse_combiner=sparse_combiner)

    return logits


def _check_units(units: object) -> None:
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")


def _training(parts: Sequence[tuple[str, Any]]) -> Callable[[Tensor], Any]:
    """Trains the variables of each scope with its optimizer; counts the step once."""

    def train_op_fn(loss: Tensor) -> Any:
        step = get_global_step()
        with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):
            if len(parts) == 1:
                return parts[0][1].minimize(loss, global_step=step)
            ops = [
                optimizer.minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, scope))
                for scope, optimizer in parts
            ]
            trained = group(*ops)
        with control_dependencies([trained]):
            return assign_add(step, 1).op

    return train_op_fn


class Canned(Estimator):
    """An estimator that consists of a head and a function that computes its logits."""

    def __init__(
        self,
        head: Head,
        logits: Callable[[Mapping[str, Tensor], str, int], Tensor],
        optimizers: Callable[[], Sequence[tuple[str, Optimizer]]],
        model_dir: str | None,
        config: RunConfig,
        warm_start_from: Structure,
    ) -> None:
        def model_fn(features: Structure, labels: TensorLike, mode: str) -> Any:
            train = _training(optimizers()) if mode == ModeKeys.TRAIN else None
            found = logits(features, mode, head.logits_dimension)
            return head.create_estimator_spec(features, mode, found, labels=labels, train_op_fn=train)

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class Deep(Canned):
    """A deep model."""

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None,
        optimizer: Optimizer,
        activation_fn: Callable[[Tensor], Tensor],
        dropout: float | None,
        input_layer_partitioner: Partitioner | None,
        config: RunConfig,
        warm_start_from: Structure,
        batch_norm: bool,
    ) -> None:
        def logits(features: Structure, mode: str, units: int) -> Tensor:
            return _deep_logits(
                features,
                mode,
                units,
                hidden_units,
                feature_columns,
                activation_fn,
                dropout,
                batch_norm,
                input_layer_partitioner,
            )

        super().__init__(
            head, logits, lambda: [(_DEEP, optimizer_of(optimizer, DEEP_RATE))], model_dir, config, warm_start_from
        )


class DNNClassifier(Deep):
    """A deep model of classes.

    Args:
      hidden_units: the size of each hidden layer.
      feature_columns: the inputs.
      n_classes: number of classes.
      weight_column: key of the examples' weights.
      label_vocabulary: names of the classes, if labels are names.
      optimizer: a name, an optimizer, or a function that returns one.
      activation_fn: the activation of the hidden layers.
      dropout: probability with which an element of a hidden layer is set to 0 in training.
      input_layer_partitioner: see `variable_scope`.
      loss_reduction: see `Reduction`.
      batch_norm: normalize after each hidden layer.
      model_dir, config, warm_start_from: see `Estimator`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: str | DenseColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Tensor], Tensor] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: Any = None,
        warm_start_from: Structure = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class DNNRegressor(Deep):
    """A deep model of numbers. See `DNNClassifier`; a label has ``label_dimension`` numbers."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: str | None = None,
        optimizer: Any = "Adagrad",
        activation_fn: Callable[[Tensor], Tensor] = relu,
        dropout: float | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: Any = None,
        warm_start_from: Structure = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(
            label_dimension=label_dimension, weight_column=weight_column, loss_reduction=loss_reduction
        )
        super().__init__(
            head,
            hidden_units,
            feature_columns,
            model_dir,
            optimizer,
            activation_fn,
            dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
        )


class Linear(Canned):
    """A linear model."""

    def __init__(
        self,
        head: Head,
        feature_columns: Any,
        model_dir: str | None,
        optimizer: Optimizer,
        config: RunConfig,
        partitioner: Any,
        warm_start_from: Structure,
        sparse_combiner: str,
    ) -> None:
        def logits(features: Structure, mode: str, units: int) -> Tensor:
            del mode
            return _linear_logits(features, units, feature_columns, partitioner, sparse_combiner)

        rate = linear_rate(LINEAR_RATE, len(feature_columns))
        super().__init__(
            head, logits, lambda: [(_LINEAR, optimizer_of(optimizer, rate))], model_dir, config, warm_start_from
        )


class LinearClassifier(Linear):
    """A linear model of classes. See `DNNClassifier` and `linear_model`."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column: str | DenseColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Partitioner | None = None,
        warm_start_from: Structure = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            feature_columns,
            model_dir,
            optimizer,
            config,
            partitioner,
            warm_start_from,
            sparse_combiner,
        )


class LinearRegressor(Linear):
    """A linear model of numbers. See `DNNRegressor` and `linear_model`."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        label_dimension: int = 1,
        weight_column: str | None = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Partitioner | None = None,
        warm_start_from: Structure = None,
        loss_reduction: str = Reduction.SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(
            label_dimension=label_dimension, weight_column=weight_column, loss_reduction=loss_reduction
        )
        super().__init__(
            head, feature_columns, model_dir, optimizer, config, partitioner, warm_start_from, sparse_combiner
        )


class Together(Canned):
    """A linear and a deep model with the sum of their logits."""

    def __init__(
        self,
        head: Head,
        model_dir: str | None,
        linear_feature_columns: Any,
        linear_optimizer: Any,
        dnn_feature_columns: Any,
        dnn_optimizer: str | Optimizer | Callable[[], Optimizer] | type[Optimizer],
        dnn_hidden_units: Any,
        dnn_activation_fn: Callable[[Tensor], Tensor],
        dnn_dropout: Any,
        input_layer_partitioner: Any,
        config: RunConfig,
        warm_start_from: Structure,
        batch_norm: bool,
        linear_sparse_combiner: str,
    ) -> None:
        wide, deep = list(linear_feature_columns or ()), list(dnn_feature_columns or ())
        if not wide and not deep:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
        if deep and not dnn_hidden_units:
            raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")

        def logits(features: Structure, mode: str, units: int) -> Tensor:
            found: list[Tensor] = []
            if deep:
                found.append(
                    _deep_logits(
                        features,
                        mode,
                        units,
                        dnn_hidden_units,
                        deep,
                        dnn_activation_fn,
                        dnn_dropout,
                        batch_norm,
                        input_layer_partitioner,
                    )
                )
            if wide:
                found.append(_linear_logits(features, units, wide, input_layer_partitioner, linear_sparse_combiner))
            return found[0] if len(found) == 1 else found[0] + found[1]

        def optimizers() -> list[tuple[str, Optimizer]]:
            parts: list[tuple[str, Optimizer]] = []
            if deep:
                parts.append((_DEEP, optimizer_of(dnn_optimizer, _TOGETHER_DEEP_RATE)))
            if wide:
                rate = linear_rate(_TOGETHER_LINEAR_RATE, len(wide))
                parts.append((_LINEAR, optimizer_of(linear_optimizer, rate)))
            return parts

        super().__init__(head, logits, optimizers, model_dir, config, warm_start_from)


class DNNLinearCombinedClassifier(Together):
    """Classifier that adds the logits of a linear and a deep model (Cheng et al., Wide & Deep Learning, 2016)."""

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: ColumnsLike | None = None,
        linear_optimizer: str | Optimizer | Callable[[], Optimizer] | type[Optimizer] = "Ftrl",
        dnn_feature_columns: ColumnsLike | None = None,
        dnn_optimizer: str | Optimizer | Callable[[], Optimizer] | type[Optimizer] = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] = relu,
        dnn_dropout: float | None = None,
        n_classes: int = 2,
        weight_column: str | DenseColumn | None = None,
        label_vocabulary: Sequence[str] | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: Any = None,
        warm_start_from: Structure = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        super().__init__(
            class_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
            linear_sparse_combiner,
        )


class DNNLinearCombinedRegressor(Together):
    """Regressor that adds the results of a linear and a deep model."""

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: ColumnsLike | None = None,
        linear_optimizer: str | Optimizer | Callable[[], Optimizer] | type[Optimizer] = "Ftrl",
        dnn_feature_columns: ColumnsLike | None = None,
        dnn_optimizer: str | Optimizer | Callable[[], Optimizer] | type[Optimizer] = "Adagrad",
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] = relu,
        dnn_dropout: float | None = None,
        label_dimension: int = 1,
        weight_column: str | None = None,
        input_layer_partitioner: Partitioner | None = None,
        config: Any = None,
        warm_start_from: Structure = None,
        loss_reduction: str = Reduction.SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(
            label_dimension=label_dimension, weight_column=weight_column, loss_reduction=loss_reduction
        )
        super().__init__(
            head,
            model_dir,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            config,
            warm_start_from,
            batch_norm,
            linear_sparse_combiner,
        )
