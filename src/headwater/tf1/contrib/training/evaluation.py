"""Evaluation of checkpoints, once or whenever a new one appears, and hooks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.tf1.functional import summary
from headwater.tf1.functional.control_flow import group
from headwater.tf1.training.basic_session_run_hooks import FinalOpsHook
from headwater.tf1.training.estimator.evaluation import StopAfterNEvalsHook, get_or_create_eval_step
from headwater.tf1.training.file_writer import FileWriter, FileWriterCache
from headwater.tf1.training.loops import checkpoints_iterator
from headwater.tf1.training.monitored_session import ChiefSessionCreator, MonitoredSession
from headwater.tf1.training.session_run_hook import SessionRunHook
from headwater.tf1.training.training_util import get_or_create_global_step
from headwater.tf1.variables.state import assign_add

if TYPE_CHECKING:
    from headwater.graph.types import FeedDict, SessionLike, Structure
    from headwater.tensorboard_protos import ConfigProto
    from headwater.tf1.training.scaffold import Scaffold


class SummaryAtEndHook(SessionRunHook):
    """Writes a summary, with the number of the global step, when a session ends.

    Args:
      log_dir: folder of the events, unless ``summary_writer`` is given.
      summary_op: the summary; all summaries of the graph by default.
      feed_dict: fed to the summary.

    Raises:
      ValueError: not exactly one of ``log_dir`` and ``summary_writer`` is given.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        summary_writer: FileWriter | None = None,
        summary_op: Any = None,
        feed_dict: FeedDict | None = None,
    ) -> None:
        if (log_dir is None) == (summary_writer is None):
            raise ValueError("exactly one of log_dir and summary_writer must be given")
        self._log_dir = log_dir
        self._writer = summary_writer
        self._summary = summary_op
        self._feed_dict = feed_dict
        self._step: Any = None

    def begin(self) -> None:
        if self._summary is None:
            self._summary = summary.merge_all()
        self._step = get_or_create_global_step()

    def after_create_session(self, session: SessionLike, coord: object) -> None:
        del session, coord
        if self._writer is None and self._log_dir is not None:
            self._writer = FileWriterCache.get(self._log_dir)

    def end(self, session: SessionLike) -> None:
        step = session.run(self._step)
        assert self._writer is not None
        self._writer.add_summary(session.run(self._summary, self._feed_dict), step)
        self._writer.flush()


class _Evaluation:
    """Operations and hooks of an evaluation, for any number of checkpoints."""

    def __init__(
        self,
        eval_ops: Structure,
        feed_dict: FeedDict | None,
        final_ops: Structure,
        final_ops_feed_dict: FeedDict | None,
        hooks: Sequence[SessionRunHook],
    ) -> None:
        counted = assign_add(get_or_create_eval_step(), 1)
        self._update = None if eval_ops is None else group(eval_ops, counted)
        self._feed_dict = feed_dict
        self._final = FinalOpsHook(final_ops, final_ops_feed_dict)
        self._hooks = [
            *(hook.after_update(counted) if isinstance(hook, StopAfterNEvalsHook) else hook for hook in hooks),
            self._final,
        ]

    def run(self, creator: ChiefSessionCreator) -> Any:
        """Returns the values of the final operations in a new session."""
        with MonitoredSession(creator, self._hooks) as session:
            while self._update is not None and not session.should_stop():
                session.run(self._update, self._feed_dict)
        return self._final.final_ops_values


def evaluate_once(
    checkpoint_path: str,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Structure = None,
    feed_dict: FeedDict | None = None,
    final_ops: Structure = None,
    final_ops_feed_dict: FeedDict | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
) -> Any:
    """Restores a checkpoint and runs ``eval_ops`` until a hook stops or the input ends, and then ``final_ops``.

    Args:
      checkpoint_path: the checkpoint.
      master, config: of the session.
      eval_ops: operations or tensors of one batch; None: only ``final_ops`` are run.
      feed_dict, final_ops_feed_dict: fed to ``eval_ops`` and ``final_ops``.
      final_ops: a structure of tensors.
      hooks: usually with a `StopAfterNEvalsHook`.

    Returns:
      The values of ``final_ops``.
    """
    evaluation = _Evaluation(eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks or ())
    creator = ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master, config=config
    )
    return evaluation.run(creator)


def evaluate_repeatedly(
    checkpoint_dir: str,
    master: str = "",
    scaffold: Scaffold | None = None,
    eval_ops: Structure = None,
    feed_dict: FeedDict | None = None,
    final_ops: Structure = None,
    final_ops_feed_dict: FeedDict | None = None,
    eval_interval_secs: float = 60,
    hooks: Sequence[SessionRunHook] | None = None,
    config: ConfigProto | None = None,
    max_number_of_evaluations: int | None = None,
    timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Mapping[str, Any] | Any:
    """Evaluates each new checkpoint of a folder like `evaluate_once`; see `checkpoints_iterator` for the intervals.

    Args:
      max_number_of_evaluations: stop after this many; None for no limit.

    Returns:
      The values of ``final_ops`` for the last checkpoint; None if there was none.
    """
    evaluation = _Evaluation(eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks or ())
    found = None
    paths = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for count, path in enumerate(paths, 1):
        found = evaluation.run(
            ChiefSessionCreator(scaffold=scaffold, checkpoint_filename_with_path=path, master=master, config=config)
        )
        if count == max_number_of_evaluations:
            break
    return found
