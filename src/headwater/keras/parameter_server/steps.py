"""One step of a worker: from values and a batch to gradients, in one executable."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import keras
import numpy as np

from headwater.keras.combining.combination import (
    Combination,
    Outcome,
    find_combination,
    flat_logs,
    keeps_train_step,
    losses_of,
    require_no_state_of_rows,
    results_of,
)
from headwater.keras.combining.loss_terms import factors_of, recorded_losses
from headwater.keras.combining.merges import Merge, Rule, share_of_change, share_of_metric
from headwater.keras.embeddings.calls import noting, reading
from headwater.keras.embeddings.rows import ModelEmbeddings, StepInputs
from headwater.keras.embeddings.variables import TableVariable
from headwater.keras.internals import data_adapter_utils, pythonify_logs
from headwater.keras.recording import gradients_of, record_gradients
from headwater.keras.synchronized import synchronized_layers
from headwater.ps.epoch_sums import ADD, ADD_MAX, ADD_MIN, LAST, MAX, MIN
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from headwater.keras.types import Tree

_tree = jax.tree
_utils = data_adapter_utils


class GradientStep:
    """Computes gradients of a model's loss, and its metrics.

    A custom ``train_step`` runs unchanged, but the gradients that it passes to the optimizer are returned instead of
    applied. With a `keras.optimizers.LossScaleOptimizer`, each worker keeps the loss scale, and gradients that are not
    finite are replaced by zeros.

    Args:
      model: a Keras model, built and compiled.
      embeddings: its embedding layers.
      clips: whether to clip gradients by norms, as configured in the model's optimizer.
      combination: the rules that combine the shares of a batch.
      elsewhere: see `Split`.

    Attributes:
      sums: the last step's contribution to the metrics of the job, as one vector; see `results`.
      finite: whether the gradients of the last step are finite; after `logs_so_far`, whether the gradients of all
        workers are. Gradients that are not finite are replaced by zeros.
    """

    def __init__(
        self,
        model: Any,
        embeddings: ModelEmbeddings,
        *,
        clips: bool,
        combination: Combination,
        elsewhere: Collection[int] = (),
    ) -> None:
        self._model = model
        self._clips = clips
        self._embeddings = embeddings
        self._split = Split(model, embeddings.tables, elsewhere)
        self._changing: list[int] = []
        self._compiled = jax.jit(self._compute, donate_argnums=(2, 3), static_argnums=8)
        self._compiled_divisors = jax.jit(self._find_divisors)
        self._compiled_logs = jax.jit(self._logs_of)
        self.combination = combination
        # Metrics without a rule are allowed only with a single worker, which keeps their state itself.
        self._rules = [rule or Rule(Merge.MEAN, state=True) for rule in combination.metrics]
        self._local_values: list[object] = []
        self._metric_values: list[Any] = []
        self._initial_metrics: list[Array] = []
        self._previous_sums: Array = np.zeros(0)
        self._averaged_logs: list[str] = combination.averaged
        self._sum_rules: Array | None = None
        self._scale_variables: list[Any] = scaling_variables(model.optimizer)
        self._scale_values: list[Array] = []
        self.sums: Array = np.zeros(0, np.float32)
        self.finite: bool = True

    def changing(self, batch: Tree) -> list[int]:
        """Returns the positions in `Split.floats` of the variables that a step itself changes, such as the moving
        averages of batch normalization.

        Raises:
          ValueError: a step changes a variable that is stored with another model.
        """
        model, split = self._model, self._split
        positions: list[int] = []
        elsewhere: list[str] = []

        def trace(trainable: Sequence[jax.Array], others: Sequence[jax.Array], data: Tree) -> Tree:
            with noting(self._embeddings.layers):
                if keeps_train_step(model):
                    outputs, after = model.stateless_call(trainable, others, data[0], **self._training_argument())
                else:
                    metrics = [variable.value for variable in model.metrics_variables]
                    outputs, after, _ = losses_of(model, (trainable, others, _optimizer_state(model), metrics), data)
            positions.extend(at for at, number in enumerate(split.floats) if after[number] is not others[number])
            changed = [at for at in split.elsewhere if after[at] is not others[at]]
            elsewhere.extend(model.non_trainable_variables[at].path for at in changed)
            return outputs

        trainable = [jax.ShapeDtypeStruct(tuple(v.shape), v.dtype) for v in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        jax.eval_shape(trace, trainable, others, self._encode_batch(batch))
        if elsewhere:
            raise ValueError(
                f"steps of model {model.name!r} change {', '.join(elsewhere)}, which the ps keep with another model: "
                "set trainable=False on the layers of that model"
            )
        self._changing = positions
        return positions

    def _training_argument(self) -> dict[str, bool]:
        return {"training": True} if self._model._call_has_training_arg else {}

    def start_epoch(self) -> None:
        """Begins an epoch: takes this worker's local state from the model."""
        model = self._model
        self._metric_values = [jax.numpy.array(variable.value) for variable in model.metrics_variables]
        self._initial_metrics = [np.asarray(variable.value) for variable in model.metrics_variables]
        self._previous_sums = np.zeros(0)
        self._sum_rules = self._find_sum_rules()
        self._scale_values = [np.asarray(variable.value) for variable in self._scale_variables]
        self.take_local_state()

    def end(self) -> None:
        """Ends an epoch: copies the local state back to the model."""
        model = self._model
        for variable, value in zip(model.metrics_variables, self._metric_values, strict=True):
            variable.assign(value)
        for variable, value in zip(self._scale_variables, self._scale_values, strict=True):
            variable.assign(value)
        self.return_local_state()

    def take_local_state(self) -> None:
        """Takes the values of the worker's local variables from the model."""
        others = self._model.non_trainable_variables
        self._local_values = [jax.numpy.array(others[at].value) for at in self._split.rest]

    def return_local_state(self) -> None:
        """Assigns the local values, including changes by steps since `take_local_state`, to the model's variables."""
        others = self._model.non_trainable_variables
        for at, value in zip(self._split.rest, self._local_values, strict=True):
            if at not in self._split.elsewhere:
                others[at].assign(value)

    def trained(self, values: Sequence[Any], own: Any = None) -> tuple[list[Any], list[Any]]:
        """Splits the values of `Split.served` into the dense trainable variables, and all non-trainable variables."""
        count = self._split.dense_count
        return list(values[:count]), self._split.others(values[count:], self._local_values if own is None else own)

    def __call__(
        self,
        values: Sequence[object],
        data: Tree,
        inputs: StepInputs,
        *,
        part: float = 1.0,
        first: bool = True,
        batch: Callable[[], Tree] | None = None,
    ) -> tuple[list[Array], list[Array], dict[int, object], dict[str, object]]:
        """Computes one step.

        Args:
          values: values of the dense trainable variables, then of the other floating-point variables.
          data: examples, as ``(x, y, sample_weight)``.
          inputs: the embedding rows of these examples.
          part: the examples' fraction of the whole batch.
          first: whether these are the first examples of the batch.
          batch: returns the whole batch, if ``data`` is only a part of it.

        Returns:
          Gradients of the dense variables; gradients of the rows; changes of other variables, by number; the logs.
        """
        count = self._split.dense_count
        _, y, sample_weight = data
        factors = None
        if self.combination.needs_factors and part != 1 and batch is not None:
            shares = [
                self._compiled_divisors(values, self._local_values, self._encode_batch(it)) for it in (data, batch())
            ]
            own_divisors, whole_divisors = (np.asarray(it, np.float64) for it in shares)
            factors = factors_of(self.combination.divisors, own_divisors, whole_divisors, part)
        gradients, row_gradients, after, logs, self._local_values, self._metric_values, sums, finite = self._compiled(
            list(values[:count]),
            list(values[count:]),
            self._local_values,
            self._metric_values,
            self._scale_values,
            (inputs.where, inputs.rows),
            (inputs.x, y, sample_weight),
            (np.float32(part), np.float32(first), factors),
            inputs.coded,
        )
        self.sums = np.asarray(sums)
        if self._sum_rules is not None:
            self.sums = np.stack([self.sums, self._sum_rules])
        self.finite = not self._scale_variables or bool(finite)
        changes = {count + at: change for at, change in zip(self._changing, after, strict=True)}
        rows = [np.asarray(g)[: len(keys)] for g, keys in zip(row_gradients, inputs.keys, strict=True)]
        return [np.asarray(g) for g in gradients], rows, changes, logs

    def logs_so_far(self, sums: Array) -> dict[str, object]:
        """Returns the logs of the job after an update, given the `sums` of all updates of the epoch so far."""
        before, self._previous_sums = self._previous_sums, sums
        # Logs that are not results of metrics describe this update only.
        update = sums - before if len(before) == len(sums) else sums
        # As in one process, the update is omitted if the gradients of any worker are not finite.
        self.finite = not update[self._averages_start(sums) - 1]
        return self._compiled_logs(self._initial_metrics, sums.astype(np.float32), self._averages(update))

    def _logs_of(self, initial: Sequence[Array], sums: Any, averages: Sequence[object]) -> dict[str, object]:
        return self.combination.logs_from(results_of(self._model, self._totals(initial, sums)), averages)

    def _averages(self, sums: Array) -> list[float]:
        """Returns the logs that are averaged over rows, given `sums`."""
        return [float(value / (sums[-1] or 1)) for value in sums[self._averages_start(sums) : -1]]

    def _averages_start(self, sums: Array) -> int:
        """Returns the position in `sums` of the logs that are averaged over rows.

        The preceding number is the count of gradients that were not finite.
        """
        return len(sums) - 1 - len(self._averaged_logs)

    def _totals(self, initial: Sequence[Array], sums: Any) -> list[Any]:
        """Returns the values of the metrics' variables, given `sums` and their values before the epoch, ``initial``."""
        totals: list[Any] = []
        at = 0
        for before, rule in zip(initial, self._rules, strict=True):
            part = sums[at : at + before.size].reshape(before.shape)
            totals.append((part if rule.state else before + part).astype(before.dtype))
            at += before.size
        return totals

    def results(self, sums: Array, last: Mapping[str, object] | None = None) -> dict[str, float]:
        """Sets the model's metrics to the totals of all workers, and returns the logs of the job.

        Args:
          sums: the sums of all steps, added up.
          last: the logs of the last step. If given, logs that are not results of metrics have the values of this step
            instead of the means over all rows.
        """
        model = self._model
        for variable, value in zip(model.metrics_variables, self._totals(self._initial_metrics, sums), strict=True):
            variable.assign(value)
        averages = self._averages(sums) if last is None else [last[name] for name in self._averaged_logs]
        return pythonify_logs(self.combination.logs_from(flat_logs(model.get_metrics_result()), averages))

    def _find_sum_rules(self) -> Array | None:
        """Returns the rules that combine the numbers of `sums`; None if all are added up.

        See `headwater.ps.epoch_sums`.
        """
        codes: list[int] = []
        for rule, fresh in zip(self._rules, self._initial_metrics, strict=True):
            largest = {Merge.MAX: (MAX, ADD_MAX), Merge.MIN: (MIN, ADD_MIN)}
            of_state, of_change = largest.get(rule.merge, (LAST, ADD))
            codes += [of_state if rule.state else of_change] * fresh.size
        return np.array([*codes, *[ADD] * (len(self._averaged_logs) + 2)], np.float32) if any(codes) else None

    def _encode_batch(self, data: Tree) -> Tree:
        """Encodes a batch without looking up its ids."""
        x, y, sample_weight = _utils.unpack_x_y_sample_weight(data)
        return self._embeddings.code(x), y, sample_weight

    def _find_divisors(self, values: Sequence[object], own: object, data: Tree) -> Any:
        """Returns the divisors that are not proportional to the number of rows, one for each such loss term."""
        dense, others = self.trained(values, own)
        model = self._model
        state = self._split.trainable(dense), others, _optimizer_state(model), self._initial_metrics
        with noting(self._embeddings.layers), recorded_losses(sums=self.combination.sums) as terms:
            losses_of(model, state, data)
        return jax.numpy.stack([jax.numpy.asarray(value, np.float32) for value in terms.denominators])

    def _compute(
        self,
        dense: Sequence[jax.Array],
        floats: Any,
        own: Any,
        metrics: list[jax.Array],
        scaling: Any,
        read: Tree,
        data: Tree,
        share: Any,
        coded: tuple[bool, ...],
    ) -> Tree:
        model, split = self._model, self._split
        part, first, factors = share
        starts = [rule.start(value) for rule, value in zip(self._rules, metrics, strict=True)]
        if scaling:  # scale as in one process with the whole batch, so that the same numbers overflow
            scaling = [scaling[0], scaling[1] * part]
        state = _optimizer_state(
            model, {id(it): value for it, value in zip(self._scale_variables, scaling, strict=True)}
        )
        others = split.others(floats, own)
        step = self._keras_step if keeps_train_step(model) else self._custom_step
        with recorded_losses(factors, self.combination.sums):
            gradients, after, new_metrics, logs = step(dense, others, state, starts, (*read, coded), data)
        logs = flat_logs(logs)
        rows = _tree.leaves(data[0])[0].shape[0]
        changes = [rule.contribution(*pair) for rule, *pair in zip(self._rules, starts, new_metrics, strict=True)]
        contributions = [share_of_metric(rule, it, part, first) for rule, it in zip(self._rules, changes, strict=True)]
        metrics = [rule.apply_merge(*pair) for rule, *pair in zip(self._rules, metrics, changes, strict=True)]
        gradients, finite = self._unscale(gradients, scaling)
        summed = jax.numpy.concatenate(
            [
                *(jax.numpy.ravel(value).astype(np.float32) for value in contributions),
                jax.numpy.reshape(1 - jax.numpy.asarray(finite, np.float32), 1),
                *(jax.numpy.reshape(logs[name], 1).astype(np.float32) * rows for name in self._averaged_logs),
                np.asarray([rows], np.float32),
            ]
        )
        logs = self.combination.logs_from(results_of(model, metrics), [logs[name] for name in self._averaged_logs])
        optimizer = inner_optimizer(model.optimizer)
        if self._clips and (optimizer.clipnorm or optimizer.global_clipnorm):
            gradients = optimizer._clip_gradients(gradients)  # pyright: ignore[reportPrivateUsage]
        rules = [self.combination.layers[split.floats[at]] for at in self._changing]
        changed = [
            share_of_change(rule, floats[at], after[split.floats[at]], part, first)
            for rule, at in zip(rules, self._changing, strict=True)
        ]
        count = split.dense_count
        rest = [after[at] for at in split.rest]
        return gradients[:count], gradients[count:], changed, logs, rest, metrics, summed, finite

    def _keras_step(
        self, dense: object, others: object, state: Tree, metrics: Sequence[jax.Array], read: Tree, data: Tree
    ) -> Tree:
        """Returns gradients, other variables, variables of metrics, and logs, as computed by Keras's ``train_step``."""
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
        (_, aux), (gradients, row_gradients) = gradient((dense, read[1]))
        loss, y_pred, after, new_metrics = aux
        with reading(self._embeddings.reads(*read)):
            logs, new_metrics = model._update_metrics_variables(new_metrics, loss, x, y, y_pred, sample_weight)
        return [*gradients, *row_gradients], after, new_metrics, logs

    def _custom_step(
        self,
        dense: Sequence[jax.Array],
        others: object,
        state: Tree,
        metrics: Sequence[jax.Array],
        read: Tree,
        data: Tree,
    ) -> Tree:
        """Returns the results of `_keras_step` for a custom ``train_step``."""
        model = self._model
        # A model with a custom train_step has no rows on the ps; its ids are still checked.
        with record_gradients(model.optimizer) as calls, reading(self._embeddings.reads(*read)):
            batch = _utils.pack_x_y_sample_weight(*data)
            logs, (_, after, _, new_metrics) = model.train_step(
                (self._split.trainable(dense), others, state, metrics), batch
            )
        return gradients_of(model, calls, "parameter servers"), after, new_metrics, logs

    def _unscale(self, gradients: list[Any], scaling: Any) -> tuple[list[Any], Any]:
        """Returns the gradients of the unscaled loss, or zeros if the gradients are not finite; and whether they are
        finite."""
        if not self._scale_variables:
            factor = self._model.optimizer.loss_scale_factor
            return gradients if factor is None else [g / factor for g in gradients], True
        jnp = jax.numpy
        finite = jnp.all(jnp.stack([jnp.asarray(True), *(jnp.all(jnp.isfinite(g)) for g in gradients)]))
        return [jnp.where(finite, g.astype(np.float32) / scaling[1], 0) for g in gradients], finite

    def adapt_scale(self) -> None:
        """Adapts the loss scale after an update, as Keras does: halves the scale if gradients were not finite, and
        doubles it after many finite updates."""
        if self._scale_variables:
            count, scale = self._scale_values
            grows = self.finite and count == self._model.optimizer.dynamic_growth_steps - 1
            factor = 2 if grows else 1 if self.finite else 0.5
            self._scale_values = [
                np.asarray(count + 1 if self.finite and not grows else 0, count.dtype),
                np.asarray(scale * factor, scale.dtype),
            ]


def find_shares(model: Any, embeddings: ModelEmbeddings, batch: Tree, *, divided: bool, several: bool) -> Combination:
    """Determines the rules that combine the shares of a model's steps, see `find_combination`; ``batch`` is
    ``(x, y, sample_weight)``.

    Raises:
      ValueError: workers have parts of batches, but a layer, loss or metric needs whole batches; the message names it.
    """
    if divided:
        require_no_state_of_rows(model)
    if divided and (names := synchronized_layers(model)):
        raise ValueError(
            f"layer {names[0]!r} cannot be synchronized: workers of parameter servers that have parts of a batch "
            "exchange no statistics; set synchronized=False, or use a mirrored strategy or consistency='async'"
        )
    data = embeddings.code(batch[0]), *batch[1:]
    metrics = [variable.value for variable in model.metrics_variables]

    def trainable() -> list[object]:
        return _without_tables(model.trainable_variables, {})

    def trace(others: Sequence[jax.Array], metrics: Sequence[jax.Array], data: Tree) -> Outcome:
        return losses_of(model, (trainable(), others, _optimizer_state(model), metrics), data)

    # `find_combination` calls the model, too: it tests custom losses and metrics on arrays of the predictions' shapes.
    with noting(embeddings.layers):
        rules = find_combination(
            model,
            data,
            trace,
            trainable=trainable,
            others=[variable.value for variable in model.non_trainable_variables],
            metrics=metrics,
            divided=divided,
            several=several,
            training=True,
        )
    for variable, rule in zip(model.non_trainable_variables, rules.layers, strict=True):
        local = not keras.backend.is_float_dtype(variable.dtype)
        if divided and (rule.merge in (Merge.MAX, Merge.MIN) or (local and rule.merge is Merge.SUM)):
            raise ValueError(
                f"variable {variable.path!r} cannot be kept on parameter servers: its value for a batch is the "
                f"{rule.merge.value} of the workers' {'values' if rule.state else 'changes'}, which the ps compute for "
                f"{'sums of floating-point variables' if local else 'sums'} only; make it a floating-point sum or a "
                "mean over examples, or use a mirrored strategy"
            )
    return rules


def _optimizer_state(model: Any, known: Mapping[int, object] | None = None) -> list[Any]:
    """Returns the values of the optimizer's variables for a step; ``known`` overrides some of them, by ``id``."""
    return _without_tables(model.optimizer.variables, known or {})


def _without_tables(variables: Sequence[Any], known: Mapping[int, object]) -> list[object]:
    """Returns the values of variables. Tables and their slots, which a step never reads, are zeros."""
    return [
        jax.numpy.zeros(variable.shape, variable.dtype)
        if isinstance(variable, TableVariable)
        else known.get(id(variable), variable.value)
        for variable in variables
    ]


def inner_optimizer(optimizer: keras.Optimizer) -> keras.Optimizer:
    """Returns the optimizer for the ``ps``, without the wrapper for loss scaling, which runs on workers."""
    return optimizer.inner_optimizer if _scales_losses(optimizer) else optimizer


def scaling_variables(optimizer: keras.Optimizer) -> list[Any]:
    """Returns the variables of a dynamic loss scale: steps since its last change, and the scale. Empty without one."""
    return [optimizer.step_counter, optimizer.dynamic_scale] if _scales_losses(optimizer) else []


def _scales_losses(optimizer: keras.Optimizer) -> bool:
    return isinstance(optimizer, keras.optimizers.LossScaleOptimizer)


class Split:
    """The division of a model's variables into dense variables, tables, other floating-point variables, and the rest.

    Args:
      model: a built Keras model.
      tables: see `GradientStep`.
      elsewhere: the ``id`` of each variable that the ``ps`` keep with another model.

    Attributes:
      dense_count: number of trainable variables that are not tables.
      floats: the positions of floating-point variables among the non-trainable variables.
      rest: the positions of all other non-trainable variables, such as seeds, of which each worker has its own copy.
      elsewhere: the positions among ``rest`` of floating-point variables that are kept with another model.
    """

    def __init__(self, model: Any, tables: Sequence[keras.Layer], elsewhere: Collection[int] = ()) -> None:
        ids = [id(variable) for variable in model.trainable_variables]
        self._table_at = [ids.index(id(layer.embeddings)) for layer in tables]
        self._dense_at = [at for at in range(len(ids)) if at not in self._table_at]
        self._tables = [layer.embeddings for layer in tables]
        self.dense_count: int = len(self._dense_at)
        others = model.non_trainable_variables
        floats = [at for at, v in enumerate(others) if keras.backend.is_float_dtype(v.dtype)]
        self.elsewhere: list[int] = [at for at in floats if id(others[at]) in elsewhere]
        self.floats: list[int] = [at for at in floats if at not in self.elsewhere]
        self.rest: list[int] = [at for at in range(len(others)) if at not in self.floats]
        trainable = model.trainable_variables
        #: Variables on the ``ps``: dense trainable variables, other floating-point variables, tables.
        self.served: list[object] = [
            *(trainable[at] for at in self._dense_at),
            *(others[at] for at in self.floats),
            *self._tables,
        ]

    def trainable(self, dense: Sequence[object]) -> list[jax.Array]:
        """Returns values of all trainable variables for tracing. Tables are zeros, as their values are not read."""
        values: list[Any] = [None] * (len(self._dense_at) + len(self._table_at))
        for at, value in zip(self._dense_at, dense, strict=True):
            values[at] = value
        for at, variable in zip(self._table_at, self._tables, strict=True):
            values[at] = jax.numpy.zeros(variable.shape, variable.dtype)
        return values

    def others(self, floats: Sequence[Any], rest: Sequence[object]) -> list[jax.Array]:
        """Returns the values of all non-trainable variables."""
        merged: list[Any] = [None] * (len(self.floats) + len(self.rest))
        for places, values in ((self.floats, floats), (self.rest, rest)):
            for at, value in zip(places, values, strict=True):
                merged[at] = value
        return merged
