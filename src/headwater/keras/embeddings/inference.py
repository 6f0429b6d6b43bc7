"""`evaluate`, `predict` and calls of models with embedding rows outside of the model.

Keras's own methods pass a batch directly to a compiled function. The methods here first read the rows that the batch
needs. They call callbacks in the same order as Keras.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import jax
import jax.core
import keras
import numpy as np

from headwater.errors import FailedPreconditionError
from headwater.keras.embeddings.bags import Bags, with_bags
from headwater.keras.embeddings.calls import is_tracing, reading
from headwater.keras.embeddings.ids import stand_in
from headwater.keras.embeddings.rows import ModelEmbeddings, ReadRows, StepInputs
from headwater.keras.internals import Functional, JAXEpochIterator, JAXTrainer, data_adapter_utils
from headwater.keras.parameter_server.batches import Batches, make_batches

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_tree = keras.tree
_utils = data_adapter_utils

_INFERENCE = "_headwater_inference"
#: Types of inputs that are replaced by numbers of 32 bits, see `headwater.keras.embeddings.ids`.
_KEPT = ("string", "int64", "uint64", "uint32")


class RowSource(Protocol):
    """A source of a model's embedding rows."""

    @property
    def embeddings(self) -> ModelEmbeddings: ...

    def read_rows(self, numbers: Sequence[Any]) -> Sequence[Any]: ...


class _OwnRows:
    """Rows in this process: the dynamic tables of a loaded model."""

    def __init__(self, model: Any, layers: Sequence[keras.Layer]) -> None:
        self.embeddings = ModelEmbeddings(model, dynamic=layers)

    def read_rows(self, numbers: Sequence[object]) -> Sequence[Any]:
        raise AssertionError(f"rows of {len(numbers)} fixed tables were requested, but there are none")


class Inference:
    """Evaluates and predicts.

    Args:
      model: a built Keras model.
      source: the source of its rows.
    """

    def __init__(self, model: Any, source: RowSource) -> None:
        self._model = model
        self.source = source
        self._embeddings = source.embeddings
        self._test_step: Any = jax.jit(self._test, static_argnums=5, donate_argnums=2)
        self._predict_step: Any = jax.jit(self._predict, static_argnums=4)

    def _values(self) -> tuple[list[Any], list[Any]]:
        tables = {id(layer.embeddings) for layer in self._embeddings.tables}
        model = self._model
        dense = [variable.value for variable in model.trainable_variables if id(variable) not in tables]
        return dense, [variable.value for variable in model.non_trainable_variables]

    def find(self, x: Tree) -> StepInputs:
        """Reads the rows of a batch."""
        read: ReadRows = self.source.read_rows
        return self._embeddings.find(self._values, x, training=False, read=read)

    def reads(self, inputs: StepInputs) -> dict[int, Any]:
        return self._embeddings.reads(inputs.where, inputs.rows, inputs.coded)

    def _test(
        self,
        dense: Sequence[jax.Array],
        others: Sequence[jax.Array],
        metrics: Sequence[jax.Array],
        where: Tree,
        rows: Any,
        coded: Tree,
        data: Tree,
    ) -> Tree:
        state = (self._embeddings.trainable(dense), others, metrics)
        with reading(self._embeddings.reads(where, rows, coded)):
            logs, (_, others, metrics) = self._model.test_step(state, data)
        return logs, others, metrics

    def _predict(
        self, dense: Sequence[jax.Array], others: Sequence[jax.Array], where: Tree, rows: Any, coded: Tree, x: Tree
    ) -> Tree:
        with reading(self._embeddings.reads(where, rows, coded)):
            outputs, _ = self._model.predict_step((self._embeddings.trainable(dense), others), (x,))
        return outputs

    def evaluate(
        self,
        x: Tree | None = None,
        y: Tree | None = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Tree | None = None,
        steps: int | None = None,
        callbacks: object = None,
        return_dict: bool = False,
        **settings: object,
    ) -> Any:
        """`keras.Model.evaluate`."""
        model = self._model
        model._assert_compile_called("evaluate")
        cached = settings.pop("_use_cached_eval_dataset", False)
        if settings:
            raise ValueError(f"evaluate has no arguments {sorted(settings)}")
        batches, epoch = (
            next(model._eval_epoch_iterator) if cached else (_batches(x, y, sample_weight, batch_size, steps), 0)
        )
        container = self._callbacks(callbacks, verbose, batches)
        model.stop_evaluating = False
        container.on_test_begin()
        model.reset_metrics()
        dense, others = self._values()
        metrics = [jax.numpy.array(variable.value) for variable in model.metrics_variables]
        logs: dict[str, Tree] | None = {}
        for step, batch in _numbered(batches, epoch):
            container.on_test_batch_begin(step)
            x, y, sample_weight = _utils.unpack_x_y_sample_weight(_arrays(batch))
            inputs = self.find(x)
            logs, others, metrics = self._test_step(
                dense, others, metrics, inputs.where, inputs.rows, inputs.coded, (inputs.x, y, sample_weight)
            )
            container.on_test_batch_end(step, logs)
            if model.stop_evaluating:
                break
        for variable, value in zip(model.metrics_variables, metrics, strict=True):
            variable.assign(value)
        for variable, value in zip(model.non_trainable_variables, others, strict=True):
            variable.assign(value)
        logs = {name: float(value) for name, value in model._get_metrics_result_or_logs(logs).items()}
        container.on_test_end(logs)
        return logs if return_dict else model._flatten_metrics_in_order(logs)

    def predict(
        self,
        x: Tree,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: object = None,
    ) -> Any:
        """`keras.Model.predict`."""
        model = self._model
        batches = _batches(x, None, None, batch_size, steps)
        container = self._callbacks(callbacks, verbose, batches)
        model.stop_predicting = False
        container.on_predict_begin()
        outputs: list[Any] = []
        dense, others = self._values()
        for step, batch in _numbered(batches):
            container.on_predict_batch_begin(step)
            x, _, _ = _utils.unpack_x_y_sample_weight(_arrays(batch))
            inputs = self.find(x)
            predictions = self._predict_step(dense, others, inputs.where, inputs.rows, inputs.coded, inputs.x)
            outputs.append(_tree.map_structure(np.asarray, predictions))
            container.on_predict_batch_end(step, {"outputs": predictions})
            if model.stop_predicting:
                break
        container.on_predict_end()
        return _tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)

    def _callbacks(self, callbacks: object, verbose: object, batches: Batches) -> Any:
        if isinstance(callbacks, keras.callbacks.CallbackList):
            return callbacks
        return keras.callbacks.CallbackList(
            callbacks, add_progbar=verbose != 0, verbose=verbose, epochs=1, steps=batches.steps, model=self._model
        )


def _batches(x: Tree, y: Tree, sample_weight: Tree, batch_size: int | None, steps: int | None) -> Batches:
    return make_batches(
        x, y, sample_weight, batch_size=batch_size, shuffle=False, class_weight=None, steps=steps, by_number=False
    )


def _numbered(batches: Batches, epoch: int = 0) -> Iterator[tuple[int, Tree]]:
    """Returns the numbers and batches of an epoch."""
    steps = batches.steps_of(epoch)
    for step in itertools.count() if steps is None else range(steps):
        if (batch := batches.get(epoch, step)) is None:
            return
        yield step, batch


def _arrays(batch: Tree) -> Tree:
    return jax.tree_util.tree_map(lambda leaf: leaf if isinstance(leaf, Bags) else np.asarray(leaf), with_bags(batch))


# Models ---------------------------------------------------------------------------------------------------------------


def set_source(model: object, source: RowSource) -> None:
    """Makes ``model`` evaluate and predict with rows of ``source``."""
    object.__setattr__(model, _INFERENCE, Inference(model, source))
    _watch()


def inference_of(model: Any, x: Tree) -> Inference | None:
    """Returns the object that evaluates and predicts for ``model``; None if Keras's own methods apply.

    Args:
      model: a Keras model; it is built if necessary.
      x: inputs of the model, for their shapes, or None for a built model.
    """
    known: Inference | None = getattr(model, _INFERENCE, None)
    layers = dynamic_layers(model)
    if known is None and layers:
        if not model.built and x is not None:
            model._symbolic_build(data_batch=(stand_in(with_bags(x)), None, None))
        known = Inference(model, _OwnRows(model, layers))
        object.__setattr__(model, _INFERENCE, known)
    return known


def validation_iterator(
    model: Any, x: Tree, y: Tree, sample_weight: Tree, batch_size: int | None, steps: int | None
) -> Any:
    """Returns the data of all validations of a training, as `evaluate` of ``model`` expects in
    ``_eval_epoch_iterator``. As in Keras, each validation continues a generator, and begins other data again."""
    if inference_of(model, x) is not None:
        if isinstance(x, Iterator):
            return zip(itertools.repeat(_batches(x, y, sample_weight, batch_size, steps)), itertools.count())
        return ((_batches(x, y, sample_weight, batch_size, steps), 0) for _ in itertools.count())
    return JAXEpochIterator(
        x, y, sample_weight, batch_size, steps, shuffle=False, steps_per_execution=model.steps_per_execution
    )


def dynamic_layers(model: Any) -> list[Any]:
    """The dynamic embeddings of ``model``."""
    return [layer for layer in model._flatten_layers() if hasattr(layer, "own_rows")]


def watch_dynamic() -> None:
    """Patches Keras to use `Inference` for models with dynamic embeddings. Idempotent."""
    _watch()


@functools.cache
def _watch() -> None:
    trainer: Any = JAXTrainer
    evaluate, predict = trainer.evaluate, trainer.predict
    fit, train_on_batch = trainer.fit, trainer.train_on_batch
    test_on_batch, predict_on_batch = trainer.test_on_batch, trainer.predict_on_batch

    @functools.wraps(evaluate)
    def our_evaluate(self: Any, *args: Any, **settings: Any) -> Tree:
        inference = _for_data(self, args[0] if args else settings.get("x"))
        return evaluate(self, *args, **settings) if inference is None else inference.evaluate(*args, **settings)

    @functools.wraps(predict)
    def our_predict(self: Any, *args: Any, **settings: Any) -> Tree:
        inference = _for_data(self, args[0] if args else settings.get("x"))
        return predict(self, *args, **settings) if inference is None else inference.predict(*args, **settings)

    @functools.wraps(test_on_batch)
    def our_test(
        self: object, x: Tree, y: Tree | None = None, sample_weight: Tree | None = None, return_dict: bool = False
    ) -> Tree:
        inference = _for_data(self, x)
        if inference is None:
            return test_on_batch(self, x, y, sample_weight, return_dict)
        x = with_bags(x)
        settings: dict[str, Any] = {"batch_size": len(_tree.flatten(x)[0]), "verbose": 0, "return_dict": return_dict}
        return inference.evaluate(x, y, sample_weight=sample_weight, **settings)

    @functools.wraps(predict_on_batch)
    def our_predict_on_batch(self: object, x: Tree) -> Tree:
        inference = _for_data(self, x)
        if inference is None:
            return predict_on_batch(self, x)
        x = with_bags(x)
        return inference.predict(x, batch_size=len(_tree.flatten(x)[0]), verbose=0)

    def refused(method: Any) -> object:
        @functools.wraps(method)
        def train(self: Any, *args: Any, **settings: Any) -> Tree:
            layers = dynamic_layers(self)
            if layers:
                raise FailedPreconditionError(
                    f"layer {layers[0].name!r}, a DynamicEmbedding, is trained in the scope of a "
                    "headwater.keras.ParameterServerStrategy: create or load the model there. Without a cluster, one "
                    "process has all roles"
                )
            return method(self, *args, **settings)

        return train

    trainer.evaluate, trainer.predict = our_evaluate, our_predict
    trainer.test_on_batch, trainer.predict_on_batch = our_test, our_predict_on_batch
    trainer.fit, trainer.train_on_batch = refused(fit), refused(train_on_batch)
    _watch_calls()


def _watch_calls() -> None:
    kind = keras.Model
    call = kind.__call__
    functional: Any = Functional
    convert = functional._convert_inputs_to_tensors

    @functools.wraps(call)
    def our_call(self: Any, *args: Any, **settings: Any) -> Tree:
        if is_tracing() or not args or not _concrete(args[0]):
            return call(self, *args, **settings)
        inference = inference_of(self, args[0])
        if inference is None:
            return call(self, *args, **settings)
        inputs = inference.find(_arrays(args[0]))
        with reading(inference.reads(inputs)):
            return call(self, _tree.map_structure(jax.numpy.asarray, inputs.x), *args[1:], **settings)

    @functools.wraps(convert)
    def our_convert(self: Any, flat_inputs: Tree) -> Tree:
        keeps = [
            spec.dtype in _KEPT and getattr(leaf, "dtype", None) == np.int32
            for leaf, spec in zip(flat_inputs, self._inputs, strict=True)
        ]
        if not any(keeps):
            return convert(self, flat_inputs)
        return [
            leaf if keep else keras.ops.convert_to_tensor(leaf, dtype=spec.dtype)
            for leaf, spec, keep in zip(flat_inputs, self._inputs, keeps, strict=True)
        ]

    kind.__call__ = our_call
    functional._convert_inputs_to_tensors = our_convert


def _concrete(x: Tree) -> bool:
    return not any(isinstance(leaf, (keras.KerasTensor, jax.core.Tracer)) for leaf in _tree.flatten(x))


def _for_data(model: Any, x: Tree) -> Inference | None:
    arrays = x is not None and (model.built or all(hasattr(leaf, "shape") for leaf in _tree.flatten(x)))
    return inference_of(model, x if arrays else None)
