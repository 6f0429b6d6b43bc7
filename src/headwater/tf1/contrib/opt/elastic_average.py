"""Elastic averaging: workers train copies that an elastic force ties to the parameter servers' variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.dtypes import bool_
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor
from headwater.tf1.contrib.opt.worker_copies import CopyGetter, CopyOptimizer, InitialCopiesHook
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.functional.nn import l2_loss
from headwater.tf1.input.queues import FIFOQueue
from headwater.tf1.training.optimizer import Optimizer
from headwater.tf1.training.saveable import by_name
from headwater.tf1.training.saver import Saver
from headwater.tf1.variables.state import assign, assign_add, assign_sub
from headwater.tf1.variables.variable_lists import global_variables, trainable_variables
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.tf1.training.session_run_hook import SessionRunHook


class ElasticAverageCustomGetter(CopyGetter):
    """Creates the variables of `ElasticAverageOptimizer`: a worker's copy, its center, and the value of the center at
    the last read.

    ::

        getter = tf.contrib.opt.ElasticAverageCustomGetter(worker_device="/job:worker/task:0")
        with tf.device(tf.train.replica_device_setter(1)), tf.variable_scope("", custom_getter=getter):
            loss = model()

    Args:
      worker_device: the worker's device.
    """

    SECOND_NAME: ClassVar[str] = "local_center_variable"


class ElasticAverageOptimizer(CopyOptimizer):
    """Elastic averaging SGD (Zhang, Choromanska and LeCun, 2015).

    Each worker minimises its loss + ρ·Σ‖x − x̃‖²/2, where x is its copy of a variable and x̃ the value of the center at
    its last read. In every nth of its steps it reads the center, and with d = x − x̃: x ← x − α·d, center ← center +
    α·d.

    Args:
      opt: the optimizer of the copies.
      num_worker: number of workers.
      ea_custom_getter: the `ElasticAverageCustomGetter` that created the variables.
      communication_period: n.
      moving_rate: α; 0.9 / n / ``num_worker`` if None.
      rho: ρ; α divided by the learning rate of ``opt`` if None.
      synchronous: workers start together, after all have read the initial values.
    """

    BETA: ClassVar[float] = 0.9

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._centers = ea_custom_getter.centers
        self._read_centers = ea_custom_getter.seconds
        self._synchronous = synchronous
        rate = self.BETA / communication_period / num_worker if moving_rate is None else moving_rate
        self._moving_rate = rate
        self._rho = rate / opt._learning_rate if rho is None else rho

    def compute_gradients(
        self,
        loss: Any,
        var_list: Sequence[Variable] | None = None,
        gate_gradients: int = Optimizer.GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> Any:
        """Computes gradients of the loss and of the elastic term; see `Optimizer.compute_gradients`."""
        variables = list(var_list or trainable_variables())
        distances = [l2_loss(ops.subtract(var, self._read_centers[var])) for var in variables]
        total = loss + self._rho * ops.add_n(distances)
        return self._opt.compute_gradients(
            total, variables, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Updates the copies, and exchanges with the centers in every nth step; then increments ``global_step``."""
        pairs = list(grads_and_vars)
        before = set(global_variables())
        update = self._opt.apply_gradients(pairs, name=name)
        self._keep_on_worker([var for var in global_variables() if var not in before])
        copies = [var for grad, var in pairs if grad is not None]
        return self._in_turn([update], lambda: self._exchange(copies, global_step))

    def _keep_on_worker(self, variables: Sequence[Variable]) -> None:
        """Makes the optimizer's new variables local, since each worker has its own."""
        graph = get_default_graph()
        listed = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
        for var in variables:
            listed.remove(var)
            graph.add_to_collection(GraphKeys.LOCAL_VARIABLES, var)

    def _exchange(self, copies: Sequence[Variable], global_step: Variable | None) -> Operation:
        graph = get_default_graph()
        reads = [self._read_centers[var].assign(self._centers[var].read_value()) for var in copies]
        with control_dependencies(reads):
            differences: list[Any] = []
            for var in copies:
                with graph.device(var.device):
                    apart = var.read_value() - self._read_centers[var].read_value()
                    differences.append(self._moving_rate * apart)
        updates: list[Any] = []
        for var, difference in zip(copies, differences, strict=True):
            updates.append(assign_sub(var, difference))
            updates.append(assign_add(self._centers[var], difference))
        if global_step is not None:
            updates.append(assign_add(global_step, 1))
        return group(*updates)

    def get_init_op(self, task_index: int) -> Operation:
        """Returns the operation that copies the centers to a worker's variables.

        Args:
          task_index: the worker's; a synchronous start waits for all others.

        Raises:
          ValueError: there are no trainable variables.
        """
        copies = trainable_variables()
        if not copies:
            raise ValueError(
                "The lists of local_variables, global_center_variables, local_center_variables should not be empty  "
            )
        init = group(
            *(assign(var, self._centers[var]) for var in copies),
            *(assign(self._read_centers[var], self._centers[var]) for var in copies),
        )
        return self._start_together(init, task_index) if self._synchronous else init

    def _start_together(self, init: Operation, task_index: int) -> Operation:
        queues = [
            FIFOQueue(self._num_worker, [bool_], shapes=[[]], shared_name=f"variable_init_sync_queue{i}")
            for i in range(self._num_worker)
        ]
        token = convert_to_tensor(False)
        with control_dependencies([init]):
            tokens = [queue.enqueue(token) for i, queue in enumerate(queues) if i != task_index]
        return group(*tokens, queues[task_index].dequeue_many(self._num_worker - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """Returns the hook that initialises a worker's variables in a `MonitoredSession`; see `get_init_op`."""
        del is_chief
        return InitialCopiesHook(lambda: self.get_init_op(task_index))

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """Returns a saver that saves the centers under the names of the variables.

        Args:
          var_list: variables as for `Saver`; all trainable ones if None.
          name, kwargs: further arguments of `Saver`.

        Raises:
          RuntimeError: no variables have centers.
        """
        if not self._centers:
            raise RuntimeError(
                "global_center_variable is empty, please make sure this is called after model created and "
                "ElasticAverageCustomGetter is used when declaring you model"
            )
        swapped: dict[str, Any] = {}
        for key, saved in by_name(trainable_variables() if var_list is None else var_list).items():
            if isinstance(saved, Variable):
                swapped[key] = self._centers.get(saved, saved)
            else:
                swapped[key] = [self._centers.get(part, part) for part in saved]
        return Saver(swapped, name=name, **kwargs)
