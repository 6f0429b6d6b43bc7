"""Estimators with predefined models: linear, deep, and a combination of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
from headwater.tf1.training.estimator.heads import Head, class_head, number_head
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
    from headwater.tf1.training.optimizer import OptimizerLike
    from headwater.tf1.variables.partitioned import Partitioner


MIN_SLICE_BYTES = 64 << 20
_DEEP, _LINEAR = "dnn", "linear"
DEEP_RATE, LINEAR_RATE = 0.05, 0.2
_BOTH_DEEP_RATE, _BOTH_LINEAR_RATE = 0.001, 0.005


def optimizer_of(given: Any, rate: float) -> Any:
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


def _spread(partitioner: Partitioner | None) -> Partitioner | None:
    """Returns ``partitioner``, or a partitioner that cuts large tables into a part per ps; None without ps."""
    count = RunConfig().num_ps_replicas if partitioner is None else 0
    return min_max_variable_partitioner(count, min_slice_size=MIN_SLICE_BYTES) if count else partitioner


Logits = Callable[[Mapping[str, Any], str, int], Tensor]
"""A function of features, mode and number of logits."""


class Layers(NamedTuple):
    """Functions that build models; the names of variables depend on them.

    Attributes:
      inputs: concatenates the columns of features, in a variable scope.
      connect: a fully connected layer of a tensor, a size and an activation, in a variable scope.
      weigh: the logits of a linear model of features, columns, units and a combiner, in a variable scope.
    """

    inputs: Callable[[Mapping[str, Any], Any, Any], Tensor]
    connect: Callable[[Tensor, int, Callable[..., Tensor] | None, Any], Tensor]
    weigh: Callable[[Mapping[str, Any], Any, int, str, Any], Tensor]


def _inputs(features: Mapping[str, Any], columns: Any, scope: object) -> Tensor:
    del scope
    return input_layer(features, columns)


def _connect(net: Tensor, size: int, activation: Callable[..., Tensor] | None, scope: Any) -> Tensor:
    return dense(net, size, activation=activation, kernel_initializer=GlorotUniform(), name=scope)


def _weigh(features: Mapping[str, Any], columns: Any, units: int, combiner: str, scope: object) -> Tensor:
    del scope
    return linear_model(features, columns, units=units, sparse_combiner=combiner)


LAYERS = Layers(_inputs, _connect, _weigh)
"""The functions of ``tf.estimator``'s models."""


def _network(
    hidden_units: Sequence[int],
    columns: Any,
    activation: Callable[..., Tensor],
    drop: float | None,
    partitioner: Partitioner | None,
    normalize: bool,
    layers: Layers = LAYERS,
) -> Logits:
    def logits(features: Mapping[str, Any], mode: str, units: int) -> Tensor:
        training = mode == ModeKeys.TRAIN
        with variable_scope("input_from_feature_columns", partitioner=_spread(partitioner)) as scope:
            net = layers.inputs(features, columns, scope)
        for index, size in enumerate(hidden_units):
            with variable_scope(f"hiddenlayer_{index}", values=(net,)) as scope:
                net = layers.connect(net, size, activation, scope)
                if drop is not None and training:
                    net = dropout(net, rate=drop, training=True)
                if normalize:
                    net = batch_normalization(net, momentum=0.999, training=training, name=f"batchnorm_{index}")
        with variable_scope("logits", values=(net,)) as scope:
            return layers.connect(net, units, None, scope)

    return logits


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
    if not isinstance(units, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"units must be an int.  Given type: {type(units)}")
    network = _network(hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm)
    return lambda features, mode: network(features, mode, units)


def linear_logit_fn_builder(
    units: int, feature_columns: Any, sparse_combiner: str = "sum"
) -> Callable[[Mapping[str, Any]], Tensor]:
    """Returns a function from features to the logits of a linear model; see `LinearEstimator`."""

    def logits(features: Mapping[str, Any]) -> Tensor:
        return linear_model(features, feature_columns, units=units, sparse_combiner=sparse_combiner)

    return logits


class Part(NamedTuple):
    """A model with separate variables and a separate optimizer.

    Attributes:
      scope: the variable scope of the model.
      logits: computes its logits, in this scope.
      optimizer: returns the optimizer of its variables.
    """

    scope: str
    logits: Logits
    optimizer: Callable[[], Any]


def deep_part(
    optimizer: OptimizerLike,
    rate: float,
    hidden_units: Sequence[int],
    columns: object,
    activation: Callable[..., Tensor],
    drop: float | None,
    partitioner: Partitioner | None,
    normalize: bool,
    layers: Layers = LAYERS,
) -> Part:
    """Returns a deep model; ``rate`` is the learning rate of an optimizer given by name. See `DNNClassifier`."""
    network = _network(hidden_units, columns, activation, drop, partitioner, normalize, layers)

    def logits(features: Mapping[str, Any], mode: str, units: int) -> Tensor:
        with variable_scope(_DEEP, values=tuple(features.values()), partitioner=_spread(partitioner)):
            return network(features, mode, units)

    return Part(_DEEP, logits, lambda: optimizer_of(optimizer, rate))


def linear_part(
    optimizer: OptimizerLike,
    most: float,
    columns: Any,
    partitioner: Partitioner | None,
    combiner: str,
    layers: Layers = LAYERS,
) -> Part:
    """Returns a linear model; ``most`` limits the learning rate of an optimizer given by name. See `linear_model`."""
    rate = linear_rate(most, len(columns))

    def logits(features: Mapping[str, Any], mode: str, units: int) -> Tensor:
        del mode
        with variable_scope(_LINEAR, values=tuple(features.values()), partitioner=_spread(partitioner)) as scope:
            return layers.weigh(features, columns, units, combiner, scope)

    return Part(_LINEAR, logits, lambda: optimizer_of(optimizer, rate))


def both_parts(
    linear_columns: Any,
    linear_optimizer: OptimizerLike,
    combiner: str,
    deep_columns: Any,
    deep_optimizer: OptimizerLike,
    hidden_units: Sequence[int] | None,
    activation: Callable[..., Tensor],
    drop: float | None,
    partitioner: Partitioner | None,
    normalize: bool,
) -> list[Part]:
    """Returns a deep and a linear model, or one of them if the other one has no columns.

    Raises:
      ValueError: both have no columns, or the deep model has no hidden layers.
    """
    wide, deep = list(linear_columns or ()), list(deep_columns or ())
    if not wide and not deep:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    if deep and not hidden_units:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
    parts: list[Part] = []
    if deep:
        network = (hidden_units or (), deep, activation, drop, partitioner, normalize)
        parts.append(deep_part(deep_optimizer, _BOTH_DEEP_RATE, *network))
    if wide:
        parts.append(linear_part(linear_optimizer, _BOTH_LINEAR_RATE, wide, partitioner, combiner))
    return parts


def _train(loss: Tensor, optimizers: Mapping[str, Any]) -> Any:
    """Returns the operation that trains the variables of each scope with its optimizer, and counts the step once."""
    step = get_global_step()
    with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):
        if len(optimizers) == 1:
            return next(iter(optimizers.values())).minimize(loss, global_step=step)
        ops = [
            optimizer.minimize(loss, var_list=get_collection(GraphKeys.TRAINABLE_VARIABLES, scope))
            for scope, optimizer in optimizers.items()
        ]
        trained = group(*ops)
    with control_dependencies([trained]):
        return assign_add(step, 1).op


class Canned(Estimator):
    """An estimator that consists of a head and of one or several models, whose logits are added."""

    def __init__(
        self, head: Head, parts: Sequence[Part], model_dir: str | None, config: Any, warm_start_from: Structure = None
    ) -> None:
        def model_fn(features: Structure, labels: TensorLike, mode: str) -> Any:
            optimizers = {part.scope: part.optimizer() for part in parts} if mode == ModeKeys.TRAIN else {}
            first, *others = [part.logits(features, mode, head.logits_dimension) for part in parts]
            logits = sum(others, start=first)
            return head.create_estimator_spec(
                features, mode, logits, labels=labels, train_op_fn=lambda loss: _train(loss, optimizers)
            )

        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


class DNNClassifier(Canned):
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
        head = class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        network = (hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm)
        super().__init__(head, [deep_part(optimizer, DEEP_RATE, *network)], model_dir, config, warm_start_from)


class DNNRegressor(Canned):
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
        head = number_head(label_dimension, weight_column, loss_reduction)
        network = (hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm)
        super().__init__(head, [deep_part(optimizer, DEEP_RATE, *network)], model_dir, config, warm_start_from)


class LinearClassifier(Canned):
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
        head = class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        part = linear_part(optimizer, LINEAR_RATE, feature_columns, partitioner, sparse_combiner)
        super().__init__(head, [part], model_dir, config, warm_start_from)


class LinearRegressor(Canned):
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
        head = number_head(label_dimension, weight_column, loss_reduction)
        part = linear_part(optimizer, LINEAR_RATE, feature_columns, partitioner, sparse_combiner)
        super().__init__(head, [part], model_dir, config, warm_start_from)


class DNNLinearCombinedClassifier(Canned):
    """Classifier that adds the logits of a linear and a deep model (Cheng et al., Wide & Deep Learning, 2016)."""

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: ColumnsLike | None = None,
        linear_optimizer: OptimizerLike = "Ftrl",
        dnn_feature_columns: ColumnsLike | None = None,
        dnn_optimizer: OptimizerLike = "Adagrad",
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
        head = class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        wide = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        deep = (dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout)
        parts = both_parts(*wide, *deep, input_layer_partitioner, batch_norm)
        super().__init__(head, parts, model_dir, config, warm_start_from)


class DNNLinearCombinedRegressor(Canned):
    """Regressor that adds the results of a linear and a deep model."""

    def __init__(
        self,
        model_dir: str | None = None,
        linear_feature_columns: ColumnsLike | None = None,
        linear_optimizer: OptimizerLike = "Ftrl",
        dnn_feature_columns: ColumnsLike | None = None,
        dnn_optimizer: OptimizerLike = "Adagrad",
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
        head = number_head(label_dimension, weight_column, loss_reduction)
        wide = (linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        deep = (dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout)
        parts = both_parts(*wide, *deep, input_layer_partitioner, batch_norm)
        super().__init__(head, parts, model_dir, config, warm_start_from)
