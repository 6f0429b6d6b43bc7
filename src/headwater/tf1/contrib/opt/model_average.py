"""Model averaging: workers train copies, and replace them by their mean periodically."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headwater.dtypes import bool_
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.tf1.contrib.opt.worker_copies import GLOBAL_VARIABLE_NAME, CopyOptimizer, InitialCopiesHook
from headwater.tf1.functional.accumulators import ConditionalAccumulator
from headwater.tf1.functional.arrays import fill
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.input.queues import FIFOQueue
from headwater.tf1.variables.state import assign, assign_add
from headwater.tf1.variables.variable_lists import trainable_variables
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.tf1.training.session_run_hook import SessionRunHook


class ModelAverageCustomGetter:
    """Creates the variables of `ModelAverageOptimizer`: a worker's copy and the variable with the mean.

    Args:
      worker_device: the worker's device.
    """

    def __init__(self, worker_device: str) -> None:
        self._worker_device = worker_device
        self.centers: dict[Variable, Variable] = {}

    def __call__(self, getter: Callable[..., Any], name: str, trainable: bool, collections: Any, **kwargs: Any) -> Any:
        """Returns the variable ``name``, the worker's copy if it is trainable."""
        graph = get_default_graph()
        if not trainable:
            if GraphKeys.LOCAL_VARIABLES in (collections or ()):
                with graph.device(self._worker_device):
                    return getter(name=name, trainable=trainable, collections=collections, **kwargs)
            return getter(name=name, trainable=trainable, collections=collections, **kwargs)
        with graph.device(self._worker_device):
            copy = getter(name=name, trainable=True, collections=[GraphKeys.LOCAL_VARIABLES], **kwargs)
        self.centers[copy] = Variable(
            copy.initialized_value(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES],
            name=f"{GLOBAL_VARIABLE_NAME}/{name}",
        )
        return copy


class ModelAverageOptimizer(CopyOptimizer):
    """Averages the workers' models in every nth step (McDonald, Hall and Mann, 2010).

    In such a step a worker waits until all workers have reached it; then all continue with the mean of their copies.

    Args:
      opt: the optimizer of the copies.
      num_worker: number of workers.
      is_chief: whether this worker computes the mean.
      ma_custom_getter: the `ModelAverageCustomGetter` that created the variables.
      interval_steps: n.
    """

    def __init__(
        self,
        opt: object,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, interval_steps, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._centers = ma_custom_getter.centers

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Updates the copies, and averages them in every nth step; then the chief increments ``global_step``.

        Raises:
          ValueError: there are no variables, or ``global_step`` is None.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required")
        update = self._opt.apply_gradients(pairs, name=name)
        copies = [var for grad, var in pairs if grad is not None]
        return self._in_turn([update], lambda: self._average(copies, global_step))

    def _average(self, copies: Sequence[Variable], global_step: Variable) -> Operation:
        graph = get_default_graph()
        with graph.colocate_with(global_step.op):
            queue = FIFOQueue(-1, [bool_], shapes=[[]], shared_name="sync_queue")
        given: list[Any] = []
        accumulators: list[ConditionalAccumulator] = []
        with name_scope(None, f"{self._name}/global"):
            for var in copies:
                center = self._centers[var]
                with graph.device(center.device):
                    shared = f"{center.name}/var_accum"
                    accumulators.append(ConditionalAccumulator(var.dtype.base_dtype, var.shape, shared))
                    given.append(accumulators[-1].apply_grad(var.read_value(), local_step=global_step.read_value()))
        with control_dependencies(given):
            if self._is_chief:
                released = self._release(copies, accumulators, queue, global_step)
            else:
                with graph.device(global_step.device):
                    released = queue.dequeue()
        with control_dependencies([released]):
            return self._assign_averages(copies)

    def _release(
        self, copies: Sequence[Variable], accumulators: Sequence[Any], queue: FIFOQueue, global_step: Variable
    ) -> Operation:
        """Returns the chief's operation: waits for all copies, assigns their means, and lets the other workers
        continue."""
        graph = get_default_graph()
        updates: list[Any] = []
        for var, accumulator in zip(copies, accumulators, strict=True):
            with graph.device(self._centers[var].device):
                updates.append(assign(self._centers[var], accumulator.take_grad(self._num_worker)))
        updates.append(assign_add(global_step, 1))
        with control_dependencies(updates), graph.device(global_step.device):
            return queue.enqueue_many(fill([self._num_worker - 1], convert_to_tensor(False)))

    def _assign_averages(self, copies: Sequence[Variable]) -> Operation:
        if not copies:
            raise ValueError("The list of local_variables should not be empty")
        graph = get_default_graph()
        taken: list[Any] = []
        for var in copies:
            with graph.device(var.device):
                taken.append(assign(var, self._centers[var].read_value()))
        return group(*taken)

    def get_init_op(self) -> Operation:
        """Returns the operation that copies the means to a worker's variables.

        Raises:
          ValueError: there are no trainable variables.
        """
        return self._assign_averages(trainable_variables())

    def make_session_run_hook(self) -> SessionRunHook:
        """Returns the hook that initialises a worker's variables in a `MonitoredSession`; see `get_init_op`."""
        return InitialCopiesHook(self.get_init_op)
