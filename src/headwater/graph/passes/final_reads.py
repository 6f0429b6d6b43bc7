"""Final reads: a fetched variable of the master's task has its value at the end of the step.

In TensorFlow 1.15, a fetch of a reference variable, or of an identity of it, shares the buffer of the variable on the
same task, so that it shows the updates of the step. See docs/decisions/order-within-a-step.md.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.graph.operation import Operation, Tensor
from headwater.graph.passes.partition import task_of
from headwater.graph.passes.place import Placement
from headwater.graph.passes.prune import prune
from headwater.graph.registry import Spec, lookup


def read_finally(placement: Placement, task: str) -> Placement:
    """Returns the operations of a request, with reads after all updates of the fetched variables of ``task``.

    The operations that read are not in the graph.
    """
    pruned, request = placement.pruned, placement.pruned.request
    fed = set(request.feeds)
    # A program that makes operations wait for a read, such as the statements of a function, reads before these.
    awaited = {before for op in pruned.ops for before in op.control_inputs}
    found = {t: _aliased(t, fed, awaited) for t in request.fetches if t not in fed}
    variables = {t: variable for t, variable in found.items() if variable is not None}
    updates: dict[Operation, list[Operation]] = {}
    if variables:
        for op in pruned.ops:
            for at in op.definition.updates:
                updates.setdefault(_variable_of(op.inputs[at]), []).append(op)
    reads = {
        fetched: _read_after(updates[variable.op], fetched, variable, at)
        for at, (fetched, variable) in enumerate(variables.items())
        if variable.op in updates and task_of(placement, variable.op) == task
    }
    if not reads:
        return placement
    changed = prune(replace(request, fetches=tuple(reads.get(fetched, fetched) for fetched in request.fetches)))
    devices = placement.devices
    return Placement(changed, {op: devices[op if op in devices else op.inputs[0].op] for op in changed.ops})


def _aliased(fetched: Tensor, fed: set[Tensor], awaited: set[Operation]) -> Tensor | None:
    """Returns the variable whose buffer a fetched tensor shares in TensorFlow."""
    while fetched.op.type == "Identity" and fetched.op.inputs[0] not in fed:
        if fetched.op in awaited or fetched.op.control_inputs:
            return None  # the program has given the read a place
        fetched = fetched.op.inputs[0]
    return fetched if fetched.op.type == "VariableV2" else None


def _variable_of(reference: Tensor) -> Operation:
    """Returns the variable to which a tensor refers; updates return references to their variable."""
    while reference.op.definition.updates:
        reference = reference.op.inputs[reference.op.definition.updates[0]]
    return reference.op


def _read_after(updates: list[Operation], fetched: Tensor, variable: Tensor, at: int) -> Tensor:
    spec = Spec(variable.dtype.base_dtype, variable.dims)
    name = f"{fetched.op.name}/_after_updates"
    number = fetched.graph.version + at  # greater than the numbers of all operations
    return Operation(fetched.graph, number, name, lookup("Identity"), [variable], {}, updates, [spec]).outputs[0]
