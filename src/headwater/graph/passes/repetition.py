"""Plans that a task may repeat without a request for each run.

A thread that updates variables from gathered gradients runs the same step in a loop: wait for gradients, update,
announce the update. The task repeats such a step by itself, so that the thread has to send few requests.
"""

from __future__ import annotations

from headwater.graph.passes.plan import Compute, Host, Node, TaskPlan
from headwater.graph.registry import Kind


def can_repeat(plan: TaskPlan) -> bool:
    """Returns whether the task may repeat ``plan`` by itself: the first instruction waits for other tasks, and the last
    one announces the update to them."""
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
    # All runs have the number of one step. Random numbers depend on it, so they would be equal in all runs.
    return nodes[0].definition.blocking and nodes[-1].definition.announces and not any(map(_is_random, nodes))


def _is_random(node: Node) -> bool:
    return node.definition.kind is Kind.RANDOM
