"""Monitors of ``tf.contrib.learn``: callbacks of `Estimator.fit`, older than hooks, and the hook that calls them."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tensorboard_protos import event_pb2, summary_pb2
from headwater.tf1.training.basic_session_run_hooks import NanLossDuringTrainingError
from headwater.tf1.training.checkpoint_state import latest_checkpoint
from headwater.tf1.training.file_writer import FileWriter, FileWriterCache
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from headwater.tf1.training.training_util import get_global_step

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import SessionLike, Structure
    from headwater.tf1.training.saver import Saver
    from headwater.tf1.training.scaffold import Scaffold

_logger: Final = logging.getLogger(__name__)


class BaseMonitor:
    """Base class of monitors, whose methods are called before, during and after a training.

    Attributes:
      run_on_all_workers: whether each worker of a cluster calls the monitor, rather than the chief alone.
    """

    run_on_all_workers: bool = False

    def __init__(self) -> None:
        self._begun = False
        self._epoch: int | None = None
        self._step: int | None = None
        self._max_steps: int | None = None
        self._estimator: Structure = None

    def set_estimator(self, estimator: Structure) -> None:
        """Sets the estimator that is trained.

        Raises:
          ValueError: it is None.
        """
        if estimator is None:
            raise ValueError("Missing estimator.")
        self._estimator = estimator

    def begin(self, max_steps: int | None = None) -> None:
        """Begins a training, whose graph is the default graph.

        Raises:
          ValueError: a training has begun and not ended.
        """
        if self._begun:
            raise ValueError("begin called twice without end.")
        self._max_steps, self._begun = max_steps, True

    def end(self, session: SessionLike | None = None) -> None:
        """Ends a training.

        Raises:
          ValueError: none has begun.
        """
        del session
        if not self._begun:
            raise ValueError("end called without begin.")
        self._max_steps, self._begun = None, False

    def epoch_begin(self, epoch: int) -> None:
        """Begins an epoch.

        Raises:
          ValueError: an epoch has begun and not ended, or the number is negative.
        """
        if self._epoch is not None:
            raise ValueError("epoch_begin called twice without epoch_end.")
        if epoch < 0:
            raise ValueError(f"Invalid epoch {epoch}.")
        self._epoch = epoch

    def epoch_end(self, epoch: int) -> None:
        """Ends an epoch.

        Raises:
          ValueError: another epoch, or none, has begun.
        """
        if self._epoch != epoch:
            raise ValueError(f"epoch_end expected {self._epoch} but got {epoch}.")
        self._epoch = None

    def step_begin(self, step: int) -> list[Tensor | str]:
        """Begins a step; returns tensors, or names of tensors, to compute in it.

        Raises:
          ValueError: the step is negative or above the last one.
        """
        if step < 0 or (self._max_steps is not None and step > self._max_steps):
            raise ValueError(f"Invalid step {step}.")
        self._step = step
        return []

    def step_end(self, step: int, output: Mapping[Tensor | str, Structure]) -> bool | None:
        """Ends a step; returns whether to stop the training.

        Args:
          output: by tensor or name, the values that `step_begin` requested.

        Raises:
          ValueError: another step, or none, has begun.
        """
        del output
        if self._step != step:
            raise ValueError(f"step_end expected {self._step} but got {step}.")
        self._step = None
        return False

    def post_step(self, step: int, session: SessionLike) -> None:
        """Is called after the `step_end` of all monitors; may run further steps."""


class EveryN(BaseMonitor):
    """A monitor with callbacks in every n-th step, and in the first steps of a model.

    Args:
      every_n_steps: number of steps between two callbacks.
      first_n_steps: the global step up to which callbacks follow each step.
    """

    def __init__(self, every_n_steps: int = 100, first_n_steps: int = 1) -> None:
        super().__init__()
        self._every_n_steps = every_n_steps
        self._first_n_steps = first_n_steps
        self._last_step: int | None = None
        self._last_active_step = 0
        self._active = False

    def every_n_step_begin(self, step: int) -> list[Tensor | str]:
        """Returns tensors, or names of tensors, to compute in this step."""
        del step
        return []

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        """Receives the requested values; returns whether to stop the training."""
        del step, outputs
        return False

    def every_n_post_step(self, step: int | None, session: SessionLike | None) -> None:
        """Is called after a step with callbacks, and after the last step."""

    def step_begin(self, step: int) -> list[Tensor | str]:
        super().step_begin(step)
        due = step >= self._every_n_steps + self._last_active_step
        self._active = step <= self._first_n_steps or due or step == self._max_steps
        return self.every_n_step_begin(step) if self._active else []

    def step_end(self, step: int, output: Mapping[Tensor | str, Structure]) -> bool | None:
        super().step_end(step, output)
        return self.every_n_step_end(step, output) if self._active else False

    def post_step(self, step: int, session: SessionLike) -> None:
        super().post_step(step, session)
        if self._active:
            self.every_n_post_step(step, session)
            self._last_active_step = step
        self._last_step = step

    def end(self, session: SessionLike | None = None) -> None:
        super().end(session)
        if self._last_step != self._last_active_step:
            self.every_n_post_step(self._last_step, session)


class StopAtStep(BaseMonitor):
    """Stops after ``num_steps`` further steps, or at the global step ``last_step``.

    Raises:
      ValueError: both are given, or neither.
    """

    run_on_all_workers = True

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps or 0
        self._last_step = last_step

    def step_begin(self, step: int) -> list[Tensor | str]:
        found = super().step_begin(step)
        if self._last_step is None:
            self._last_step = step + self._num_steps - 1
        return found

    def step_end(self, step: int, output: Mapping[Tensor | str, Structure]) -> bool | None:
        super().step_end(step, output)
        return self._last_step is not None and step >= self._last_step


def _value(outputs: Mapping[Tensor | str, Structure], request: Tensor | str) -> Structure:
    return outputs[request if request in outputs or isinstance(request, str) else request.name]


class _Log(EveryN):
    """Base of monitors that log values."""

    _title = ""
    _names: Mapping[str, Tensor | str]

    def every_n_step_begin(self, step: int) -> list[Tensor | str]:
        super().every_n_step_begin(step)
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        super().every_n_step_end(step, outputs)
        shown = [f"{tag} = {outputs[name]}" for tag, name in self._names.items() if name in outputs]
        _logger.info("%sStep %d: %s", self._title, step, ", ".join(shown))
        return False


class PrintTensor(_Log):
    """Logs tensors.

    Args:
      tensor_names: names of tensors, or names by tag.
      every_n, first_n: see `EveryN`.
    """

    def __init__(
        self, tensor_names: Mapping[str, Tensor | str] | Sequence[str], every_n: int = 100, first_n: int = 1
    ) -> None:
        super().__init__(every_n, first_n)
        self._names = tensor_names if isinstance(tensor_names, Mapping) else {name: name for name in tensor_names}


class LoggingTrainable(_Log):
    """Logs trainable variables.

    Args:
      scope: a regular expression for the beginning of their names; None for all.
      every_n, first_n: see `EveryN`.
    """

    _title = "Logging Trainable: "

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope

    def every_n_step_begin(self, step: int) -> list[Tensor | str]:
        variables: list[Structure] = get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, self._scope)
        self._names = {variable.name: variable.value().name for variable in variables}
        return super().every_n_step_begin(step)


class SummarySaver(EveryN):
    """Writes a summary.

    Args:
      summary_op: a serialised summary; None for the scaffold's.
      save_steps: number of steps between two summaries.
      output_dir: folder for a writer of this monitor; by default the estimator's.
      summary_writer: the writer to use.
      scaffold: has the summary if ``summary_op`` is None.
    """

    def __init__(
        self,
        summary_op: Tensor | str | None,
        save_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: FileWriter | None = None,
        scaffold: Scaffold | None = None,
    ) -> None:
        super().__init__(every_n_steps=save_steps)
        self._summary_op = summary_op
        self._writer = FileWriter(output_dir) if summary_writer is None and output_dir else summary_writer
        self._scaffold = scaffold

    def set_estimator(self, estimator: Structure) -> None:
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = FileWriter(estimator.model_dir)

    def every_n_step_begin(self, step: int) -> list[Tensor | str]:
        super().every_n_step_begin(step)
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        super().every_n_step_end(step, outputs)
        if self._summary_op is not None and self._writer is not None:
            self._writer.add_summary(_value(outputs, self._summary_op), step)
        return False

    def end(self, session: SessionLike | None = None) -> None:
        super().end(session)
        if self._writer is not None:
            self._writer.flush()


class ValidationMonitor(EveryN):
    """Evaluates each new checkpoint during a training, and may stop when a metric no longer improves.

    Args:
      x, y, input_fn, batch_size, metrics, hooks, name: arguments of the estimator's ``evaluate``.
      eval_steps: number of batches of an evaluation.
      every_n_steps: number of steps between two checks for a checkpoint.
      early_stopping_rounds: number of steps without a better value after which the training stops; None: never.
      early_stopping_metric: name of the metric.
      early_stopping_metric_minimize: whether smaller values are better.
      check_interval_secs: least seconds between two checks; None: no limit.

    Attributes:
      early_stopped: whether the monitor has stopped the training.
      best_step: the step with the best value so far.
      best_value: that value.
      best_metrics: all metrics of that step.

    Raises:
      ValueError: there are no data.
    """

    def __init__(
        self,
        x: Structure = None,
        y: Structure = None,
        input_fn: Callable[..., Structure] | None = None,
        batch_size: int | None = None,
        eval_steps: int | None = None,
        every_n_steps: int = 100,
        metrics: Structure = None,
        hooks: Sequence[SessionRunHook] | None = None,
        early_stopping_rounds: int | None = None,
        early_stopping_metric: str = "loss",
        early_stopping_metric_minimize: bool = True,
        name: str | None = None,
        check_interval_secs: float | None = 5,
    ) -> None:
        super().__init__(every_n_steps, first_n_steps=-1)
        if x is None and input_fn is None:
            raise ValueError("Either x or input_fn should be provided.")
        self.x, self.y, self.input_fn, self.batch_size = x, y, input_fn, batch_size
        self.eval_steps, self.metrics, self.hooks, self.name = eval_steps, metrics, hooks, name
        self.early_stopping_rounds = early_stopping_rounds
        self.early_stopping_metric = early_stopping_metric
        self.early_stopping_metric_minimize = early_stopping_metric_minimize
        self.early_stopped = False
        self.best_step: int | None = None
        self.best_value: float | None = None
        self.best_metrics: dict[str, Structure] | None = None
        self._check_interval_secs = check_interval_secs
        self._checked_at: float | None = None
        self._evaluated: str | None = None

    def _evaluate(self) -> dict[str, Structure]:
        arrays = {"x": self.x, "y": self.y, "batch_size": self.batch_size, "metrics": self.metrics}
        given = {name: value for name, value in arrays.items() if value is not None}
        if given and not hasattr(self._estimator, "fit"):
            raise ValueError(
                "tf.estimator.Estimator does not support following arguments: x, y, batch_size, metrics. Should set as "
                "`None` in ValidationMonitor"
            )
        return self._estimator.evaluate(
            input_fn=self.input_fn, steps=self.eval_steps, hooks=self.hooks, name=self.name, **given
        )

    def _is_time(self) -> bool:
        now, before = time.time(), self._checked_at
        if self._check_interval_secs is not None and before is not None and now - before <= self._check_interval_secs:
            return False
        self._checked_at = now
        return True

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        super().every_n_step_end(step, outputs)
        if self._estimator is None:
            raise ValueError("Missing call to set_estimator.")
        if not self._is_time():
            return False
        path = latest_checkpoint(self._estimator.model_dir)
        if path is None or path == self._evaluated:
            return False
        self._evaluated = path
        found = self._evaluate()
        _logger.info("Validation (step %d): %s", step, ", ".join(f"{name} = {value}" for name, value in found.items()))
        return self.early_stopping_rounds is not None and self._stops(step, found, self.early_stopping_rounds)

    def _stops(self, step: int, found: dict[str, Structure], rounds: int) -> bool:
        metric = self.early_stopping_metric
        if metric not in found:
            raise ValueError(f"Metric {metric} missing from outputs {set(found)}.")
        value = found[metric]
        best = self.best_value
        if best is None or (value < best if self.early_stopping_metric_minimize else value > best):
            self.best_value, self.best_metrics, self.best_step = value, copy.deepcopy(found), step
        if step - (self.best_step or 0) < rounds:
            return False
        _logger.info("Stopping. Best step: %s with %s = %s.", self.best_step, metric, self.best_value)
        self.early_stopped = True
        return True


class CaptureVariable(EveryN):
    """Keeps the values of a tensor.

    Args:
      var_name: its name, such as ``"w:0"``.
      every_n, first_n: see `EveryN`.

    Attributes:
      values: the values by step.
    """

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._name = var_name
        self.values: dict[int, Structure] = {}

    def every_n_step_begin(self, step: int) -> list[Tensor | str]:
        super().every_n_step_begin(step)
        return [self._name]

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        super().every_n_step_end(step, outputs)
        self.values[step] = _value(outputs, self._name)
        return False


class CheckpointSaver(BaseMonitor):
    """Saves checkpoints after the first step, every ``save_secs`` seconds or ``save_steps`` steps, and at the end.

    Args:
      checkpoint_dir: folder of the checkpoints.
      saver: the saver to use; by default the scaffold's.
      checkpoint_basename: name of the files.
      scaffold: has the saver if ``saver`` is None.

    Raises:
      ValueError: both intervals are given, or neither.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Scaffold | None = None,
    ) -> None:
        super().__init__()
        if save_steps is None and save_secs is None:
            raise ValueError("Either save_steps or save_secs should be provided")
        if save_steps is not None and save_secs is not None:
            raise ValueError("Can not provide both save_steps and save_secs.")
        self._writer = FileWriterCache.get(checkpoint_dir)
        self._path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._saver: Structure = saver
        self._scaffold = scaffold
        self._save_secs, self._save_steps = save_secs, save_steps
        self._begun_step: int | None = None
        self._saved: tuple[int, float] | None = None

    def begin(self, max_steps: int | None = None) -> None:
        super().begin(max_steps)
        self._begun_step = self._saved = None

    def step_begin(self, step: int) -> list[Tensor | str]:
        self._begun_step = step
        return super().step_begin(step)

    def post_step(self, step: int, session: SessionLike) -> None:
        super().post_step(step, session)
        if self._saved is None:
            self._save(step, session)
            return
        saved, at = self._saved
        if self._save_steps is not None and step >= saved + self._save_steps:
            self._save(step, session)
        if self._save_secs is not None and time.time() >= at + self._save_secs:
            self._save(step, session)

    def end(self, session: SessionLike | None = None) -> None:
        super().end(session)
        if self._begun_step is not None and session is not None:
            self._save(self._begun_step, session)

    def _save(self, step: int, session: SessionLike) -> None:
        if self._saved is not None and step == self._saved[0]:
            return
        self._saved = step, time.time()
        saver = self._saver if self._scaffold is None or self._saver is not None else self._scaffold.saver
        saver.save(session, self._path, global_step=step)
        status = event_pb2.SessionLog.CHECKPOINT
        self._writer.add_session_log(event_pb2.SessionLog(status=status, checkpoint_path=self._path), step)


class StepCounter(EveryN):
    """Writes the number of steps per second as a summary.

    Args:
      every_n_steps: number of steps between two summaries.
      output_dir: folder of the summaries; by default the estimator's.
      summary_writer: the writer to use.
    """

    def __init__(
        self, every_n_steps: int = 100, output_dir: str | None = None, summary_writer: FileWriter | None = None
    ) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._reported: tuple[int, float] | None = None
        self._writer = FileWriterCache.get(output_dir) if summary_writer is None and output_dir else summary_writer

    def set_estimator(self, estimator: Structure) -> None:
        super().set_estimator(estimator)
        if self._writer is None:
            self._writer = FileWriterCache.get(estimator.model_dir)

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        super().every_n_step_end(step, outputs)
        now = time.time()
        if self._reported is not None and self._writer is not None:
            before, at = self._reported
            value = summary_pb2.Summary.Value(tag="global_step/sec", simple_value=(step - before) / (now - at))
            self._writer.add_summary(summary_pb2.Summary(value=[value]), step)
        self._reported = step, now
        return False


class NanLoss(EveryN):
    """Stops a training whose loss is not a number.

    Args:
      loss_tensor: the loss.
      every_n_steps: number of steps between two checks.
      fail_on_nan_loss: whether to raise `NanLossDuringTrainingError` rather than stop.
    """

    def __init__(self, loss_tensor: Tensor, every_n_steps: int = 100, fail_on_nan_loss: bool = True) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Tensor | str]:
        super().every_n_step_begin(step)
        return [self._loss]

    def every_n_step_end(self, step: int, outputs: Mapping[Tensor | str, Structure]) -> bool | None:
        super().every_n_step_end(step, outputs)
        if not np.isnan(_value(outputs, self._loss)):
            return False
        if self._fails:
            _logger.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        _logger.warning("Model diverged with loss = NaN.")
        return True


def get_default_monitors(
    loss_op: Tensor | None = None,
    summary_op: Tensor | None = None,
    save_summary_steps: int = 100,
    output_dir: str | None = None,
    summary_writer: FileWriter | None = None,
) -> list[BaseMonitor]:
    """Returns monitors that log a loss and write summaries; see `PrintTensor` and `SummarySaver`."""
    found: list[BaseMonitor] = [] if loss_op is None else [PrintTensor({"loss": loss_op.name})]
    if summary_op is not None:
        found.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return found


class RunHookAdapterForMonitors(SessionRunHook):
    """Calls monitors from a session's hooks."""

    def __init__(self, monitors: Sequence[Structure]) -> None:
        self._monitors = monitors
        self._next_step: int | None = None

    def begin(self) -> None:
        self._next_step = None
        self._global_step = get_global_step()
        for monitor in self._monitors:
            monitor.begin(max_steps=None)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        if self._next_step is None:
            self._next_step = int(run_context.session.run(self._global_step)) + 1
        requests: list[Tensor | str] = []
        for monitor in self._monitors:
            found = monitor.step_begin(self._next_step)
            if found and not isinstance(found, list):
                raise ValueError("Monitor.step_begin should return a list.")
            requests.extend(cast("list[Tensor | str]", found or []))
        return SessionRunArgs((self._global_step, {request: _element(request) for request in requests}))

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step, found = run_values.results
        for monitor in self._monitors:
            if monitor.step_end(self._next_step, found):
                run_context.request_stop()
        for monitor in self._monitors:
            monitor.post_step(self._next_step, run_context.session)
        self._next_step = int(step) + 1

    def end(self, session: SessionLike) -> None:
        self._next_step = None
        for monitor in self._monitors:
            if "session" in inspect.signature(monitor.end).parameters:
                monitor.end(session=session)
            else:
                monitor.end()


def _element(request: Tensor | str) -> Tensor:
    """Returns a tensor of the default graph.

    Raises:
      ValueError: it belongs to another graph, or an operation with several outputs is named.
    """
    graph = get_default_graph()
    if not isinstance(request, str):
        if getattr(request, "graph", None) is not graph:
            raise ValueError(f"Passed {request} should have graph attribute that is equal to current graph {graph}.")
        return request
    if ":" in request:
        return graph.get_tensor_by_name(request)
    if len(graph.get_operation_by_name(request).outputs) > 1:
        raise ValueError(f"Name {request} is ambiguous, as this `Operation` has multiple outputs (at least 2).")
    return graph.get_tensor_by_name(f"{request}:0")


def replace_monitors_with_hooks(
    monitors_or_hooks: Sequence[Structure] | None, estimator: Structure
) -> list[SessionRunHook]:
    """Returns hooks, with one hook for all monitors; other tasks than the chief keep monitors of all workers only."""
    given = list(monitors_or_hooks or ())
    hooks = [each for each in given if isinstance(each, SessionRunHook)]
    monitors = [each for each in given if not isinstance(each, SessionRunHook)]
    if not estimator.config.is_chief:
        monitors = [each for each in monitors if each.run_on_all_workers]
    for monitor in monitors:
        monitor.set_estimator(estimator)
    return [*hooks, RunHookAdapterForMonitors(monitors)] if monitors else hooks
