"""Hooks that log, stop, wait, feed, and check."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.cluster.pauses import pause
from headwater.errors import OpError
from headwater.graph.context import get_default_graph
from headwater.tf1.training.saving_hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    ProfilerHook,
    StepCounterHook,
    SummarySaverHook,
)
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from headwater.tf1.training.step_timer import NeverTriggerTimer, SecondOrStepTimer
from headwater.tf1.training.training_util import global_step_value

if TYPE_CHECKING:
    from headwater.graph.types import FeedDict, SessionLike, Structure, TensorLike
    from headwater.tf1.training.coordinator import Coordinator
    from headwater.tf1.variables.variables import Variable


__all__ = [
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "FeedFnHook",
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "LoggingTensorHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NeverTriggerTimer",
    "ProfilerHook",
    "SecondOrStepTimer",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
]

_logger: Final = logging.getLogger(__name__)
_WAIT_S: Final = 0.5
_LOG_EVERY_STEPS: Final = 1000


class LoggingTensorHook(SessionRunHook):
    """Logs tensors at an interval of steps or seconds, or at the end.

    Args:
      tensors: a dict from labels to tensors or their names, or a list of them.
      every_n_iter: interval in steps of this session.
      every_n_secs: interval in seconds.
      at_end: whether to log at the end, too.
      formatter: ``f(dict of values)`` returns the text; by default ``label = value`` for each.

    Raises:
      ValueError: neither exactly one of the intervals nor ``at_end`` alone is given.
    """

    def __init__(
        self,
        tensors: Mapping[str, object] | Sequence[object],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[Mapping[str, object]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        self._tensors: dict[Any, Any] = (
            dict(tensors) if isinstance(tensors, Mapping) else {tensor: tensor for tensor in tensors}
        )
        self._formatter = formatter
        self._timer = (
            NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )
        self._log_at_end = at_end
        self._iterations = 0
        self._due = False

    def begin(self) -> None:
        self._timer.reset()
        self._iterations = 0
        graph = get_default_graph()
        self._tensors = {label: graph.as_graph_element(tensor) for label, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._due = self._timer.should_trigger_for_step(self._iterations)
        return SessionRunArgs(self._tensors) if self._due else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._due:
            self._log(run_values.results)
        self._iterations += 1

    def end(self, session: SessionLike) -> None:
        if self._log_at_end:
            self._log(session.run(self._tensors))

    def _log(self, values: Mapping[str, Any]) -> None:
        elapsed, _ = self._timer.update_last_triggered_step(self._iterations)
        if self._formatter is not None:
            _logger.info(self._formatter(dict(values)))
            return
        text = ", ".join(f"{getattr(label, 'name', label)} = {value}" for label, value in values.items())
        if elapsed is None:
            _logger.info(text)
        else:
            _logger.info("%s (%.3f sec)", text, elapsed)


class StopAtStepHook(SessionRunHook):
    """Ends the loop at a global step.

    Args:
      num_steps: number of steps from the beginning.
      last_step: the global step at which the loop ends.

    Raises:
      ValueError: not exactly one of the two is given.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step
        self._global_step: Variable | None = None

    def begin(self) -> None:
        self._global_step = global_step_value(type(self).__name__)

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._global_step)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None
        # The fetched value precedes the step. Read it again: the step may have been dropped, or other workers may have
        # advanced the global step meanwhile.
        if run_values.results + 1 < self._last_step:
            return
        if run_context.session.run(self._global_step) >= self._last_step:
            run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """The loss is not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Fails, or ends the loop, when the loss is not a number.

    Args:
      fail_on_nan_loss: raise `NanLossDuringTrainingError`; else only stop.
    """

    def __init__(self, loss_tensor: TensorLike, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not np.isnan(run_values.results):
            return
        if self._fail_on_nan_loss:
            _logger.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        _logger.warning("Model diverged with loss = NaN.")
        # All hooks are called before the session is closed.
        run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Delays a worker until the global step reaches a value: workers that start one after the other learn better.

    Args:
      wait_until_step: the step to wait for.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step
        self._started = False
        self._global_step: Variable | None = None

    def begin(self) -> None:
        self._started = False
        self._global_step = global_step_value(type(self).__name__)

    def before_run(self, run_context: SessionRunContext) -> None:
        if self._started:
            return
        if self._wait_until_step > 0:
            _logger.info("Waiting for global step %d before starting training.", self._wait_until_step)
        said = 0
        while self._wait_until_step > 0:
            step = int(run_context.session.run(self._global_step))
            if step >= self._wait_until_step:
                break
            if step - said > _LOG_EVERY_STEPS:
                _logger.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    step,
                )
                said = step
            pause(_WAIT_S)
        self._started = True


class FinalOpsHook(SessionRunHook):
    """Evaluates tensors or operations at the end of a session.

    Args:
      final_ops: tensors and operations to run, in any structure that `Session.run` takes.
      final_ops_feed_dict: values to feed to them.

    Attributes:
      final_ops_values: the values, once the session has ended.
    """

    def __init__(self, final_ops: Structure, final_ops_feed_dict: FeedDict | None = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self.final_ops_values: Any = None

    def end(self, session: SessionLike) -> None:
        if self._final_ops is None:
            return
        try:
            self.final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
        except OpError as error:
            _logger.error("An error occurred while running the final operations: %s", error)
            raise


class FeedFnHook(SessionRunHook):
    """Feeds values to every step.

    Args:
      feed_fn: returns the feed dictionary of the next step.
    """

    def __init__(self, feed_fn: Callable[[], FeedDict]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
