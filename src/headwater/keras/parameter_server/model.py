"""Models in the scope of a parameter-server strategy: variables on the ``ps``, and Headwater's own `fit`.

On a ``ps``, ``fit`` serves and does not return. On a worker it requests steps until none are left, computes gradients
with one compiled function, and pushes them. The loop calls callbacks in the same order as Keras's loop.
"""

from __future__ import annotations

import functools
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras

from headwater.cluster.task.agreement import encode_topics
from headwater.errors import DataLossError, GaveUpError
from headwater.keras.callbacks import has_hook, serve_backup
from headwater.keras.combining.combination import Combination
from headwater.keras.embeddings.calls import plain_embeddings
from headwater.keras.embeddings.ids import stand_in
from headwater.keras.embeddings.inference import dynamic_layers, set_source, validation_iterator
from headwater.keras.embeddings.rows import ModelEmbeddings, without_bags
from headwater.keras.internals import array_slicing, data_adapter_utils, pythonify_logs
from headwater.keras.parameter_server.assignments import refuse_assignments
from headwater.keras.parameter_server.batches import Batches, Share, make_batches, share_of
from headwater.keras.parameter_server.described_sets import host_described
from headwater.keras.parameter_server.own_momentum import OwnMomentum
from headwater.keras.parameter_server.steps import GradientStep, find_shares
from headwater.keras.parameter_server.values import ModelValues
from headwater.keras.preemption import Preempted
from headwater.keras.programs import list_paths, optimizer_topics, same_settings
from headwater.keras.progress import progress_callbacks
from headwater.ps.accounting.ledger import Work
from headwater.ps.client import ParameterClient
from headwater.ps.consistency import KOfN, Part, Synchronous
from headwater.ps.protocol import NOTHING_YET, TRAINING_OVER, UNKNOWN_STEPS
from headwater.ps.step_requests import StepRequest, request_fields
from headwater.ps.updater import Array

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.keras.parameter_server.strategy import ParameterServerStrategy
    from headwater.keras.types import Tree

_tree = keras.tree
_slicing: Any = array_slicing
_utils = data_adapter_utils

_log = logging.getLogger("headwater")

_MODEL = "_headwater_parameter_servers"

#: Callbacks that write files, or act on values that only the chief has.
_CHIEF_CALLBACKS = tuple(
    getattr(keras.callbacks, name)
    for name in (
        "ModelCheckpoint",
        "BackupAndRestore",
        "TensorBoard",
        "CSVLogger",
        "EarlyStopping",
        "ReduceLROnPlateau",
        "LearningRateScheduler",
        "RemoteMonitor",
        "ProgbarLogger",
        "SwapEMAWeights",
    )
    if hasattr(keras.callbacks, name)
)


#: Methods of a model that use the values of its variables.
_READING_METHODS = (
    "evaluate",
    "predict",
    "test_on_batch",
    "predict_on_batch",
    "get_weights",
    "save",
    "save_weights",
)

#: Callbacks of the chief that run on an evaluator as well.
_EVALUATOR_CALLBACKS = (keras.callbacks.TensorBoard, keras.callbacks.CSVLogger)


class ServedModel(ModelValues):
    """A model with variables on parameter servers.

    Args:
      model: a Keras model.
      place: this process's place in the cluster, and the strategy's options.

    Attributes:
      stop_wanted: whether this process has been asked to end.
      is_training: whether `fit` runs its epochs.
    """

    def __init__(self, model: object, place: ParameterServerStrategy) -> None:
        super().__init__(model, place)
        self.stop_wanted = self.is_training = self._within_epoch = False
        self._backups: list[Any] = []
        self._step: GradientStep | None = None
        self._momentum: OwnMomentum | None = None
        self._combination_rules: Combination | None = None
        self._embeddings: ModelEmbeddings | None = None
        self._training = 0
        self._logs: dict[str, Any] = {}
        self._compiled: Any = None
        self._trained_paths: list[str] = []

    def train_on_batch(
        self,
        x: Tree,
        y: Tree | None = None,
        sample_weight: Tree | None = None,
        class_weight: Mapping[int, float] | None = None,
        return_dict: bool = False,
    ) -> Tree:
        """`keras.Model.train_on_batch` on parameter servers: reads values, computes gradients, pushes them.

        This worker uses the whole batch. Values that the program has assigned since the previous step are sent first.

        Raises:
          ValueError: both weights are given, as in Keras; or the program has assigned values, and several workers
            train.
        """
        model = self.model
        if class_weight is not None:
            if sample_weight is not None:
                raise ValueError("class_weight and sample_weight must not be given together: both weight the examples")
            sample_weight = _utils.class_weight_to_sample_weights(y, class_weight)
        share = share_of((x, y) if sample_weight is None else (x, y, sample_weight), 0, 1)
        data = share.data
        self._build(data)
        self.determine_variables()
        self._adapt_to_compile()
        self._serve_on_server()
        task = self.place.task
        if task is not None and task.members.is_evaluator:
            raise RuntimeError("a task of job evaluator cannot train: call fit, which only validates on it")
        client = self.connect()
        step = self._make_step(data)
        self._send_assignments()
        model.reset_metrics()
        step.start_epoch()
        self._run_step(client, step, share, None)
        self.hold_values()
        step.end()
        logs = pythonify_logs(self._logs)
        return logs if return_dict else model._flatten_metrics_in_order(logs)

    def _is_built(self) -> bool:
        """Returns whether the model, its losses and its metrics are built, so that Keras needs no batch to build
        them."""
        compiled = [self.model._compile_metrics, self.model._compile_loss]
        return all(part is None or part.built for part in [*self.model._flatten_layers(), *compiled])

    def _build(self, batch: Tree) -> None:
        """Builds the model for the shapes of a batch."""
        if not dynamic_layers(self.model):
            without_bags(_as_triple(batch)[0])
        self.model._symbolic_build(data_batch=_as_triple(batch, stand_in))

    def with_current_values(self, method: Callable[..., Any], *, state: bool) -> Callable[..., Any]:
        """Wraps a method of the model so that it uses the values of the ``ps``.

        After steps, the wrapper first reads these values and, with ``state``, the optimizer's state. Values that the
        program has assigned since the steps remain.
        """
        wanted = {"values", "state"} if state else {"values"}

        @functools.wraps(method)
        def wrapper(*args: object, **kwargs: object) -> Any:
            if self._client is None:
                return method(*args, **kwargs)
            if self._within_epoch and not state:
                self._hold_latest()  # a request for values would also return the assigned step
            elif self._within_epoch or self._stale & wanted:
                self.read_others(state=state)
            within, step = self._within_epoch, self._step
            if within and step is not None:
                step.return_local_state()
            result = method(*args, **kwargs)
            if within and step is not None:
                step.take_local_state()
            elif self.is_training:
                self.send_evaluated_state()
            return result

        return wrapper

    def jax_state_sync(self) -> None:
        """Sets the model's variables to the values of the latest step. Keras calls `keras.Model.jax_state_sync` before
        a callback or a save uses the model."""
        type(self.model).jax_state_sync(self.model)
        self._hold_latest()

    def _hold_latest(self) -> None:
        if self._outdated and not self.assigned_variables():
            self.hold_values()

    def _send_assignments(self) -> None:
        """Sends the ``ps`` the values that the program has assigned, and the state that an evaluation has changed,
        since the previous step of `train_on_batch`.

        Raises:
          ValueError: several workers train. Their gradients of the previous values would be applied to the new values.
        """
        assigned = self.assigned_variables()
        if not assigned:
            return
        if self.place.workers > 1:
            raise ValueError(
                f"the program has changed {list_paths(assigned)} of model {self.model.name!r} between calls of "
                "train_on_batch, and several workers train the model, which would use the new values at different "
                "times: use fit, or one worker"
            )
        slots = set(map(id, self.optimizer.variables))
        self.read_others(state=any(id(variable) in slots for variable in assigned))
        self._send_changes()

    def _adapt_to_compile(self) -> None:
        """Discards the step if the model was compiled since the last training. The ``ps`` keep the first optimizer.

        Raises:
          ValueError: the trainable variables have changed; or the optimizer has other settings, or, if tables are on
            the ``ps``, is another object.
        """
        model = self.model
        trained = [variable.path for variable in model.trainable_variables]
        if self._compiled is None:
            self._compiled, self._trained_paths = (model._loss_tracker, model.optimizer), trained
        tracker, optimizer = self._compiled
        if changed := {*trained}.symmetric_difference(self._trained_paths):
            raise ValueError(
                f"{', '.join(sorted(changed))} of model {model.name!r} cannot be frozen or unfrozen between trainings: "
                "the ps keep the variables of the first training; save the model, and continue with another job"
            )
        if model.optimizer is not optimizer and (self.tables or not same_settings(model.optimizer, optimizer)):
            raise ValueError(
                f"model {model.name!r} cannot be compiled with another optimizer between trainings: the ps keep the "
                "first optimizer; compile the model with model.optimizer, or save it and continue with another job"
            )
        if model._loss_tracker is not tracker:
            self._step = self._combination_rules = None
            self._compiled = model._loss_tracker, model.optimizer

    def _make_step(self, batch: Tree) -> GradientStep:
        """Returns the compiled step; the first call compiles it. The client must exist already."""
        assert self._client is not None
        if self._step is None:
            self._step = GradientStep(
                self.model,
                self.embeddings,
                clips=self.workers_clip,
                combination=self._combination(batch),
                elsewhere=self.elsewhere,
            )
            momentum = self.worker_momentum()
            self._momentum = None if momentum is None else OwnMomentum(momentum)
            if self.embeddings.layers:
                set_source(self.model, self)
            dense = len(self.model.trainable_variables) - len(self.tables)
            self._client.set_extras([dense + at for at in self._step.changing(_as_triple(batch))])
        return self._step

    def _combination(self, batch: Tree) -> Combination:
        """Returns the rules that combine the workers' shares."""
        place = self.place
        several = place.workers > 1
        if self._combination_rules is None:
            divided = several and isinstance(place.choice, Synchronous | KOfN)
            self._combination_rules = find_shares(
                self.model, self.embeddings, _as_triple(batch), divided=divided, several=several
            )
        return self._combination_rules

    # Training ---------------------------------------------------------------------------------------------------------

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
    ) -> Any:
        """`keras.Model.fit` on parameter servers. An epoch has as many updates as on one machine.

        ``batch_size`` is the size of one update's batch. If each gradient is an update, one worker computes the whole
        batch; if an update combines gradients of several workers, each computes its share.

        Validation, and callbacks that write files or act on its results, run on the chief. A task of job ``evaluator``
        also validates after every epoch, and does nothing else.
        """
        model = self.model
        model._assert_compile_called("fit")
        model._eval_epoch_iterator = None
        epochs = _limit("epochs", epochs) or 0
        if steps_per_epoch := _limit("steps_per_epoch", steps_per_epoch):
            # As in Keras, an epoch consists of whole executions.
            executed = model.steps_per_execution
            steps_per_epoch = -(-steps_per_epoch // executed) * executed
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = _slicing.train_validation_split(
                (x, y, sample_weight), validation_split=validation_split
            )
        batches = make_batches(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            shuffle=shuffle,
            class_weight=class_weight,
            steps=steps_per_epoch,
            builds=not self._is_built(),
        )
        self._build(batches.first())
        self.determine_variables()
        if batches.same_shapes_everywhere and self._tables is None:
            self._batch = _as_triple(batches.first())
        task = self.place.task
        self._adapt_to_compile()
        self._serve_on_server()
        chief, first_epoch = self.place.is_chief, initial_epoch
        if self._client is None:
            self._client = self._make_client()
            if self._dynamic is not None:
                self._dynamic.connect(self.servers, self._client)
            self._client.connect()
            self._reach_tables()
            late = self._client.joined_late
        else:
            late = False
            if chief:
                self._send_changes()
        client = self._client
        if task is None or not task.members.is_evaluator:
            self._check_same_program(batches)
        self.sync(state=chief)
        # This worker joins, or returns to, a training that is in progress: skip the epochs that are over.
        if late and client.trainings == self._training:
            initial_epoch = max(initial_epoch, client.epoch)
        batches.start_training(client.seed + self._training, first_epoch)
        if chief and batches.reason:
            _log.warning(
                "the batches of fit are not accounted for, so the step of a worker that is lost is lost, too: %s",
                batches.reason,
            )
        container = self._make_callbacks(callbacks, verbose, epochs, batches)
        validation = functools.partial(
            self._validate, validation_data, validation_batch_size or batch_size, validation_steps, container
        )
        self._make_step(batches.first())
        model.stop_training = False
        if task is not None and task.members.is_evaluator:
            initial_epoch = client.agree_on_first_epoch(self._training, None) or initial_epoch
            if validation_data is not None:
                self._validate_epochs(validation, container, range(initial_epoch, epochs))
            return model.history
        container.on_train_begin()
        if late:
            # The training is in progress, so the ps have newer values than the values that a callback has restored
            # here. `sync` keeps the restored learning rate, which only the chief sets.
            if self._dynamic is not None:
                self._dynamic.forget()
            self.sync(state=chief)
            # A chief that was lost after it had saved the end of an epoch continues with the next one.
            initial_epoch = max(initial_epoch, model._initial_epoch or 0)
        elif chief:
            self._send_changes()
            initial_epoch = model._initial_epoch or initial_epoch
        if chief:
            may_stop = any(isinstance(it, keras.callbacks.EarlyStopping) for it in container.callbacks)
            client.agree_on_first_epoch(self._training, initial_epoch, may_stop=may_stop, resumes=bool(self._backups))
        # Only the chief restores checkpoints. So it determines the first epoch, and it has sent its values to the ps
        # before the other workers learn the number.
        elif (begins := client.agree_on_first_epoch(self._training, None)) is not None:
            initial_epoch = max(initial_epoch, begins)
            self.sync()
        logs: dict[str, Any] = {}
        trained: dict[str, Any] = {}
        self.stop_wanted: bool = False
        self.is_training = True
        try:
            with Preempted.save_on_sigterm(self, saves=bool(self._backups)):
                for epoch in range(initial_epoch, epochs):
                    for backup in self._backups:  # Keras's callback learns of an epoch at its end only
                        backup._current_epoch = epoch
                    over = self._run_epoch(epoch, batches, container)
                    if over is None:
                        break
                    # As in Keras, an epoch without data has the logs of the previous epoch.
                    trained = dict(model._get_metrics_result_or_logs(self._logs)) if self._logs else trained
                    logs = dict(trained)
                    self.sync(state=chief)
                    self._within_epoch = False
                    if chief and self._dynamic is not None:
                        self._dynamic.save()
                    if chief and validation_data is not None and model._should_eval(epoch, validation_freq):
                        logs |= validation()
                    container.on_epoch_end(epoch, logs)
                    if chief and model.stop_training:
                        client.stop_training()
                    if over or model.stop_training:
                        break
        finally:
            self.is_training = self._within_epoch = False
            model._eval_epoch_iterator = None
        takes_part = late or initial_epoch < epochs
        if chief:
            # On the chief, call `on_train_end` before the other workers read the final values: callbacks such as
            # EarlyStopping may replace them.
            self._end_training(container, epochs, logs)
            if takes_part:
                self._send_changes()
        if takes_part:
            client.finish(self._training)
        self._training += 1
        if not chief:
            self._end_training(container, epochs, logs)
        return model.history

    def _end_training(self, container: Any, epochs: int, logs: dict[str, Any]) -> None:
        """Reads the final values, and ends the training on this worker as Keras does."""
        model = self.model
        self.sync(state=True)
        if epochs > 0:
            model.optimizer.finalize_variable_values(model.trainable_weights)
        container.on_train_end(logs)

    def _serve_on_server(self) -> None:
        """On a ``ps``: logs that it serves, serves, and does not return."""
        task = self.place.task
        if task is not None and task.members.is_server:
            _log.info("%s serves the variables of model %r until the job is over", task.members.me, self.model.name)
            self.host()
            task.serve(functools.partial(host_described, task, self.place))

    def _check_same_program(self, batches: Batches) -> None:
        """Checks that all workers have the optimizer of the ``ps``, and data of the same length.

        Raises:
          FailedPreconditionError: this worker or another one differs.
        """
        assert self._client is not None
        self._client.check_program(
            encode_topics({"data": batches.settings(), **optimizer_topics(self.optimizer)}),
            encode_topics({"examples": {"digest of some of them": batches.contents()}}),
        )

    def _validate_epochs(self, validation: Callable[[], dict[str, Any]], container: Any, epochs: range) -> None:
        """Runs an evaluator: whenever the workers have finished an epoch, validates the values of the newest finished
        epoch."""
        assert self._client is not None
        container.on_train_begin()
        logs: dict[str, dict[str, Tree]] = {}
        epoch = epochs.start
        over = False
        while not over and epoch < epochs.stop:
            try:
                over, newest = self._client.follow(self._training, epoch)
                epoch = min(newest, epochs.stop - 1)
                self.sync(state=bool(self.tables))
            except GaveUpError as error:
                _log.warning("epoch %d and later epochs are not validated: %s", epoch, error.message)
                break
            logs = validation()
            container.on_epoch_end(epoch, logs)
            epoch += 1
        self._training += 1
        container.on_train_end(logs)

    def _run_epoch(self, epoch: int, batches: Batches, container: Any) -> bool | None:
        """Runs an epoch. Returns whether the training is over after the epoch, or None if the training was over before
        the epoch."""
        client, model, step, place = self._client, self.model, self._step, self.place
        assert client is not None
        assert step is not None
        in_rounds = isinstance(place.choice, Synchronous | KOfN)
        default_share = (place.worker, place.workers) if in_rounds else (0, 1)
        known_steps = batches.steps_of(epoch)
        steps = UNKNOWN_STEPS if known_steps is None else known_steps
        plan = batches.plan(epoch, divided=in_rounds)
        if plan is not None:
            plan = replace(plan, in_turn=isinstance(place.choice, Synchronous))
        request: StepRequest = (self._training, epoch, steps, -1)
        if plan is not None:
            request = (*request, request_fields(epoch, plan, default_share if in_rounds else None))
        # The chief calls the callbacks of an epoch's beginning first, as Keras does. Another worker requests its first
        # step before that, because only the answer shows whether the chief has stopped the training.
        number = None if place.is_chief else _await_step_number(client, request, client.next_step(request))
        if number == TRAINING_OVER:
            return None
        model.reset_metrics()
        container.on_epoch_begin(epoch)
        others_wait = isinstance(place.choice, Synchronous) and epoch > client.epoch
        if self._backups and others_wait and self._unsent_rate() is not None:
            # If this process is lost, the other workers take the steps of the epoch with this learning rate.
            self._send_changes()
        # Keras passes the end of a batch to another thread, even if no callback uses it.
        begins = has_hook(container, "on_batch_begin", "on_train_batch_begin")
        ends = has_hook(container, "on_batch_end", "on_train_batch_end")
        self._logs, self._within_epoch = {}, True
        step.start_epoch()
        if number is None:
            number = _await_step_number(client, request, client.next_step(request))
        steps_done, execution_start, same_step, execution_open = 0, 0, False, False
        while number >= 0:
            works: list[Work] = []
            part: Part | None = None
            if plan is not None and isinstance(client.assigned_work, tuple):
                work, seed = client.assigned_work
                works, share = _examples_of_range(batches, work, seed)
                if plan.in_turn:
                    batch = plan.batch_of(work)
                    part = Part(*client.round, work.stop - work.start, batch.stop - batch.start)
            elif (batch := batches.get(epoch, number)) is not None:
                # The share follows the membership at the first ps: workers may have joined or left since.
                share = share_of(batch, *(client.share or default_share))
            else:
                number = client.next_step((*request[:3], number))
                continue
            if steps_done % model.steps_per_execution == 0 and not same_step:
                execution_start, execution_open = number, True
                if begins:
                    container.on_train_batch_begin(execution_start)
            next_number = _await_step_number(
                client, request, self._run_step(client, step, share, request, works=works, part=part)
            )
            # If the number is the same as before, this worker also computes the part of a lost worker in that step. For
            # callbacks and counts, both parts are one step.
            same_step = next_number == number
            steps_done += not same_step
            # As in Keras, batch callbacks are called once for every ``steps_per_execution`` steps.
            if not same_step and (steps_done % model.steps_per_execution == 0 or next_number < 0):
                if ends:
                    container.on_train_batch_end(execution_start + model.steps_per_execution - 1, self._logs)
                execution_open = False
            if self.stop_wanted:
                self._save_and_stop(epoch)
            number = next_number
            if model.stop_training:  # by a callback on this worker, which other workers may not have
                client.stop_training()
                break
        if execution_open:  # the data have ended within an execution, which no worker knew before
            container.on_train_batch_end(execution_start + model.steps_per_execution - 1, self._logs)
        step.end()
        sums = client.sums(epoch, wait=not model.stop_training)
        if len(sums) and sums[-1]:
            # Steps of several asynchronous workers have no common order, and so no last one.
            ordered = isinstance(place.choice, Synchronous) or place.workers == 1
            self._logs = step.results(sums, self._logs if ordered and self._logs else None)
        return number == TRAINING_OVER

    def _save_and_stop(self, epoch: int) -> None:
        """Saves the state needed to resume with ``epoch``, and raises `Preempted` to end this process."""
        repeats = isinstance(self.place.choice, Synchronous)
        for backup in self._backups:
            # The epoch will be repeated. Synchronous training then has the same result as without an interruption, if
            # the saved values contain no update of the epoch. This holds for the values that were saved at the end of
            # the previous epoch.
            if not (repeats and backup.save_freq == "epoch"):
                backup._save_model()
        if self.place.task is not None:
            self.place.task.shell.unregister_departure()
        raise Preempted(epoch)

    @property
    def embeddings(self) -> ModelEmbeddings:
        """The model's embedding layers."""
        if self._embeddings is None:
            whole = [layer for layer in plain_embeddings(self.model) if layer not in self.tables]
            self._embeddings = ModelEmbeddings(self.model, self.tables, dynamic_layers(self.model), whole)
        return self._embeddings

    def read_rows(self, numbers: Sequence[Array]) -> list[Array]:
        """Reads rows of the tables of Keras's own embedding layers."""
        assert self._client is not None
        tables = self.table_numbers()
        read = self._client.tables.rows(dict(zip(tables, numbers, strict=True)))
        return [read[table] for table in tables]

    def _run_step(
        self,
        client: ParameterClient,
        step: GradientStep,
        share: Share,
        request: StepRequest | None,
        *,
        works: Sequence[Work] = (),
        part: Part | None = None,
    ) -> int:
        """Computes and pushes gradients of a share of a batch; returns the number of the next step.

        ``works`` are the ranges of these examples in the epoch's plan, if examples are accounted for. ``part`` is the
        part of the batch that they fill, in synchronous training.
        """
        self._stale = set()  # the step itself needs no state of the optimizer
        rows = share.rows
        fraction = rows / share.whole
        variables = client.values()
        tables = self.table_numbers()
        dense = variables[: tables.start]
        batch = _utils.unpack_x_y_sample_weight(share.data)
        lookups = self.embeddings.find(lambda: step.trained(dense), batch[0], training=True, read=self.read_rows)
        gradients, of_rows, changes, self._logs = step(
            dense, batch, lookups, part=fraction or 1.0, first=share.first, batch=share.batch
        )
        if self._momentum is not None and step.finite:
            gradients = self._momentum(gradients)
        count = len(tables)
        pushed = dict(zip(tables, zip(lookups.keys[:count], of_rows[:count], strict=True), strict=True))
        dynamic = self._dynamic if step.finite and self.embeddings.dynamic else None
        version = client.version
        # If stale gradients are dropped, push rows last, and only if the dense gradients were applied. Otherwise push
        # rows first, because the push of dense gradients completes this worker's part and may release workers that wait
        # for the round.
        rows_last = isinstance(self.place.choice, KOfN)
        if dynamic is not None and not rows_last:
            position = works[0].start if part is not None and works else None
            dynamic.push(lookups.keys[count:], of_rows[count:], part=fraction, version=version, number=position)
        others = [None] * (len(variables) - len(gradients))
        number, applied = client.push(
            [*gradients, *others],
            changes=changes,
            weight=rows if step.finite else -rows,
            rows=pushed,
            hyperparameters=self._hyperparameters(),
            sums=step.sums
            if rows and request is not None and all(work.epoch == request[1] for work in works)
            else None,
            step_request=request,
            works=works,
            part=part,
        )
        if dynamic is not None and rows_last and applied:
            dynamic.push(lookups.keys[count:], of_rows[count:], part=fraction, version=version)
        self._outdated, self._stale = True, {"values", "state"}
        for sums in client.sums_so_far:
            self._logs = step.logs_so_far(sums)
        step.adapt_scale()
        self.count_update(is_applied=step.finite)
        return number

    def _validate(self, data: Tree, batch_size: int | None, steps: int | None, container: object) -> dict[str, Any]:
        x, y, sample_weight = _utils.unpack_x_y_sample_weight(data)
        model = self.model
        if model._eval_epoch_iterator is None:
            model._eval_epoch_iterator = validation_iterator(model, x, y, sample_weight, batch_size, steps)
        logs = model.evaluate(
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps=steps,
            callbacks=container,
            return_dict=True,
            _use_cached_eval_dataset=True,
        )
        return {f"val_{name}": value for name, value in logs.items()}

    def _make_callbacks(self, callbacks: object, verbose: object, epochs: int, batches: Batches) -> Any:
        listed: list[Any] = _tree.flatten(callbacks) if callbacks else []
        chief = self.place.is_chief
        task = self.place.task
        evaluates = task is not None and task.members.is_evaluator
        mine = [
            callback
            for callback in listed
            if chief
            or not isinstance(callback, _CHIEF_CALLBACKS)
            or (evaluates and isinstance(callback, _EVALUATOR_CALLBACKS))
        ]
        for callback in mine:
            self._sync_before_saving(callback)
            refuse_assignments(callback, served_model)
        self._backups = [callback for callback in mine if isinstance(callback, keras.callbacks.BackupAndRestore)]
        for backup in self._backups:
            serve_backup(backup)
        return keras.callbacks.CallbackList(
            [*mine, *progress_callbacks(shared=False)],
            add_history=True,
            add_progbar=chief and verbose != 0,
            verbose=verbose,
            epochs=epochs,
            steps=batches.steps,
            model=self.model,
        )

    def _sync_before_saving(self, callback: Any) -> None:
        """Makes a callback read the current values of the ``ps`` before each save within an epoch.

        At the end of an epoch the model has the values that were validated, or averages that `SwapEMAWeights` has put
        in their place.
        """
        save = getattr(callback, "_save_model", None)
        if save is None or hasattr(save, _MODEL):
            return

        @functools.wraps(save)
        def save_after_sync(*args: object, **kwargs: object) -> Any:
            if self._within_epoch:
                self.sync(state=True)
            return save(*args, **kwargs)

        setattr(save_after_sync, _MODEL, True)
        callback._save_model = save_after_sync


def _limit(name: str, wanted: int | None) -> int | None:
    """Returns a number of epochs or steps; if Keras's limit is smaller (`keras.config.set_max_epochs`), the limit."""
    limit = getattr(keras.config, f"max_{name}", lambda: None)()  # Keras 3.8 has no limits
    if not limit or (wanted is not None and wanted <= limit):
        return wanted
    warnings.warn(f"Limiting {name} to {limit}", stacklevel=3)
    return limit


def _examples_of_range(batches: Batches, work: Work, seed: int) -> tuple[list[Work], Share]:
    """Returns the ranges to account for, and the examples of a range.

    For an empty range, returns no ranges, and one example of weight zero, because every worker takes part in an update.
    """
    if work.start < work.stop:
        return [work], batches.load_range(work, seed)
    one = batches.load_range(work._replace(stop=work.start + 1), seed)
    return [], one._replace(rows=0, first=False)


def _await_step_number(client: ParameterClient, request: StepRequest, number: int) -> int:
    """Waits until no other worker holds examples that this worker may have to take over, and returns the step number.

    Raises:
      DataLossError: some examples were set aside.
    """
    while number == NOTHING_YET:
        client.wait_without_data(request)
        number = client.next_step(request)
    if isinstance(client.assigned_work, str):
        raise DataLossError(f"these ranges of examples were set aside: {client.assigned_work}")
    return number


def _as_triple(batch: Tree, of_inputs: Callable[[Any], Any] | None = None) -> Any:
    """Returns ``batch`` as arrays ``(x, y, sample_weight)``. ``of_inputs``, if given, converts x."""
    data = share_of(batch, 0, 1).data
    x, y, sample_weight = _utils.unpack_x_y_sample_weight(data)
    return x if of_inputs is None else of_inputs(x), y, sample_weight


def serve_model(model: object, place: ParameterServerStrategy) -> None:
    """Places the variables of ``model`` on the parameter servers of ``place``; idempotent."""
    if getattr(model, _MODEL, None) is None:
        served = ServedModel(model, place)
        # Bypasses Keras's __setattr__, which would search the value for layers.
        object.__setattr__(model, _MODEL, served)
        object.__setattr__(model, "fit", served.fit)
        object.__setattr__(model, "train_on_batch", served.train_on_batch)
        object.__setattr__(model, "jax_state_sync", served.jax_state_sync)
        for name in _READING_METHODS:
            if hasattr(model, name):  # a layer that is a trainer, but no `keras.Model`, has no files
                method = served.with_current_values(getattr(model, name), state=name in ("save", "save_weights"))
                object.__setattr__(model, name, method)


def served_model(model: object) -> ServedModel | None:
    """Returns the `ServedModel` of ``model``; None outside of parameter-server scopes."""
    return getattr(model, _MODEL, None)
