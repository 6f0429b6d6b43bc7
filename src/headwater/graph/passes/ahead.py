"""Which requests may read ahead: a run starts from variables that came with the answer to the run before it.

What such a run sends back says which values it has seen. Where these are not the variables' values any more, the task
gives the present ones, and the run's own part is done again: so until then it must be one that leaves no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Receive, Send, TaskPlan


class Exchange(NamedTuple):
    """What a task and its master send each other first.

    Attributes:
      read: the transfer of variables' values to the master.
      given: the transfer that the master answers with.
      variables: what is read, in the order of the first transfer.
      shown: of each tensor that is read before it, also for the task itself, the variable.
    """

    read: Send
    given: Receive
    variables: Sequence[str]
    shown: Mapping[str, str]


EXCHANGE: Final = 3
"""How many instructions an exchange is."""


def shown_variables(compute: Compute) -> list[str] | None:
    """For every output of a `Compute` that only reads variables: the one that it shows; None for any other."""
    if compute.inputs or not all(_is_read(node) for node in compute.nodes):
        return None
    shown = {f"{node.name}:0": node.refs.get(0, node.name) for node in compute.nodes}
    return [shown[name] for name in compute.outputs]


def _is_read(node: Node) -> bool:
    return node.type == "VariableV2" or (node.type == "Identity" and 0 in node.refs)


def exchange_of(plan: TaskPlan, master: str) -> Exchange | None:
    """The exchange that a plan begins with; None where it begins with anything else.

    It is to read variables, to send them to its ``master``, and to wait for what that sends.
    """
    match plan.instructions[:EXCHANGE]:
        case (Compute() as first, Send() as read, Receive() as given):
            variables = shown_variables(first)
            if variables is None or not read.destination == given.source == master:
                return None
            shown = dict(zip(first.outputs, variables, strict=True))
            if not shown.keys() >= set(read.tensors):
                return None
            return Exchange(read, given, [shown[name] for name in read.tensors], shown)
        case _:
            return None


def read_ahead_by(local: TaskPlan, remote: TaskPlan) -> Exchange | None:
    """The exchange whose values runs of a master's own plan may have read ahead, with one other task in it; None where
    they may not."""
    found = exchange_of(remote, local.task)
    return found if found is not None and _is_repeatable(local.instructions, found) else None


def _is_repeatable(instructions: Sequence[Instruction], exchange: Exchange) -> bool:
    """Whether nothing shows that instructions were carried out twice, up to where the other task is heard of again."""
    given = False
    for item in instructions:
        match item:
            case Receive(transfer=transfer):
                if transfer != exchange.read.transfer:
                    return given
            case Send(transfer=transfer):
                if transfer != exchange.given.transfer:
                    return False
                given = True
            case Compute(nodes=nodes):
                # Random numbers are those of the step, however often it is carried out.
                if any(node.definition.updates for node in nodes):
                    return False
            case Host():
                return False
    return given
