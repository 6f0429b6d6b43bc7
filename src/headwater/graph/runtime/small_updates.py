"""Makes XLA run updates of small variables in the calling thread.

If more than eight kernels of an executable can start at the same time, XLA on CPUs runs half of them in another thread
and waits for that thread, whatever the cost of the kernels. For small variables, these two wake-ups take longer than
the updates. XLA counts a call that it does not inline as one kernel. So the updates are grouped into nested calls, with
at most eight calls in one place (measurements: docs/decisions/step-floor.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.graph.passes.plan import Node
from headwater.graph.registry import Kind
from headwater.lazy_jax import is_jax_array, jax, xla_metadata

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax
_metadata: Any = xla_metadata

#: Size of a variable, in bytes, from which a second thread saves more time than it costs.
LARGE = 1 << 20
#: Maximum number of calls in one place, and of updates in the innermost call: updates of Adam have three kernels each.
CALLS, UPDATES = 8, 2


class SmallUpdates:
    """Collects independent updates, and traces them as nested calls.

    Args:
      trace: evaluates an operation in an environment of values and variables' states
        (`headwater.graph.runtime.programs.trace`).
    """

    def __init__(self, trace: Callable[[Node, dict[str, AnyArray], dict[str, AnyArray]], None]) -> None:
        self._trace = trace
        self._nodes: list[Node] = []
        self._touched: set[str] = set()

    def needed_by(self, node: Node) -> bool:
        """Returns whether ``node`` uses a variable or a result of the collected updates, so that `run` has to be called
        before it."""
        return not self._touched.isdisjoint((node.name, *node.inputs, *node.refs.values()))

    def collect(self, node: Node, state: Mapping[str, AnyArray]) -> bool:
        """Collects ``node`` if it is an update of small variables; returns whether it did. If ``node`` uses a result of
        collected updates (see `needed_by`), the caller has to call `run` first."""
        variables = node.refs.values()
        updates = node.definition.kind is Kind.STATEFUL and bool(variables)  # a variable itself is stateful, too
        if not updates or not all(_is_small(state.get(name)) for name in variables):
            return False
        self._nodes.append(node)
        self._touched.update((*variables, f"{node.name}:0"))
        return True

    def run(self, values: dict[str, AnyArray], state: dict[str, AnyArray]) -> None:
        """Traces the collected updates."""
        nodes, self._nodes = self._nodes, []
        self._touched.clear()
        self._run(nodes, values, state)

    def _run(self, nodes: Sequence[Node], values: dict[str, AnyArray], state: dict[str, AnyArray]) -> None:
        if len(nodes) <= UPDATES:
            for node in nodes:
                self._trace(node, values, state)
            return
        each = max(UPDATES, -(-len(nodes) // CALLS))
        for start in range(0, len(nodes), each):
            self._call(nodes[start : start + each], values, state)

    def _call(self, nodes: Sequence[Node], values: dict[str, AnyArray], state: dict[str, AnyArray]) -> None:
        """Like `_run`, in a call that XLA does not inline."""
        inputs = [name for node in nodes for name in node.inputs]
        used = {name: values[name] for name in inputs if is_jax_array(values.get(name))}  # NumPy's are constants
        read = {name: state[name] for node in nodes for name in node.refs.values()}
        changed = [node.refs[position] for node in nodes for position in node.definition.updates]

        @_jax.jit
        def update(used: dict[str, AnyArray], read: dict[str, AnyArray]) -> dict[str, AnyArray]:
            self._run(nodes, {**values, **used}, read)
            return {name: read[name] for name in changed}

        with _metadata.set_xla_metadata(inlineable="false"):
            state.update(update(used, read))
        values.update({f"{node.name}:0": state[node.refs[node.definition.updates[0]]] for node in nodes})


def _is_small(value: AnyArray | None) -> bool:
    return value is not None and value.nbytes < LARGE
