"""Copies of variables on workers: getters that create them beside the parameter servers' variables.

A worker trains its own copies, which are local variables of the same names as the program's; the variables that workers
share are ``global_center_variable/<name>`` on the parameter servers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from headwater.dtypes import int32
from headwater.graph.collections import GraphKeys
from headwater.graph.context import get_default_graph
from headwater.tf1.contrib.opt.wrappers import WrappingOptimizer
from headwater.tf1.functional import math as ops
from headwater.tf1.functional.conditions import cond
from headwater.tf1.functional.control_flow import no_op
from headwater.tf1.functional.default_graph import control_dependencies
from headwater.tf1.training.session_run_hook import SessionRunHook
from headwater.tf1.variables.initializers import Zeros
from headwater.tf1.variables.partitioned import PartitionedVariable
from headwater.tf1.variables.state import assign_add
from headwater.tf1.variables.variable_scope import get_variable
from headwater.tf1.variables.variables import Variable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.graph.operation import Operation, Tensor
    from headwater.graph.types import SessionLike
    from headwater.tf1.training.coordinator import Coordinator

GLOBAL_VARIABLE_NAME = "global_center_variable"


def parts_of(variable: Variable | PartitionedVariable) -> list[Variable]:
    """Returns the parts of a divided variable, or the variable alone."""
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


class CopyGetter:
    """Base of getters for ``tf.variable_scope(..., custom_getter=...)``.

    A trainable variable is created on the worker's device as a local variable, together with its global variable and
    with a second local variable, named ``SECOND_NAME/<name>``.

    Args:
      worker_device: the worker's device, such as ``"/job:worker/task:1"``.

    Attributes:
      centers: the global variable of each local one.
      seconds: the second local variable of each.
    """

    SECOND_NAME: ClassVar[str]

    def __init__(self, worker_device: str) -> None:
        self._worker_device = worker_device
        self.centers: dict[Variable, Variable] = {}
        self.seconds: dict[Variable, Variable] = {}

    def __call__(self, getter: Callable[..., Any], name: str, trainable: bool, collections: Any, **kwargs: Any) -> Any:
        """Returns the variable ``name``, the worker's copy if it is trainable."""
        graph = get_default_graph()
        if not trainable:
            if GraphKeys.LOCAL_VARIABLES in (collections or ()) and self._keeps_locals:
                with graph.device(self._worker_device):
                    return getter(name=name, trainable=trainable, collections=collections, **kwargs)
            return getter(name=name, trainable=trainable, collections=collections, **kwargs)
        local = [GraphKeys.LOCAL_VARIABLES]
        with graph.device(self._worker_device):
            copy = getter(name=name, trainable=True, collections=local, **kwargs)
        if kwargs.get("reuse") is True:
            return copy
        center = getter(
            name=f"{GLOBAL_VARIABLE_NAME}/{name}", trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES], **kwargs
        )
        with graph.device(self._worker_device):
            second = getter(name=f"{self.SECOND_NAME}/{name}", trainable=False, collections=local, **kwargs)
        self.centers.update(zip(parts_of(copy), parts_of(center), strict=True))
        self.seconds.update(zip(parts_of(copy), parts_of(second), strict=True))
        return copy

    _keeps_locals: ClassVar[bool] = True
    """Whether local variables that are not trainable are placed on the worker's device, too."""


class CopyOptimizer(WrappingOptimizer):
    """Base of optimizers that update copies in each step, and exchange with the global variables in every nth.

    Args:
      opt: the optimizer of the copies.
      period: n.
    """

    def __init__(self, opt: object, period: int, use_locking: bool, name: str) -> None:
        super().__init__(opt, use_locking, name)
        self._period = period
        self._local_step: Variable = get_variable(
            "local_step", [], int32, Zeros(), trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )

    def _in_turn(self, updates: Iterable[Tensor | Operation], exchange: Callable[[], Operation]) -> Any:
        """Counts the local step after ``updates``, and runs the operation that ``exchange`` returns in every nth."""
        with control_dependencies(list(updates)):
            counted = assign_add(self._local_step, 1, name="local_step_update")

        def run() -> Operation:
            # Without this, variables would be read at the start of the step, in each step.
            with control_dependencies([counted]):
                return exchange()

        return cond(ops.equal(ops.floormod(counted, self._period), 0), run, no_op)


class InitialCopiesHook(SessionRunHook):
    """Copies the global variables' initial values to the workers' copies.

    Args:
      make_init_op: returns the operation that copies; called when the graph is complete.
    """

    def __init__(self, make_init_op: Callable[[], Operation]) -> None:
        self._make_init_op = make_init_op
        self._init_op: Operation | None = None

    def begin(self) -> None:
        """Adds the operation."""
        self._init_op = self._make_init_op()

    def after_create_session(self, session: SessionLike, coord: Coordinator) -> None:
        """Runs the operation."""
        del coord
        assert self._init_op is not None
        session.run(self._init_op)
