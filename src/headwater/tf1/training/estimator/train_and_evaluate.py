"""`train_and_evaluate`: one program for a single machine and for each task of a cluster."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.config import CHIEFS, EVALUATOR
from headwater.cluster.pauses import pause
from headwater.errors import NotFoundError
from headwater.graph.server.server import Server
from headwater.tf1.training.checkpoint_state import checkpoint_exists
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.estimator.run_config import TaskType
from headwater.tf1.training.estimator.specs import EvalSpec, TrainSpec
from headwater.tf1.training.estimator.training_end import TrainingEnd
from headwater.tf1.training.saving_hooks import CheckpointSaverListener
from headwater.tf1.training.step_timer import SecondOrStepTimer

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike


_logger: Final = logging.getLogger(__name__)
_POLL_S: Final = 1.0


class Evaluator:
    """Evaluates the newest checkpoint, each once, and calls the exporters."""

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, max_steps: int | None) -> None:
        self._estimator = estimator
        self._spec = eval_spec
        self._max_steps = max_steps
        self._last: str | None = None
        self.metrics: dict[str, Any] | None = None
        self.exported: list[object] = []

    @property
    def finished(self) -> bool:
        """Whether the checkpoint of the last step has been evaluated."""
        done = 0 if self.metrics is None else int(self.metrics["global_step"])
        return self._max_steps is not None and done >= self._max_steps

    def evaluate(self, *, is_last: bool = False) -> bool:
        """Evaluates the newest checkpoint, and returns whether it was a new one.

        Args:
          is_last: whether there will be no later checkpoint.
        """
        path = self._estimator.latest_checkpoint()
        if path is None or path == self._last:
            return False
        try:
            self.metrics = self._estimator.evaluate(
                input_fn=self._spec.input_fn,
                steps=self._spec.steps,
                hooks=self._spec.hooks,
                checkpoint_path=path,
                name=self._spec.name,
            )
        except (NotFoundError, ValueError):
            if checkpoint_exists(path):
                raise
            # The chief keeps only the latest checkpoints and has deleted this one since it was chosen.
            return self.evaluate(is_last=is_last)
        self._last = path
        self.export(is_the_final_export=is_last or self.finished)
        return True

    def export(self, *, is_the_final_export: bool) -> None:
        """Calls the exporters."""
        self.exported = [
            exporter.export(
                estimator=self._estimator,
                export_path=f"{self._estimator.model_dir}/export/{exporter.name}",
                checkpoint_path=self._last,
                eval_result=self.metrics,
                is_the_final_export=is_the_final_export,
            )
            for exporter in self._spec.exporters
        ]


class _EvaluateAfterSaving(CheckpointSaverListener):
    """Evaluates after checkpoints, at most once in an interval of seconds, and after the last one."""

    def __init__(self, evaluator: Evaluator, throttle_secs: float) -> None:
        self._evaluator = evaluator
        self._timer = SecondOrStepTimer(every_secs=throttle_secs)
        self._first = True
        self._step = -1

    def begin(self) -> None:
        self._timer.reset()
        self._first = True

    def after_save(self, session: SessionLike, global_step_value: int) -> bool | None:
        del session
        if self._first:
            # The checkpoint with which training begins: only starts the clock.
            self._first = False
            self._timer.update_last_triggered_step(global_step_value)
            return None
        if self._timer.should_trigger_for_step(global_step_value):
            self._timer.update_last_triggered_step(global_step_value)
            self._evaluator.evaluate()
            self._step = global_step_value
        return None

    def end(self, session: SessionLike, global_step_value: int) -> None:
        del session
        if global_step_value != self._step:
            self._evaluator.evaluate()
            self._step = global_step_value


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[Any]] | None:
    """Trains, and evaluates and exports checkpoints meanwhile.

    Without a cluster in ``TF_CONFIG`` this process alternates between training and evaluation. In a cluster the chief
    and the workers train, the ps serve variables, and an evaluator evaluates.

    Returns:
      Without a cluster, the last metrics and the results of the exporters.

    Raises:
      TypeError: an argument has the wrong type.
      ValueError: this task's job has no part in training or evaluation.
    """
    for value, kind in ((estimator, Estimator), (train_spec, TrainSpec), (eval_spec, EvalSpec)):
        if not isinstance(value, kind):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"`{kind.__name__}` expected, given {type(value)}")
    return run_task(Evaluator(estimator, eval_spec, train_spec.max_steps), estimator, train_spec, eval_spec)


def run_task(
    evaluator: Evaluator, estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any] | None, list[Any]] | None:
    """Does this task's part of `train_and_evaluate`; evaluations are ``evaluator``'s, which keeps the last metrics."""
    config = estimator.config
    training_end = TrainingEnd(estimator.model_dir)
    if config.task_type == EVALUATOR:
        _evaluate_continuously(evaluator, eval_spec, training_end)
        return None
    if not config.cluster_spec.jobs:
        listener = _EvaluateAfterSaving(evaluator, eval_spec.throttle_secs)
        estimator.train(
            train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=[listener]
        )
        if evaluator.metrics is None:
            evaluator.evaluate()
        return evaluator.metrics, evaluator.exported
    if config.task_type == TaskType.PS:
        start_server(config).join()
        return None
    if config.task_type not in (*CHIEFS, TaskType.WORKER):
        raise ValueError(
            f"there is nothing to do for job {config.task_type!r}: chief, worker, ps and evaluator are known"
        )
    if config.master:
        start_server(config)
    if config.is_chief:
        training_end.clear()
    listeners: list[CheckpointSaverListener] = []
    if config.task_type == TaskType.MASTER:
        listeners.append(_EvaluateAfterSaving(evaluator, eval_spec.throttle_secs))
    estimator.train(train_spec.input_fn, train_spec.hooks, max_steps=train_spec.max_steps, saving_listeners=listeners)
    if config.is_chief:
        training_end.write(estimator.latest_checkpoint())
    return None


def start_server(config: Any) -> Server:
    """Starts and returns this task's server."""
    more = {} if config.protocol is None else {"protocol": config.protocol}
    return Server(
        config.cluster_spec, job_name=config.task_type, task_index=config.task_id, config=config.session_config, **more
    )


def _evaluate_continuously(evaluator: Evaluator, spec: EvalSpec, training_end: TrainingEnd) -> None:
    """Evaluates each new checkpoint up to the last step's, or until training has ended earlier."""
    pause(spec.start_delay_secs)
    while not evaluator.finished:
        ended = training_end.read()  # before looking for a checkpoint: a later read could miss the last one
        evaluated = evaluator.evaluate(is_last=ended)
        if ended:
            if not evaluated:
                evaluator.export(is_the_final_export=True)
            return
        pause(spec.throttle_secs if evaluated and not evaluator.finished else _POLL_S)
