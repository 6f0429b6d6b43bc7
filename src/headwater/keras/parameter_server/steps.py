"""One step of a worker: from values and a batch to gradients, in one executable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import keras
import numpy as np
from keras.src.trainers.data_adapters import data_adapter_utils

from headwater.keras.parameter_server.table_updates import rounded_up
from headwater.keras.parameter_server.tables import noting, reading, take_over
from headwater.parameters.updater import Array

_jax: Any = jax
_keras: Any = keras
_utils: Any = data_adapter_utils


class GradientStep:
    """Computes gradients of a model's loss, and its metrics.

    Args:
      model: of Keras, built and compiled.
      tables: those of its embedding layers whose tables stay on the ``ps``.
      clips: whether to clip gradients by norms as the model's optimizer says.
    """

    def __init__(self, model: Any, tables: Sequence[Any], *, clips: bool) -> None:
        self._model = model
        self._clips = clips
        self._layers = tables
        take_over(tables)
        self._split = Split(model, tables)
        self._changing: list[int] = []
        self._compiled: Any = _jax.jit(self._compute, donate_argnums=(2, 3))
        self._numbers: Any = _jax.jit(self._note)
        self._own: list[Any] = []
        self._metrics: list[Any] = []

    def changing(self, batch: Any) -> list[int]:
        """Which of the variables of real numbers that the optimizer does not update change in a step."""
        model, split = self._model, self._split
        found: list[int] = []

        def trace(trainable: Any, others: Any, x: Any) -> Any:
            outputs, after = model.stateless_call(trainable, others, x, **self._training())
            found.extend(at for at, number in enumerate(split.floats) if after[number] is not others[number])
            return outputs

        trainable = [variable.value for variable in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        _jax.eval_shape(trace, trainable, others, batch[0])
        self._changing = found
        return found

    def _training(self) -> dict[str, bool]:
        return {"training": True} if self._model._call_has_training_arg else {}

    def begin(self) -> None:
        """At the beginning of an epoch: takes the state that this worker has for itself from the model."""
        model = self._model
        self._metrics = [_jax.numpy.array(variable.value) for variable in model.metrics_variables]
        others = model.non_trainable_variables
        self._own = [_jax.numpy.array(others[at].value) for at in self._split.rest]

    def end(self) -> None:
        """At the end of an epoch: gives it back."""
        model = self._model
        for variable, value in zip(model.metrics_variables, self._metrics, strict=True):
            variable.assign(value)
        for at, value in zip(self._split.rest, self._own, strict=True):
            model.non_trainable_variables[at].assign(value)

    def wanted(self, values: Sequence[Any], batch: Any) -> list[Array]:
        """For each table the numbers of the rows that a step with ``batch`` uses, ascending."""
        if not self._layers:
            return []
        count = self._split.dense_count
        x, _, _ = _utils.unpack_x_y_sample_weight(batch)
        noted = self._numbers(list(values[:count]), list(values[count:]), self._own, x)
        return [np.unique(np.asarray(numbers)) for numbers in noted]

    def _note(self, dense: Any, floats: Any, own: Any, x: Any) -> list[Any]:
        trainable = self._split.trainable(dense)
        with noting(len(self._layers)) as noted:
            self._model.stateless_call(trainable, self._split.others(floats, own), x, **self._training())
        return [_jax.numpy.concatenate(noted[number]) for number in range(len(self._layers))]

    def __call__(
        self, values: Sequence[Any], batch: Any, wanted: Sequence[Array] = (), rows: Sequence[Array] = ()
    ) -> tuple[list[Any], list[Array], dict[int, Any], dict[str, Any]]:
        """One step.

        Args:
          values: of the dense trainable variables, then of the others of real numbers.
          batch: of examples.
          wanted: what `wanted` gave.
          rows: of each table these rows.

        Returns:
          Gradients of the dense variables; gradients of the rows; by variable the changes of others; the logs.
        """
        count = self._split.dense_count
        read = [
            (_filled(numbers, rounded_up(len(numbers)), layer.input_dim), _filled(found, rounded_up(len(found)), 0))
            for layer, numbers, found in zip(self._layers, wanted, rows, strict=True)
        ]
        gradients, of_rows, after, logs, self._own, self._metrics = self._compiled(
            list(values[:count]),
            list(values[count:]),
            self._own,
            self._metrics,
            read,
            _utils.unpack_x_y_sample_weight(batch),
        )
        changes = {count + at: change for at, change in zip(self._changing, after, strict=True)}
        found = [np.asarray(g)[: len(numbers)] for g, numbers in zip(of_rows, wanted, strict=True)]
        return [np.asarray(g) for g in gradients], found, changes, logs

    def _compute(self, dense: Any, floats: Any, own: Any, metrics: Any, read: Any, data: Any) -> Any:
        model, split = self._model, self._split
        x, y, sample_weight = data
        others = split.others(floats, own)

        def loss_of(both: Any) -> Any:
            dense, rows = both
            tables = {at: (numbers, found) for at, ((numbers, _), found) in enumerate(zip(read, rows, strict=True))}
            with reading(tables):
                return model.compute_loss_and_updates(
                    split.trainable(dense),
                    others,
                    metrics,
                    x,
                    y,
                    sample_weight,
                    training=True,
                    optimizer_variables=[variable.value for variable in model.optimizer.variables],
                )

        gradient: Any = _jax.value_and_grad(loss_of, has_aux=True)
        (_, aux), (gradients, of_rows) = gradient((dense, [rows for _, rows in read]))
        loss, y_pred, after, metrics = aux
        logs, metrics = model._update_metrics_variables(metrics, loss, x, y, y_pred, sample_weight)
        found = [*gradients, *of_rows]
        scale = model.optimizer.loss_scale_factor
        if scale is not None:
            found = [g / scale for g in found]
        if self._clips and (model.optimizer.clipnorm or model.optimizer.global_clipnorm):
            found = model.optimizer._clip_gradients(found)
        changes = [after[split.floats[at]] - floats[at] for at in self._changing]
        count = split.dense_count
        return found[:count], found[count:], changes, logs, [after[at] for at in split.rest], metrics


class Split:
    """How a model's variables divide into dense ones, tables, others of real numbers, and the rest.

    Args:
      model: of Keras, built.
      tables: see `GradientStep`.

    Attributes:
      dense_count: how many trainable variables are no table.
      floats: which of the non-trainable variables are of real numbers.
      rest: which are not, such as seeds: those every worker has for itself.
    """

    def __init__(self, model: Any, tables: Sequence[Any]) -> None:
        ids = [id(variable) for variable in model.trainable_variables]
        self._table_at = [ids.index(id(layer.embeddings)) for layer in tables]
        self._dense_at = [at for at in range(len(ids)) if at not in self._table_at]
        self._tables = [layer.embeddings for layer in tables]
        self.dense_count: int = len(self._dense_at)
        others = model.non_trainable_variables
        self.floats: list[int] = [at for at, v in enumerate(others) if _keras.backend.is_float_dtype(v.dtype)]
        self.rest: list[int] = [at for at in range(len(others)) if at not in self.floats]
        trainable = model.trainable_variables
        #: Those that the ``ps`` have: dense ones, others of real numbers, tables.
        self.served: list[Any] = [
            *(trainable[at] for at in self._dense_at),
            *(others[at] for at in self.floats),
            *self._tables,
        ]

    def trainable(self, dense: Sequence[Any]) -> list[Any]:
        """The values of all trainable variables, while a step is traced: nothing reads those of tables."""
        found: list[Any] = [None] * (len(self._dense_at) + len(self._table_at))
        for at, value in zip(self._dense_at, dense, strict=True):
            found[at] = value
        for at, variable in zip(self._table_at, self._tables, strict=True):
            found[at] = _jax.numpy.zeros(variable.shape, variable.dtype)
        return found

    def others(self, floats: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
        """The values of all non-trainable variables."""
        found: list[Any] = [None] * (len(self.floats) + len(self.rest))
        for places, values in ((self.floats, floats), (self.rest, rest)):
            for at, value in zip(places, values, strict=True):
                found[at] = value
        return found


def _filled(array: Array, size: int, value: int) -> Array:
    if len(array) == size:
        return array
    filled = np.full((size, *array.shape[1:]), value, array.dtype)
    filled[: len(array)] = array
    return filled
