"""One evaluation of a checkpoint: metrics over a number of batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater import dtypes
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tf1.functional.control_flow import group
from headwater.tf1.training.basic_session_run_hooks import FinalOpsHook
from headwater.tf1.training.monitored_session import ChiefSessionCreator, MonitoredSession
from headwater.tf1.training.scaffold import Scaffold
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import get_local_variable

if TYPE_CHECKING:
    from headwater.graph.operation import Tensor
    from headwater.graph.types import SessionLike, Structure, TensorLike
    from headwater.shapes import ShapeLike
    from headwater.tf1.training.estimator.run_config import RunConfig
    from headwater.tf1.variables.partitioned import PartitionInfo
    from headwater.tf1.variables.types import AnyVariable


def get_or_create_eval_step() -> AnyVariable:
    """The local variable that counts the batches of an evaluation.

    Raises:
      ValueError: there are several.
    """
    graph = get_default_graph()
    found = graph.get_collection(GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return get_local_variable(
        "eval_step", shape=[], dtype=dtypes.int64, initializer=_zero, collections=[GraphKeys.EVAL_STEP]
    )


def _zero(shape: TensorLike | ShapeLike, dtype: Any = None, partition_info: PartitionInfo | None = None) -> Any:
    del partition_info
    graph = get_default_graph()
    value = graph.create_op("Const", [], {"value": dtype.numpy_dtype.type(0).reshape(shape), "dtype": dtype})
    return value.outputs[0]


class StopAfterNEvalsHook(SessionRunHook):
    """Ends an evaluation after ``num_evals`` batches; None: when the input ends."""

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        del log_progress
        self._count = num_evals
        self._step: TensorLike | None = None

    def begin(self) -> None:
        self._step = get_or_create_eval_step()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        del run_context
        return SessionRunArgs({"evals_completed": self._step})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._count is not None and run_values.results["evals_completed"] >= self._count:
            run_context.request_stop()

    def after_update(self, counted: TensorLike) -> StopAfterNEvalsHook:
        """Returns a hook that reads ``counted``, the count after a batch, instead of the variable."""
        return _Stop(self._count, counted)


def evaluate_once(
    checkpoint_path: str | None,
    eval_ops: Structure,
    final_ops: Mapping[str, Tensor],
    steps: int | None,
    hooks: Sequence[SessionRunHook] = (),
    scaffold: Scaffold | None = None,
    master: str = "",
    config: RunConfig | None = None,
    fill: Callable[[SessionLike], object] | None = None,
) -> tuple[dict[str, Any], float]:
    """Runs ``eval_ops`` for ``steps`` batches and then ``final_ops`` once.

    Args:
      checkpoint_path: the checkpoint to restore; None: initialise instead.
      steps: number of batches; None: until the input ends.
      fill: called with the new session to assign other values, such as another session's.

    Returns:
      The values of ``final_ops``, and the duration in seconds.
    """
    step = get_or_create_eval_step()
    counted = assign_add(step, 1)
    update = group(eval_ops, counted)
    final = FinalOpsHook(dict(final_ops))
    begin_s = time.monotonic()
    creator = ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master, config=config
    )
    filling = [] if fill is None else [_Fill(fill)]
    with MonitoredSession(creator, [*filling, _Stop(steps, counted), *hooks, final]) as session:
        while not session.should_stop():
            session.run(update)
    return final.final_ops_values or {}, time.monotonic() - begin_s


class _Fill(SessionRunHook):
    """Assigns values to variables in each new session."""

    def __init__(self, fill: Callable[[SessionLike], object]) -> None:
        self._fill = fill

    def after_create_session(self, session: SessionLike, coord: object) -> None:
        del coord
        self._fill(session)


class _Stop(StopAfterNEvalsHook):
    """Reads the count after the batch."""

    def __init__(self, num_evals: int | None, counted: Any) -> None:
        super().__init__(num_evals)
        self._counted = counted

    def begin(self) -> None:
        self._step = self._counted
