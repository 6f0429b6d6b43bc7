"""`Estimator`: trains, evaluates, predicts and exports the model that a function builds."""

from __future__ import annotations

import copy
import logging
import os
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.cluster.names import TaskName
from headwater.data.io import files
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.graph.session.session import Session
from headwater.tensorboard_protos import summary_pb2
from headwater.tf1.functional import summary
from headwater.tf1.functional.nest import flatten
from headwater.tf1.functional.random import set_random_seed
from headwater.tf1.metrics.means import mean
from headwater.tf1.training import saved_model
from headwater.tf1.training.basic_session_run_hooks import LoggingTensorHook, NanTensorHook, StopAtStepHook
from headwater.tf1.training.checkpoint_reader import CheckpointReader
from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.device_setter import replica_device_setter
from headwater.tf1.training.estimator.evaluation import evaluate_once
from headwater.tf1.training.estimator.export import timestamped
from headwater.tf1.training.estimator.inputs import arguments_of, call_input_fn, features_and_labels
from headwater.tf1.training.estimator.run_config import RunConfig
from headwater.tf1.training.estimator.specs import EstimatorSpec, ModeKeys
from headwater.tf1.training.estimator.warm_start_settings import WarmStartSettings
from headwater.tf1.training.file_writer import FileWriterCache
from headwater.tf1.training.monitored_session import ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession
from headwater.tf1.training.saver import Saver
from headwater.tf1.training.saving_hooks import CheckpointSaverHook
from headwater.tf1.training.scaffold import Scaffold
from headwater.tf1.training.training_util import create_global_step, get_global_step

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import SessionLike, Structure, TensorLike
    from headwater.tf1.training.estimator.export import ServingInputReceiver


_logger: Final = logging.getLogger(__name__)
_MODEL_ARGUMENTS: Final = {"features", "labels", "mode", "params", "config", "self"}
LOSS_METRIC: Final = "loss"


class Estimator:
    """A model with its folder.

    Args:
      model_fn: ``f(features, labels, mode, params, config)`` builds the model and returns an `EstimatorSpec`; all its
        parameters except the first are optional.
      model_dir: folder of checkpoints and summaries; if None, the folder in ``config``, or a new temporary folder.
      config: a `RunConfig`.
      params: for ``model_fn``.
      warm_start_from: a checkpoint or `WarmStartSettings`.

    Raises:
      ValueError: ``model_fn`` is None or has other arguments, or two different folders are given.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: Any = None,
        params: Structure = None,
        warm_start_from: Any = None,
    ) -> None:
        if model_fn is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError("model_fn must be provided to Estimator.")
        wanted = arguments_of(model_fn)
        if "features" not in wanted:
            raise ValueError(f"model_fn ({model_fn}) must include features argument.")
        if params is not None and "params" not in wanted:
            raise ValueError(f"model_fn ({model_fn}) does not include params argument, but params ({params}) is passed")
        unknown = wanted - _MODEL_ARGUMENTS
        if unknown:
            raise ValueError(f"model_fn ({model_fn}) has following not expected args: {sorted(unknown)}")
        self._model_fn = model_fn
        self._config = _with_folder(config, model_dir)
        self.model_dir: str = self._config.model_dir
        self._params: Structure = copy.deepcopy(params) if params else {}
        self._warm_start = WarmStartSettings(warm_start_from) if isinstance(warm_start_from, str) else warm_start_from

    @property
    def config(self) -> Any:
        return copy.copy(self._config)

    @property
    def params(self) -> Any:
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., Any]:
        """The model function, with the settings of this estimator."""

        def public(features: Structure, labels: Structure, mode: str, config: object) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public

    # Contents of the folder ----------------------------------------------------------------------------------------

    def latest_checkpoint(self) -> str | None:
        """Returns the path of the newest checkpoint; None without any."""
        return latest_checkpoint(self.model_dir)

    def _reader(self) -> CheckpointReader:
        path = self.latest_checkpoint()
        if path is None:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        return CheckpointReader(path)

    def get_variable_names(self) -> list[str]:
        """Names of the tensors of the newest checkpoint.

        Raises:
          ValueError: there is none.
        """
        return sorted(self._reader().get_variable_to_shape_map())

    def get_variable_value(self, name: str) -> Any:
        """A tensor of the newest checkpoint."""
        return self._reader().get_tensor(name)

    def _step_so_far(self) -> int:
        path = self.latest_checkpoint()
        if path is None:
            return 0
        reader = CheckpointReader(path)
        return int(reader.get_tensor("global_step")) if reader.has_tensor("global_step") else 0

    # Training ------------------------------------------------------------------------------------------------------

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Any = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Trains, from the newest checkpoint on.

        Args:
          input_fn: returns features and labels: as tensors, or as a dataset of pairs.
          hooks: the hooks of the session.
          steps: number of further steps.
          max_steps: the global step at which training ends.
          saving_listeners: called before and after every save.

        Raises:
          ValueError: both numbers of steps are given, or one is not positive.
        """
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        if max_steps is not None and max_steps <= 0:
            raise ValueError(f"Must specify max_steps > 0, given: {max_steps}")
        self._check_distribution()
        if max_steps is not None and self._step_so_far() >= max_steps:
            _logger.info("Skipping training since max_steps has already saved.")
            return self
        more: list[Any] = list(hooks or ())
        if steps is not None or max_steps is not None:
            more.append(StopAtStepHook(steps, max_steps))
        with self._graph(self._device):
            create_global_step()
            features, labels, input_hooks = features_and_labels(self._call_input_fn(input_fn, ModeKeys.TRAIN))
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN, self._config)
            self._run_training(spec, [*input_hooks, *more], list(saving_listeners or ()))
        return self

    def _check_distribution(self) -> None:
        """Refuses a strategy with several replicas: a model function's graph trains on one device of each task.

        Raises:
          ValueError: ``train_distribute`` has several replicas.
        """
        count = getattr(self._config.train_distribute, "num_replicas_in_sync", 1)
        if count > 1:
            raise ValueError(
                f"train_distribute has {count} replicas, but the graph of a model_fn trains on one device of each "
                "task: build towers in the model_fn (docs/devices.md), use several workers with "
                "tf.train.SyncReplicasOptimizer, or make an estimator of a Keras model with "
                "tf.keras.estimator.model_to_estimator"
            )

    def _run_training(self, spec: EstimatorSpec, hooks: list[Any], listeners: list[Any]) -> None:
        config = self._config
        if self._warm_start is not None:
            self._warm_start.apply()
        graph = get_default_graph()
        if all(item.op.type != "ScalarSummary" or item.op.name != "loss" for item in graph.get_collection("summaries")):
            summary.scalar("loss", spec.loss)
        if all(loss is not spec.loss for loss in graph.get_collection(GraphKeys.LOSSES)):
            graph.add_to_collection(GraphKeys.LOSSES, spec.loss)
        step = get_global_step()
        all_hooks: list[Any] = [*hooks, NanTensorHook(spec.loss)]
        if config.log_step_count_steps:
            all_hooks.append(
                LoggingTensorHook({"loss": spec.loss, "step": step}, every_n_iter=config.log_step_count_steps)
            )
        all_hooks.extend(spec.training_hooks)
        scaffold = spec.scaffold
        if not (scaffold.saver or graph.get_collection(GraphKeys.SAVERS)):
            saver = Saver(
                sharded=True,
                max_to_keep=config.keep_checkpoint_max,
                allow_empty=True,
                save_relative_paths=True,
                defer_build=True,
                keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            )
            graph.add_to_collection(GraphKeys.SAVERS, saver)
        chief_hooks = list(spec.training_chief_hooks)
        saves = config.save_checkpoints_secs or config.save_checkpoints_steps
        existing = [hook for hook in (*all_hooks, *chief_hooks) if isinstance(hook, CheckpointSaverHook)]
        if saves and not existing:
            chief_hooks.append(
                CheckpointSaverHook(
                    self.model_dir,
                    save_secs=config.save_checkpoints_secs,
                    save_steps=config.save_checkpoints_steps,
                    scaffold=scaffold,
                    listeners=listeners,
                )
            )
        elif listeners:
            if not existing:
                raise ValueError("There should be a CheckpointSaverHook to use saving_listeners.")
            existing[0].add_listeners(listeners)
        session = MonitoredTrainingSession(
            master=config.master,
            is_chief=config.is_chief,
            checkpoint_dir=self.model_dir,
            scaffold=scaffold,
            hooks=all_hooks,
            chief_only_hooks=chief_hooks,
            save_checkpoint_secs=0,
            save_checkpoint_steps=None,
            save_summaries_steps=config.save_summary_steps,
            save_summaries_secs=None,
            config=config.session_config,
            max_wait_secs=config.session_creation_timeout_secs,
            log_step_count_steps=config.log_step_count_steps,
        )
        loss: Any = None
        with session:
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
        if loss is None:
            _logger.warning("Training with %s did not run a single step.", self.model_dir)
        else:
            _logger.info("Loss for final step: %s.", loss)

    # Evaluation ----------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: object = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics of a checkpoint.

        Args:
          input_fn: see `train`.
          steps: number of batches; None: until the input ends.
          hooks: the hooks of the session.
          checkpoint_path: the checkpoint; the newest if None. Without a checkpoint, the initialised model is
            evaluated.
          name: name of this evaluation; evaluations with different names write summaries to different folders.

        Returns:
          The metrics by name, with ``loss`` and ``global_step``.
        """
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        path = checkpoint_path or self.latest_checkpoint()
        if path is None:
            _logger.info("No trained model in model_dir: %s, running initialization to evaluate.", self.model_dir)
        return self._evaluate(input_fn, steps, hooks, path, name, None)

    def evaluate_with(
        self,
        input_fn: Callable[..., Any],
        steps: int | None,
        hooks: object,
        name: str | None,
        values: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Evaluates as `evaluate`, with these ``values`` of variables, by name, instead of a checkpoint's."""

        def fill(session: SessionLike) -> None:
            for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES):
                if variable.op.name in values:
                    variable.load(values[variable.op.name], session)

        return self._evaluate(input_fn, steps, hooks, None, name, fill)

    def _evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None,
        hooks: Any,
        path: str | None,
        name: str | None,
        fill: Callable[[SessionLike], None] | None,
    ) -> dict[str, Any]:
        with self._graph():
            step = create_global_step()
            features, labels, input_hooks = features_and_labels(self._call_input_fn(input_fn, ModeKeys.EVAL))
            spec = self._call_model_fn(features, labels, ModeKeys.EVAL, self._config)
            pairs = dict(spec.eval_metric_ops)
            if LOSS_METRIC in pairs:
                raise ValueError(f'Metric with name "{LOSS_METRIC}" is not allowed, because Estimator defines it.')
            pairs[LOSS_METRIC] = mean(spec.loss)
            values: dict[str, Any] = {key: pair[0] for key, pair in pairs.items()}
            values["global_step"] = step
            found, seconds = evaluate_once(
                path,
                [pair[1] for pair in pairs.values()],
                values,
                steps,
                [*input_hooks, *(hooks or ()), *spec.evaluation_hooks],
                spec.scaffold,
                self._config.evaluation_master,
                self._config.session_config,
                fill,
            )
        found.update(self.metrics_of_host())
        _logger.info("Evaluated %s in %.2f s", path or "variables of a session", seconds)
        said = ", ".join(f"{key} = {value!s}" for key, value in sorted(found.items()))
        _logger.info("Saving dict for global step %d: %s", found["global_step"], said)
        self._write_metrics(found, name)
        return found

    def metrics_of_host(self) -> dict[str, Any]:
        """Returns metrics of the last evaluation that are computed outside of the graph."""
        return {}

    def eval_dir(self, name: str | None = None) -> str:
        """Folder of the summaries of evaluations."""
        return os.path.join(self.model_dir, "eval" if not name else f"eval_{name}")

    def _write_metrics(self, found: Mapping[str, Any], name: str | None) -> None:
        written = summary_pb2.Summary()
        for key in sorted(found):
            value = np.asarray(found[key])
            if key != "global_step" and value.size == 1 and value.dtype.kind in "fiub":
                written.value.add(tag=key, simple_value=float(value))
        writer = FileWriterCache.get(self.eval_dir(name))
        writer.add_summary(written, int(found["global_step"]))
        writer.flush()

    # Prediction ----------------------------------------------------------------------------------------------------

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Generator[Any]:
        """The predictions for each example, one after the other.

        Args:
          input_fn: returns features.
          predict_keys: names of the predictions to return; all if None.
          hooks: the hooks of the session.
          checkpoint_path: the checkpoint; the newest if None. Without a checkpoint, the initialised model predicts.
          yield_single_examples: whether to yield single examples instead of whole batches.

        Raises:
          ValueError: batches have different sizes, or a prediction is missing.
        """
        path = checkpoint_path or self.latest_checkpoint()
        with self._graph():
            create_global_step()
            features, _, input_hooks = features_and_labels(self._call_input_fn(input_fn, ModeKeys.PREDICT))
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self._config)
            predictions = _chosen(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                checkpoint_filename_with_path=path,
                master=self._config.master,
                scaffold=spec.scaffold,
                config=self._config.session_config,
            )
            all_hooks = [*input_hooks, *(hooks or ()), *spec.prediction_hooks]
            with MonitoredSession(creator, all_hooks) as session:
                while not session.should_stop():
                    batch = session.run(predictions)
                    if not yield_single_examples:
                        yield batch
                    elif isinstance(batch, dict):
                        yield from _examples(batch)  # pyright: ignore[reportUnknownArgumentType]
                    else:
                        yield from batch

    # Exporting -----------------------------------------------------------------------------------------------------

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: object = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Exports the model for serving into a new folder within ``export_dir_base``, and returns the folder's path.

        Args:
          serving_input_receiver_fn: returns a `ServingInputReceiver`.
          assets_extra: files to include: from paths within ``assets.extra`` to paths of the files.
          as_text: not supported.
          checkpoint_path: the checkpoint to export; the newest if None.

        Raises:
          ValueError: there is no checkpoint, the model has no export outputs, or ``experimental_mode`` is not PREDICT.
        """
        if experimental_mode != ModeKeys.PREDICT:
            raise ValueError(
                f"experimental_mode {experimental_mode!r} is not supported: models are exported for 'infer'"
            )
        return self._export(export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path, True)

    def _export(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Any,
        as_text: bool,
        checkpoint_path: str | None,
        strip_default_attrs: bool,
    ) -> bytes:
        path = checkpoint_path or self.latest_checkpoint()
        if path is None:
            raise ValueError(f"Couldn't find trained model at {self.model_dir}.")
        folder = timestamped(os.fspath(export_dir_base))
        with Graph().as_default() as graph:
            create_global_step()
            receiver = serving_input_receiver_fn()
            spec = self._call_model_fn(receiver.features, None, ModeKeys.PREDICT, self._config)
            signatures = _signatures(spec, receiver.receiver_tensors)
            init = spec.scaffold.local_init_op or Scaffold.default_local_init_op()
            saver = spec.scaffold.saver or Saver(sharded=True, allow_empty=True)
            saver.build()
            with Session(config=self._config.session_config) as session:
                saver.restore(session, path)
                builder = saved_model.SavedModelBuilder(folder)
                builder.add_meta_graph_and_variables(
                    session,
                    [saved_model.SERVING],
                    signatures,
                    graph.get_collection(GraphKeys.ASSET_FILEPATHS),
                    main_op=init,
                    saver=saver,
                    strip_default_attrs=strip_default_attrs,
                )
                builder.save(as_text)
        extra: dict[str, str] = dict(assets_extra or {})
        for target, source in extra.items():
            place = os.path.join(folder, "assets.extra", target)
            files.makedirs(os.path.dirname(place))
            files.copy(source, place)
        return folder.encode()

    def export_savedmodel(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable[[], ServingInputReceiver],
        assets_extra: object = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Same as `export_saved_model`.

        Args:
          strip_default_attrs: omit attributes of operations that have their default.
        """
        return self._export(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    # Building ------------------------------------------------------------------------------------------------------

    @contextmanager
    def _graph(self, device: object = None) -> Generator[Graph]:
        """Returns a context with a new graph; ``device`` is its device function, for training in a cluster."""
        with Graph().as_default() as graph, graph.device(device):
            set_random_seed(self._config.tf_random_seed)
            yield graph

    @property
    def _device(self) -> Any:
        config = self._config
        if config.device_fn is not None:
            return config.device_fn
        if not config.num_ps_replicas:
            return None
        task = TaskName(config.task_type, config.task_id)
        return replica_device_setter(
            ps_tasks=config.num_ps_replicas,
            worker_device=f"/job:{task.job}/task:{task.index}",
            merge_devices=True,
            cluster=config.cluster_spec,
        )

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        with get_default_graph().device("/cpu:0"):
            return call_input_fn(input_fn, mode, self._input_params(mode), self.config)

    def _input_params(self, mode: str) -> Any:
        """Returns the ``params`` argument of input functions."""
        del mode
        return self.params

    def _model_params(self, mode: str) -> Any:
        """Returns the ``params`` argument of model functions."""
        del mode
        return self.params

    def _call_model_fn(self, features: Structure, labels: Structure, mode: str, config: object) -> EstimatorSpec:
        wanted = arguments_of(self._model_fn)
        given: dict[str, Any] = {"mode": mode, "params": self._model_params(mode), "config": config, "labels": labels}
        if "labels" not in wanted and labels is not None:
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        spec = self._model_fn(features=features, **{key: value for key, value in given.items() if key in wanted})
        if hasattr(spec, "as_estimator_spec"):  # as of a TPUEstimator
            spec = spec.as_estimator_spec()
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec


def _with_folder(config: object, model_dir: str | None) -> Any:
    found = RunConfig() if config is None else config
    if not isinstance(found, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    folder = None if model_dir is None else os.fspath(model_dir)
    if folder is not None and found.model_dir is not None and folder != found.model_dir:
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: "
            f"'{folder}', in `RunConfig`: '{found.model_dir}'"
        )
    folder = folder or found.model_dir
    if folder is None:
        folder = tempfile.mkdtemp()
        _logger.warning("Using temporary folder as model directory: %s", folder)
    return found.replace(model_dir=folder)


def _signatures(spec: EstimatorSpec, receivers: Mapping[str, Any]) -> dict[str, object]:
    outputs = dict(spec.export_outputs or {})
    if not outputs:
        raise ValueError("export_outputs must be set in the EstimatorSpec for the mode PREDICT to export a model.")
    default = saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if len(outputs) == 1:
        outputs.setdefault(default, next(iter(outputs.values())))
    if default not in outputs:
        raise ValueError(
            f"Multiple export_outputs were provided, but none of them is specified as the default: {default}"
        )
    return {name: output.as_signature_def(receivers) for name, output in outputs.items()}


def _chosen(predictions: TensorLike, keys: Any) -> Structure:
    if not keys:
        return predictions
    if not isinstance(predictions, Mapping):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    wanted = [keys] if isinstance(keys, str) else list(keys)
    found = {key: value for key, value in predictions.items() if key in wanted}  # pyright: ignore[reportUnknownVariableType]
    if not found:
        raise ValueError(f"Expected to run at least one output from {list(predictions)}, provided {keys}.")  # pyright: ignore[reportUnknownArgumentType]
    return found  # pyright: ignore[reportUnknownVariableType]


def _examples(batch: Mapping[str, HostArray]) -> Generator[dict[str, Any]]:
    for index in range(_count(batch)):
        yield {key: value[index] for key, value in batch.items()}


def _count(batch: Mapping[str, HostArray]) -> int:
    sizes = {len(value) for value in flatten(dict(batch))}
    if len(sizes) != 1:
        raise ValueError("Batch length of predictions should be same: they have " + ", ".join(map(str, sorted(sizes))))
    return sizes.pop()
