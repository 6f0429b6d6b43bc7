"""One step of a worker: from values and a batch to gradients, in one executable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import keras
import numpy as np
from keras.src.trainers.data_adapters import data_adapter_utils

_jax: Any = jax
_keras: Any = keras
_utils: Any = data_adapter_utils


class GradientStep:
    """Computes gradients of a model's loss, and its metrics.

    Args:
      model: of Keras, built and compiled.
      clips: whether to clip gradients by norms as the model's optimizer says.
    """

    def __init__(self, model: Any, *, clips: bool) -> None:
        self._model = model
        self._clips = clips
        others = model.non_trainable_variables
        self._floats = [at for at, v in enumerate(others) if _keras.backend.is_float_dtype(v.dtype)]
        self._rest = [at for at in range(len(others)) if at not in self._floats]
        self._changing: list[int] = []
        self._compiled: Any = _jax.jit(self._compute, donate_argnums=(2, 3))
        self._own: list[Any] = []
        self._metrics: list[Any] = []

    def changing(self, batch: Any) -> list[int]:
        """Which of the variables of real numbers that the optimizer does not update change in a step."""
        model = self._model
        found: list[int] = []

        def trace(trainable: Any, others: Any, x: Any) -> Any:
            kwargs = {"training": True} if model._call_has_training_arg else {}
            outputs, after = model.stateless_call(trainable, others, x, **kwargs)
            found.extend(at for at, number in enumerate(self._floats) if after[number] is not others[number])
            return outputs

        trainable = [variable.value for variable in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        _jax.eval_shape(trace, trainable, others, batch[0])
        self._changing = found
        return found

    def begin(self) -> None:
        """At the beginning of an epoch: takes the state that this worker has for itself from the model."""
        model = self._model
        self._metrics = [_jax.numpy.array(variable.value) for variable in model.metrics_variables]
        others = model.non_trainable_variables
        self._own = [_jax.numpy.array(others[at].value) for at in self._rest]

    def end(self) -> None:
        """At the end of an epoch: gives it back."""
        model = self._model
        for variable, value in zip(model.metrics_variables, self._metrics, strict=True):
            variable.assign(value)
        for at, value in zip(self._rest, self._own, strict=True):
            model.non_trainable_variables[at].assign(value)

    def __call__(self, values: Sequence[Any], batch: Any) -> tuple[list[Any], dict[int, Any], dict[str, Any]]:
        """One step.

        Args:
          values: of the trainable variables, then of the others of real numbers.
          batch: of examples.

        Returns:
          By variable the gradients, None where there is none; by variable the changes of others; the logs.
        """
        count = len(self._model.trainable_variables)
        gradients, after, logs, self._own, self._metrics = self._compiled(
            list(values[:count]), list(values[count:]), self._own, self._metrics, _utils.unpack_x_y_sample_weight(batch)
        )
        changes = {count + at: change for at, change in zip(self._changing, after, strict=True)}
        return [*(np.asarray(g) for g in gradients), *([None] * (len(values) - count))], changes, logs

    def _compute(self, trainable: Any, floats: Any, own: Any, metrics: Any, data: Any) -> Any:
        model = self._model
        x, y, sample_weight = data
        others: list[Any] = [None] * (len(floats) + len(own))
        for places, values in ((self._floats, floats), (self._rest, own)):
            for at, value in zip(places, values, strict=True):
                others[at] = value
        gradient: Any = _jax.value_and_grad(model.compute_loss_and_updates, has_aux=True)
        (_, aux), gradients = gradient(
            trainable, others, metrics, x, y, sample_weight, training=True,
            optimizer_variables=[variable.value for variable in model.optimizer.variables],
        )  # fmt: skip
        loss, y_pred, after, metrics = aux
        logs, metrics = model._update_metrics_variables(metrics, loss, x, y, y_pred, sample_weight)
        scale = model.optimizer.loss_scale_factor
        if scale is not None:
            gradients = [g / scale for g in gradients]
        if self._clips and (model.optimizer.clipnorm or model.optimizer.global_clipnorm):
            gradients = model.optimizer._clip_gradients(gradients)
        changes = [after[self._floats[at]] - floats[at] for at in self._changing]
        return gradients, changes, logs, [after[at] for at in self._rest], metrics
