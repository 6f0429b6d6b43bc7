"""`SyncReplicasOptimizer`: updates from the mean of several replicas' gradients.

Every replica adds its gradients to accumulators on the variables' tasks, and then waits at a barrier on the global
step's task. When ``replicas_to_aggregate`` gradients have arrived, the chief's queue runner takes their mean, updates
the variables with it, increments the global step, and opens the barrier for the next step. A gradient carries the step
at which its replica passed the barrier; a gradient of an earlier step than the accumulators' is stale: it is dropped
and counted. If fewer gradients are required than there are replicas, gradients that arrive before the mean is taken are
included, as in TensorFlow: ``replicas_to_aggregate`` is the least number.

With as many gradients as replicas, n replicas compute in k steps the same result as one process with n times the batch.

A chief with tokens (``num_tokens``) behaves as in TensorFlow: a replica waits for the first token in a queue, not for
the next step, and each step adds as many tokens as there are replicas. So a run may end before the update that uses its
gradient, and one replica may take another replica's token; the gradients of replicas that took the initial tokens are
stale once, and are dropped. Therefore tokens are used only if a program sets their number.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headwater.dtypes import int32
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional.accumulators import as_int64
from headwater.tf1.functional.arrays import stack
from headwater.tf1.functional.control_flow import group, no_op
from headwater.tf1.training.accounted import gathered_examples
from headwater.tf1.training.gathering import UpdateRunner, gather, local_step_variable
from headwater.tf1.training.optimizer import GradsAndVars, Optimizer
from headwater.tf1.training.queue_runner import QueueRunner
from headwater.tf1.training.session_run_hook import SessionRunHook
from headwater.tf1.variables.state import assign
from headwater.tf1.variables.variable_lists import global_variables, report_uninitialized_variables
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.types import Gradient, OpOrTensor, SessionLike
    from headwater.tf1.training.coordinator import Coordinator


_logger: Final = logging.getLogger(__name__)


class SyncReplicasOptimizer(Optimizer):
    """Wraps an optimizer to apply the mean gradient of several replicas.

    ::

        opt = tf.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=50, total_num_replicas=50)
        train_op = opt.minimize(loss, global_step=step)
        hook = opt.make_session_run_hook(is_chief)
        with tf.train.MonitoredTrainingSession(master, is_chief, hooks=[hook]) as sess: ...

    TensorFlow lets a replica run ahead with a token that another replica left. The same holds here if the chief is
    given an initial number of tokens (``num_tokens``); else each replica waits for the next step, so that with all
    replicas aggregated every gradient counts exactly once.

    Args:
      replicas_to_aggregate: number of gradients per update. If less than the number of replicas, updates do not wait
        for the slowest ones; if more, some replicas contribute several gradients.
      total_num_replicas: number of replicas; ``replicas_to_aggregate`` if None.
      variable_averages: an `ExponentialMovingAverage` to update after each step.
      variables_to_average: its variables.
      replica_id: accepted; of the constructor before TensorFlow 0.12.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Iterable[Variable] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
        replica_id: int | None = None,
    ) -> None:
        del replica_id
        super().__init__(use_locking, name)
        self._opt = opt
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total_num_replicas or replicas_to_aggregate
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._barrier = f"{name}/barrier"
        self._global_step: Any = None
        self._local_step: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self.local_step_init_op: Any = None
        self.chief_init_op: Any = None
        self.ready_for_local_init_op: OpOrTensor | None = None
        _logger.info(
            "SyncReplicas: replicas_to_aggregate=%s; total_num_replicas=%s",
            replicas_to_aggregate,
            self._total_num_replicas,
        )

    def compute_gradients(self, *args: Any, **kwargs: Any) -> GradsAndVars:
        """Computes gradients with the wrapped optimizer."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient | None, Variable]],
        global_step: Any = None,
        name: str | None = None,
    ) -> Operation:
        """Returns the operation that contributes this replica's gradients and waits for the next step.

        Args:
          grads_and_vars: pairs of gradient and variable.
          global_step: counts the updates; needed.

        Raises:
          ValueError: there are no variables, or ``global_step`` is None.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        graph = get_default_graph()
        self._local_step = local_step_variable("sync_rep_local_step")
        # With several tasks, a start of the training may have reached only some of them yet.
        examples = gathered_examples(grad for grad, _ in pairs)
        devices = {global_step.device, *(var.device for grad, var in pairs if grad is not None)}
        several = len(devices if examples is None else {*devices, examples.device}) > 1
        start = local_step_variable("sync_rep_start") if several else None
        with graph.colocate_with(self._local_step.op):
            of = self._local_step.value() if start is None else stack([self._local_step, start])
        self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
        with graph.name_scope(name or self._name):
            with graph.device(global_step.device):
                run_number = graph.create_op("StepBarrierLife", [], {"shared_name": self._barrier}).outputs[0]
            required: Any = self._replicas_to_aggregate
            if examples is not None:
                required = examples.round(convert_to_tensor(required, int32))
            gathering = gather(pairs, of, required, self._now, renews=True, runs=[run_number])
            given = gathering.given if examples is None else [examples.given(gathering.given)]
        with graph.device(global_step.device), graph.name_scope(None):
            with gathering.all_taken():
                update = self._opt.apply_gradients(gathering.means, global_step)
            with graph.control_dependencies([update]):
                tokens = max(self._total_num_replicas, self._replicas_to_aggregate)
                sync = self._barrier_op("StepBarrierSet", gathering.step, tokens=tokens)
            if self._variable_averages is not None:
                with graph.control_dependencies([sync]):
                    sync = self._variable_averages.apply(self._variables_to_average)
            self._chief_queue_runner = UpdateRunner(sync)
            with graph.control_dependencies(given):
                attrs = {"shared_name": self._barrier}
                step = graph.create_op("StepBarrierWait", [of], attrs).outputs[0]
            (joined,) = graph.create_op("StepBarrierJoin", [], {"shared_name": self._barrier}).outputs
            # Start the barrier last: a replica that sees this start at the barrier can rely on the accumulators having
            # started, too.
            with graph.control_dependencies(gathering.starts if several else []):
                barrier_start = self._barrier_op(
                    "StepBarrierStart", gathering.begins, gathering.elsewhere, gathering.name
                )
        train_op = assign(self._local_step, step).op
        # A replica joins before it reads the step: if the chief restarts the training in between, the replica's
        # membership is void, and it has to join again.
        with graph.control_dependencies([joined.op, *gathering.joins]):
            local_inits = [assign(self._local_step, self._now())]
        chief_inits = [assign(self._local_step, gathering.begins)]
        if start is not None:
            local_inits.append(assign(start, joined))
            chief_inits.append(assign(start, gathering.name))
        self.local_step_init_op = group(*local_inits)
        self.chief_init_op = group(*chief_inits, barrier_start, *gathering.starts)
        graph.add_to_collection(GraphKeys.TRAIN_OP, train_op)
        return train_op

    def _now(self) -> Tensor:
        """Returns a read of the global step, with the current control dependencies."""
        step = self._global_step
        return as_int64(step.read_value() if isinstance(step, Variable) else step)

    def _barrier_op(self, how: str, *inputs: Tensor, **more: int) -> Operation:
        extra = max(0, self._replicas_to_aggregate - self._total_num_replicas)
        attrs = {"shared_name": self._barrier, "extra": extra, **more}
        return get_default_graph().create_op(how, inputs, attrs)

    # Operations of the chief ------------------------------------------------------------------------------------

    def get_chief_queue_runner(self) -> QueueRunner:
        """Returns the queue runner with which the chief updates the variables.

        Raises:
          ValueError: `apply_gradients` was not called.
        """
        if self._chief_queue_runner is None:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """Returns an operation for the chief to run once, after `chief_init_op`.

        Args:
          num_tokens: number of initial tokens for replicas that end their first runs. -1, where TensorFlow uses
            ``replicas_to_aggregate``, and 0: none; the operation does nothing, and a run waits for the next step.

        Raises:
          ValueError: `apply_gradients` was not called, or there are too few tokens.
        """
        if self._chief_queue_runner is None:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if 0 <= num_tokens < needed:
            raise ValueError(f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)")
        if num_tokens <= 0:
            return no_op(name="no_init_tokens")
        with get_default_graph().device(self._global_step.device), get_default_graph().name_scope(None):
            attrs = {"shared_name": self._barrier, "tokens": num_tokens}
            return get_default_graph().create_op("StepBarrierGive", [self._now()], attrs)

    def get_clean_up_op(self) -> Operation:
        """Returns an operation without effect, which chiefs of programs before TensorFlow 0.12 run at the end."""
        return no_op(name="clean_up")

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """Returns a hook that runs these operations in a `MonitoredSession`; see `get_init_tokens_op`."""
        return _SyncReplicasHook(self, is_chief, num_tokens)

    # Slots ------------------------------------------------------------------------------------------------------

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a slot of the wrapped optimizer."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: object, **kwargs: object) -> list[str]:
        """Returns the slot names of the wrapped optimizer."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Any]:
        """Returns the variables of the wrapped optimizer."""
        return self._opt.variables()


class _SyncReplicasHook(SessionRunHook):
    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer = optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens
        self._init_tokens_op: Any = None

    def begin(self) -> None:
        if self._optimizer.local_step_init_op is None:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        if self._is_chief:
            self._init_tokens_op = self._optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        missing: Sequence[bytes] = session.run(self._optimizer.ready_for_local_init_op).tolist()
        if missing:
            names = ", ".join(name.decode() for name in missing)
            raise RuntimeError(f"Init operations did not make model ready for local_init: not initialized: {names}")
        if not self._is_chief:
            session.run(self._optimizer.local_step_init_op)
            return
        session.run(self._optimizer.chief_init_op)
        session.run(self._init_tokens_op)
        self._optimizer.get_chief_queue_runner().create_threads(session, coord=coord, daemon=True, start=True)
