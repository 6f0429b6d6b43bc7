"""The estimator of ``tf.contrib.learn`` for any model function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from headwater.data.spec import TensorSpec
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.operation import Tensor
from headwater.tf1.functional.arrays import placeholder
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.export import (
    PredictOutput,
    ServingInputReceiver,
    build_parsing_serving_input_receiver_fn,
)
from headwater.tf1.training.estimator.inputs import arguments_of
from headwater.tf1.training.estimator.learn import ARRAY, ArrayEstimator, WithParams, input_fn_of, require_none
from headwater.tf1.training.estimator.metric_spec import items_of, metric_ops
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.training.saved_model import DEFAULT_SERVING_SIGNATURE_DEF_KEY, SERVING
from headwater.tf1.training.session_run_hook import SessionRunContext, SessionRunHook, SessionRunValues

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.graph.types import Structure
    from headwater.tf1.training.scaffold import Scaffold


class GraphRewriteSpec(NamedTuple):
    """A graph of a saved model: its tags, and TensorFlow's transforms of the graph."""

    tags: Sequence[str]
    transforms: Sequence[str]


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


class NotFittedError(ValueError, AttributeError):
    """An estimator predicts or is evaluated before it has been trained."""


class InputFnOps(NamedTuple):
    """Inputs of a served model.

    Attributes:
      features: features for the model function.
      labels: None; accepted for the sake of training inputs in this form.
      default_inputs: tensors that a request feeds, by name.
    """

    features: Structure
    labels: Structure
    default_inputs: Mapping[str, Tensor]


def build_parsing_serving_input_fn(
    feature_spec: Mapping[str, object], default_batch_size: int | None = None
) -> Callable[[], InputFnOps]:
    """Returns an input function for requests with serialised examples.

    Args:
      feature_spec: features of the examples; see `parse_example`.
      default_batch_size: number of examples; any number if None.
    """
    receiver_fn = build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size)

    def input_fn() -> InputFnOps:
        receiver = receiver_fn()
        return InputFnOps(receiver.features, None, receiver.receiver_tensors)

    return input_fn


class _StopAfterConstants(SessionRunHook):
    """Stops after the first batch if each would be the same, as the input has neither queues nor iterators."""

    def begin(self) -> None:
        graph = get_default_graph()
        changing = graph.get_collection(GraphKeys.QUEUE_RUNNERS) or any(
            op.type.startswith("IteratorGetNext") for op in graph.get_operations()
        )
        self._constant = not changing

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._constant:
            run_context.request_stop()


class LearnEstimator(WithParams, ArrayEstimator):
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

    _settings: ClassVar[tuple[str, ...]] = ("params",)
    _output_alternatives: ClassVar[list[str | None]] = []

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
            if mode == ModeKeys.PREDICT and spec.export_outputs is None and items_of(spec.predictions) is not None:
                default = PredictOutput(spec.predictions)
                exports = {
                    DEFAULT_SERVING_SIGNATURE_DEF_KEY: default,
                    "default_input_alternative:default_output_alternative": default,
                }
                return spec._replace(export_outputs=exports)
            if mode != ModeKeys.EVAL or not self.eval_metrics:
                return spec
            further = metric_ops(self._with_keys(self.eval_metrics), features, labels, spec.predictions)
            return spec._replace(eval_metric_ops={**spec.eval_metric_ops, **further})

        self.eval_metrics: Mapping[Structure, Structure] | None = None
        self._label_specs: Structure = None
        super().__init__(adapted, model_dir, config)

    def evaluate(  # pyright: ignore[reportIncompatibleMethodOverride] - its arguments have a different order here
        self,
        x: object = None,
        y: object = None,
        input_fn: Callable[..., Structure] | None = None,
        feed_fn: object = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Mapping[Structure, Structure] | None = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: object = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Returns the metrics of a checkpoint, on arrays (one pass; see `fit`) or on the data of ``input_fn``.

        ``loss`` is the mean over batches.

        Args:
          metrics: further metrics, by name, see `headwater.tf1.training.estimator.metric_spec.metric_ops`.

        Raises:
          NotFittedError: there is no checkpoint.
          ValueError: both arrays and ``input_fn``, or neither; ``feed_fn``, which is not supported.
        """
        del log_progress  # the log has the steps in any case
        require_none(feed_fn=feed_fn)
        if checkpoint_path is None:
            self._require_checkpoint()
        given = input_fn_of(x, y, input_fn, batch_size, epochs=1)
        kept = self.eval_metrics
        self.eval_metrics = metrics or kept
        try:
            return Estimator.evaluate(self, given, steps, hooks, checkpoint_path, name)
        finally:
            self.eval_metrics = kept

    def predict(  # pyright: ignore[reportIncompatibleMethodOverride] - its arguments have a different order here
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        outputs: Structure = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the predictions of each example.

        Args:
          outputs: names of the predictions to return; all if None.
          as_iterable: whether to yield the results; otherwise, returns an array of all results for each name.

        Raises:
          ValueError: both arrays and ``input_fn`` are given, or neither.
          NotFittedError: there is no checkpoint.
        """
        self._require_checkpoint()
        given = input_fn_of(x, None, input_fn, batch_size, epochs=1)
        found = Estimator.predict(self, given, outputs, [_StopAfterConstants()])
        if as_iterable:
            return found
        examples = list(found)
        if not examples or not isinstance(examples[0], dict):
            return np.array(examples)
        return {name: np.array([example[name] for example in examples]) for name in examples[0]}  # pyright: ignore[reportUnknownVariableType]

    def export_savedmodel(  # pyright: ignore[reportIncompatibleMethodOverride] - its arguments differ here
        self,
        export_dir_base: str,
        serving_input_fn: Callable[[], InputFnOps | ServingInputReceiver],
        default_output_alternative_key: str | None = None,
        assets_extra: object = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        graph_rewrite_specs: object = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Exports the model for serving into a new folder within ``export_dir_base``, and returns the folder's path.

        Args:
          serving_input_fn: returns the inputs.
          default_output_alternative_key: the output that the default signature returns; a model with one head has
            only the default output.
          assets_extra, as_text, checkpoint_path, strip_default_attrs: see `Estimator.export_savedmodel`.
          graph_rewrite_specs: see `GraphRewriteSpec`; one, without transforms.

        Raises:
          NotImplementedError: ``graph_rewrite_specs`` have transforms.
          ValueError: there is no such output, or the first of ``graph_rewrite_specs`` has transforms.
        """
        if default_output_alternative_key:
            raise ValueError(
                f"Requested default_output_alternative: {default_output_alternative_key}, but available "
                f"output_alternatives are: {self._output_alternatives}"
            )
        if graph_rewrite_specs is not None:
            specs = [GraphRewriteSpec(*each) for each in cast("Iterable[Iterable[Any]]", graph_rewrite_specs)]
            if not specs or specs[0].transforms:
                raise ValueError("The first element of graph_rewrite_specs must specify no transforms.")
            if len(specs) > 1 or tuple(specs[0].tags) != (SERVING,):
                raise NotImplementedError("graph_rewrite_specs: only the tag 'serve' without transforms is supported")

        def receiver_fn() -> ServingInputReceiver:
            given = serving_input_fn()
            return (
                ServingInputReceiver(given.features, dict(given.default_inputs))
                if isinstance(given, InputFnOps)
                else given
            )

        return super().export_savedmodel(
            export_dir_base, receiver_fn, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    def _with_keys(self, metrics: Mapping[Structure, Structure]) -> Mapping[Structure, Structure]:
        """Returns metrics for `metric_ops`; subclasses name the prediction of functions that are given without."""
        return metrics

    def _require_checkpoint(self) -> None:
        if self.latest_checkpoint() is None:
            raise NotFittedError(f"Couldn't find trained model at {self.model_dir}.")
