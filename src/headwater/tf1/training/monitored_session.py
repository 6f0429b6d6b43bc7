"""Monitored sessions: initialised, restored and recovered automatically, with hooks around every step."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from headwater.errors import OutOfRangeError
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.graph import Graph
from headwater.tf1.training.basic_session_run_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from headwater.tf1.training.coordinator import Coordinator
from headwater.tf1.training.monitored_wrappers import CoordinatedSession, HookedSession, RecoverableSession, StepContext
from headwater.tf1.training.preemption import forget_session
from headwater.tf1.training.progress import GlobalStepThread, progress_reporter, report_end
from headwater.tf1.training.queue_runner import start_queue_runners
from headwater.tf1.training.scaffold import Scaffold
from headwater.tf1.training.session_manager import SessionManager
from headwater.tf1.training.session_run_hook import SessionRunHook
from headwater.tf1.training.training_util import get_global_step

if TYPE_CHECKING:
    from headwater.graph.types import Structure
    from headwater.tensorboard_protos import ConfigProto, RunMetadata, RunOptions
    from headwater.tf1.training.supervised_session import SupervisedSession


_logger: Final = logging.getLogger(__name__)

USE_DEFAULT: Final = object()


class SessionCreator:
    """Creates sessions; a monitored session requests one at the beginning and after each loss."""

    def create_session(self) -> Any:
        """Returns a new session whose model is ready."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class ChiefSessionCreator(SessionCreator):
    """Creates sessions of the chief: restores the newest checkpoint, or initialises the model.

    Args:
      scaffold: has the operations that initialise, and the saver.
      master: the target of the master.
      config: a ``ConfigProto``.
      checkpoint_dir: folder whose newest checkpoint to restore.
      checkpoint_filename_with_path: a checkpoint to restore, in place of ``checkpoint_dir``.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._manager: SessionManager | None = None

    def create_session(self) -> SupervisedSession:
        scaffold = self._scaffold
        scaffold.finalize()
        self._manager = self._manager or _manager(scaffold)
        return self._manager.prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Creates sessions of the other workers: waits until the model is ready.

    Args:
      scaffold: has the operations that report whether the model is ready.
      master: the target of the master.
      config: a ``ConfigProto``.
      max_wait_secs: longest time to wait, in seconds.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs
        self._manager: SessionManager | None = None

    def create_session(self) -> SupervisedSession:
        self._scaffold.finalize()
        self._manager = self._manager or _manager(self._scaffold)
        return self._manager.wait_for_session(self._master, config=self._config, max_wait_secs=self._max_wait_secs)


def _manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
        global_step=get_global_step(),
    )


class _Monitored:
    """Base of `MonitoredSession` and `SingularMonitoredSession`."""

    def __init__(
        self,
        session_creator: SessionCreator,
        hooks: Sequence[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float,
    ) -> None:
        self._graph = get_default_graph()
        self._graph_was_finalized = self._graph.finalized
        self._hooks = list(hooks or ())
        self._session_creator = session_creator
        self._grace_s = stop_grace_period_secs
        self._raw: Any = None
        for hook in self._hooks:
            hook.begin()
        self._sess: Any = RecoverableSession(self._create) if should_recover else self._create()

    def _create(self) -> CoordinatedSession:
        self._raw = self._session_creator.create_session()
        # Report every error of a thread, also OutOfRangeError: hooks decide whether it is a regular end.
        coord = Coordinator(clean_stop_exception_types=[])
        if self._graph.get_collection(GraphKeys.QUEUE_RUNNERS):
            start_queue_runners(sess=self._raw, coord=coord)
        step = get_global_step(self._graph) if progress_reporter().listening else None
        if step is not None:
            GlobalStepThread(coord, self._raw, step).start()
        for hook in self._hooks:
            hook.after_create_session(self._raw, coord)
        return CoordinatedSession(HookedSession(self._raw, self._hooks), coord, self._grace_s)

    @property
    def graph(self) -> Graph | None:
        """The graph; None once the session is closed."""
        return None if self._sess is None else self._sess.graph

    def run(
        self,
        fetches: Structure,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Runs like `Session.run`, with the hooks before and after."""
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[[StepContext], Any]) -> Any:
        """Runs one step that a function describes.

        Args:
          step_fn: ``f(step_context)``; its result is returned.

        Raises:
          ValueError: ``step_fn`` takes other arguments.
        """
        names = list(inspect.signature(step_fn).parameters)
        if names != ["step_context"]:
            raise ValueError(
                f"`step_fn` may either have one `step_context` argument, or `self` and `step_context` "
                f"arguments if it's an instance method. Got {names} instead."
            )

        def step(context: StepContext) -> Any:
            return step_fn(StepContext(self._raw, context.run_with_hooks))  # recovery may have replaced it

        return self._sess.run_step_fn(step, self._raw, None)

    def should_stop(self) -> bool:
        """Returns whether the loop should end."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Ends the hooks and the session."""
        self._close(None)

    def _is_closed(self) -> bool:
        return self._sess is None

    @property
    def _coordinated_creator(self) -> SimpleNamespace:
        """Object with the plain session in the attribute that programs of TensorFlow 1 use: ``tf_sess``."""
        return SimpleNamespace(tf_sess=self._raw)

    def _tf_sess(self) -> Any:
        return self._raw

    def _close(self, error: type[BaseException] | None) -> None:
        try:
            if error is None:
                for hook in self._hooks:
                    hook.end(self._raw)
                report_end(self._raw, get_global_step(self._graph))
        finally:
            try:
                if self._sess is None:
                    raise RuntimeError("Session is already closed.")
                self._sess.close()
            finally:
                forget_session(self._raw)
                self._sess = None
                self._raw = None
                if not self._graph_was_finalized:
                    self._graph._unsafe_unfinalize()  # pyright: ignore[reportPrivateUsage]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if kind is not None and issubclass(kind, OutOfRangeError | StopIteration):
            kind = None
        self._close(kind)
        return kind is None


class MonitoredSession(_Monitored):
    """A session that initialises, recovers from lost tasks, and calls hooks.

    At the start, every hook's ``begin`` is called, the graph is finalized, a session is created, and queue runners are
    started. When a task is lost, another session is created and the step is retried. As a context manager, it treats
    `OutOfRangeError` as the end of the input.

    Args:
      session_creator: makes the sessions; a `ChiefSessionCreator` if None.
      stop_grace_period_secs: seconds that threads may take to end.
    """

    StepContext = StepContext

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator or ChiefSessionCreator(), hooks, True, stop_grace_period_secs)


class SingularMonitoredSession(_Monitored):
    """A session that initialises and calls hooks, but does not recover.

    Args:
      scaffold: has the operations that initialise, and the saver.
      master: the target of the master.
      config: a ``ConfigProto``.
      checkpoint_dir: folder whose newest checkpoint to restore.
      stop_grace_period_secs: seconds that threads may take to end.
      checkpoint_filename_with_path: a checkpoint to restore.
    """

    def __init__(
        self,
        hooks: Sequence[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The session without hooks."""
        return self._raw


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | None = None,
) -> MonitoredSession:
    """Returns a `MonitoredSession` for training: the chief initialises, saves and summarises; other workers wait for
    it.

    Args:
      master: the target of the master.
      is_chief: whether this task is the chief.
      checkpoint_dir: folder of the checkpoints; without it, no checkpoint is written.
      scaffold: has the operations that initialise, and the saver.
      hooks: hooks of all tasks.
      chief_only_hooks: hooks of the chief.
      save_checkpoint_secs: seconds between two checkpoints; 600 unless ``save_checkpoint_steps`` is given.
      save_summaries_steps: steps between two summaries; 100 unless ``save_summaries_secs`` is given.
      save_summaries_secs: seconds between two summaries.
      config: a ``ConfigProto``.
      stop_grace_period_secs: seconds that threads may take to end.
      log_step_count_steps: steps between two measurements of the speed; without it, the speed is not measured.
      max_wait_secs: longest time to wait for the chief, in seconds.
      save_checkpoint_steps: steps between two checkpoints.
      summary_dir: folder of the summaries; ``checkpoint_dir`` if None.
    """
    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks, stop_grace_period_secs)
    all_hooks = list(chief_only_hooks or ())
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps))
        secs, steps = _interval(save_summaries_secs, save_summaries_steps, None, 100)
        if (steps and steps > 0) or (secs and secs > 0):
            all_hooks.append(
                SummarySaverHook(scaffold=scaffold, save_steps=steps, save_secs=secs, output_dir=summary_dir)
            )
    if checkpoint_dir:
        secs, steps = _interval(save_checkpoint_secs, save_checkpoint_steps, 600, None)
        if (secs and secs > 0) or (steps and steps > 0):
            all_hooks.append(CheckpointSaverHook(checkpoint_dir, save_steps=steps, save_secs=secs, scaffold=scaffold))
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(chief, [*all_hooks, *(hooks or ())], stop_grace_period_secs)


def _interval(secs: float, steps: int, default_secs: object, default_steps: object) -> tuple[Any, Any]:
    """Returns seconds and steps, with the defaults if neither is given."""
    if secs is USE_DEFAULT and steps is USE_DEFAULT:
        return default_secs, default_steps
    return (None if secs is USE_DEFAULT else secs), (None if steps is USE_DEFAULT else steps)
