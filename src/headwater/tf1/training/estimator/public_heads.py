"""Heads of ``tf.estimator`` for custom models: turn logits into predictions, a loss and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Tensor
from headwater.tf1.functional import losses, math
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.reductions import reduce_sum
from headwater.tf1.functional.weighted_losses import Reduction, compute_weighted_loss
from headwater.tf1.metrics import counts, means
from headwater.tf1.training.estimator import heads
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.training.training_util import get_global_step

if TYPE_CHECKING:
    from headwater.graph.types import OpOrTensor, Structure, TensorLike
    from headwater.tf1.training.optimizer import Optimizer


_REDUCTIONS = {"sum_over_batch_size": Reduction.SUM_OVER_BATCH_SIZE, "sum": Reduction.SUM}


class Head(heads.Head):
    """Base of the heads that programs make."""

    _summation = "careful_interpolation"
    _name: str | None = None
    _loss_fn: Callable[..., Structure] | None = None

    def _set(self, name: str | None, loss_fn: Callable[..., object] | None, **more: object) -> None:
        for key, value in {"_name": name, "_loss_fn": loss_fn, **more}.items():
            object.__setattr__(self, key, value)  # frozen: settings of a head never change

    @property
    def name(self) -> str | None:
        """Suffix of the names of its metrics."""
        return self._name

    def predictions(self, logits: TensorLike, keys: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Returns predictions by their names, restricted to ``keys`` if given.

        Raises:
          ValueError: there is no such prediction.
        """
        found = self._predictions(convert_to_tensor(logits))
        missing = [key for key in keys or () if key not in found]
        if missing:
            raise ValueError(f"Prediction key must be in {sorted(found)}. Given: {missing[0]}")
        return found if keys is None else {key: found[key] for key in keys}

    def loss(
        self,
        labels: TensorLike,
        logits: TensorLike,
        features: Structure = None,
        mode: object = None,
        regularization_losses: Sequence[TensorLike] | None = None,
    ) -> Tensor:
        """Returns the loss of a batch, including regularization losses if given."""
        del mode
        checked = self._labels(labels)
        return self._whole_loss(checked, convert_to_tensor(logits), features, regularization_losses)[0]

    def _each_loss(self, labels: Tensor, logits: Tensor) -> Tensor:
        if self._loss_fn is None:
            return self._loss(labels, logits)
        return convert_to_tensor(self._loss_fn(labels=labels, logits=logits))

    def _whole_loss(
        self, labels: Tensor, logits: Tensor, features: Structure, more: Any
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        each = self._each_loss(labels, logits)
        weights = None if features is None else self._weights(features)
        loss = compute_weighted_loss(
            each, 1.0 if weights is None else weights, reduction=_REDUCTIONS[self.loss_reduction]
        )
        return regularized(loss, more), each, weights

    def create_estimator_spec(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        features: Mapping[str, Tensor],
        mode: str,
        logits: TensorLike,
        labels: Tensor | None = None,
        optimizer: Optimizer | None = None,
        trainable_variables: object = None,
        train_op_fn: Callable[[Tensor], OpOrTensor] | None = None,
        update_ops: object = None,
        regularization_losses: Sequence[TensorLike] | None = None,
    ) -> EstimatorSpec:
        """Returns the specification of a model with these logits.

        Args:
          features: the features of the batch, for weights.
          mode: one of `ModeKeys`.
          logits: (batch, `logits_dimension`).
          labels: the labels of the batch; may be None for predictions.
          optimizer: minimises the loss; or
          trainable_variables: the variables to train; all trainable variables if None.
          train_op_fn: returns the training operation for a loss.
          update_ops: operations to run before it.
          regularization_losses: losses to add to the loss.

        Raises:
          ValueError: labels are missing, or both or neither of ``optimizer`` and ``train_op_fn``.
        """
        logits = convert_to_tensor(logits)
        predictions = self._predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions, export_outputs=self._exports(predictions))
        if labels is None:
            raise ValueError("You must provide a labels Tensor. Given: None.")
        checked = self._labels(labels)
        loss, each, weights = self._whole_loss(checked, logits, features, regularization_losses)
        if mode == ModeKeys.EVAL:
            metrics = {"average_loss": means.mean(each, weights), **self._metrics(checked, predictions, weights)}
            if regularization_losses is not None:
                metrics["regularization_loss"] = means.mean(sum(map(reduce_sum, regularization_losses)))
            suffix = "" if self._name is None else f"/{self._name}"
            metrics = {f"{key}{suffix}": value for key, value in metrics.items()}
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
        train = training_op(loss, optimizer, trainable_variables, train_op_fn, update_ops)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train)


def regularized(loss: Tensor, more: Sequence[TensorLike] | None) -> Tensor:
    """A loss with regularization losses."""
    for item in more or ():
        loss = loss + reduce_sum(item)
    return loss


def at_thresholds(
    labels: Tensor, probabilities: Tensor, thresholds: Sequence[float], weights: TensorLike
) -> dict[str, object]:
    """Returns accuracy, precision and recall at each of ``thresholds``. A probability equal to a threshold counts as 1
    in the accuracy only, as in TensorFlow."""
    found: dict[str, object] = {}
    for threshold in thresholds:
        reached = math.cast(math.greater_equal(probabilities, threshold), labels.dtype)
        above = math.cast(math.greater(probabilities, threshold), labels.dtype)
        suffix = f"positive_threshold_{threshold:g}"
        found[f"accuracy/{suffix}"] = means.accuracy(labels, reached, weights)
        found[f"precision/{suffix}"] = counts.precision(labels, above, weights)
        found[f"recall/{suffix}"] = counts.recall(labels, above, weights)
    return found


def training_op(
    loss: Tensor, optimizer: Any, trainable_variables: Any, train_op_fn: Any, update_ops: Any
) -> OpOrTensor:
    """Returns the training operation, which runs after ``update_ops``.

    Raises:
      ValueError: not exactly one of ``optimizer`` and ``train_op_fn`` is given.
    """
    if (optimizer is None) == (train_op_fn is None):
        raise ValueError("train_op_fn and optimizer cannot both be None, nor both be given")
    with control_dependencies(list(update_ops or ())):
        if train_op_fn is not None:
            return train_op_fn(loss)
        return optimizer.minimize(loss, get_global_step(), var_list=trainable_variables)


def reduction_of(value: str) -> str:
    """Returns the reduction with this name in the arguments of heads.

    Raises:
      ValueError: there is no such reduction.
    """
    found = {Reduction.SUM: "sum", Reduction.SUM_OVER_BATCH_SIZE: "sum_over_batch_size"}.get(value, value)
    if found not in _REDUCTIONS:
        raise ValueError(f"Invalid loss_reduction: {value}. It must be one of {sorted(_REDUCTIONS)}")
    return found


class BinaryClassHead(Head, heads.BinaryHead):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Head for two classes, with the logit of class 1.

    Args:
      weight_column: key of the examples' weights, or a numeric column.
      thresholds: probabilities from which an example counts as class 1, for further metrics.
      label_vocabulary: the two classes' names, if labels are names.
      loss_reduction: ``sum_over_batch_size`` or ``sum``.
      loss_fn: function of ``labels`` and ``logits`` that returns each example's loss.
      name: suffix of the names of the metrics.

    Raises:
      ValueError: thresholds that are not between 0 and 1, or another reduction.
    """

    def __init__(
        self,
        weight_column: str | None = None,
        thresholds: Sequence[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Callable[..., object] | None = None,
        name: str | None = None,
    ) -> None:
        wrong = [threshold for threshold in thresholds or () if not 0 < threshold < 1]
        if wrong:
            raise ValueError(f"thresholds not in (0, 1): {tuple(thresholds or ())}.")
        super().__init__(
            weight_column=weight_column, loss_reduction=reduction_of(loss_reduction), label_vocabulary=label_vocabulary
        )
        self._set(name, loss_fn, _thresholds=tuple(thresholds or ()))

    _thresholds: tuple[float, ...] = ()

    def _metrics(self, labels: Tensor, predictions: Mapping[str, Tensor], weights: Any) -> dict[str, object]:
        found = super()._metrics(labels, predictions, weights)
        return {**found, **at_thresholds(labels, predictions["logistic"], self._thresholds, weights)}


class MultiClassHead(Head, heads.MultiClassHead):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Head for more than two classes, with a logit for each.

    Args:
      n_classes: number of classes, at least 3.
      weight_column, label_vocabulary, loss_reduction, loss_fn, name: see `BinaryClassHead`.

    Raises:
      ValueError: less classes, another number of names, or another reduction.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: str | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Callable[..., object] | None = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None or n_classes <= 2:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        if label_vocabulary is not None and len(label_vocabulary) != n_classes:
            raise ValueError(f"Length of label_vocabulary must be n_classes. Given: {label_vocabulary}")
        super().__init__(
            n_classes=n_classes,
            weight_column=weight_column,
            loss_reduction=reduction_of(loss_reduction),
            label_vocabulary=label_vocabulary,
        )
        self._set(name, loss_fn)


class RegressionHead(Head, heads.RegressionHead):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Head for numbers, with the squared error.

    Args:
      label_dimension: number of values of a label.
      inverse_link_fn: maps logits to predictions; the identity if None.
      weight_column, loss_reduction, loss_fn, name: see `BinaryClassHead`.

    Raises:
      ValueError: ``label_dimension`` is not positive, or another reduction.
    """

    _inverse_link_fn: Callable[[Tensor], Any] | None = None

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: str | None = None,
        loss_reduction: str = "sum_over_batch_size",
        loss_fn: Callable[..., object] | None = None,
        inverse_link_fn: Callable[[Tensor], Tensor] | None = None,
        name: str | None = None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        super().__init__(
            label_dimension=label_dimension, weight_column=weight_column, loss_reduction=reduction_of(loss_reduction)
        )
        self._set(name, loss_fn, _inverse_link_fn=inverse_link_fn)

    def _predictions(self, logits: Tensor) -> dict[str, Tensor]:
        if self._inverse_link_fn is None:
            return super()._predictions(logits)
        return {"predictions": self._inverse_link_fn(logits), "logits": logits}


class LogisticRegressionHead(RegressionHead):
    """Head for probabilities, labels from 0 to 1, with the cross entropy. See `RegressionHead`."""

    def __init__(
        self, weight_column: str | None = None, loss_reduction: str = "sum_over_batch_size", name: str | None = None
    ) -> None:
        def loss_fn(labels: Tensor, logits: Tensor) -> Tensor:
            return losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

        super().__init__(1, weight_column, loss_reduction, loss_fn, math.sigmoid, name)


class PoissonRegressionHead(RegressionHead):
    """Head for counts: predictions are exponentials of the logits, with the Poisson loss. See `RegressionHead`.

    Args:
      compute_full_loss: whether to include Stirling's term.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: str | None = None,
        loss_reduction: str = "sum_over_batch_size",
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        def loss_fn(labels: Tensor, logits: Tensor) -> Tensor:
            return losses.log_poisson_loss(targets=labels, log_input=logits, compute_full_loss=compute_full_loss)

        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, math.exp, name)
