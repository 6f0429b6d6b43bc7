"""Which plans are steps of training, as far as one task can tell."""

from __future__ import annotations

from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan

_GIVES = frozenset(
    {
        "ConsistencyGive",
        "GatherGradients",
        "ResourceAccumulatorApplyGradient",
        "SparseAccumulatorApplyGradient",
        "StepBarrierWait",
    }
)
"""Operations with which a replica gives a gradient, or ends a step."""
_TAKES = frozenset(
    {"ConsistencyTake", "GatherTake", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient"}
)
"""Operations of the task that makes updates of the gradients of others."""


def trains(plan: TaskPlan) -> bool:
    """Whether a run of the plan is a step of its worker: it changes variables, or gives gradients.

    The updates that a thread beside the program makes of gathered gradients are no steps of that worker: they go on
    while its program hangs.
    """
    nodes = [node for item in plan.instructions for node in _nodes(item)]
    types = {node.type for node in nodes}
    if types & _TAKES:
        return False
    return bool(types & _GIVES) or any(node.definition.updates for node in nodes)


def _nodes(item: object) -> tuple[Node, ...]:
    match item:
        case Compute(nodes=nodes):
            return nodes
        case Host(node=node):
            return (node,)
        case _:
            return ()
