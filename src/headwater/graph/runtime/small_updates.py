"""Updates of small variables, which XLA is to run in the thread that asks for them.

On CPUs XLA has another thread run half of the kernels of an executable in which many could start at the same time, and
waits for it, whatever they cost: for small variables these two wake-ups cost more than the updates. Kernels of a call
that XLA keeps as a call count as one of its caller's, and up to eight in one place run in one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
from jax.experimental import xla_metadata

from headwater.graph.passes.plan import Node
from headwater.graph.registry import Kind

if TYPE_CHECKING:
    from headwater.graph.ops.common import AnyArray

# Pyright finds the types of these functions of JAX in part only.
_jax: Any = jax
_metadata: Any = xla_metadata

#: Bytes of a variable from which on its update is worth a second thread.
LARGE = 1 << 20
#: How many calls there are in one place at most, and updates in the innermost: Adam's have three kernels each.
CALLS, UPDATES = 8, 2


class SmallUpdates:
    """Gathers updates that do not use one another, and traces them as calls within calls.

    Args:
      trace: evaluates an operation in an environment of values and variables' states
        (`headwater.graph.runtime.programs.trace`).
    """

    def __init__(self, trace: Callable[[Node, dict[str, AnyArray], dict[str, AnyArray]], None]) -> None:
        self._trace = trace
        self._nodes: list[Node] = []
        self._touched: set[str] = set()

    def needed_by(self, node: Node) -> bool:
        """Whether ``node`` uses a variable or a result of what is gathered, which has to `run` before it."""
        return not self._touched.isdisjoint((node.name, *node.inputs, *node.refs.values()))

    def takes(self, node: Node, state: Mapping[str, AnyArray]) -> bool:
        """Whether ``node`` is a small update; it is gathered then. None of those before it may be `needed_by` it."""
        variables = node.refs.values()
        updates = node.definition.kind is Kind.STATEFUL and bool(variables)  # a variable itself is stateful, too
        if not updates or not all(_is_small(state.get(name)) for name in variables):
            return False
        self._nodes.append(node)
        self._touched.update((*variables, f"{node.name}:0"))
        return True

    def run(self, values: dict[str, AnyArray], state: dict[str, AnyArray]) -> None:
        """Traces what is gathered."""
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
        """As `_run`, in a call that XLA keeps."""
        inputs = [name for node in nodes for name in node.inputs]
        used = {
            name: values[name] for name in inputs if isinstance(values.get(name), jax.Array)
        }  # NumPy's are constants
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
