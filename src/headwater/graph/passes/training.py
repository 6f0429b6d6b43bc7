"""Recognises plans that are training steps, as far as the plan of one task shows it."""

from __future__ import annotations

from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan

_GIVE_OPERATIONS = frozenset(
    {
        "ConsistencyGive",
        "GatherGradients",
        "ResourceAccumulatorApplyGradient",
        "SparseAccumulatorApplyGradient",
        "StepBarrierWait",
    }
)
"""Operations with which a worker contributes a gradient, or ends a step."""
_TAKE_OPERATIONS = frozenset(
    {"ConsistencyTake", "GatherTake", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient"}
)
"""Operations with which a task takes gathered gradients for an update."""


def trains(plan: TaskPlan) -> bool:
    """Returns whether a run of the plan is a training step of its worker: it changes variables, or contributes
    gradients.

    Updates from gathered gradients do not count as steps of the chief. A background thread of the chief makes them, and
    continues to do so even if the chief's program hangs.
    """
    nodes = [node for item in plan.instructions for node in _nodes(item)]
    types = {node.type for node in nodes}
    if types & _TAKE_OPERATIONS:
        return False
    return bool(types & _GIVE_OPERATIONS) or any(node.definition.updates for node in nodes)


def _nodes(item: object) -> tuple[Node, ...]:
    match item:
        case Compute(nodes=nodes):
            return nodes
        case Host(node=node):
            return (node,)
        case _:
            return ()
