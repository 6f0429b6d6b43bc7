"""``keras.estimator.model_to_estimator``: a compiled Keras model as an `Estimator`.

The estimator's graph has the input pipeline, a variable for each weight, and a host operation that calls the model.
Keras computes on JAX, with the optimizer and the strategy with which the model was compiled. After a session has been
created, and may have restored the variables, the values of the variables are copied to the model. Before a checkpoint
is written, the model's values are copied back to the variables. So checkpoints, hooks, summaries and
`train_and_evaluate` work as for every estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from headwater import dtypes
from headwater.errors import UnimplementedError
from headwater.graph.collections import GraphKeys
from headwater.keras.saving import load_model
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.nest import flatten
from headwater.tf1.functional.script import py_func
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.training.saving_hooks import CheckpointSaverHook, CheckpointSaverListener
from headwater.tf1.training.session_run_hook import SessionRunHook
from headwater.tf1.training.training_util import get_global_step
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike
    from headwater.keras.types import Tree


def model_to_estimator(
    keras_model: keras.Model | None = None,
    keras_model_path: str | None = None,
    custom_objects: Mapping[str, object] | None = None,
    model_dir: str | None = None,
    config: object = None,
    checkpoint_format: str = "saver",
) -> KerasEstimator:
    """Returns an estimator that trains a copy of a compiled Keras model, starting from its current weights.

    Args:
      keras_model: the model; None if ``keras_model_path`` is set.
      keras_model_path: a file with the model; None if ``keras_model`` is set.
      custom_objects: classes and functions by their names in the file.
      model_dir: folder of checkpoints and summaries; by default ``config``'s, else a new temporary folder.
      config: a `RunConfig`; the devices of its ``train_distribute`` share each batch of the input.
      checkpoint_format: ``"saver"``.

    Raises:
      ValueError: both or neither of ``keras_model`` and ``keras_model_path`` are set, the model is not compiled,
        ``checkpoint_format`` is not ``"saver"``, or several tasks of a cluster train.
    """
    if keras_model is None and keras_model_path is None:
        raise ValueError("Either `keras_model` or `keras_model_path` needs to be provided.")
    if keras_model is not None and keras_model_path is not None:
        raise ValueError("Please specify either `keras_model` or `keras_model_path`, but not both.")
    if checkpoint_format != "saver":
        raise ValueError(f"Checkpoint format must be 'saver', which tf.train.Saver reads. Got {checkpoint_format}")
    if keras_model is None:
        keras_model = load_model(keras_model_path, custom_objects)
    if not getattr(keras_model, "compiled", False):
        raise ValueError(
            "The given keras model has not been compiled yet. Please compile the model with `model.compile()` before "
            "calling `model_to_estimator()`."
        )
    return KerasEstimator(keras_model, model_dir, config)


class KerasEstimator(Estimator):
    """See `model_to_estimator`.

    Args:
      keras_model: a compiled model.
      model_dir: folder of checkpoints and summaries.
      config: a `RunConfig`.
    """

    def __init__(self, keras_model: keras.Model, model_dir: str | None = None, config: object = None) -> None:
        super().__init__(self._build, model_dir, config)
        if len(list(self._config.cluster_spec.tasks())) > 1:
            raise ValueError(
                "an Estimator of a Keras model trains in one task, but TF_CONFIG has several: call the model's fit in "
                "the scope of tf.distribute.MultiWorkerMirroredStrategy or tf.distribute.ParameterServerStrategy"
            )
        strategy = self._config.train_distribute
        with nullcontext() if strategy is None else strategy.scope():
            self._model: Any = keras.models.clone_model(keras_model)
            self._model.set_weights(keras_model.get_weights())
            self._model.compile_from_config(keras_model.get_compile_config())
        self._model.optimizer.build(self._model.trainable_variables)
        self._weights = _variables_by_name(self._model)
        self._initial = [np.asarray(weight.value) for _, weight in self._weights]
        self._totals: list[object] | None = None

    def train(
        self,
        input_fn: Callable[..., object],
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        listeners: list[Any] = list(saving_listeners or ())
        saves = self._config.save_checkpoints_secs or self._config.save_checkpoints_steps
        if saves or any(isinstance(hook, CheckpointSaverHook) for hook in hooks or ()):
            listeners.insert(0, _BeforeSaving(self._to_variables))
        return super().train(input_fn, hooks, steps, max_steps, listeners)

    def export_saved_model(self, *args: object, **kwargs: object) -> bytes:
        """Not supported, because the graph calls Keras.

        Raises:
          UnimplementedError: always.
        """
        raise UnimplementedError(
            "the graph of a Keras model's Estimator calls Keras and cannot be exported: use model.export()"
        )

    export_savedmodel = export_saved_model

    def _check_distribution(self) -> None:
        """Does nothing: Keras divides each batch among the replicas."""

    def metrics_of_host(self) -> dict[str, Any]:
        totals, self._totals = self._totals, None
        if totals is None:
            return {}
        for variable, total in zip(self._model.metrics_variables, totals, strict=True):
            variable.assign(total)
        results = {
            name: np.float32(value) for name, value in self._model.get_metrics_result().items() if name != "loss"
        }
        self._model.reset_metrics()
        return results

    # The graph -----------------------------------------------------------------------------------------------------

    def _build(self, features: object, labels: object, mode: str) -> EstimatorSpec:
        variables = [_variable(name, value) for (name, _), value in zip(self._weights, self._initial, strict=True)]
        weights: Any = None
        if isinstance(features, Mapping) and set(features) == {"features", "sample_weights"}:  # pyright: ignore[reportUnknownArgumentType]
            features, weights = features["features"], features["sample_weights"]
        inputs = self._order_inputs(features)
        load = _AfterRestoring(variables, self._from_variables)
        if mode == ModeKeys.PREDICT:
            return self._predictions(inputs, load)
        targets = flatten(labels)
        arguments = [*inputs, *targets, *([] if weights is None else [weights])]
        counts = len(inputs), len(targets)

        def step(function: Callable[..., Any]) -> Callable[..., Tree]:
            def host(*arrays: object) -> np.floating:
                x, y, rest = arrays[: counts[0]], arrays[counts[0] : sum(counts)], arrays[sum(counts) :]
                result = function(_one_or_all(x), _one_or_all(y), *rest, return_dict=True)
                return np.float32(result["loss"])

            return host

        if mode == ModeKeys.TRAIN:
            loss = py_func(step(self._model.train_on_batch), arguments, dtypes.float32, name="train_on_batch")
            loss.set_shape([])
            with control_dependencies([loss]):
                train_op = group(assign_add(get_global_step(), 1))
            return EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[load])
        loss = py_func(
            self._accumulate_metrics(step(self._model.test_on_batch)), arguments, dtypes.float32, name="test_on_batch"
        )
        loss.set_shape([])
        return EstimatorSpec(mode, loss=loss, evaluation_hooks=[load])

    def _predictions(self, inputs: Sequence[Tree], load: SessionRunHook) -> EstimatorSpec:
        outputs: list[Tree] = self._model.outputs
        names: list[str] = list(getattr(self._model, "output_names", None) or ()) or _output_names(self._model)

        def host(*arrays: object) -> Tree:
            return [np.asarray(value) for value in _as_list(self._model.predict_on_batch(_one_or_all(arrays)))]

        tensors = py_func(host, inputs, [dtypes.as_dtype(output.dtype) for output in outputs], name="predict_on_batch")
        for tensor, output in zip(tensors, outputs, strict=True):
            tensor.set_shape(list(output.shape))
        return EstimatorSpec(
            ModeKeys.PREDICT, predictions=dict(zip(names, tensors, strict=True)), prediction_hooks=[load]
        )

    def _order_inputs(self, features: object) -> list[object]:
        """Returns the tensors for the model's inputs, in the order of the inputs.

        Raises:
          ValueError: the names of the features differ from the names of the model's inputs.
        """
        if not isinstance(features, Mapping):
            return flatten(features)
        by_name: dict[str, Tree] = dict(features)  # pyright: ignore[reportUnknownArgumentType]
        names = [str(each.name) for each in self._model.inputs]
        if len(names) == 1 and len(by_name) == 1:
            return list(by_name.values())
        if set(names) != set(by_name):
            raise ValueError(f"features must be by the names of the model's inputs, {names}, but are {sorted(by_name)}")
        return [by_name[name] for name in names]

    def _accumulate_metrics(self, function: Callable[..., object]) -> Callable[..., Any]:
        """Wraps ``function`` to add up the states of metrics, which Keras resets with each batch."""

        def host(*arrays: object) -> Tree:
            loss = function(*arrays)
            states = [np.asarray(variable.value) for variable in self._model.metrics_variables]
            before = self._totals or [0] * len(states)
            self._totals = [total + state for total, state in zip(before, states, strict=True)]
            return loss

        return host

    # Weights -------------------------------------------------------------------------------------------------------

    def _to_variables(self, session: SessionLike) -> None:
        for (_, weight), variable in zip(self._weights, _variables_of(session, self._weights), strict=True):
            variable.load(np.asarray(weight.value), session)

    def _from_variables(self, values: Sequence[object]) -> None:
        for (_, weight), value in zip(self._weights, values, strict=True):
            weight.assign(value)
        self._totals = None


class _AfterRestoring(SessionRunHook):
    """Copies the variables' values to the model when a session begins."""

    def __init__(self, variables: Sequence[object], load: Callable[[Sequence[Any]], None]) -> None:
        self._variables = list(variables)
        self._load = load

    def after_create_session(self, session: SessionLike, coord: object) -> None:
        del coord
        self._load(session.run(self._variables))


class _BeforeSaving(CheckpointSaverListener):
    """Copies the model's weights to the variables before a checkpoint is written."""

    def __init__(self, store: Callable[[Any], None]) -> None:
        self._store = store

    def before_save(self, session: object, global_step_value: int) -> None:
        del global_step_value
        self._store(session)


def _variables_by_name(model: keras.Model) -> list[tuple[str, Any]]:
    """Returns the variables of a model and its optimizer, each with its name in checkpoints: layer and weight."""
    weights: list[Any] = list(model.weights)
    short = ["/".join(str(weight.path).split("/")[-2:]) for weight in weights]
    full = [str(weight.path) for weight in weights]
    names = short if len(set(short)) == len(short) else full
    known = {id(weight) for weight in weights}
    others = [*model.optimizer.variables, *(each for each in model.variables if id(each) not in known)]
    return [*zip(names, weights, strict=True), *((f"training/{variable.path}", variable) for variable in others)]


def _variable(name: str, value: Any) -> Variable:
    initial = py_func(lambda: value, [], dtypes.as_dtype(value.dtype), name=f"{name}/initial")
    initial.set_shape(value.shape)
    return Variable(initial, trainable=False, name=name)


def _variables_of(session: SessionLike, weights: Sequence[tuple[str, object]]) -> list[Any]:
    by_name = {variable.op.name: variable for variable in session.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    return [by_name[name] for name, _ in weights]


def _one_or_all(arrays: Sequence[object]) -> Tree:
    return arrays[0] if len(arrays) == 1 else list(arrays)


def _as_list(value: object) -> list[object]:
    return flatten(value)


def _output_names(model: keras.Model) -> list[str]:
    """The names of the layers that compute the outputs."""
    return [str(output._keras_history.operation.name) for output in model.outputs]
