"""Plans that a task may run again and again without being asked each time.

A thread that updates variables with gathered gradients asks for the same step again and again: wait, update, tell the
others. Its task goes on by itself, and is asked anew now and then.
"""

from __future__ import annotations

from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan
from headwater.graph.registry import Kind


def can_repeat(plan: TaskPlan) -> bool:
    """Whether the task may run ``plan`` again and again by itself: it waits for others first, and tells them last."""
    if plan.feeds or plan.fetches or not plan.instructions:
        return False
    nodes: list[Node] = []
    for item in plan.instructions:
        match item:
            case Compute():
                nodes.extend(item.nodes)
            case Host():
                nodes.append(item.node)
            case _:
                return False
    # Random numbers follow from the step's number.
    return nodes[0].definition.blocking and nodes[-1].definition.announces and not any(map(_is_random, nodes))


def _is_random(node: Node) -> bool:
    return node.definition.kind is Kind.RANDOM
