"""Estimators and experiments of ``tf.contrib.learn``, based on `headwater.tf1.training.estimator`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from headwater.cluster.config import CHIEFS
from headwater.cluster.pauses import pause
from headwater.dtypes import as_dtype
from headwater.tensorboard_protos import config_pb2
from headwater.tf1.feature_columns.old import real_valued_column
from headwater.tf1.training.basic_session_run_hooks import GlobalStepWaiterHook
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.inputs import numpy_input_fn
from headwater.tf1.training.estimator.monitors import replace_monitors_with_hooks
from headwater.tf1.training.estimator.run_config import RunConfig, TaskType
from headwater.tf1.training.estimator.specs import EvalSpec, TrainSpec
from headwater.tf1.training.estimator.train_and_evaluate import Evaluator, run_task, start_server

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import SparseLike, Structure
    from headwater.tensorboard_protos import ConfigProto
    from headwater.tf1.feature_columns.base import Column
    from headwater.tf1.training.saving_hooks import CheckpointSaverListener
    from headwater.tf1.training.session_run_hook import SessionRunHook

ARRAY = ""
"""The name by which columns refer to features that are one array."""


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


class ArrayEstimator(Estimator):
    """An estimator with `fit`, on arrays or the data of an input function."""

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
    return numpy_input_fn(features, labels, min(batch_size or count, count), epochs, epochs is None, max(count, 1))


def infer_real_valued_columns_from_input(x: SparseLike) -> list[Column]:
    """Returns numeric columns for features as they are passed to `fit`: an array [examples, numbers], or arrays by
    name."""
    arrays: dict[str, Any] = {str(name): each for name, each in x.items()} if isinstance(x, Mapping) else {ARRAY: x}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    return [
        real_valued_column(name, int(np.prod(np.shape(each)[1:])), dtype=as_dtype(np.asarray(each).dtype))
        for name, each in arrays.items()
    ]


class WithParams:
    """scikit-learn's interface to the settings of an estimator."""

    _settings: ClassVar[tuple[str, ...]] = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the settings by name; with ``deep`` also those of settings that have settings themselves."""
        found: dict[str, Any] = {}
        for name in self._settings:
            value = found[name] = getattr(self, name)
            if deep and hasattr(value, "get_params"):
                found |= {f"{name}__{inner}": each for inner, each in value.get_params().items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Changes settings.

        Raises:
          ValueError: there is no such setting.
        """
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in self._settings:
                raise ValueError(
                    f"Invalid parameter {name} for estimator {type(self).__name__}. Check the list of available "
                    "parameters with `estimator.get_params().keys()`."
                )
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self


def require_none(**settings: object) -> None:
    """Refuses unsupported settings.

    Raises:
      ValueError: one is not None.
    """
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
        require_none(
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
