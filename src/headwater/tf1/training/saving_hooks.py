"""Hooks that write: checkpoints, summaries, the speed, profiles."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.cluster.telemetry.timeline import Timeline
from headwater.cluster.telemetry.troubles import TROUBLES
from headwater.data.io import files
from headwater.errors import OpError
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tensorboard_protos import config_pb2, event_pb2, summary_pb2
from headwater.tf1.training.file_writer import FileWriterCache
from headwater.tf1.training.meta_graph import make_meta_graph
from headwater.tf1.training.preemption import SaveOnSigterm
from headwater.tf1.training.saving_attempts import SavingAttempts
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from headwater.tf1.training.step_timer import SecondOrStepTimer
from headwater.tf1.training.training_util import get_global_step, global_step_value, write_graph

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike, TensorLike
    from headwater.tf1.training.coordinator import Coordinator
    from headwater.tf1.training.saver import Saver
    from headwater.tf1.variables.variables import Variable


_logger: Final = logging.getLogger(__name__)


class CheckpointSaverListener:
    """Receives callbacks around every save of a `CheckpointSaverHook`; override the methods you need."""

    def begin(self) -> None:
        """Called once, before the session is made."""

    def before_save(self, session: SessionLike, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: SessionLike, global_step_value: int) -> bool | None:
        """Called after a checkpoint is written; True ends the loop."""

    def end(self, session: SessionLike, global_step_value: int) -> None:
        """Called once, at the end."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint at the beginning, at an interval of seconds or steps, at the end, and on SIGTERM.

    If the disk is full, training continues and the save is retried (`headwater.tf1.training.saving_attempts`). At the
    end of the session there is no training left to continue, so the error is raised.

    Args:
      checkpoint_dir: folder of the checkpoints.
      save_secs: seconds between checkpoints.
      save_steps: steps between checkpoints.
      saver: the saver; the scaffold's, else the graph's only one, if None.
      checkpoint_basename: file name of the checkpoints.
      scaffold: has the saver.
      listeners: called before and after every save.

    Raises:
      ValueError: both ``saver`` and ``scaffold`` are given, or not exactly one of the intervals.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Saver | None = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._scaffold = scaffold
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or ())
        self._global_step: Variable | None = None
        self._writer: Any = None
        self._saving = threading.Lock()
        self._attempts = SavingAttempts(f"checkpoints in {checkpoint_dir}")
        self._at_sigterm: SaveOnSigterm | None = None

    def add_listeners(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        """Adds listeners; must be called before the session begins."""
        self._listeners.extend(listeners)

    def begin(self) -> None:
        self._writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step = global_step_value(type(self).__name__)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        graph = get_default_graph()
        step = int(session.run(self._global_step))
        with TROUBLES.record_full_disk(f"graph.pbtxt in {self._checkpoint_dir}", "Training continues without it"):
            write_graph(graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt")
        self._writer.add_graph(graph)
        self._writer.add_meta_graph(make_meta_graph(graph, saver=self._get_saver()))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)
        self._save_at_sigterm(session, coord)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        again = self._attempts.due
        if not again and not self._timer.should_trigger_for_step(run_values.results + 1):
            return
        step = int(run_context.session.run(self._global_step))
        if again or self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: SessionLike) -> None:
        step = int(session.run(self._global_step))
        if step != self._timer.last_triggered_step() or self._attempts.failing:
            self._save(session, step, last=True)
        if self._at_sigterm is not None:
            self._at_sigterm.remove()
        for listener in self._listeners:
            listener.end(session, step)

    def _save_at_sigterm(self, session: SessionLike, coord: Any) -> None:
        """Installs a SIGTERM handler that saves ``session``'s variables until ``coord`` requests a stop."""

        def over() -> bool:
            return coord is not None and coord.should_stop()

        def save() -> None:
            if over():
                return
            try:
                # Listeners are not called: their work, such as an evaluation, may outlast the time left after SIGTERM.
                self._write(session, int(session.run(self._global_step)))
            except (OpError, RuntimeError):
                if not over():  # otherwise the session is ending, which saves, too
                    raise

        if self._at_sigterm is not None:
            self._at_sigterm.remove()  # of the previous, lost session
        self._at_sigterm = SaveOnSigterm(save, session)
        self._at_sigterm.install()

    def _write(self, session: SessionLike, step: int) -> None:
        """Writes a checkpoint. Thread-safe: the hook and the SIGTERM handler save one after the other."""
        with self._saving:
            self._get_saver().save(session, self._save_path, global_step=step)

    def _save(self, session: SessionLike, step: int, *, last: bool = False) -> bool:
        """Saves; returns whether a listener requests a stop. A full disk is an error for the last checkpoint only."""
        _logger.info("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        if last:
            self._write(session, step)
        elif not self._attempts.attempt(lambda: self._write(session, step)):
            return False
        log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._writer.add_session_log(log, step)
        wishes = [listener.after_save(session, step) for listener in self._listeners]
        return any(wishes)

    def _get_saver(self) -> Any:
        if self._saver is None and self._scaffold is not None:
            return self._scaffold.saver
        if self._saver is None:
            found = get_default_graph().get_collection(GraphKeys.SAVERS)
            if len(found) != 1:
                what = "More than one item" if found else "No items"
                raise RuntimeError(
                    f"{what} in collection {GraphKeys.SAVERS}. Please add a saver to the collection or provide a saver "
                    "or scaffold."
                )
            self._saver = found[0]
        return self._saver


class StepCounterHook(SessionRunHook):
    """Records the steps per second of all workers together.

    Args:
      every_n_steps: steps between two measurements.
      every_n_secs: seconds between two measurements.
      output_dir: folder of the summaries.
      summary_writer: writes them, in place of ``output_dir``.

    Raises:
      ValueError: not exactly one of the intervals is given.
    """

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_steps=every_n_steps, every_secs=every_n_secs)
        self._output_dir = output_dir
        self._writer = summary_writer
        self._global_step: Variable | None = None
        self._tag = ""

    def begin(self) -> None:
        if self._writer is None and self._output_dir:
            self._writer = FileWriterCache.get(self._output_dir)
        self._global_step = global_step_value(type(self).__name__)
        self._tag = f"{get_global_step().op.name}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._timer.should_trigger_for_step(run_values.results + 1):
            return
        step = int(run_context.session.run(self._global_step))
        if self._timer.should_trigger_for_step(step):
            seconds, steps = self._timer.update_last_triggered_step(step)
            if seconds and steps is not None:
                self._log_and_record(steps, seconds, step)

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        speed = elapsed_steps / elapsed_time
        if self._writer is not None:
            value = summary_pb2.Summary.Value(tag=self._tag, simple_value=speed)
            self._writer.add_summary(summary_pb2.Summary(value=[value]), global_step)
        _logger.info("%s: %g", self._tag, speed)


class SummarySaverHook(SessionRunHook):
    """Records summaries at an interval of steps or seconds.

    Args:
      save_steps: steps between summaries.
      save_secs: seconds between summaries.
      output_dir: folder of the summaries.
      summary_writer: writes them, in place of ``output_dir``.
      scaffold: has the summary operation.
      summary_op: the summary operation, or several, in place of ``scaffold``.

    Raises:
      ValueError: not exactly one of ``scaffold`` and ``summary_op``, or of the intervals, is given.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._scaffold = scaffold
        self._writer = summary_writer
        self._output_dir = output_dir
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._global_step: TensorLike | None = None
        self._next_step: int | None = None
        self._due = False

    def begin(self) -> None:
        if self._writer is None and self._output_dir:
            self._writer = FileWriterCache.get(self._output_dir)
        self._next_step = None
        self._global_step = global_step_value(type(self).__name__)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._due = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        wanted = {"global_step": self._global_step}
        if self._due:
            summaries = self._summaries()
            if summaries:
                wanted["summary"] = summaries
        return SessionRunArgs(wanted)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._writer is None:
            return
        results = run_values.results
        step = int(results["global_step"]) + 1
        if self._due:
            step = int(run_context.session.run(self._global_step))
        if self._next_step is None:
            self._writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.START), step)
        if self._due:
            self._timer.update_last_triggered_step(step)
            for summary in results.get("summary", ()):
                self._writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: object = None) -> None:
        if self._writer is not None:
            self._writer.flush()

    def _summaries(self) -> list[Any]:
        found = self._scaffold.summary_op if self._summary_op is None else self._summary_op
        if found is None:
            return []
        return list(found) if isinstance(found, list | tuple) else [found]  # pyright: ignore[reportUnknownArgumentType]


class ProfilerHook(SessionRunHook):
    """Traces a step at an interval of steps or seconds.

    The files ``timeline-<step>.json`` show the work of every task in the step, in the format of Chrome's trace viewer;
    the ``RunMetadata`` is written to the event file of the folder, where TensorBoard's graph shows its times.

    Args:
      save_steps: steps between traces.
      save_secs: seconds between traces.
      output_dir: folder of the traces and events.
      show_dataflow, show_memory: as for `headwater.cluster.telemetry.timeline.Timeline`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._output_dir = output_dir
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory
        self._writer: Any = None
        self._global_step: Variable | None = None
        self._next_step: int | None = None
        self._due = False

    def begin(self) -> None:
        self._next_step = None
        self._global_step = global_step_value(type(self).__name__)
        self._writer = FileWriterCache.get(self._output_dir) if self._output_dir else None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._due = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE) if self._due else None
        return SessionRunArgs(self._global_step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results) + 1
        if self._next_step is None:
            # Skip the first step: it compiles, so its times are not representative.
            self._timer.update_last_triggered_step(step)
        elif self._due:
            self._timer.update_last_triggered_step(step)
            self._write(step, run_values.run_metadata)
        self._next_step = step + 1

    def _write(self, step: int, metadata: Any) -> None:
        path = os.path.join(self._output_dir, f"timeline-{step}.json")
        _logger.info("Saving timeline for %d into '%s'.", step, path)
        timeline = Timeline(metadata.step_stats)
        with TROUBLES.record_full_disk(path, "Training continues without it"), files.atomic_write(path) as file:
            file.write(timeline.generate_chrome_trace_format(self._show_dataflow, self._show_memory).encode())
        if self._writer is not None:
            self._writer.add_run_metadata(metadata, f"step_{step}", step)
