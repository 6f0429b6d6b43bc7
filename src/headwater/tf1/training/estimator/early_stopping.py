"""Hooks that end an estimator's training early, based on a function or on the metrics of evaluations."""

from __future__ import annotations

import logging
import operator
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from headwater import dtypes
from headwater.cluster.pauses import pause
from headwater.data.io.event_file import summary_iterator
from headwater.graph.collections import GraphKeys
from headwater.tf1.training.basic_session_run_hooks import StopAtStepHook
from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.estimator.estimator import Estimator
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunHook
from headwater.tf1.training.step_timer import SecondOrStepTimer
from headwater.tf1.training.training_util import get_global_step
from headwater.tf1.variables.initializers import Constant
from headwater.tf1.variables.scope_settings import AUTO_REUSE
from headwater.tf1.variables.state import assign
from headwater.tf1.variables.variable_scope import get_variable, variable_scope

if TYPE_CHECKING:
    from headwater.graph.types import TensorLike
    from headwater.tf1.training.session_run_hook import SessionRunContext, SessionRunValues
    from headwater.tf1.variables.types import AnyVariable


_logger: Final = logging.getLogger(__name__)

Results = Mapping[int, Mapping[str, float]]


def make_early_stopping_hook(
    estimator: object,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends the training in all tasks when ``should_stop_fn()``, called by the chief, is true.

    Args:
      run_every_secs: seconds between two calls of ``should_stop_fn``; or
      run_every_steps: steps between two calls.

    Raises:
      TypeError: ``estimator`` is not an estimator.
      ValueError: both intervals are given.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must have type `tf.estimator.Estimator`. Got: {type(estimator)}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    if estimator.config.is_chief:
        return _StopWhen(should_stop_fn, run_every_secs, run_every_steps)
    return _StopWithTheChief()


def stop_if_higher_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends the training when an evaluation found a metric above ``threshold``.

    Args:
      eval_dir: folder with the summaries of evaluations; the estimator's if None.
      min_steps: evaluations of earlier steps do not count.
      estimator, run_every_secs, run_every_steps: see `make_early_stopping_hook`.
    """
    reached = _reached(estimator, metric_name, threshold, operator.gt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, reached, run_every_secs, run_every_steps)


def stop_if_lower_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends the training when a metric is below ``threshold``; see `stop_if_higher_hook`."""
    reached = _reached(estimator, metric_name, threshold, operator.lt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, reached, run_every_secs, run_every_steps)


def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends the training when a metric has not grown for ``max_steps_without_increase`` steps; see
    `stop_if_higher_hook`.
    """
    stalled = _stalled(estimator, metric_name, max_steps_without_increase, operator.gt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, stalled, run_every_secs, run_every_steps)


def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Returns a hook that ends the training when a metric has not fallen for ``max_steps_without_decrease`` steps; see
    `stop_if_higher_hook`.
    """
    stalled = _stalled(estimator, metric_name, max_steps_without_decrease, operator.lt, eval_dir, min_steps)
    return make_early_stopping_hook(estimator, stalled, run_every_secs, run_every_steps)


def make_stop_at_checkpoint_step_hook(
    estimator: Estimator, last_step: int, wait_after_file_check_secs: float = 30
) -> SessionRunHook:
    """Returns a hook that ends the training at ``last_step``; non-chief tasks wait for the chief's last checkpoint.

    Args:
      wait_after_file_check_secs: seconds between two checks for the checkpoint.
    """
    if estimator.config.is_chief:
        return StopAtStepHook(last_step=last_step)
    return _StopAtCheckpoint(estimator.model_dir, last_step, wait_after_file_check_secs)


# Results of evaluations ---------------------------------------------------------------------------------------------


def read_eval_metrics(eval_dir: str) -> OrderedDict[int, dict[str, float]]:
    """The metrics in the summaries of a folder, by step, in the order of the steps."""
    found: dict[int, dict[str, float]] = {}
    for step, name, value in _values(eval_dir):
        found.setdefault(step, {})[name] = value
    return OrderedDict(sorted(found.items()))


def _values(folder: str) -> Iterator[tuple[int, str, float]]:
    if not os.path.isdir(folder):
        return
    for name in sorted(os.listdir(folder)):
        if "tfevents" not in name:
            continue
        for event in summary_iterator(os.path.join(folder, name)):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    yield event.step, value.tag, value.simple_value


def _reached(
    estimator: Estimator,
    metric: str,
    threshold: float,
    better: Callable[[float, float], bool],
    eval_dir: str | None,
    min_steps: int,
) -> Callable[[], bool]:
    folder = eval_dir or estimator.eval_dir()

    def reached() -> bool:
        for step, metrics in read_eval_metrics(folder).items():
            if step >= min_steps and better(metrics[metric], threshold):
                _logger.info(
                    "At step %s, metric %r has value %s (threshold %s)", step, metric, metrics[metric], threshold
                )
                return True
        return False

    return reached


def _stalled(
    estimator: Estimator,
    metric: str,
    most_steps: int,
    better: Callable[[float, float], bool],
    eval_dir: str | None,
    min_steps: int,
) -> Callable[[], bool]:
    folder = eval_dir or estimator.eval_dir()

    def stalled() -> bool:
        best: tuple[float, int] | None = None
        for step, metrics in read_eval_metrics(folder).items():
            if step < min_steps:
                continue
            value = metrics[metric]
            if best is None or better(value, best[0]):
                best = value, step
            if step - best[1] >= most_steps:
                _logger.info("Metric %r is no better since step %s, where it was %s", metric, best[1], best[0])
                return True
        return False

    return stalled


# The hooks ----------------------------------------------------------------------------------------------------------


def _stop_variable() -> AnyVariable:
    with variable_scope("signal_early_stopping", reuse=AUTO_REUSE):
        return get_variable(
            "STOP",
            shape=[],
            dtype=dtypes.bool_,
            initializer=Constant(False),
            collections=[GraphKeys.GLOBAL_VARIABLES],
            trainable=False,
        )


class _StopWhen(SessionRunHook):
    """Hook of the chief: calls the function, and signals a stop to the other workers by a variable."""

    def __init__(self, should_stop: Callable[[], bool], every_secs: float | None, every_steps: int | None) -> None:
        if not callable(should_stop):
            raise TypeError("`should_stop_fn` must be callable.")
        self._should_stop = should_stop
        self._timer = SecondOrStepTimer(every_secs=every_secs, every_steps=every_steps)
        self._step: TensorLike | None = None
        self._stop: Any = None

    def begin(self) -> None:
        self._step = get_global_step()
        self._stop = assign(_stop_variable(), True)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = run_values.results
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop():
                _logger.info("Requesting early stopping at global step %d", step)
                run_context.session.run(self._stop)
                run_context.request_stop()


class _StopWithTheChief(SessionRunHook):
    """Hook of the other tasks: checks the chief's variable after each step."""

    def __init__(self) -> None:
        self._stop: Any = None

    def begin(self) -> None:
        self._stop = _stop_variable()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._stop)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results:
            _logger.info("Early stopping requested, suspending run.")
            run_context.request_stop()


class _StopAtCheckpoint(SessionRunHook):
    """Waits for the checkpoint of the last step, once this step is reached."""

    def __init__(self, model_dir: str, last_step: int, wait_secs: float) -> None:
        self._model_dir = model_dir
        self._last_step = last_step
        self._wait_secs = wait_secs
        self._step: TensorLike | None = None

    def begin(self) -> None:
        self._step = get_global_step()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if run_values.results + 1 < self._last_step:
            return
        while _step_of(latest_checkpoint(self._model_dir)) < self._last_step:
            _logger.info("Waiting for the checkpoint of step %s in %s", self._last_step, self._model_dir)
            pause(self._wait_secs)
        run_context.request_stop()


def _step_of(checkpoint: str | None) -> int:
    found = re.search(r"-(\d+)$", checkpoint or "")
    return -1 if found is None else int(found.group(1))
