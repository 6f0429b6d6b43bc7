"""`CriticalSection`: mutually exclusive parts of graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from headwater.graph.composites import CompositeTensor, components_of
from headwater.graph.context import get_default_graph
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.graph import Graph
from headwater.graph.operation import Operation, Tensor
from headwater.tf1.functional import arrays, nest

_EXECUTIONS: Final = "critical_section_executions"


@dataclass(frozen=True, slots=True)
class _Execution:
    section: CriticalSection
    exclusive: bool
    variables: frozenset[Operation]


class CriticalSection:
    """Parts of a graph that are executed one at a time, within a step and across steps.

    ::

        section = tf.CriticalSection()
        new = section.execute(lambda: counter.assign(counter.read_value() + 1.0))

    The lock is on the task on which the section is created. Sections with the same ``shared_name`` share one lock in
    all sessions of that task; without a ``shared_name``, ``name`` identifies the lock.

    Args:
      name: the name of the lock, made unique.
      shared_name: the name of the lock, for sessions of several programs.
      critical_section_def, import_scope: must be None.

    Raises:
      ValueError: ``critical_section_def`` or ``import_scope`` is given.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: object = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None or import_scope is not None:
            raise ValueError("critical_section_def and import_scope are not supported: create a new section")
        graph = get_default_graph()
        with name_scope(name, "CriticalSection", []) as scope:
            self.name: str = scope.rstrip("/")
            marker = graph.create_op("NoOp", [], name="lock")
        self._device = marker.device
        self._shared_name = self.name if shared_name is None else shared_name

    def execute(self, fn: Callable[[], object], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """Returns the result of ``fn()``; its operations run exclusively of this section's other executions.

        Args:
          fn: adds the operations to the graph. They run entirely before or after any other execution.
          exclusive_resource_access: whether other sections may not use the same variables.

        Raises:
          TypeError: ``fn`` is not callable.
          ValueError: ``fn`` executes this section itself, or uses variables to which another section has exclusive
            access.
        """
        if not callable(fn):
            raise TypeError(f"{type(fn).__name__!r} object is not callable")
        graph = get_default_graph()
        attrs = {"shared_name": self._shared_name}
        with name_scope(name, "critical_section_execute", []):
            with graph.control_dependencies(None), graph.device(self._device):
                lock = graph.create_op("MutexLock", [], attrs)
            first = graph.version
            with graph.control_dependencies([lock]):
                found = fn()
                leaves = [_as_leaf(leaf) for leaf in nest.flatten(found)]
            inside = [op for op in graph.get_operations() if op.number >= first]
            self._record_variables(graph, inside, exclusive_resource_access)
            with graph.control_dependencies(inside), graph.device(self._device):
                unlock = graph.create_op("ConsumeMutexLock", [], attrs)
            with graph.control_dependencies([unlock]):
                if isinstance(found, Operation):
                    return graph.create_op("NoOp", [], name="group_deps")
                return nest.pack(found, [None if leaf is None else _identity(leaf) for leaf in leaves])

    def _record_variables(self, graph: Graph, inside: list[Operation], exclusive: bool) -> None:
        """Records the variables that the operations use.

        Raises:
          ValueError: see `execute`.
        """
        if any(op.type == "MutexLock" and op.attrs["shared_name"] == self._shared_name for op in inside):
            raise ValueError(
                "The function fn attempts to directly access the CriticalSection in which it would be running.  This "
                "is illegal and would cause deadlocks."
            )
        used = {tensor.op for op in inside for tensor in op.inputs if tensor.op.type == "VariableV2"}
        own = _Execution(self, exclusive, frozenset(used))
        for other in graph.get_collection(_EXECUTIONS):
            both = own.variables & other.variables
            if other.section is not self and both and (exclusive or other.exclusive):
                names = ", ".join(sorted(op.name for op in both))
                raise ValueError(
                    f"This execution would access resources: {names}.  Either this lock (CriticalSection: {self.name}) "
                    f"or lock '{other.section.name}' requested exclusive resource access of this resource. Did you "
                    "mean to call execute with keyword argument exclusive_resource_access=False?"
                )
        graph.add_to_collection(_EXECUTIONS, own)


def _identity(leaf: Tensor | CompositeTensor) -> Tensor | CompositeTensor:
    if isinstance(leaf, Tensor):
        return arrays.identity(leaf)
    return leaf.with_components([arrays.identity(part) for part in components_of(leaf)])


def _as_leaf(leaf: Any) -> Tensor | CompositeTensor | None:
    if isinstance(leaf, Operation):
        return None
    return leaf if isinstance(leaf, CompositeTensor) else convert_to_tensor(leaf)
