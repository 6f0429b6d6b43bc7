"""`RunConfig`: task, intervals and checkpoints of an estimator; omitted settings follow from ``TF_CONFIG``."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from headwater.cluster.config import CHIEFS, EVALUATOR, task_config_from_environment
from headwater.cluster.spec import ClusterSpec
from headwater.tensorboard_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.graph.scopes import DeviceFunction
    from headwater.tensorboard_protos import ConfigProto


_DEFAULT: Final = object()
_DEFAULT_SECS: Final = 600


class TaskType:
    """Jobs of a cluster."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = EVALUATOR


class DistributeConfig(NamedTuple):
    """Distribution strategies of an estimator.

    Attributes:
      train_distribute, eval_distribute: strategies, see `RunConfig`.
      remote_cluster: must be None.
    """

    train_distribute: Any = None
    eval_distribute: object = None
    remote_cluster: object = None


class RunConfig:
    """Settings of an estimator.

    Args:
      model_dir: folder of checkpoints and summaries.
      tf_random_seed: the random seed of the graph.
      save_summary_steps: steps between two summaries.
      save_checkpoints_steps, save_checkpoints_secs: steps or seconds between two checkpoints; every 600 s by default.
      session_config: a ``ConfigProto``; by default, in a cluster, with the ``ps`` and this task as ``device_filters``,
        so that a session waits for no other task.
      keep_checkpoint_max: maximum number of checkpoints to keep.
      keep_checkpoint_every_n_hours: besides, keep one checkpoint in each interval of this number of hours.
      log_step_count_steps: steps between two lines about the speed and the loss.
      device_fn: returns the device of each operation, in place of the replica device setter.
      protocol: the protocol of the task's server.
      session_creation_timeout_secs: longest time to wait for the chief, in seconds.
      train_distribute: a strategy of this process; of several devices for Keras models only.
      eval_distribute: accepted; an evaluation runs on one device.
      experimental_distribute: a `DistributeConfig` instead of both.
      experimental_max_worker_delay_secs: accepted.

    Raises:
      ValueError: both intervals of checkpoints are given, or a number or ``TF_CONFIG`` is invalid.
    """

    _fields: ClassVar[tuple[str, ...]] = (
        "model_dir",
        "tf_random_seed",
        "save_summary_steps",
        "save_checkpoints_steps",
        "save_checkpoints_secs",
        "session_config",
        "keep_checkpoint_max",
        "keep_checkpoint_every_n_hours",
        "log_step_count_steps",
        "train_distribute",
        "device_fn",
        "protocol",
        "eval_distribute",
        "experimental_distribute",
        "experimental_max_worker_delay_secs",
        "session_creation_timeout_secs",
    )

    def __init__(
        self,
        model_dir: str | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: object = _DEFAULT,
        save_checkpoints_secs: object = _DEFAULT,
        session_config: ConfigProto | None = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: DeviceFunction | None = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: float | None = None,
        session_creation_timeout_secs: float = 7200,
    ) -> None:
        if save_checkpoints_steps is _DEFAULT and save_checkpoints_secs is _DEFAULT:
            save_checkpoints_steps, save_checkpoints_secs = None, _DEFAULT_SECS
        elif save_checkpoints_secs is _DEFAULT:
            save_checkpoints_secs = None
        elif save_checkpoints_steps is _DEFAULT:
            save_checkpoints_steps = None
        elif save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
        self.tf_random_seed = tf_random_seed
        self.save_summary_steps = save_summary_steps
        self.save_checkpoints_steps = save_checkpoints_steps
        self.save_checkpoints_secs = save_checkpoints_secs
        self.session_config = session_config
        self.keep_checkpoint_max = keep_checkpoint_max
        self.keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self.log_step_count_steps = log_step_count_steps
        if experimental_distribute is not None:
            if train_distribute is not None or eval_distribute is not None:
                raise ValueError("experimental_distribute must not be given with train_distribute or eval_distribute")
            train_distribute, eval_distribute, remote = experimental_distribute
            if remote is not None:
                raise ValueError(
                    "remote_cluster must be None: start the program once for each task, each with its TF_CONFIG"
                )
        _check_strategy(train_distribute)
        self.train_distribute = train_distribute
        self.device_fn = device_fn
        self.protocol = protocol
        self.eval_distribute = eval_distribute
        self.experimental_distribute = experimental_distribute
        self.experimental_max_worker_delay_secs = experimental_max_worker_delay_secs
        self.session_creation_timeout_secs = session_creation_timeout_secs
        for name in ("save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs", "log_step_count_steps"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} should be >= 0, not {value}")
        if keep_checkpoint_max is not None and keep_checkpoint_max < 0:
            raise ValueError("keep_checkpoint_max should be >= 0")
        self._read_environment(model_dir)

    def _read_environment(self, model_dir: str | None) -> None:
        found = task_config_from_environment()
        self.cluster_spec: ClusterSpec = ClusterSpec({}) if found is None else found.cluster
        self.service: object | None = None if found is None else found.rest.get("service")
        task = None if found is None else found.task
        jobs = list(self.cluster_spec.jobs)
        if jobs and not any(job in CHIEFS for job in jobs):
            raise ValueError(
                'If "cluster" is set in TF_CONFIG, it must have one "chief" node; headwater run adds one with --chief'
            )
        if jobs and task is None:
            raise ValueError('If "cluster" is set in TF_CONFIG, task type must be set.')
        self.task_type: str = TaskType.WORKER if task is None else task.job
        self.task_id: int = 0 if task is None else task.index
        if self.task_type == EVALUATOR:
            # It reads checkpoints and talks to no other task.
            self.cluster_spec, jobs = ClusterSpec({}), []
        self.num_ps_replicas: int = len(self.cluster_spec.task_indices("ps")) if "ps" in jobs else 0
        self.num_worker_replicas: int = sum(
            len(self.cluster_spec.task_indices(job)) for job in jobs if job == "worker" or job in CHIEFS
        ) or (0 if self.task_type == EVALUATOR else 1)
        self.is_chief: bool = (not jobs and self.task_type != EVALUATOR) or self.task_type in CHIEFS
        rest: Mapping[str, Any] = {} if found is None else found.rest
        self.master: str = rest.get("session_master", "")
        self.evaluation_master: str = rest.get("eval_session_master", "")
        several = sum(len(self.cluster_spec.task_indices(job)) for job in jobs) > 1
        if several and self.task_type != EVALUATOR and not self.master:
            self.master = f"grpc://{self.cluster_spec.task_address(self.task_type, self.task_id)}"
        if jobs and self.session_config is None:
            self.session_config = _session_config(self.task_type, self.task_id)
        from_environment = rest.get("model_dir")
        if model_dir is not None and from_environment is not None and model_dir != from_environment:
            raise ValueError(
                f"`model_dir` provided in RunConfig construct, if set, must have the same value as the model_dir in "
                f"TF_CONFIG: {model_dir} and {from_environment}"
            )
        self.model_dir: str | None = model_dir or from_environment

    @property
    def global_id_in_cluster(self) -> int | None:
        """The index of this task among all tasks but evaluators: the chief is 0; None for an evaluator."""
        if self.task_type == EVALUATOR:
            return None
        if not self.cluster_spec.jobs or self.task_type in CHIEFS:
            return 0
        order = [*(job for job in CHIEFS if job in self.cluster_spec.jobs), TaskType.WORKER, TaskType.PS]
        before = order[: order.index(self.task_type)]
        counts = [len(self.cluster_spec.task_indices(job)) for job in before if job in self.cluster_spec.jobs]
        return sum(counts) + self.task_id

    def replace(self, **kwargs: object) -> Self:
        """A copy with other settings.

        Raises:
          ValueError: a setting is unknown, or both intervals of checkpoints are given.
        """
        unknown = [name for name in kwargs if name not in self._fields]
        if unknown:
            raise ValueError(f"Replacing {', '.join(unknown)} is not supported. Allowed properties are {self._fields}.")
        if kwargs.get("save_checkpoints_steps") is not None and kwargs.get("save_checkpoints_secs") is not None:
            raise ValueError("`save_checkpoints_steps` and `save_checkpoints_secs` cannot be both set.")
        if kwargs.get("save_checkpoints_steps") is not None:
            kwargs.setdefault("save_checkpoints_secs", None)
        elif kwargs.get("save_checkpoints_secs") is not None:
            kwargs.setdefault("save_checkpoints_steps", None)
        made = copy.copy(self)
        for name, value in kwargs.items():
            setattr(made, name, value)
        return made


def _session_config(job: str, index: int) -> ConfigProto:
    """The session's configuration of a task that sees the ``ps`` and itself; a ``ps`` sees all but the other ``ps``."""
    mine = [f"/job:{each}" for each in ("worker", *CHIEFS)]
    if job != TaskType.PS:
        mine = [f"/job:{job}" if job in CHIEFS else f"/job:{job}/task:{index}"]
    return config_pb2.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", *mine])


def _check_strategy(strategy: Any) -> None:
    if strategy is not None and strategy.num_replicas_in_sync > len(strategy.local_replicas()):
        raise ValueError(
            f"train_distribute is a strategy of {strategy.num_replicas_in_sync} replicas in several processes, which "
            "an Estimator cannot use: call a Keras model's fit in the strategy's scope, or omit it and give the "
            "cluster a ps job"
        )
