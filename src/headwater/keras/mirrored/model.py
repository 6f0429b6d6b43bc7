"""Models in the scope of a mirrored strategy: all replicas make each step of ``fit`` or ``evaluate`` together.

The loops are Keras's own. They iterate over this process's share of the data, their step functions exchange values with
the other processes, and callbacks write files in one process only.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from headwater.cluster.task.agreement import difference, encode_topics
from headwater.data.options import AutoShardPolicy
from headwater.errors import FailedPreconditionError
from headwater.keras import saving
from headwater.keras.combining.combination import require_no_state_of_rows
from headwater.keras.combining.merges import Rule, combined, layer_rule
from headwater.keras.internals import array_slicing, data_adapter_utils
from headwater.keras.mirrored.callbacks import Mirror, SavesProgress, prepare_callbacks, reads_batch_logs
from headwater.keras.mirrored.shards import ArrayShards, Shards, Share, shards_of
from headwater.keras.mirrored.steps import NOTHING, Replicas, State, TestStep, TrainStep, rows_of
from headwater.keras.preemption import Preempted
from headwater.keras.programs import model_variables, optimizer_topics
from headwater.keras.progress import progress_callbacks

if TYPE_CHECKING:
    import keras

    from headwater.data.io.files import Path
    from headwater.keras.types import Tree

_slicing: Any = array_slicing
_utils = data_adapter_utils

_MIRRORED = "_headwater_mirrored"
_REPLACED_METHODS = (
    "fit evaluate predict train_on_batch test_on_batch predict_on_batch make_train_function make_test_function "
    "make_predict_function _get_metrics_result_or_logs save save_weights load_weights"
)


@dataclass(kw_only=True, slots=True)
class Position:
    """The position of a `fit`.

    Attributes:
      seed: seed of the shuffle.
      epoch: number of finished epochs.
      step: number of finished steps of the current epoch.
    """

    seed: int
    epoch: int = 0
    step: int = 0


class MirroredModel:
    """Replaces the training, evaluation and prediction loops of a model.

    Args:
      model: a Keras model.
      replicas: all replicas.

    Attributes:
      position: the position of `fit`.
      stop_wanted: whether this process has been asked to end.
      stopping: whether any process has been asked to end. All processes learn this in the same step.
      run: number of the current `fit` or `evaluate`.
      reads_batch_logs: whether a callback of any process reads the logs of each batch of the evaluation.
      skipping: whether `fit` skips a step that was finished before the restart of this process.
      layer_rules: the rule of each variable that is not trained, as of the latest `fit` or `evaluate`.
    """

    def __init__(self, model: Any, replicas: Replicas) -> None:
        self.model = model
        self.replicas = replicas
        self.position = Position(seed=0)
        self.stop_wanted: bool = False
        self.stopping: bool = False
        self.skipping: bool = False
        self.run: int = 0
        self.reads_batch_logs: bool = False
        self.layer_rules: Sequence[Rule] | None = None
        self._test_step: TestStep | None = None
        self._keras: Any = type(model)
        self._data: Shards | None = None
        self._savers: Sequence[SavesProgress] = ()
        self._fitting = False
        self._evaluating = False
        self._first_epoch = 0
        self._steps_per_epoch: int | None = None
        self._skip_steps = 0
        self._restored_metrics: Sequence[object] = ()

    def patch_model(self) -> None:
        """Replaces the model's methods by the methods of this object."""
        for name in _REPLACED_METHODS.split():
            # Bypass Keras's `__setattr__`, which would search the value for layers.
            object.__setattr__(self.model, name, getattr(self, name.removeprefix("_")))
        object.__setattr__(self.model, _MIRRORED, self)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files that are written once per job."""
        return self.replicas.rank == 0

    # --- the loops

    def fit(
        self,
        x: Tree | None = None,
        y: Tree | None = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: object = None,
        validation_split: float = 0.0,
        validation_data: Tree | None = None,
        shuffle: bool | str = True,
        class_weight: Mapping[int, float] | None = None,
        sample_weight: Tree | None = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: object = 1,
    ) -> Tree:
        """Keras's ``fit``; ``batch_size`` and the batches of datasets are global batches, shared by all replicas."""
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = _slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        share = self._share(self._agree_on_seed())
        self._data = shards_of(share, x, y, sample_weight, batch_size, steps_per_epoch, shuffle, class_weight)
        if isinstance(self._data, ArrayShards):
            self._check_same_program({"data": {"batches": self._data.count, "batch_size": self._data.batch_size}})
        self._settle(self._data)
        validation: Any = None
        if validation_data is not None:
            inputs, targets, weights = _utils.unpack_x_y_sample_weight(validation_data)
            size = validation_batch_size or batch_size
            validation = shards_of(share, inputs, targets, weights, size, validation_steps)
        self.position = Position(seed=share.seed, epoch=initial_epoch)
        self.stop_wanted = self.stopping = self.skipping = False
        self.run += 1
        self._first_epoch, self._steps_per_epoch = initial_epoch, steps_per_epoch
        self._skip_steps, self._restored_metrics = 0, ()
        listed = prepare_callbacks(callbacks, self)
        self._savers = [callback for callback in listed if isinstance(callback, SavesProgress)]
        self._fitting = True
        try:
            with Preempted.save_on_sigterm(self, saves=bool(self._savers)):
                return self._keras.fit(
                    self.model,
                    x=self._data,
                    epochs=epochs,
                    verbose=self._verbose(verbose),
                    callbacks=[*listed, *progress_callbacks(shared=True), Mirror(self)],
                    validation_data=validation,
                    initial_epoch=initial_epoch,
                    steps_per_epoch=steps_per_epoch,
                    validation_steps=validation_steps,
                    validation_freq=validation_freq,
                )
        finally:
            self._fitting = False
            # This value was set by a callback that has restored the model, and is valid for this run only.
            self.model._initial_epoch = None
            self._data, self._savers = None, ()

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
        **kwargs: object,
    ) -> Tree:
        """Keras's ``evaluate``: each process evaluates its share of the data; all return the results for all data."""
        x, y, sample_weight = shards_of(self._share(0), x, y, sample_weight, batch_size, steps), None, None
        if not self._fitting:
            callbacks = [*prepare_callbacks(callbacks, self), Mirror(self)]
        self._evaluating = True
        self.reads_batch_logs = reads_batch_logs(callbacks)
        self.run += 1
        try:
            return self._keras.evaluate(
                self.model,
                x=x,
                y=y,
                batch_size=batch_size,
                verbose=self._verbose(verbose),
                sample_weight=sample_weight,
                steps=steps,
                callbacks=callbacks,
                return_dict=return_dict,
                **kwargs,
            )
        finally:
            self._evaluating = False

    def predict(
        self,
        x: Tree,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: object = None,
    ) -> Tree:
        """Keras's ``predict``: each process computes its share of each batch; all return the whole result, in order."""
        data = shards_of(self._share(0), x, batch_size=batch_size, steps=steps, policy=AutoShardPolicy.DATA)
        listed = [*prepare_callbacks(callbacks, self), Mirror(self)]
        return self._keras.predict(self.model, x=data, verbose=self._verbose(verbose), steps=steps, callbacks=listed)

    def train_on_batch(
        self,
        x: Tree,
        y: Tree | None = None,
        sample_weight: Tree | None = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> Tree:
        """Trains on a batch; each process takes its rows of it."""
        if class_weight is not None and sample_weight is None:
            sample_weight, class_weight = _utils.class_weight_to_sample_weights(y, class_weight), None
        x, y, sample_weight = self._share(0).of_batch((x, y, sample_weight))
        return self._keras.train_on_batch(self.model, x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(
        self, x: Tree, y: Tree | None = None, sample_weight: Tree | None = None, return_dict: bool = False
    ) -> Tree:
        """Returns the metrics of a batch; each process evaluates its rows of it."""
        batch = shards_of(self._share(0), x, y, sample_weight, batch_size=rows_of(x))
        return self.evaluate(x=batch, verbose=0, return_dict=return_dict)

    def predict_on_batch(self, x: Tree) -> Tree:
        """Returns the outputs for a batch; each process computes its rows of it."""
        return self.predict(x, batch_size=rows_of(x), verbose=0)

    # --- files

    def save(self, filepath: Path, overwrite: bool = True, zipped: bool | None = None, **kwargs: object) -> None:
        """Keras's ``save``; a ``.keras`` archive is written atomically, under any name."""
        if overwrite and zipped is not False and not kwargs and not str(filepath).startswith("hf://"):
            saving.save_model(self.model, filepath)
        else:
            self._keras.save(self.model, filepath, overwrite, zipped, **kwargs)

    def save_weights(self, filepath: Path, overwrite: bool = True, max_shard_size: object = None) -> None:
        """Keras's ``save_weights``; the file is written atomically, under any name."""
        if overwrite and max_shard_size is None:
            saving.save_weights(self.model, filepath)
        else:
            self._keras.save_weights(self.model, filepath, overwrite, max_shard_size)

    def load_weights(self, filepath: Path, skip_mismatch: bool = False, **kwargs: object) -> None:
        """Keras's ``load_weights``, for files of any name."""
        saving.load_weights(self.model, filepath, skip_mismatch=skip_mismatch, **kwargs)

    # --- the steps

    def make_train_function(self, force: bool = False) -> None:
        """Sets the model's function for one training step."""
        if self.model.train_function is not None and not force:
            return
        shared = self.replicas.processes > 1
        step: Any = TrainStep(self.model, self) if shared else self._local(self._keras.train_step, donate=True)
        run: Callable[[State, Iterator[Any]], Any] = self.model._make_function(step)

        def train(state: State, iterator: Iterator[Any]) -> Tree:
            self.skipping = self._skip_steps > 0
            if self.skipping:
                self._skip_steps -= 1
                for _ in range(self.model.steps_per_execution):
                    next(iterator)
                return {}, state
            if self.stopping or (self.stop_wanted and not shared):
                self._save_and_stop()
            result = run(state, iterator)
            self.position.step += self.model.steps_per_execution
            return result

        self.model.train_function = train

    def make_test_function(self, force: bool = False) -> None:
        """Sets the model's function for one step of an evaluation."""
        if self.model.test_function is not None and not force:
            return
        # Not donated: an average of an optimizer may share the array of its variable.
        run = self.model._make_function(self._skips_without_rows(self._local(self._keras.test_step, donate=False)))
        step = self._test_step = TestStep(self.model, self)
        run_shared = self.model._make_function(step)
        prepared = -1

        def test(state: Tree, iterator: Iterator[object]) -> Tree:
            nonlocal prepared
            if self.stopping and self._fitting:
                self._save_and_stop()
            if self.replicas.processes == 1:
                return run(state, iterator)
            if prepared != self.run:
                first = next(iterator, NOTHING)
                step.prepare(state, first)
                prepared = self.run
                iterator = itertools.chain([first], iterator)
            return run(state, iterator) if self._adds_up_at_end else run_shared(state, iterator)

        self.model.test_function = test

    def make_predict_function(self, force: bool = False) -> Any:
        """Sets the model's function for one step of a prediction."""
        if self.model.predict_function is not None and not force:
            return self.model.predict_function

        def predict_step(model: keras.Model, state: Tree, batch: Tree) -> Tree:
            outputs, others = self._keras.predict_step(model, state, batch)
            return outputs, (state[0], others)

        local = self._local(predict_step, donate=False)

        def whole(state: Tree, batch: Tree) -> Tree:
            if self.replicas.processes == 1:
                return local(state, batch)
            state = self.replicas.place(state, False)
            outputs, after = local(state, batch) if rows_of(batch) else (None, state)
            outputs, others = self._merge_predictions(outputs, state[1], after[1])
            return outputs, (after[0], others)

        self.model.predict_function = self.model._make_function(whole, concatenate_outputs=True)
        return self.model.predict_function

    def get_metrics_result_or_logs(self, logs: dict[str, Tree]) -> Tree:
        """The logs at the end of an epoch or an evaluation, for the data of all processes."""
        if self._evaluating and self.replicas.processes > 1 and self._adds_up_at_end:
            self._add_up_metrics()
            logs = {}
        # Logs are empty if all steps of an epoch were finished before a restart.
        return self._keras._get_metrics_result_or_logs(self.model, logs) if logs else self.model.get_metrics_result()

    @property
    def _adds_up_at_end(self) -> bool:
        """Whether the processes add up their metrics once, after the last batch of the evaluation."""
        assert self._test_step is not None
        return self._test_step.combination.linear and not self.reads_batch_logs

    def _local(self, function: Any, donate: bool) -> Any:
        """A step without exchanges, on all devices of this process."""
        model, place = self.model, self.replicas.place

        def step(state: Tree, batch: Tree) -> Tree:
            return function(model, state, batch)

        compiled: Any = step
        if hasattr(function, "as_function"):  # a step of a program, which may change variables outside of the state
            compiled = function.as_function(model)
        elif not model.run_eagerly and model.jit_compile:
            compiled = jax.jit(step, donate_argnums=0 if donate else ())

        def placed(state: Tree, batch: Tree) -> Tree:
            return compiled(place(state, False), place(batch, True))

        return placed

    @staticmethod
    def _skips_without_rows(local: Callable[[Tree, Tree], Tree]) -> Callable[[Tree, Tree], Tree]:
        """Wraps an evaluation step: for a batch of which this process has no rows, the wrapper returns the previous
        logs."""
        logs: Tree = {}

        def step(state: Tree, batch: Tree) -> Tree:
            nonlocal logs
            if isinstance(batch, tuple) and not batch:  # `NOTHING`, which `Shards` yields after the end of the data
                raise StopIteration
            if rows_of(batch):
                logs, state = local(state, batch)
            return logs, state

        return step

    def _merge_predictions(
        self, outputs: Tree, before: Sequence[jax.Array], after: Sequence[jax.Array]
    ) -> tuple[Tree, Sequence[Any]]:
        """Concatenates the rows of all processes, by rank, and merges the state of layers.

        Args:
          outputs: of this process's rows; None without rows.
          before, after: the variables that are not trained, before and after this process's step.
        """
        leaves, structure = jax.tree_util.tree_flatten(outputs)
        # A compiled step returns the same array for an unchanged variable.
        changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if new is not old]
        rules = self.layer_rules or [layer_rule(it, assigned=False) for it in self.model.non_trainable_variables]
        contributions = [rules[at].contribution(before[at], after[at]) for at in changed]
        sent = [np.asarray(value) for value in (changed, *contributions, *leaves)] if leaves else []
        gathered = [part for part in self.replicas.gather(sent, "prediction") if len(part)]
        if not gathered:
            raise StopIteration
        changed = [int(at) for at in gathered[0][0]]
        _, *columns = zip(*gathered, strict=True)
        merged, rows = list(before), [len(leaf) for leaf in columns[-1]]
        for at, values in zip(changed, columns, strict=False):
            merged[at] = rules[at].apply_merge(before[at], np.asarray(combined(rules[at].merge, values, rows)))
        columns = [np.concatenate(column) for column in columns[len(changed) :]]
        if outputs is not None:
            return structure.unflatten(columns), merged
        return columns[0] if len(columns) == 1 else tuple(columns), merged

    # --- state that is equal in all processes

    def mirror(self) -> None:
        """Broadcasts the variables of the first process, and its position in `fit`, to all processes."""
        if self.replicas.processes == 1:
            return
        optimizer = getattr(self.model, "optimizer", None)
        settings = optimizer_topics(optimizer) if optimizer is not None else {}
        self._check_same_program({"variables": model_variables(self.model), **settings})
        variables = self._variables()
        position = self.position
        numbers = np.asarray([position.seed, position.epoch, position.step], np.int64)
        values = [np.asarray(variable.value) for variable in variables]
        numbers, *values = self.replicas.broadcast([numbers, *values], "variables")
        self.position = Position(seed=int(numbers[0]), epoch=int(numbers[1]), step=int(numbers[2]))
        if not self.is_chief:
            for variable, value in zip(variables, values, strict=True):
                variable.assign(value)

    def resume(self, *, seed: int, epoch: int, step: int, metrics: Sequence[jax.Array]) -> None:
        """Makes `fit` resume after ``step`` steps of epoch ``epoch``, with these values of the metrics."""
        self.position: Position = Position(seed=seed, epoch=epoch, step=step)
        self._restored_metrics = metrics

    def start_fit(self) -> None:
        """Starts `fit` at the restored position; called at its beginning, after callbacks have restored the model."""
        self.mirror()
        position = self.position
        self.model._initial_epoch = position.epoch
        # Keras's loop can start only at the beginning of an epoch. So it also calls the step function for the finished
        # steps of that epoch, and these calls skip their batches.
        self._skip_steps = -(-position.step // self.model.steps_per_execution)
        assert self._data is not None
        self._data.restart(
            replace(self._data.share, seed=position.seed),
            epochs=max(0, position.epoch - self._first_epoch),
            steps_per_epoch=self._steps_per_epoch,
        )

    def start_epoch(self, epoch: int) -> None:
        """Updates the position at the beginning of an epoch."""
        if not self._skip_steps:
            self.position.epoch, self.position.step = epoch, 0
            return
        # The first steps of this epoch were finished before the restart. Keras has just reset their metrics, so set
        # them to the restored values.
        variables = list(self.model.metrics_variables)
        values = self.replicas.broadcast(self._restored_metrics, "metrics so far")
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)

    def end_epoch(self) -> None:
        """Updates the position at the end of an epoch."""
        self.position.epoch, self.position.step = self.position.epoch + 1, 0

    def _variables(self) -> list[Any]:
        model = self.model
        optimizer = getattr(model, "optimizer", None)
        return [
            *model.trainable_variables,
            *model.non_trainable_variables,
            *(optimizer.variables if optimizer is not None else ()),
        ]

    def _check_same_program(self, topics: Mapping[str, Mapping[str, object]]) -> None:
        """Checks that all processes run the same program.

        Raises:
          FailedPreconditionError: a process has other variables, another optimizer or other data than the first one.
            Raised in all processes.
        """
        if self.replicas.processes == 1:
            return
        own = np.frombuffer(json.dumps(encode_topics(topics)).encode(), np.uint8)
        first, *others = [json.loads(bytes(part[0])) for part in self.replicas.gather([own], "program")]
        for rank, other in enumerate(others, 1):
            differs = difference(f"worker {rank}", other, "worker 0", first)
            if differs:
                raise FailedPreconditionError(f"{differs}: all workers must run the same program")

    def _share(self, seed: int) -> Share:
        if self.replicas.processes > 1:
            require_no_state_of_rows(self.model)
        return Share(count=self.replicas.processes, index=self.replicas.rank, seed=seed)

    def _agree_on_seed(self) -> int:
        # Use NumPy's global generator, so that `keras.utils.set_random_seed` makes the seed reproducible.
        seed = np.asarray([np.random.randint(1 << 31)], np.int64)
        return int(self.replicas.broadcast([seed], "seed")[0][0])

    def _settle(self, data: Shards) -> None:
        count = np.asarray(-1 if data.count is None else data.count, np.int64)
        counts = [int(part[0]) for part in self.replicas.gather([count], "number of batches")]
        data.set_batch_counts([None if count < 0 else count for count in counts])

    def _verbose(self, verbose: object) -> Any:
        return 0 if verbose == "auto" and not self.is_chief else verbose

    def _add_up_metrics(self) -> None:
        variables = list(self.model.metrics_variables)
        values = [np.asarray(variable.value) for variable in variables]
        vector = np.concatenate([np.ravel(value).astype(np.float64) for value in values] or [np.zeros(0)])
        total = self.replicas.add_up(vector, "metrics of an evaluation")
        at = 0
        for variable, value in zip(variables, values, strict=True):
            total_of_variable = total[at : at + value.size].reshape(value.shape)
            variable.assign(total_of_variable.astype(value.dtype))
            at += value.size

    def _save_and_stop(self) -> None:
        """Saves and ends this process, after all processes have learnt that one of them was asked to end."""
        self.model.jax_state_sync()
        for saver in self._savers:
            saver.save()
        raise Preempted(self.position.epoch, self.position.step)


def mirrored_of(model: object) -> MirroredModel | None:
    """Returns the `MirroredModel` of ``model``; None outside of mirrored scopes."""
    return getattr(model, _MIRRORED, None)
