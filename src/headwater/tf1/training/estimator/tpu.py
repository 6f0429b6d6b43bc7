"""`TPUEstimator` on machines without TPUs, which programs that may use them run with ``use_tpu=False``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.inputs import arguments_of
from headwater.tf1.training.estimator.run_config import RunConfig
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook

if TYPE_CHECKING:
    from headwater.graph.types import Structure

_BATCH_SIZE, _USE_TPU = "batch_size", "use_tpu"


class InputPipelineConfig:
    """Modes in which the hosts of TPUs read a batch; without TPUs each task reads its own batch."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class _TPUConfig(NamedTuple):
    iterations_per_loop: int
    num_shards: int | None
    num_cores_per_replica: int | None
    per_host_input_for_training: int
    tpu_job_name: str | None
    initial_infeed_sleep_secs: int | None
    input_partition_dims: Sequence[object] | None
    eval_training_input_configuration: int
    experimental_host_call_every_n_steps: int


class TPUConfig(_TPUConfig):
    """TPU settings: they are checked and can be read back, but have no other effect.

    Raises:
      ValueError: a number is not positive, or the number of cores is impossible.
    """

    def __new__(
        cls,
        iterations_per_loop: int = 2,
        num_shards: int | None = None,
        num_cores_per_replica: int | None = None,
        per_host_input_for_training: bool | int = True,
        tpu_job_name: str | None = None,
        initial_infeed_sleep_secs: int | None = None,
        input_partition_dims: Sequence[object] | None = None,
        eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1,
        experimental_host_call_every_n_steps: int = 1,
    ) -> Self:
        for name, value in (("iterations_per_loop", iterations_per_loop), ("num_shards", num_shards)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be positive, not {value}")
        if num_cores_per_replica is not None and num_cores_per_replica not in (1, 2, 4, 8, 16):
            raise ValueError(f"num_cores_per_replica must be 1, 2, 4, 8, or 16; got {num_cores_per_replica}")
        if input_partition_dims is not None and num_cores_per_replica is None:
            raise ValueError("input_partition_dims requires setting num_cores_per_replica.")
        if per_host_input_for_training is True:
            per_host_input_for_training = InputPipelineConfig.PER_HOST_V1
        elif per_host_input_for_training is False:
            per_host_input_for_training = InputPipelineConfig.PER_SHARD_V1
        return super().__new__(
            cls,
            iterations_per_loop,
            num_shards,
            num_cores_per_replica,
            per_host_input_for_training,
            tpu_job_name,
            initial_infeed_sleep_secs,
            input_partition_dims,
            eval_training_input_configuration,
            experimental_host_call_every_n_steps,
        )


class TPURunConfig(RunConfig):
    """A `RunConfig` with settings for TPUs.

    Args:
      evaluation_master, master: addresses of the evaluating and the training task, in place of ``TF_CONFIG``.
      cluster: a resolver that returns the master's address.
      **kwargs: see `tf.estimator.RunConfig`.

    Raises:
      ValueError: both ``cluster`` and a master are given.
    """

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if cluster is not None and (master is not None or evaluation_master is not None):
            raise ValueError("Both cluster and master/evaluation_master may not be set.")
        if cluster is not None:
            master = cluster.master()
        self.tpu_config: TPUConfig = tpu_config or TPUConfig()
        self.cluster: Any = cluster
        if master is not None:
            self.master = master
        if evaluation_master is not None or master is not None:
            self.evaluation_master = self.master if evaluation_master is None else evaluation_master


class _TPUEstimatorSpec(NamedTuple):
    mode: str
    predictions: object
    loss: object
    train_op: object
    eval_metrics: object
    export_outputs: object
    scaffold_fn: Callable[[], Any] | None
    host_call: object
    training_hooks: tuple[SessionRunHook, ...]
    evaluation_hooks: tuple[SessionRunHook, ...]
    prediction_hooks: tuple[SessionRunHook, ...]


class TPUEstimatorSpec(_TPUEstimatorSpec):
    """Result of a model function of a `TPUEstimator`.

    Args:
      mode, predictions, loss, train_op, export_outputs, training_hooks, evaluation_hooks, prediction_hooks: see
        `tf.estimator.EstimatorSpec`.
      eval_metrics: a function that returns metrics by name, and its arguments: a list, or tensors by parameter.
      scaffold_fn: returns the scaffold.
      host_call: a function, and the tensors that it takes; its result is run with every step.

    Raises:
      ValueError: ``eval_metrics`` or ``host_call`` is not such a pair.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Structure = None,
        loss: object = None,
        train_op: object = None,
        eval_metrics: object = None,
        export_outputs: object = None,
        scaffold_fn: Callable[[], Any] | None = None,
        host_call: object = None,
        training_hooks: Sequence[SessionRunHook] | None = None,
        evaluation_hooks: Sequence[SessionRunHook] | None = None,
        prediction_hooks: Sequence[SessionRunHook] | None = None,
    ) -> Self:
        for name, pair in (("eval_metrics", eval_metrics), ("host_call", host_call)):
            if pair is not None:
                _check_pair(name, pair)
        hooks = (tuple(given or ()) for given in (training_hooks, evaluation_hooks, prediction_hooks))
        return super().__new__(
            cls, mode, predictions, loss, train_op, eval_metrics, export_outputs, scaffold_fn, host_call, *hooks
        )

    def as_estimator_spec(self) -> EstimatorSpec:
        """Converts this to an `EstimatorSpec`: builds the metrics, and makes the host call a hook."""
        hooks = [] if self.host_call is None else [_RunsWithEveryStep(_called(self.host_call))]
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=None if self.eval_metrics is None else _called(self.eval_metrics),
            export_outputs=self.export_outputs,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            training_hooks=[*self.training_hooks, *hooks],
            evaluation_hooks=[*self.evaluation_hooks, *hooks],
            prediction_hooks=[*self.prediction_hooks, *hooks],
        )


def _check_pair(name: str, pair: object) -> None:
    if not isinstance(pair, (tuple, list)):
        raise ValueError(f"{name} should be tuple or list")
    parts = cast("Sequence[Any]", pair)
    if len(parts) != 2:
        raise ValueError(f"{name} should have two elements")
    if not callable(parts[0]):
        raise TypeError(f"{name}[0] should be callable.")
    if not isinstance(parts[1], (tuple, list, Mapping)):
        raise ValueError(f"{name}[1] should be tuple or list, or dict.")


def _called(pair: Any) -> object:
    function, tensors = pair
    return function(**tensors) if isinstance(tensors, Mapping) else function(*tensors)


class _RunsWithEveryStep(SessionRunHook):
    def __init__(self, fetches: Structure) -> None:
        self._fetches = fetches

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        del run_context
        return None if self._fetches is None else SessionRunArgs(self._fetches)


class TPUEstimator(Estimator):
    """An `Estimator` that passes the batch size to model and input functions: ``params["batch_size"]``.

    TPUs are not supported: ``use_tpu=False`` trains on CPUs and GPUs, as in TensorFlow.

    Args:
      model_fn: returns a `TPUEstimatorSpec` or an `tf.estimator.EstimatorSpec`.
      model_dir, warm_start_from: see `tf.estimator.Estimator`.
      config: a `tf.estimator.tpu.RunConfig`.
      params: for both functions.
      use_tpu: must be False.
      train_batch_size, eval_batch_size, predict_batch_size: numbers of examples.
      batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu: used on TPUs only.
      embedding_config_spec: tables on TPUs; not supported.
      export_saved_model_api_version: the API version of exports, for TPUs only.

    Raises:
      ValueError: ``config`` is missing or has the wrong type, ``params`` has a reserved name, or ``use_tpu`` is set.
    """

    def __init__(
        self,
        model_fn: object = None,
        model_dir: str | None = None,
        config: object = None,
        params: Any = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Sequence[int] | None = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: object = None,
        embedding_config_spec: object = None,
        export_saved_model_api_version: object = None,
    ) -> None:
        del batch_axis, eval_on_tpu, export_to_tpu, export_to_cpu, export_saved_model_api_version
        if not isinstance(config, TPURunConfig):
            raise ValueError("`config` must be provided with type `tpu_config.RunConfig`")
        taken = sorted({_BATCH_SIZE, _USE_TPU} & set(params or ()))
        if taken:
            raise ValueError(f"{taken} are reserved keys but existed in params {params}.")
        if use_tpu:
            raise ValueError("TPUEstimator: there are no TPUs here; use_tpu=False trains on CPUs and GPUs")
        if embedding_config_spec is not None:
            raise NotImplementedError("TPUEstimator: embedding_config_spec is for TPUs")
        super().__init__(_with_params(model_fn), model_dir, config, params, warm_start_from)
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }

    def _input_params(self, mode: str) -> dict[str, Any]:
        """Returns the parameters with the batch size, if it is known."""
        size = self._batch_sizes[mode]
        return {**self.params, **({} if size is None else {_BATCH_SIZE: size})}

    def _call_input_fn(self, input_fn: Callable[..., object], mode: str) -> object:
        if "params" not in arguments_of(input_fn):
            raise ValueError(
                f"input_fn ({input_fn}) does not include params argument, required by TPUEstimator to pass batch size "
                'as params["batch_size"]'
            )
        return super()._call_input_fn(input_fn, mode)

    def _model_params(self, mode: str) -> object:
        return {**self._input_params(mode), _USE_TPU: False}


def _with_params(model_fn: Any) -> Any:
    if model_fn is not None and "params" not in arguments_of(model_fn):
        raise ValueError(f"model_fn ({model_fn}) does not include params argument")
    return model_fn
