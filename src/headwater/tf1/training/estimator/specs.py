"""Specifications: the result of a model function, and the arguments of `train_and_evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation
from headwater.tf1.functional.nest import flatten
from headwater.tf1.training.scaffold import Scaffold
from headwater.tf1.training.session_run_hook import SessionRunHook

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import OpOrTensor, Structure
    from headwater.tf1.metrics.state import Metric
    from headwater.tf1.training.estimator.export import Exporter, ExportOutput


class ModeKeys:
    """The purposes for which a model function builds a graph."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


class _EstimatorSpec(NamedTuple):
    mode: str
    predictions: Tensor
    loss: Any
    train_op: OpOrTensor | None
    eval_metric_ops: Mapping[str, Metric]
    export_outputs: Mapping[str, ExportOutput] | None
    training_chief_hooks: Sequence[SessionRunHook]
    training_hooks: Sequence[SessionRunHook]
    scaffold: Scaffold
    evaluation_hooks: Sequence[SessionRunHook]
    prediction_hooks: Sequence[SessionRunHook]


def _check_predictions(predictions: Any) -> None:
    """Raises TypeError if one is not a tensor."""
    for value in predictions.values() if hasattr(predictions, "items") else [predictions]:
        if not hasattr(value, "dtype"):
            raise TypeError(f"predictions must be Tensor, given: {value}")


class EstimatorSpec(_EstimatorSpec):
    """The model that a model function built, for one mode.

    Args:
      mode: one of `ModeKeys`.
      predictions: a tensor or a dictionary of tensors; needed to predict.
      loss: a scalar, or a tensor of one element; needed to train and to evaluate.
      train_op: trains; needed to train.
      eval_metric_ops: for each name a pair of a value and an update.
      export_outputs: for each signature an `ExportOutput`.
      training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks: hooks of the sessions.
      scaffold: see `Scaffold`.

    Raises:
      ValueError: a part that the mode needs is missing, or the loss has more than one element.
      TypeError: an argument has the wrong type.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Structure = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        export_outputs: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Scaffold | None = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Sequence[SessionRunHook] | None = None,
    ) -> Self:
        if train_op is None and mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        if loss is None and mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        if loss is not None:
            loss = convert_to_tensor(loss)
            if loss.shape.num_elements() not in (None, 1):
                raise ValueError(f"Loss must be scalar, given: {loss}")
            if loss.dims not in (None, ()):
                loss = loss.graph.create_op("Reshape", [loss, convert_to_tensor([], "int32")]).outputs[0]
        if predictions is None:
            if mode == ModeKeys.PREDICT:
                raise ValueError("Missing predictions.")
            predictions = {}
        _check_predictions(predictions)
        metrics: dict[str, Any] = dict(eval_metric_ops or {})
        for name, pair in metrics.items():
            if not isinstance(pair, tuple) or len(pair) != 2:  # pyright: ignore[reportUnknownArgumentType]
                raise TypeError(
                    f"Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {pair} for key: {name}"
                )
        if train_op is not None and not isinstance(train_op, Operation):
            if not hasattr(train_op, "op"):
                raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
            train_op = train_op.op
        if export_outputs is not None and not hasattr(export_outputs, "items"):
            raise TypeError(f"`export_outputs` must be dict, given: {export_outputs}")
        if scaffold is not None and not isinstance(scaffold, Scaffold):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
        hooks: list[tuple[Any, ...]] = [
            tuple(given or ()) for given in (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks)
        ]
        for hook in (item for listed in hooks for item in listed):
            if not isinstance(hook, SessionRunHook):
                raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
        return super().__new__(
            cls,
            mode=mode,
            predictions=predictions,
            loss=loss,
            train_op=train_op,
            eval_metric_ops=metrics,
            export_outputs=export_outputs,
            training_chief_hooks=hooks[0],
            training_hooks=hooks[1],
            scaffold=scaffold or Scaffold(),
            evaluation_hooks=hooks[2],
            prediction_hooks=hooks[3],
        )


class _TrainSpec(NamedTuple):
    input_fn: Callable[..., Structure]
    max_steps: int | None
    hooks: Sequence[SessionRunHook]


class TrainSpec(_TrainSpec):
    """Settings of training in `train_and_evaluate`.

    Args:
      input_fn: see `Estimator.train`.
      max_steps: the global step at which training ends; None: when the input ends.
      hooks: the hooks of the session.
    """

    def __new__(cls, input_fn: Callable[..., Structure], max_steps: int | None = None, hooks: Any = None) -> Self:
        if not callable(input_fn):
            raise TypeError(f"input_fn must be callable, given: {input_fn}")
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        return super().__new__(cls, input_fn, max_steps, tuple(hooks or ()))


class _EvalSpec(NamedTuple):
    input_fn: Callable[..., Structure]
    steps: int | None
    name: str | None
    hooks: Sequence[SessionRunHook]
    exporters: Sequence[Exporter]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalSpec):
    """Settings of evaluation in `train_and_evaluate`.

    Args:
      input_fn: see `Estimator.evaluate`.
      steps: number of steps; None until the input ends.
      name: the name of this evaluation, to distinguish several.
      hooks: the hooks of the session.
      exporters: called after an evaluation.
      start_delay_secs: seconds before an evaluator begins.
      throttle_secs: minimum number of seconds between two evaluations.
    """

    def __new__(
        cls,
        input_fn: Callable[..., Structure],
        steps: int | None = 100,
        name: str | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        exporters: Structure = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> Self:
        if not callable(input_fn):
            raise TypeError(f"input_fn must be callable, given: {input_fn}")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if name is not None and not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"EvalSpec name must be string, given: {name}")
        if start_delay_secs < 0:
            raise ValueError(f"Must specify start_delay_secs >= 0, given: {start_delay_secs}")
        if throttle_secs < 0:
            raise ValueError(f"Must specify throttle_secs >= 0, given: {throttle_secs}")
        listed: list[Any] = [] if exporters is None else flatten(exporters)
        return super().__new__(
            cls, input_fn, steps, name, tuple(hooks or ()), tuple(listed), start_delay_secs, throttle_secs
        )
