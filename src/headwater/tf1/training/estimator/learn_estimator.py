"""The estimator of ``tf.contrib.learn`` for any model function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from headwater.data.spec import TensorSpec
from headwater.graph.operation import Tensor
from headwater.tf1.functional.arrays import placeholder
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.inputs import arguments_of
from headwater.tf1.training.estimator.learn import ARRAY, ArrayEstimator, input_fn_of
from headwater.tf1.training.estimator.metric_spec import items_of, metric_ops
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import Structure
    from headwater.tf1.training.scaffold import Scaffold
    from headwater.tf1.training.session_run_hook import SessionRunHook


class ModelFnOps(EstimatorSpec):
    """The model that a model function of `LearnEstimator` built; see `EstimatorSpec`.

    Raises:
      ValueError: ``output_alternatives`` are given, which are not supported.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Structure = None,
        loss: Tensor | None = None,
        train_op: Operation | Tensor | None = None,
        eval_metric_ops: Structure = None,
        output_alternatives: object = None,
        training_chief_hooks: Sequence[SessionRunHook] | None = None,
        training_hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
    ) -> Self:
        if output_alternatives is not None:
            raise ValueError("output_alternatives are not supported; use tf.estimator with export_outputs")
        hooks = training_chief_hooks, training_hooks
        return super().__new__(cls, mode, predictions, loss, train_op, eval_metric_ops, None, *hooks, scaffold)


def _specs(labels: Structure) -> Structure:
    """Returns the types and shapes of batches of labels; None for sparse labels."""
    items = items_of(labels)
    if items is not None:
        return {name: _specs(each) for name, each in items.items()}
    if not isinstance(labels, Tensor):
        return None
    return TensorSpec(None if labels.dims is None else [None, *labels.dims[1:]], labels.dtype)


def _placeholders(specs: Structure) -> Structure:
    """Returns placeholders for labels, for model functions that compute a loss from them also in predictions."""
    items = items_of(specs)
    if items is not None:
        return {name: _placeholders(each) for name, each in items.items()}
    return None if specs is None else placeholder(specs.dtype, specs.shape)


class LearnEstimator(ArrayEstimator):
    """Trains, evaluates and predicts with a model function.

    A prediction passes placeholders as labels if the estimator was trained or evaluated before, as TensorFlow does.

    Args:
      model_fn: a function of ``features``, ``labels`` and optionally ``mode``, ``params``, ``config`` and
        ``model_dir``, which returns `ModelFnOps`, or the predictions, the loss and the training operation.
      model_dir, config, params: see `Estimator`.
      feature_engineering_fn: a function of features and labels that returns the features and labels of the model.

    Raises:
      ValueError: there is no ``model_fn``, or it has no argument for ``params``.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any] | None = None,
        model_dir: str | None = None,
        config: object = None,
        params: Structure = None,
        feature_engineering_fn: Callable[..., tuple[Structure, Structure]] | None = None,
    ) -> None:
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        wanted = arguments_of(model_fn)
        if params is not None and "params" not in wanted:
            raise ValueError(
                f"Estimator's model_fn ({model_fn}) does not have a params argument, but params are passed"
            )

        def adapted(features: Structure, labels: Structure, mode: str, config: object) -> EstimatorSpec:
            items = items_of(features)
            if items is not None and list(items) == [ARRAY]:
                features = items[ARRAY]
            if mode != ModeKeys.PREDICT:
                self._label_specs = _specs(labels)
            elif labels is None:
                labels = _placeholders(self._label_specs)
            if feature_engineering_fn is not None:
                features, labels = feature_engineering_fn(features, labels)
            more = {"mode": mode, "params": params, "config": config, "model_dir": self.model_dir}
            found = model_fn(features, labels, **{name: value for name, value in more.items() if name in wanted})
            spec = found if isinstance(found, EstimatorSpec) else ModelFnOps(mode, *found)
            if mode != ModeKeys.EVAL or not self.eval_metrics:
                return spec
            further = metric_ops(self.eval_metrics, features, labels, spec.predictions)
            return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **further})

        self.eval_metrics: Mapping[Structure, Structure] | None = None
        self._label_specs: Structure = None
        super().__init__(adapted, model_dir, config)

    def evaluate(
        self, *args: Any, metrics: Mapping[Structure, Structure] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Returns the metrics of a checkpoint; see `ArrayEstimator.evaluate`.

        Args:
          args, kwargs: see `ArrayEstimator.evaluate`.
          metrics: further metrics, by name, see `headwater.tf1.training.estimator.metric_spec.metric_ops`.
        """
        kept = self.eval_metrics
        self.eval_metrics = metrics or kept
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            self.eval_metrics = kept

    def predict(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        outputs: Structure = None,
        as_iterable: bool = True,
    ) -> Any:
        """The predictions of each example; see `ArrayEstimator.predict`."""
        given = input_fn_of(x, None, input_fn, batch_size, epochs=1)
        found = Estimator.predict(self, given, outputs)
        if as_iterable:
            return found
        examples = list(found)
        if not examples or not isinstance(examples[0], dict):
            return np.array(examples)
        return {name: np.array([example[name] for example in examples]) for name in examples[0]}  # pyright: ignore[reportUnknownVariableType]
