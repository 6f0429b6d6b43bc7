"""Plans that a task may repeat without a request for each run.

A thread that updates variables with gathered gradients runs the same step in a loop: wait, update, announce. Its task
repeats the step by itself, and rarely gets a new request.
"""

from __future__ import annotations

from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan
from headwater.graph.registry import Kind


def can_repeat(plan: TaskPlan) -> bool:
    """Whether the task may repeat ``plan`` by itself: the first instruction waits for other tasks, and the last one
    announces the update to them."""
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
    # Random numbers depend on the step's number, so runs must not share it.
    return nodes[0].definition.blocking and nodes[-1].definition.announces and not any(map(_is_random, nodes))


def _is_random(node: Node) -> bool:
    return node.definition.kind is Kind.RANDOM
