"""`InMemoryEvaluatorHook`: evaluates a model during its training, with the current values of its variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tf1.training.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from headwater.tf1.training.step_timer import SecondOrStepTimer
from headwater.tf1.training.training_util import get_global_step

if TYPE_CHECKING:
    from headwater.graph.types import SessionLike
    from headwater.tf1.training.estimator.estimator import Estimator


class InMemoryEvaluatorHook(SessionRunHook):
    """Evaluates an estimator while it trains in this process: at the beginning, every few steps, and at the end.

    Variables are copied from the training session to the evaluation's; no checkpoint is written or read.

    Args:
      estimator: the estimator that is trained.
      input_fn: as for `tf.estimator.Estimator.evaluate`.
      steps: number of batches of an evaluation; None: until the input ends.
      hooks: the hooks of the evaluation's session.
      name: the name of the evaluation; its summaries are written to ``eval_NAME`` in the estimator's folder.
      every_n_iter: steps between two evaluations.

    Raises:
      ValueError: ``every_n_iter`` or ``steps`` is not positive, or the estimator trains on several tasks.
      TypeError: ``hooks`` contains an object that is not a hook.
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[SessionRunHook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ) -> None:
        if every_n_iter is None or every_n_iter <= 0:  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        if steps is not None and steps <= 0:
            raise ValueError(f"Must specify steps > 0, given: {steps}")
        config = estimator.config
        if config.num_ps_replicas > 0 or config.num_worker_replicas > 1:
            raise ValueError("InMemoryEvaluator supports only single machine (aka Local) setting.")
        for hook in hooks or ():
            if not isinstance(hook, SessionRunHook):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"All hooks must be `SessionRunHook` instances, given: {hook}")
        self._estimator = estimator
        self._input_fn = input_fn
        self._steps = steps
        self._hooks = list(hooks or ())
        self._name = name
        self._timer = SecondOrStepTimer(every_steps=every_n_iter)
        self._count = 0
        self._variables: dict[str, Any] = {}

    def begin(self) -> None:
        self._timer.reset()
        self._count = 0
        get_global_step()
        self._variables = {
            variable.op.name: variable for variable in get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES)
        }

    def after_create_session(self, session: SessionLike, coord: object) -> None:
        del coord
        self._evaluate(session)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        del run_context
        return None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        del run_values
        self._count += 1
        if self._timer.should_trigger_for_step(self._count):
            self._evaluate(run_context.session)

    def end(self, session: SessionLike) -> None:
        self._evaluate(session)

    def _evaluate(self, session: SessionLike) -> None:
        values = session.run(self._variables)
        self._timer.update_last_triggered_step(self._count)
        self._estimator.evaluate_with(self._input_fn, self._steps, self._hooks, self._name, values)
