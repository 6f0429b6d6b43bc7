"""Linear and deep models of ``tf.contrib.learn``, and scikit-learn's interface to its estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from headwater.graph.collections import GraphKeys
from headwater.graph.convert import name_scope
from headwater.tf1.contrib.slim.layers import fully_connected
from headwater.tf1.feature_columns.old_inputs import input_from_feature_columns, weighted_sum_from_feature_columns
from headwater.tf1.functional import arrays, math
from headwater.tf1.functional.clip import clip_by_global_norm
from headwater.tf1.functional.default_graph import control_dependencies, get_collection
from headwater.tf1.functional.gradients import gradients
from headwater.tf1.functional.nn import relu
from headwater.tf1.functional.weighted_losses import Reduction
from headwater.tf1.metrics import means
from headwater.tf1.training.estimator import canned
from headwater.tf1.training.estimator.export import RegressionOutput
from headwater.tf1.training.estimator.heads import (
    BinaryHead,
    Head,
    MultiClassHead,
    RegressionHead,
    class_head,
)
from headwater.tf1.training.estimator.learn import ARRAY, WithParams, require_none
from headwater.tf1.training.estimator.learn_estimator import LearnEstimator
from headwater.tf1.training.estimator.metric_spec import MetricSpec, items_of
from headwater.tf1.training.estimator.run_config import RunConfig
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.training.optimizers.adagrad import AdagradOptimizer
from headwater.tf1.training.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from headwater.tf1.training.train_ops import optimize_loss
from headwater.tf1.training.training_util import get_global_step
from headwater.tf1.variables.partitioned import min_max_variable_partitioner
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.types import Structure
    from headwater.tf1.feature_columns.base import Column
    from headwater.tf1.training.optimizer import OptimizerLike

EngineeringFn = Callable[[Any, Any], tuple[Any, Any]]
"""A function of features and labels that returns the features and labels of the model."""

_METRICS = {
    "accuracy_baseline": "accuracy/baseline_label_mean",
    "label/mean": "labels/actual_label_mean",
    "precision": "precision/positive_threshold_0.500000_mean",
    "prediction/mean": "labels/prediction_mean",
    "recall": "recall/positive_threshold_0.500000_mean",
}
"""Names of ``tf.contrib.learn`` for metrics of ``tf.estimator``'s classifiers."""

_MEAN = Reduction.SUM_OVER_BATCH_SIZE


def _inputs(features: Mapping[str, Any], columns: Any, scope: Any) -> Tensor:
    if all(column.of_contrib for column in columns):
        return input_from_feature_columns(features, columns, scope=scope)
    return canned.LAYERS.inputs(features, columns, scope)


def _weigh(features: Mapping[str, Any], columns: Any, units: int, combiner: str, scope: Any) -> Tensor:
    if all(column.of_contrib for column in columns):
        return weighted_sum_from_feature_columns(features, columns, units, scope=scope)[0]
    return canned.LAYERS.weigh(features, columns, units, combiner, scope)


def _slices(shape: Any, dtype: Any) -> Sequence[int]:
    """Cuts large variables into a part per ps, and others into one part, whose slots have TensorFlow 1.15's names."""
    most = max(1, RunConfig().num_ps_replicas)
    return min_max_variable_partitioner(most, min_slice_size=canned.MIN_SLICE_BYTES)(shape, dtype)


def _connect(net: Tensor, size: int, activation: Callable[..., Tensor] | None, scope: Any) -> Tensor:
    return fully_connected(net, size, activation, scope=scope)


_LAYERS = canned.Layers(_inputs, _connect, _weigh)


class _Part(NamedTuple):
    """A model with separate variables; see `canned.Part`.

    Attributes:
      rate: the learning rate of an optimizer given by name.
    """

    scope: str
    logits: canned.Logits
    optimizer: OptimizerLike
    rate: float


def _deep(
    optimizer: OptimizerLike | None,
    hidden_units: Sequence[int],
    columns: Iterable[Column],
    activation: Callable[..., Tensor],
    dropout: float | None,
) -> _Part:
    network = (list(hidden_units), list(columns), activation, dropout, _slices, False)
    found = canned.deep_part("Adagrad", canned.DEEP_RATE, *network, layers=_LAYERS)
    return _Part(found.scope, found.logits, optimizer or "Adagrad", canned.DEEP_RATE)


def _linear(optimizer: OptimizerLike | None, columns: Iterable[Column]) -> _Part:
    given = list(columns)
    found = canned.linear_part("Ftrl", canned.LINEAR_RATE, given, _slices, "sum", _LAYERS)
    rate = canned.LINEAR_RATE if optimizer else canned.linear_rate(canned.LINEAR_RATE, len(given))
    return _Part(found.scope, found.logits, optimizer or "Ftrl", rate)


def _both(
    linear_columns: Iterable[Column] | None,
    linear_optimizer: OptimizerLike | None,
    deep_columns: Iterable[Column] | None,
    deep_optimizer: OptimizerLike | None,
    hidden_units: Sequence[int] | None,
    activation: Callable[..., Tensor],
    dropout: float | None,
) -> list[_Part]:
    """Returns the parts that have columns.

    Raises:
      ValueError: neither has columns, or the deep part has no hidden layers.
    """
    wide, deep = list(linear_columns or ()), list(deep_columns or ())
    if not wide and not deep:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    if deep and not hidden_units:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
    parts = [_deep(deep_optimizer, hidden_units or (), deep, activation, dropout)] if deep else []
    return [*parts, _linear(linear_optimizer, wide)] if wide else parts


@dataclass(frozen=True, kw_only=True)
class _BinaryHead(BinaryHead):
    """`BinaryHead` with the metrics of ``tf.contrib.learn``, of which one counts 0.5 as class 1."""

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, object]:
        found = super()._metrics(labels, predictions, weights)
        above = math.to_float(math.greater_equal(predictions["logistic"], 0.5))
        renamed = {_METRICS.get(key, key): value for key, value in found.items()}
        return {**renamed, "accuracy/threshold_0.500000_mean": means.accuracy(labels, above, weights)}


@dataclass(frozen=True, kw_only=True)
class _NumberHead(RegressionHead):
    """`RegressionHead` without other metrics than the loss."""

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: object) -> dict[str, object]:
        del labels, predictions, weights
        return {}


def _classes(n_classes: int, weights: str | None, label_keys: Sequence[str] | None) -> Head:
    if n_classes == 2:
        if label_keys:
            raise ValueError("label_keys is not supported for n_classes=2.")
        return _BinaryHead(weight_column=weights, loss_reduction=_MEAN)
    return class_head(n_classes, weights, label_keys, _MEAN)


def _numbers(label_dimension: int, weights: str | None) -> Head:
    return _NumberHead(label_dimension=label_dimension, weight_column=weights, loss_reduction=_MEAN)


def _scope(head: Head) -> str:
    if isinstance(head, RegressionHead):
        return "regression_head"
    return "binary_logistic_head" if isinstance(head, BinaryHead) else "multi_class_head"


def _predictions(head: Head, found: Any) -> dict[str, Tensor]:
    """Returns predictions under the names of ``tf.contrib.learn``."""
    if isinstance(head, RegressionHead):
        scores = found["predictions"]
        return {"scores": arrays.squeeze(scores, [1]) if head.logits_dimension == 1 else scores}
    named = isinstance(head, MultiClassHead) and head.label_vocabulary is not None
    classes = arrays.squeeze(found["classes" if named else "class_ids"], [1])
    return {key: found[key] for key in ("logits", "logistic", "probabilities") if key in found} | {"classes": classes}


def _train(
    loss: Tensor, parts: Sequence[_Part], scope: str, clip_norm: float | None, joint: bool, *others: Operation
) -> Operation:
    """Returns the operation that trains the variables of each part with its optimizer, runs ``others``, and counts the
    step once."""
    step = get_global_step()
    clip = None if clip_norm is None else float(clip_norm)
    # Variables of optimizers that are no slots are named after the name scope.
    with variable_scope(scope), name_scope("train_op"):
        ops: list[Tensor | Operation] = [*others]
        for part in parts:
            own = get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{part.scope}/")
            if part.scope == "linear" and not joint:
                # A linear model alone has no variable of its learning rate, and does not train a centered bias.
                own = [each for each in own if not each.op.name.startswith(f"{scope}/")]
                grads = gradients(loss, own)
                if clip is not None:
                    grads, _ = clip_by_global_norm(grads, clip)
                made = canned.optimizer_of(part.optimizer, part.rate)
                ops.append(made.apply_gradients(zip(grads, own, strict=True)))
                continue
            given = part.optimizer
            made = given if isinstance(given, str) else canned.optimizer_of(given, part.rate)
            settings: dict[str, Any] = {"clip_gradients": clip, "variables": own, "name": part.scope, "summaries": []}
            ops.append(optimize_loss(loss, step, part.rate, made, **settings, increment_global_step=False))
    with control_dependencies(ops):
        return assign_add(step, 1).op


@dataclass(frozen=True)
class _CenteredBias:
    """A bias of the logits, which is trained by itself to predict the labels.

    Attributes:
      scope: the variable scope of the head.
      variable: its value for each logit.
    """

    scope: str
    variable: Any

    @staticmethod
    def made(scope: str, size: int) -> _CenteredBias:
        with variable_scope(scope, auxiliary_name_scope=False) as inner:
            inner.set_partitioner(None)
            return _CenteredBias(scope, get_variable("centered_bias_weight", initializer=arrays.zeros([size])))

    def train(self, head: Head, features: Mapping[str, Any], labels: Structure, logits: Tensor) -> Operation:
        """Returns the operation of a step: Adagrad with the rate 0.1, as in TensorFlow 1.15."""
        losses = [
            replace(head, loss_reduction=reduction).loss_of(features, labels, arrays.zeros_like(logits) + self.variable)
            for reduction in (_MEAN, Reduction.MEAN)
        ]
        with variable_scope(self.scope, auxiliary_name_scope=False):
            return AdagradOptimizer(0.1).minimize(math.add_n(losses) / 2, var_list=[self.variable])


class _Model(LearnEstimator):
    """An estimator with a head and one or several models, whose logits are added.

    Args:
      clip_norm: the largest global norm of each part's gradients.
      joint: whether its class combines several models, even if one has no columns.
      centered: whether the logits have a bias that is trained by itself.
    """

    _result: ClassVar[str]
    _output_alternatives: ClassVar[list[str | None]] = [None]

    def __init__(
        self,
        head: Head,
        parts: Sequence[_Part],
        model_dir: str | None,
        config: RunConfig | None,
        clip_norm: float | None,
        feature_engineering_fn: EngineeringFn | None,
        joint: bool = False,
        centered: bool = False,
    ) -> None:
        scope = _scope(head) if joint else f"{parts[0].scope}/{_scope(head)}"

        def model_fn(features: Structure, labels: Structure, mode: str) -> EstimatorSpec:
            features = items_of(features) or {ARRAY: features}
            first, *others = [part.logits(features, mode, head.logits_dimension) for part in parts]
            logits = sum(others, start=first)
            bias = _CenteredBias.made(scope, head.logits_dimension) if centered else None

            def train(loss: Tensor) -> Operation:
                extra = [] if bias is None else [bias.train(head, features, labels, logits)]
                return _train(loss, parts, scope, clip_norm, joint, *extra)

            # An evaluation divides the sum of weighted losses by the sum of weights, a training step by their number.
            chosen = replace(head, loss_reduction=Reduction.MEAN) if mode == ModeKeys.EVAL else head
            spec = chosen.create_estimator_spec(
                features,
                mode,
                logits if bias is None else logits + bias.variable,
                labels=labels,
                train_op_fn=train,
            )
            if mode == ModeKeys.TRAIN:
                return spec
            predictions = _predictions(head, spec.predictions)
            if mode == ModeKeys.EVAL:
                metrics = {name: value for name, value in spec.eval_metric_ops.items() if name != "average_loss"}
                return spec._replace(predictions=predictions, eval_metric_ops=metrics)
            scores = predictions.get("scores")
            classified = dict(spec.export_outputs or {})[DEFAULT_SERVING_SIGNATURE_DEF_KEY]
            default = classified if scores is None else RegressionOutput(scores)
            exports = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: default, "default_input_alternative:None": default}
            return spec._replace(predictions=predictions, export_outputs=exports)

        super().__init__(model_fn, model_dir, config, feature_engineering_fn=feature_engineering_fn)

    def predict(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        outputs: Structure = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the class or the number of each example.

        Args:
          outputs: names of predictions to return in place of classes or numbers, in a dictionary for each example.
          as_iterable: whether to yield the results; otherwise, returns an array of all results.

        Raises:
          ValueError: both arrays and ``input_fn`` are given, or neither.
        """
        if not outputs:
            return self._one(self._result, x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, list(outputs), as_iterable)

    def _one(
        self,
        key: str,
        x: object,
        input_fn: Callable[..., Structure] | None,
        batch_size: int | None,
        as_iterable: bool,
    ) -> Any:
        found = super().predict(x, input_fn, batch_size, [key], as_iterable)
        return (each[key] for each in found) if as_iterable else found[key]


class _Classifier(_Model):
    _result = "classes"

    def predict_classes(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the class of each example; see `predict`."""
        return self._one("classes", x, input_fn, batch_size, as_iterable)

    def predict_proba(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the probabilities of all classes for each example; see `predict`."""
        return self._one("probabilities", x, input_fn, batch_size, as_iterable)


class _Regressor(_Model):
    _result = "scores"

    def predict_scores(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the numbers of each example; see `predict`."""
        return self._one("scores", x, input_fn, batch_size, as_iterable)


class _ScoredRegressor(_Regressor):
    def _with_keys(self, metrics: Mapping[Structure, Structure]) -> Mapping[Structure, Structure]:
        return {
            (key, "scores") if isinstance(key, str) and not isinstance(metric, MetricSpec) else key: metric
            for key, metric in metrics.items()
        }


class LinearClassifier(_Classifier):
    """A linear model of classes."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: OptimizerLike | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: EngineeringFn | None = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        require_none(_joint_weight=_joint_weight or None)
        head = _classes(n_classes, weight_column_name, label_keys)
        part = _linear(optimizer, feature_columns)
        super().__init__(
            head,
            [part],
            model_dir,
            config,
            gradient_clip_norm,
            feature_engineering_fn,
            centered=enable_centered_bias,
        )


class LinearRegressor(_Regressor):
    """A linear model of numbers; a label has ``label_dimension`` numbers."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: OptimizerLike | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: EngineeringFn | None = None,
    ) -> None:
        require_none(_joint_weights=_joint_weights or None)
        head = _numbers(label_dimension, weight_column_name)
        part = _linear(optimizer, feature_columns)
        super().__init__(
            head,
            [part],
            model_dir,
            config,
            gradient_clip_norm,
            feature_engineering_fn,
            centered=enable_centered_bias,
        )


class DNNClassifier(_Classifier):
    """A deep model of classes."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: OptimizerLike | None = None,
        activation_fn: Callable[[Tensor], Tensor] = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: EngineeringFn | None = None,
        embedding_lr_multipliers: object = None,
        input_layer_min_slice_size: object = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        require_none(
            embedding_lr_multipliers=embedding_lr_multipliers,
            input_layer_min_slice_size=input_layer_min_slice_size,
        )
        head = _classes(n_classes, weight_column_name, label_keys)
        part = _deep(optimizer, hidden_units, feature_columns, activation_fn, dropout)
        super().__init__(
            head,
            [part],
            model_dir,
            config,
            gradient_clip_norm,
            feature_engineering_fn,
            centered=enable_centered_bias,
        )


class DNNRegressor(_ScoredRegressor):
    """A deep model of numbers; a label has ``label_dimension`` numbers."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: OptimizerLike | None = None,
        activation_fn: Callable[[Tensor], Tensor] = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: EngineeringFn | None = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: object = None,
        input_layer_min_slice_size: object = None,
    ) -> None:
        require_none(
            embedding_lr_multipliers=embedding_lr_multipliers,
            input_layer_min_slice_size=input_layer_min_slice_size,
        )
        head = _numbers(label_dimension, weight_column_name)
        part = _deep(optimizer, hidden_units, feature_columns, activation_fn, dropout)
        super().__init__(
            head,
            [part],
            model_dir,
            config,
            gradient_clip_norm,
            feature_engineering_fn,
            centered=enable_centered_bias,
        )


class DNNLinearCombinedClassifier(_Classifier):
    """Classifier that adds the logits of a linear and a deep model."""

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Sequence[Column] | None = None,
        linear_optimizer: OptimizerLike | None = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Sequence[Column] | None = None,
        dnn_optimizer: OptimizerLike | None = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: EngineeringFn | None = None,
        embedding_lr_multipliers: object = None,
        input_layer_min_slice_size: object = None,
        label_keys: Sequence[str] | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        del fix_global_step_increment_bug  # a training step always counts once here, as with True
        require_none(
            _joint_linear_weights=_joint_linear_weights or None,
            embedding_lr_multipliers=embedding_lr_multipliers,
            input_layer_min_slice_size=input_layer_min_slice_size,
        )
        head = _classes(n_classes, weight_column_name, label_keys)
        wide, deep = (linear_feature_columns, linear_optimizer), (dnn_feature_columns, dnn_optimizer)
        parts = _both(*wide, *deep, dnn_hidden_units, dnn_activation_fn, dnn_dropout)
        super().__init__(
            head,
            parts,
            model_dir,
            config,
            gradient_clip_norm,
            feature_engineering_fn,
            joint=True,
            centered=enable_centered_bias,
        )


class DNNLinearCombinedRegressor(_ScoredRegressor):
    """Regressor that adds the results of a linear and a deep model."""

    def __init__(
        self,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Sequence[Column] | None = None,
        linear_optimizer: OptimizerLike | None = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Sequence[Column] | None = None,
        dnn_optimizer: OptimizerLike | None = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: RunConfig | None = None,
        feature_engineering_fn: EngineeringFn | None = None,
        embedding_lr_multipliers: object = None,
        input_layer_min_slice_size: object = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        del fix_global_step_increment_bug  # a training step always counts once here, as with True
        require_none(
            _joint_linear_weights=_joint_linear_weights or None,
            embedding_lr_multipliers=embedding_lr_multipliers,
            input_layer_min_slice_size=input_layer_min_slice_size,
        )
        head = _numbers(label_dimension, weight_column_name)
        wide, deep = (linear_feature_columns, linear_optimizer), (dnn_feature_columns, dnn_optimizer)
        parts = _both(*wide, *deep, dnn_hidden_units, dnn_activation_fn, dnn_dropout)
        super().__init__(
            head,
            parts,
            model_dir,
            config,
            gradient_clip_norm,
            feature_engineering_fn,
            joint=True,
            centered=enable_centered_bias,
        )


class SKCompat(WithParams):
    """scikit-learn's interface to an estimator of ``tf.contrib.learn``."""

    def __init__(self, estimator: LearnEstimator) -> None:
        self._estimator = estimator

    def fit(
        self,
        x: object,
        y: object,
        batch_size: int = 128,
        steps: int | None = None,
        max_steps: int | None = None,
        monitors: Sequence[Structure] | None = None,
    ) -> Self:
        """Trains on arrays; see `LearnEstimator.fit`."""
        self._estimator.fit(x, y, None, steps, batch_size, monitors, max_steps)
        return self

    def score(
        self,
        x: object,
        y: object,
        batch_size: int = 128,
        steps: int | None = None,
        metrics: Mapping[Structure, Structure] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Returns the metrics on arrays; see `LearnEstimator.evaluate`.

        Raises:
          ValueError: ``metrics`` are not a dictionary.
        """
        if metrics is not None and items_of(metrics) is None:
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        return LearnEstimator.evaluate(
            self._estimator, x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name
        )

    def predict(self, x: object, batch_size: int = 128, outputs: Structure = None) -> Any:
        """Returns all predictions as arrays, in a dictionary if the model has several or names them."""
        return LearnEstimator.predict(self._estimator, x, None, batch_size, outputs, as_iterable=False)
