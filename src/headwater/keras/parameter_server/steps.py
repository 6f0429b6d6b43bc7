"""One step of a worker: from values and a batch to gradients, in one executable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np
from keras import StatelessScope

from headwater.keras.embeddings.calls import noting, reading
from headwater.keras.embeddings.rows import Found, ModelEmbeddings
from headwater.keras.embeddings.variables import TableVariable
from headwater.keras.internals import JAXTrainer, data_adapter_utils
from headwater.keras.mirrored.steps import loss_totals, sums_its_loss
from headwater.keras.recording import gradients_of, recorded
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_tree = jax.tree
_stateless = StatelessScope
_utils = data_adapter_utils


class GradientStep:
    """Computes gradients of a model's loss, and its metrics.

    A model's own ``train_step`` is called up to its optimizer. Where that is a `keras.optimizers.LossScaleOptimizer`,
    this worker scales its losses by a factor of its own; gradients that are not finite count for nothing.

    Args:
      model: of Keras, built and compiled.
      embeddings: its embedding layers.
      clips: whether to clip gradients by norms as the model's optimizer says.

    Attributes:
      sums: what the metrics of the last step add to those of the job, as one vector; see `results`.
      finite: whether the gradients of the last step are; those that are not are zeros.
    """

    def __init__(self, model: Any, embeddings: ModelEmbeddings, *, clips: bool) -> None:
        self._model = model
        self._clips = clips
        self._embeddings = embeddings
        self._split = Split(model, embeddings.tables)
        self._changing: list[int] = []
        self._compiled = jax.jit(self._compute, donate_argnums=(2, 3), static_argnums=8)
        self._own: list[Any] = []
        self._metrics: list[Any] = []
        self._fresh: list[Array] = []
        self._named: list[str] = []
        self._scaled: list[Any] = scaling_variables(model.optimizer)
        self._scaling: list[Any] = []
        self._summed = sums_its_loss(model)
        self._totals = loss_totals(model) if self._summed else []
        self.sums: Array = np.zeros(0, np.float32)
        self.finite: bool = True

    def changing(self, batch: Tree) -> list[int]:
        """Which of the variables of real numbers that the optimizer does not update change in a step."""
        model, split = self._model, self._split
        found: list[int] = []

        def trace(trainable: Sequence[jax.Array], others: Sequence[jax.Array], x: Tree) -> Tree:
            with noting(self._embeddings.layers):
                outputs, after = model.stateless_call(trainable, others, x, **self._training())
            found.extend(at for at, number in enumerate(split.floats) if after[number] is not others[number])
            return outputs

        trainable = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        jax.eval_shape(trace, trainable, others, self._embeddings.code(batch[0]))
        self._changing = found
        return found

    def _training(self) -> dict[str, bool]:
        return {"training": True} if self._model._call_has_training_arg else {}

    def begin(self) -> None:
        """At the beginning of an epoch: takes the state that this worker has for itself from the model."""
        model = self._model
        self._metrics = [jax.numpy.array(variable.value) for variable in model.metrics_variables]
        self._fresh = [np.asarray(variable.value) for variable in model.metrics_variables]
        self._scaling = [variable.value for variable in self._scaled]
        others = model.non_trainable_variables
        self._own = [jax.numpy.array(others[at].value) for at in self._split.rest]

    def end(self) -> None:
        """At the end of an epoch: gives it back."""
        model = self._model
        for variable, value in zip(model.metrics_variables, self._metrics, strict=True):
            variable.assign(value)
        for variable, value in zip(self._scaled, self._scaling, strict=True):
            variable.assign(value)
        for at, value in zip(self._split.rest, self._own, strict=True):
            model.non_trainable_variables[at].assign(value)

    def trained(self, values: Sequence[object]) -> tuple[list[Any], list[Any]]:
        """The values of the model's trainable variables but the tables, and of its others, from those of a `Split`."""
        count = self._split.dense_count
        return list(values[:count]), self._split.others(values[count:], self._own)

    def __call__(
        self, values: Sequence[object], data: Tree, found: Found, *, part: float = 1.0
    ) -> tuple[list[Array], list[Array], dict[int, object], dict[str, object]]:
        """One step.

        Args:
          values: of the dense trainable variables, then of the others of real numbers.
          data: examples, as ``(x, y, sample_weight)``.
          found: the rows that they use.
          part: how much of the whole batch they are: their number by that of the whole. Losses that are sums over the
            batch add up, where others are averaged.

        Returns:
          Gradients of the dense variables; gradients of the rows; by variable the changes of others; the logs.
        """
        count = self._split.dense_count
        _, y, sample_weight = data
        gradients, of_rows, after, logs, self._own, self._metrics, self._scaling, sums, finite = self._compiled(
            list(values[:count]),
            list(values[count:]),
            self._own,
            self._metrics,
            self._scaling,
            (found.where, found.rows),
            (found.x, y, sample_weight),
            np.float32(part),
            found.coded,
        )
        self.sums = np.asarray(sums)
        self.finite = not self._scaled or bool(finite)
        changes = {count + at: change for at, change in zip(self._changing, after, strict=True)}
        rows = [np.asarray(g)[: len(keys)] for g, keys in zip(of_rows, found.keys, strict=True)]
        return [np.asarray(g) for g in gradients], rows, changes, logs

    def results(self, sums: Array) -> dict[str, float]:
        """The logs of the job: gives the model's metrics what was counted by all workers.

        Args:
          sums: those of all steps, added up.
        """
        model, at = self._model, 0
        for variable, fresh in zip(model.metrics_variables, self._fresh, strict=True):
            change = sums[at : at + fresh.size].reshape(fresh.shape)
            variable.assign((fresh + change).astype(fresh.dtype))
            at += fresh.size
        rows = sums[-1]
        logs = {name: float(value) for name, value in model.get_metrics_result().items()}
        return {**logs, **{name: float(sums[at + number] / rows) for number, name in enumerate(self._named)}}

    def _compute(
        self,
        dense: Sequence[jax.Array],
        floats: Any,
        own: Any,
        metrics: list[jax.Array],
        scaling: Any,
        read: Tree,
        data: Tree,
        part: Any,
        coded: tuple[bool, ...],
    ) -> Tree:
        model, split = self._model, self._split
        fresh = [jax.numpy.asarray(value) for value in self._fresh]
        mapping = {id(variable): value for variable, value in zip(self._scaled, scaling, strict=True)}
        state = [
            jax.numpy.zeros(variable.shape, variable.dtype)  # nothing reads what is kept of tables
            if isinstance(variable, TableVariable)
            else mapping.get(id(variable), variable.value)
            for variable in model.optimizer.variables
        ]
        others = split.others(floats, own)
        step = self._keras_step if keeps_train_step(model) else self._own_step
        found, after, counted, logs = step(dense, others, state, fresh, (*read, coded), data)
        rows = _tree.leaves(data[0])[0].shape[0]
        summed, changes = self._counted(fresh, counted, logs, rows, part)
        metrics = [(value + change).astype(value.dtype) for value, change in zip(metrics, changes, strict=True)]
        logs = {**self._logs_of(metrics), **{name: logs[name] for name in self._named}}
        found, scaling, finite = self._unscaled(found, scaling)
        optimizer = inner_optimizer(model.optimizer)
        if self._clips and (optimizer.clipnorm or optimizer.global_clipnorm):
            found = optimizer._clip_gradients(found)  # pyright: ignore[reportPrivateUsage]
        if self._summed:
            found = [g / part for g in found]
        changed = [after[split.floats[at]] - floats[at] for at in self._changing]
        count = split.dense_count
        rest = [after[at] for at in split.rest]
        return found[:count], found[count:], changed, logs, rest, metrics, scaling, summed, finite

    def _keras_step(
        self, dense: object, others: object, state: Tree, metrics: Sequence[jax.Array], read: Tree, data: Tree
    ) -> Tree:
        """What the ``train_step`` of Keras computes: gradients, other variables, metrics' variables and logs."""
        model, split = self._model, self._split
        x, y, sample_weight = data

        def loss_of(both: Any) -> Tree:
            dense, rows = both
            with reading(self._embeddings.reads(read[0], rows, read[2])):
                return model.compute_loss_and_updates(
                    split.trainable(dense),
                    others,
                    metrics,
                    x,
                    y,
                    sample_weight,
                    training=True,
                    optimizer_variables=state,
                )

        gradient: Any = jax.value_and_grad(loss_of, has_aux=True)
        (_, aux), (gradients, of_rows) = gradient((dense, read[1]))
        loss, y_pred, after, counted = aux
        with reading(self._embeddings.reads(*read)):
            logs, counted = model._update_metrics_variables(counted, loss, x, y, y_pred, sample_weight)
        return [*gradients, *of_rows], after, counted, logs

    def _own_step(
        self,
        dense: Sequence[jax.Array],
        others: object,
        state: Tree,
        metrics: Sequence[jax.Array],
        read: Tree,
        data: Tree,
    ) -> Tree:
        """The same of the model's own ``train_step``."""
        model = self._model
        # A model with a train_step of its own has no rows on the ps; ids are checked.
        with recorded(model.optimizer) as calls, reading(self._embeddings.reads(*read)):
            batch = _utils.pack_x_y_sample_weight(*data)
            logs, (_, after, _, counted) = model.train_step(
                (self._split.trainable(dense), others, state, metrics), batch
            )
        return gradients_of(model, calls, "parameter servers"), after, counted, logs

    def _counted(
        self, fresh: Any, counted: Any, logs: dict[str, Tree], rows: int, part: object
    ) -> tuple[Any, list[Any]]:
        """The vector `sums`, and by how much each variable of the metrics has changed."""
        changes = [after - before for after, before in zip(counted, fresh, strict=True)]
        for at in self._totals:
            changes[at] = changes[at] / part
        known = self._logs_of(counted)
        self._named = [name for name in logs if name not in known]
        flat = [jax.numpy.ravel(change).astype(np.float32) for change in changes]
        named = [jax.numpy.reshape(logs[name], 1).astype(np.float32) * rows for name in self._named]
        return jax.numpy.concatenate([*flat, *named, np.asarray([rows], np.float32)]), changes

    def _logs_of(self, metrics: Sequence[object]) -> dict[str, Any]:
        with _stateless(state_mapping=list(zip(self._model.metrics_variables, metrics, strict=True))):
            return self._model.get_metrics_result()

    def _unscaled(self, gradients: list[Any], scaling: Any) -> tuple[list[Any], list[Any], Any]:
        """Gradients of the loss as it is, the next factor with the number of steps since it last changed, and whether
        the gradients are finite."""
        optimizer = self._model.optimizer
        if not self._scaled:
            factor = optimizer.loss_scale_factor
            return gradients if factor is None else [g / factor for g in gradients], [], True
        jnp = jax.numpy
        steps, scale = scaling
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in gradients]))
        grows = finite & (steps == optimizer.dynamic_growth_steps - 1)
        after = jnp.where(finite, jnp.where(grows, scale * 2.0, scale), scale * 0.5)
        count = jnp.where(finite & ~grows, steps + 1, 0).astype(steps.dtype)
        found = [jnp.where(finite, g.astype(np.float32) / scale, 0) for g in gradients]
        return found, [count, after], finite


def keeps_train_step(model: object) -> bool:
    """Whether the ``train_step`` of ``model`` is Keras's own."""
    kind: Any = type(model)  # pyright: ignore[reportUnknownVariableType]
    return kind.train_step.__module__ == JAXTrainer.__module__


def inner_optimizer(optimizer: keras.Optimizer) -> keras.Optimizer:
    """The optimizer that runs on the ``ps``: without what scales losses, which workers do."""
    return optimizer.inner_optimizer if _scales(optimizer) else optimizer


def scaling_variables(optimizer: keras.Optimizer) -> list[Any]:
    """The steps since a factor for losses last changed, and the factor; nothing where losses are not scaled so."""
    return [optimizer.step_counter, optimizer.dynamic_scale] if _scales(optimizer) else []


def _scales(optimizer: keras.Optimizer) -> bool:
    return isinstance(optimizer, keras.optimizers.LossScaleOptimizer)


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

    def __init__(self, model: Any, tables: Sequence[keras.Layer]) -> None:
        ids = [id(variable) for variable in model.trainable_variables]
        self._table_at = [ids.index(id(layer.embeddings)) for layer in tables]
        self._dense_at = [at for at in range(len(ids)) if at not in self._table_at]
        self._tables = [layer.embeddings for layer in tables]
        self.dense_count: int = len(self._dense_at)
        others = model.non_trainable_variables
        self.floats: list[int] = [at for at, v in enumerate(others) if keras.backend.is_float_dtype(v.dtype)]
        self.rest: list[int] = [at for at in range(len(others)) if at not in self.floats]
        trainable = model.trainable_variables
        #: Those that the ``ps`` have: dense ones, others of real numbers, tables.
        self.served: list[object] = [
            *(trainable[at] for at in self._dense_at),
            *(others[at] for at in self.floats),
            *self._tables,
        ]

    def trainable(self, dense: Sequence[object]) -> list[jax.Array]:
        """The values of all trainable variables, while a step is traced: nothing reads those of tables."""
        found: list[Any] = [None] * (len(self._dense_at) + len(self._table_at))
        for at, value in zip(self._dense_at, dense, strict=True):
            found[at] = value
        for at, variable in zip(self._table_at, self._tables, strict=True):
            found[at] = jax.numpy.zeros(variable.shape, variable.dtype)
        return found

    def others(self, floats: Sequence[Any], rest: Sequence[object]) -> list[jax.Array]:
        """The values of all non-trainable variables."""
        found: list[Any] = [None] * (len(self.floats) + len(self.rest))
        for places, values in ((self.floats, floats), (self.rest, rest)):
            for at, value in zip(places, values, strict=True):
                found[at] = value
        return found
