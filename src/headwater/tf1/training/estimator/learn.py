"""Estimators and experiments of ``tf.contrib.learn``, based on `headwater.tf1.training.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.cluster.config import CHIEFS
from headwater.cluster.pauses import pause
from headwater.dtypes import as_dtype
from headwater.tensorboard_protos import config_pb2
from headwater.tf1.feature_columns.old import real_valued_column
from headwater.tf1.functional.nn import relu
from headwater.tf1.functional.weighted_losses import Reduction
from headwater.tf1.training.basic_session_run_hooks import GlobalStepWaiterHook
from headwater.tf1.training.estimator import canned
from headwater.tf1.training.estimator.inputs import numpy_input_fn
from headwater.tf1.training.estimator.monitors import replace_monitors_with_hooks
from headwater.tf1.training.estimator.run_config import RunConfig, TaskType
from headwater.tf1.training.estimator.specs import EvalSpec, TrainSpec
from headwater.tf1.training.estimator.train_and_evaluate import Evaluator, run_task, start_server

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.registry import HostArray
    from headwater.graph.types import SparseLike, Structure
    from headwater.tensorboard_protos import ConfigProto
    from headwater.tf1.feature_columns.base import Column
    from headwater.tf1.training.estimator.estimator import Estimator
    from headwater.tf1.training.optimizer import OptimizerLike
    from headwater.tf1.training.saving_hooks import CheckpointSaverListener
    from headwater.tf1.training.session_run_hook import SessionRunHook

ARRAY = ""
"""The name by which columns refer to features that are one array."""

_METRICS = {
    "accuracy_baseline": "accuracy/baseline_label_mean",
    "label/mean": "labels/actual_label_mean",
    "precision": "precision/positive_threshold_0.500000_mean",
    "prediction/mean": "labels/prediction_mean",
    "recall": "recall/positive_threshold_0.500000_mean",
}
"""Names of ``tf.contrib.learn`` for metrics of ``tf.estimator``'s classifiers."""

_MEAN = Reduction.SUM_OVER_BATCH_SIZE


class LearnModeKeys:
    """The purposes for which a model function of ``tf.contrib.learn`` builds a graph."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


class LearnRunConfig(RunConfig):
    """`RunConfig` with the arguments of ``tf.contrib.learn``.

    Args:
      master, evaluation_master: addresses of the servers that train and evaluate; from ``TF_CONFIG`` by default.
      num_cores: threads for one operation; 0 for all cores.
      log_device_placement: log the device of each operation.
      gpu_memory_fraction: the fraction of a GPU's memory to allocate.
      session_config: a ``ConfigProto`` in place of the last three.
      save_checkpoints_secs: 0: 600 seconds if ``save_checkpoints_steps`` is None, else no interval in seconds.
    """

    def __init__(
        self,
        master: str | None = None,
        num_cores: int = 0,
        log_device_placement: bool = False,
        gpu_memory_fraction: float = 1,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_secs: int | None = 0,
        save_checkpoints_steps: int | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        protocol: str | None = None,
        evaluation_master: str = "",
        model_dir: str | None = None,
        session_config: ConfigProto | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if session_config is None:
            session_config = config_pb2.ConfigProto(
                log_device_placement=log_device_placement,
                inter_op_parallelism_threads=num_cores,
                intra_op_parallelism_threads=num_cores,
                gpu_options=config_pb2.GPUOptions(per_process_gpu_memory_fraction=gpu_memory_fraction),
            )
        super().__init__(
            model_dir,
            tf_random_seed,
            save_summary_steps,
            save_checkpoints_steps,
            (600 if save_checkpoints_steps is None else None) if save_checkpoints_secs == 0 else save_checkpoints_secs,
            session_config,
            keep_checkpoint_max,
            keep_checkpoint_every_n_hours,
            log_step_count_steps,
            protocol=protocol,
            session_creation_timeout_secs=session_creation_timeout_secs,
        )
        self.master: str = self.master if master is None else master
        self.evaluation_master = evaluation_master


class ArrayEstimator(canned.Estimator):
    """An estimator with `fit`; its predictions are classes or numbers."""

    def fit(
        self,
        x: object = None,
        y: object = None,
        input_fn: Callable[..., Structure] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Sequence[Structure] | None = None,
        max_steps: int | None = None,
    ) -> Estimator:
        """Trains on the data of ``input_fn``, or on arrays in random order without end; see `train`.

        Args:
          x: an array of features, [examples, ...], which columns refer to as ``""``; or arrays by name.
          y: labels, [examples].
          batch_size: examples of a step; all if None.
          monitors: monitors and hooks of the training.

        Raises:
          ValueError: both arrays and ``input_fn`` are given, or neither.
        """
        given = input_fn_of(x, y, input_fn, batch_size, epochs=None)
        return self.train(given, replace_monitors_with_hooks(monitors, self), steps, max_steps)

    def evaluate(  # pyright: ignore[reportIncompatibleMethodOverride] - its order of arguments is another here
        self,
        x: object = None,
        y: object = None,
        input_fn: Callable[..., Structure] | None = None,
        feed_fn: object = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: object = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: object = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """Returns the metrics of a checkpoint, on arrays (one pass; see `fit`) or on the data of ``input_fn``.

        ``loss`` is the weighted mean over examples, Σ wᵢ lossᵢ / Σ wᵢ. `fit` minimizes Σ wᵢ lossᵢ / (batch size).

        Raises:
          ValueError: both arrays and ``input_fn``, or neither; ``feed_fn`` or ``metrics``, which are not supported.
        """
        del log_progress  # the log has the steps in any case
        _require_none(feed_fn=feed_fn, metrics=metrics)
        given = input_fn_of(x, y, input_fn, batch_size, epochs=1)
        found = canned.Estimator.evaluate(self, given, steps, hooks, checkpoint_path, name)
        found["loss"] = found.pop("average_loss", found["loss"])
        if "accuracy_baseline" not in found:
            return found
        renamed = {_METRICS.get(key, key): value for key, value in found.items()}
        return {**renamed, "accuracy/threshold_0.500000_mean": found["accuracy"]}

    def predict(  # pyright: ignore[reportIncompatibleMethodOverride] - its order of arguments is another here
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        outputs: Structure = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the class of each example.

        Args:
          outputs: names of predictions to return in place of classes, in a dictionary for each example.
          as_iterable: whether to yield the results; otherwise, returns an array of all results.

        Raises:
          ValueError: both arrays and ``input_fn`` are given, or neither.
        """
        input_fn = input_fn_of(x, None, input_fn, batch_size, epochs=1)
        if outputs is not None:
            found = canned.Estimator.predict(self, input_fn, list(outputs))
        else:
            found = (each["class_ids"][0] for each in canned.Estimator.predict(self, input_fn, "class_ids"))
        if as_iterable:
            return found
        examples = list(found)
        if outputs is None:
            return np.array(examples)
        return {name: np.array([example[name] for example in examples]) for name in outputs}

    def predict_classes(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Returns the class of each example; see `predict`."""
        return self.predict(x, input_fn, batch_size, as_iterable=as_iterable)

    def predict_proba(
        self,
        x: object = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Structure:
        """Returns the probabilities of all classes for each example; see `predict`."""
        found = self.predict(x, input_fn, batch_size, ["probabilities"], as_iterable)
        return (each["probabilities"] for each in found) if as_iterable else found["probabilities"]


def input_fn_of(
    x: object, y: object, input_fn: Callable[..., Structure] | None, batch_size: int | None, epochs: int | None
) -> Callable[..., Structure]:
    """Returns ``input_fn``, or a function of the arrays: if ``epochs`` is None, in random order without end."""
    if input_fn is not None:
        if x is not None or y is not None or batch_size is not None:
            raise ValueError("Can not provide both input_fn and x, y or batch_size.")
        return input_fn
    if x is None:
        raise ValueError("Either x or input_fn must be provided.")
    features: dict[str, HostArray] = (
        {str(name): np.asarray(each) for name, each in x.items()} if isinstance(x, Mapping) else {ARRAY: np.asarray(x)}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    )
    count = len(next(iter(features.values())))
    labels = None if y is None else np.asarray(y)
    return numpy_input_fn(features, labels, batch_size or count, epochs, epochs is None, max(count, 1))


def infer_real_valued_columns_from_input(x: SparseLike) -> list[Column]:
    """Returns numeric columns for features as they are passed to `fit`: an array [examples, numbers], or arrays by
    name."""
    arrays: dict[str, Any] = {str(name): each for name, each in x.items()} if isinstance(x, Mapping) else {ARRAY: x}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    return [
        real_valued_column(name, int(np.prod(np.shape(each)[1:])), dtype=as_dtype(np.asarray(each).dtype))
        for name, each in arrays.items()
    ]


class LinearClassifier(ArrayEstimator, canned.LinearClassifier):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A linear model of classes."""

    def __init__(
        self,
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: OptimizerLike | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: object = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        _require_none(
            gradient_clip_norm=gradient_clip_norm,
            feature_engineering_fn=feature_engineering_fn,
            enable_centered_bias=enable_centered_bias or None,
            _joint_weight=_joint_weight or None,
        )
        settings = (model_dir, n_classes, weight_column_name, label_keys, optimizer or "Ftrl", config)
        canned.LinearClassifier.__init__(self, list(feature_columns), *settings, loss_reduction=_MEAN)


class DNNClassifier(ArrayEstimator, canned.DNNClassifier):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A deep model of classes."""

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Sequence[Column],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: OptimizerLike | None = None,
        activation_fn: Callable[[Tensor], Tensor] = relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: object = None,
        embedding_lr_multipliers: object = None,
        input_layer_min_slice_size: object = None,
        label_keys: Sequence[str] | None = None,
    ) -> None:
        _require_none(
            gradient_clip_norm=gradient_clip_norm,
            feature_engineering_fn=feature_engineering_fn,
            enable_centered_bias=enable_centered_bias or None,
            embedding_lr_multipliers=embedding_lr_multipliers,
            input_layer_min_slice_size=input_layer_min_slice_size,
        )
        classes = (model_dir, n_classes, weight_column_name, label_keys)
        network = (optimizer or "Adagrad", activation_fn, dropout)
        columns = list(feature_columns)
        canned.DNNClassifier.__init__(
            self, hidden_units, columns, *classes, *network, config=config, loss_reduction=_MEAN
        )


class DNNLinearCombinedClassifier(ArrayEstimator, canned.DNNLinearCombinedClassifier):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Classifier that adds the logits of a linear and a deep model."""

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Sequence[Column] | None = None,
        linear_optimizer: OptimizerLike | None = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Sequence[Column] | None = None,
        dnn_optimizer: OptimizerLike | None = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Callable[[Tensor], Tensor] = relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: RunConfig | None = None,
        feature_engineering_fn: object = None,
        embedding_lr_multipliers: object = None,
        input_layer_min_slice_size: object = None,
        label_keys: Sequence[str] | None = None,
        fix_global_step_increment_bug: bool = False,
    ) -> None:
        del fix_global_step_increment_bug  # a training step always counts once here, as with True
        _require_none(
            gradient_clip_norm=gradient_clip_norm,
            feature_engineering_fn=feature_engineering_fn,
            _joint_linear_weights=_joint_linear_weights or None,
            enable_centered_bias=enable_centered_bias or None,
            embedding_lr_multipliers=embedding_lr_multipliers,
            input_layer_min_slice_size=input_layer_min_slice_size,
        )
        linear_columns = list(linear_feature_columns or ())

        def linear() -> Any:
            rate = canned.linear_rate(canned.LINEAR_RATE, len(linear_columns))
            return canned.optimizer_of(linear_optimizer or "Ftrl", rate)

        def deep() -> Any:
            return canned.optimizer_of(dnn_optimizer or "Adagrad", canned.DEEP_RATE)

        network = (dnn_feature_columns, deep, dnn_hidden_units, dnn_activation_fn, dnn_dropout)
        classes = (n_classes, weight_column_name, label_keys)
        canned.DNNLinearCombinedClassifier.__init__(
            self, model_dir, linear_columns, linear, *network, *classes, config=config, loss_reduction=_MEAN
        )


def _require_none(**settings: object) -> None:
    for name, value in settings.items():
        if value is not None:
            raise ValueError(f"{name} is not supported; omit it")


class Experiment:
    """An estimator with its data, and the schedule of training and evaluation.

    Args:
      estimator: the estimator to train.
      train_input_fn, eval_input_fn: see `Estimator.train`.
      train_steps: the global step at which training ends.
      eval_steps: number of batches of an evaluation; None: until the input ends.
      train_monitors: monitors and hooks of the training.
      eval_hooks: hooks of the evaluations.
      eval_delay_secs: seconds before an evaluator begins, and before `evaluate`.
      continuous_eval_throttle_secs: minimum number of seconds between two evaluations.
      local_eval_frequency, min_eval_frequency: least steps between two evaluations; here each new checkpoint is
        evaluated, and ``RunConfig`` sets the interval of checkpoints.
      check_interval_secs: seconds between two checks for a new checkpoint.
      saving_listeners: saving listeners of `train`'s checkpoints.
      eval_metrics: further metrics by name, with an estimator for any model function; see `MetricSpec`.
      delay_workers_by_global_step: whether `train` waits in worker i for the global step 8000 log(i + 1).
      export_strategies, train_steps_per_iteration: not supported.
      checkpoint_and_export: not supported.

    Raises:
      ValueError: an unsupported argument is given.
    """

    def __init__(
        self,
        estimator: Estimator,
        train_input_fn: Callable[..., Structure],
        eval_input_fn: Callable[..., Structure],
        eval_metrics: Structure = None,
        train_steps: int | None = None,
        eval_steps: int | None = 100,
        train_monitors: Sequence[Structure] | None = None,
        eval_hooks: Iterable[SessionRunHook] | None = None,
        local_eval_frequency: int | None = None,
        eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60,
        min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False,
        export_strategies: object = None,
        train_steps_per_iteration: int | None = None,
        checkpoint_and_export: bool = False,
        saving_listeners: Sequence[CheckpointSaverListener] | None = None,
        check_interval_secs: float = 5,
    ) -> None:
        del local_eval_frequency, min_eval_frequency, check_interval_secs  # each new checkpoint triggers an evaluation
        _require_none(
            eval_metrics=None if hasattr(estimator, "eval_metrics") else eval_metrics,
            export_strategies=export_strategies or None,
            train_steps_per_iteration=train_steps_per_iteration,
            checkpoint_and_export=checkpoint_and_export or None,
        )
        self._saving_listeners = saving_listeners
        self._delays_by_step = delay_workers_by_global_step
        self.estimator: Any = estimator
        if eval_metrics is not None:
            self.estimator.eval_metrics = eval_metrics
        self._train_spec = TrainSpec(
            train_input_fn, train_steps, replace_monitors_with_hooks(train_monitors, estimator)
        )
        self._eval_spec = EvalSpec(
            eval_input_fn,
            eval_steps,
            hooks=eval_hooks,
            start_delay_secs=eval_delay_secs,
            throttle_secs=continuous_eval_throttle_secs,
        )

    def train(self, delay_secs: float | None = None) -> Estimator:
        """Trains, once ``delay_secs`` have passed; in a cluster this task's server runs meanwhile.

        If ``delay_secs`` is None, a worker may wait for a global step instead; see ``delay_workers_by_global_step``.
        """
        config = self.estimator.config
        if config.master:
            start_server(config)
        _wait(delay_secs)
        spec = self._train_spec
        hooks = list(spec.hooks)
        if delay_secs is None and self._delays_by_step:
            hooks.append(GlobalStepWaiterHook(int(8000.0 * np.log((config.task_id or 0) + 1))))
        return self.estimator.train(
            spec.input_fn, hooks, max_steps=spec.max_steps, saving_listeners=self._saving_listeners
        )

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> dict[str, object]:
        """Returns the metrics of the newest checkpoint; writes events to ``eval_<name>``.

        Args:
          delay_secs: seconds to wait before; ``eval_delay_secs`` if None.
        """
        spec = self._eval_spec
        _wait(spec.start_delay_secs if delay_secs is None else delay_secs)
        return self.estimator.evaluate(input_fn=spec.input_fn, steps=spec.steps, hooks=spec.hooks, name=name)

    def train_and_evaluate(self) -> Any:
        """Does what `tf.estimator.train_and_evaluate` does with this experiment's estimator and specifications.

        Returns:
          The last metrics and the results of exporters, if this task has evaluated; else None.
        """
        spec = self._train_spec
        evaluator = Evaluator(self.estimator, self._eval_spec, spec.max_steps)
        run_task(evaluator, self.estimator, spec, self._eval_spec)
        return None if evaluator.metrics is None else (evaluator.metrics, evaluator.exported)

    local_run = train_and_evaluate

    def run_std_server(self) -> None:
        """Runs the server of a ps; never returns."""
        start_server(self.estimator.config).join()


def _wait(seconds: float | None) -> None:
    """Waits the given number of seconds."""
    if seconds:
        pause(seconds)


def run(
    experiment_fn: Callable[..., Experiment],
    output_dir: str | None = None,
    schedule: str | None = None,
    run_config: RunConfig | None = None,
    hparams: Any = None,
) -> Any:
    """Creates an experiment, and calls its method for this task of the cluster.

    Args:
      experiment_fn: ``f(output_dir)``, or ``f(run_config, hparams)`` if ``run_config`` is given.
      schedule: name of the method to call; chosen by the task's job if None.

    Raises:
      ValueError: neither ``output_dir`` nor ``run_config`` is given, or the schedule is unknown.
    """
    if output_dir is None and run_config is None:
        raise ValueError("Must specify an output directory or a run_config")
    experiment = experiment_fn(output_dir) if run_config is None else experiment_fn(run_config, hparams)
    config = run_config or RunConfig()
    if schedule is None:
        jobs = {TaskType.PS: "run_std_server", TaskType.WORKER: "train"}
        alone = not config.cluster_spec.jobs
        schedule = "train_and_evaluate" if alone or config.task_type in CHIEFS else jobs.get(config.task_type)
    task = getattr(experiment, schedule or "", None)
    if task is None:
        raise ValueError(f"Schedule references non-existent task {schedule}")
    return task()
