"""Heads of ``tf.contrib.estimator``, also under the names of TensorFlow's modules of canned estimators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headwater.tf1.functional.weighted_losses import Reduction
from headwater.tf1.training.estimator.public_heads import (
    BinaryClassHead,
    Head,
    LogisticRegressionHead,
    MultiClassHead,
    PoissonRegressionHead,
    RegressionHead,
)
from headwater.tf1.training.estimator.several_heads import MultiHead, MultiLabelHead
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.training.optimizers.adagrad import AdagradOptimizer
from headwater.tf1.training.optimizers.adam import AdamOptimizer
from headwater.tf1.training.optimizers.descent import GradientDescentOptimizer
from headwater.tf1.training.optimizers.ftrl import FtrlOptimizer
from headwater.tf1.training.optimizers.rmsprop import RMSPropOptimizer

_Loss = Callable[..., object]


def binary_classification_head(
    weight_column: str | None = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: _Loss | None = None,
    name: str | None = None,
) -> Head:
    """Returns a head for two classes; arguments as for `BinaryClassHead`."""
    return _of_1(BinaryClassHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name))


def multi_class_head(
    n_classes: int,
    weight_column: str | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: _Loss | None = None,
    name: str | None = None,
) -> Head:
    """Returns a head for more than two classes; arguments as for `MultiClassHead`."""
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def regression_head(
    weight_column: str | None = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: _Loss | None = None,
    inverse_link_fn: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Head:
    """Returns a head for numbers; arguments as for `RegressionHead`."""
    return RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: str | None = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> Head:
    """Returns a head for counts; arguments as for `PoissonRegressionHead`."""
    return PoissonRegressionHead(label_dimension, weight_column, loss_reduction, compute_full_loss, name)


def logistic_regression_head(
    weight_column: str | None = None, loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE, name: str | None = None
) -> Head:
    """Returns a head for probabilities; arguments as for `LogisticRegressionHead`."""
    return LogisticRegressionHead(weight_column, loss_reduction, name)


def multi_label_head(
    n_classes: int,
    weight_column: str | None = None,
    thresholds: Sequence[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: _Loss | None = None,
    classes_for_class_based_metrics: Sequence[int] | Sequence[str] | None = None,
    name: str | None = None,
) -> Head:
    """Returns a head for any number of classes at once; arguments as for `MultiLabelHead`."""
    settings = (thresholds, label_vocabulary, loss_reduction, loss_fn, classes_for_class_based_metrics, name)
    return _of_1(MultiLabelHead(n_classes, weight_column, *settings))


def multi_head(heads: Sequence[Head], head_weights: Sequence[float] | None = None) -> Head:
    """Returns several heads as one; arguments as for `MultiHead`."""
    return MultiHead(heads, head_weights)


def _of_1(head: Head) -> Head:
    """Makes a head sum areas as the heads of TensorFlow 1 do."""
    object.__setattr__(head, "_summation", "trapezoidal")
    return head


# Functions of TensorFlow's module canned.head, which programs import in spite of the underscore. ----------------------


def binary_or_multi_class_head(
    n_classes: int, weight_column: str | None, label_vocabulary: Sequence[str] | None, loss_reduction: str
) -> Head:
    """Returns a head for two classes, or for more."""
    if n_classes == 2:
        return binary_classification_head(weight_column, None, label_vocabulary, loss_reduction)
    return multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)


def _with_sums(make: Callable[..., Head]) -> Callable[..., Head]:
    """Returns a function like ``make`` that sums the loss over a batch by default."""

    @functools.wraps(make)
    def wrapper(*args: object, **kwargs: object) -> Head:
        given = inspect.signature(make).bind(*args, **kwargs)
        given.arguments.setdefault("loss_reduction", Reduction.SUM)
        return make(**given.arguments)

    return wrapper


_binary_logistic_or_multi_class_head = binary_or_multi_class_head
_binary_logistic_head_with_sigmoid_cross_entropy_loss = _with_sums(binary_classification_head)
_multi_class_head_with_softmax_cross_entropy_loss = _with_sums(multi_class_head)
_regression_head = _with_sums(regression_head)
_Head = Head

_OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}


def get_optimizer_instance(opt: object, learning_rate: float | None = None) -> Optimizer:
    """Returns an optimizer for a name, an optimizer, or a function that returns one.

    Raises:
      ValueError: the name is not known, has no learning rate, or the result is not an optimizer.
    """
    if isinstance(opt, str):
        if opt not in _OPTIMIZERS:
            raise ValueError(f"Unsupported optimizer name: {opt}. Supported names are: {tuple(sorted(_OPTIMIZERS))}")
        if not learning_rate:
            raise ValueError("learning_rate must be specified when opt is string.")
        return _OPTIMIZERS[opt](learning_rate=learning_rate)
    found = opt() if callable(opt) else opt
    if not isinstance(found, Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {found}")
    return found
