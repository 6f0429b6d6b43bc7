"""Accumulated gradients: workers train copies, and apply their mean gradients to the shared variables periodically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.graph.collections import GraphKeys
from headwater.tf1.contrib.opt.worker_copies import CopyGetter, CopyOptimizer, InitialCopiesHook
from headwater.tf1.functional.arrays import zeros_like
from headwater.tf1.functional.control_flow import group
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.variables.creators import variable_creator_scope
from headwater.tf1.variables.state import assign, assign_add
from headwater.tf1.variables.variable_lists import trainable_variables

if TYPE_CHECKING:
    from headwater.graph.operation import Operation
    from headwater.tf1.training.session_run_hook import SessionRunHook
    from headwater.tf1.variables.variables import Variable


class AGNCustomGetter(CopyGetter):
    """Creates the variables of `AGNOptimizer`: a worker's copy, the shared variable, and the sum of gradients.

    Args:
      worker_device: the worker's device.
    """

    SECOND_NAME: ClassVar[str] = "grad_variable"
    _keeps_locals: ClassVar[bool] = False


class AGNOptimizer(CopyOptimizer):
    """Accumulated gradient normalisation (Hermans, Spanakis and Möckel, 2017).

    A worker updates its copies in each step and adds up the gradients. In every nth step it applies their mean to the
    shared variables, and then overwrites the copies with the shared values.

    Args:
      optimizer: updates the copies and the shared variables; each has separate slots.
      num_worker: number of workers.
      custom_getter: the `AGNCustomGetter` that created the variables.
      communication_period: n.
    """

    def __init__(
        self,
        optimizer: object,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(optimizer, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._centers = custom_getter.centers
        self._sums = custom_getter.seconds

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Updates the copies, and the shared variables in every nth step; then increments ``global_step``."""
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        with variable_creator_scope(_local):
            update = self._opt.apply_gradients(pairs, name=name)
        sums = [assign_add(self._sums[var], grad) for grad, var in pairs]
        copies = [var for _, var in pairs]
        return self._in_turn([update, *sums], lambda: self._exchange(copies, global_step))

    def _exchange(self, copies: Sequence[Variable], global_step: Variable | None) -> Operation:
        means = [self._sums[var].read_value() / self._period for var in copies]
        centers = [self._centers[var] for var in copies]
        with control_dependencies([self._opt.apply_gradients(zip(means, centers, strict=True))]):
            updates: list[Any] = [] if global_step is None else [assign_add(global_step, 1)]
            for var in copies:
                updates.append(assign(var, self._centers[var].read_value()))
                updates.append(assign(self._sums[var], zeros_like(self._sums[var])))
        return group(*updates)

    def get_init_op(self, task_index: int) -> Operation:
        """Returns the operation that copies the shared variables to a worker's, and sets its sums to zero.

        Args:
          task_index: accepted; all workers begin in the same way.

        Raises:
          ValueError: there are no trainable variables.
        """
        del task_index
        copies = trainable_variables()
        if not copies:
            raise ValueError(
                "The lists of local_variables, global_center_variables,grad_center_variables should not be empty"
            )
        return group(
            *(assign(var, self._centers[var]) for var in copies),
            *(assign(self._sums[var], zeros_like(self._sums[var])) for var in copies),
        )

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """Returns the hook that initialises a worker's variables in a `MonitoredSession`; see `get_init_op`."""
        del is_chief
        return InitialCopiesHook(lambda: self.get_init_op(task_index))


def _local(next_creator: Any, collections: Any = None, **kwargs: Any) -> Any:
    """Creates a variable as a local one: each worker has separate slots for its copies."""
    kept = [key for key in collections or () if key != GraphKeys.GLOBAL_VARIABLES]
    return next_creator(collections=[*kept, GraphKeys.LOCAL_VARIABLES], **kwargs)
