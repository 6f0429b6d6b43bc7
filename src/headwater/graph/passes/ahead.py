"""Finds requests that may read ahead: a run starts from variables that the master received with the previous answer.

The master sends the result of its own part of the run, with the version of the values that it has used. If that version
is outdated, the task sends the present values, and the master runs its own part again. So a request may read ahead only
if the master's part has no side effects before the exchange is complete. See docs/decisions/reads-ahead.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from headwater.graph.passes.plan import Compute, Host, Instruction, Node, Receive, Send, TaskPlan


class Exchange(NamedTuple):
    """The first two transfers between a task and its master.

    Attributes:
      read: the transfer of variables' values to the master.
      reply: the transfer with which the master answers.
      variables: the variables read, in the order of the first transfer.
      variable_of: maps each tensor that is read before the exchange, for the master or for the task itself, to its
          variable.
    """

    read: Send
    reply: Receive
    variables: Sequence[str]
    variable_of: Mapping[str, str]


EXCHANGE: Final = 3
"""Number of instructions of an exchange."""


def variables_read(compute: Compute) -> list[str] | None:
    """Returns the variable that each output of a `Compute` reads; None if the `Compute` does more than read
    variables."""
    if compute.inputs or not all(_is_read(node) for node in compute.nodes):
        return None
    variable_of = {f"{node.name}:0": node.refs.get(0, node.name) for node in compute.nodes}
    return [variable_of[name] for name in compute.outputs]


def _is_read(node: Node) -> bool:
    return node.type == "VariableV2" or (node.type == "Identity" and 0 in node.refs)


def exchange_of(plan: TaskPlan, master: str) -> Exchange | None:
    """Returns the exchange at the start of a plan; None if the plan does not start with one.

    A plan with an exchange reads variables, sends them to the ``master``, and waits for the master's transfer.
    """
    match plan.instructions[:EXCHANGE]:
        case (Compute() as first, Send() as read, Receive() as reply):
            variables = variables_read(first)
            if variables is None or not read.destination == reply.source == master:
                return None
            variable_of = dict(zip(first.outputs, variables, strict=True))
            if not variable_of.keys() >= set(read.tensors):
                return None
            return Exchange(read, reply, [variable_of[name] for name in read.tensors], variable_of)
        case _:
            return None


def read_ahead_by(local: TaskPlan, remote: TaskPlan) -> Exchange | None:
    """Returns the exchange of a step of two tasks if the master may read its values ahead; otherwise None.

    Args:
      local: the plan of the master's task.
      remote: the plan of the other task.
    """
    found = exchange_of(remote, local.task)
    return found if found is not None and _is_repeatable(local.instructions, found) else None


def _is_repeatable(instructions: Sequence[Instruction], exchange: Exchange) -> bool:
    """Returns whether the master's instructions can be run twice without side effects, up to the first transfer that
    the other task sends after the exchange."""
    replied = False
    for item in instructions:
        match item:
            case Receive(transfer=transfer):
                # The other task sends a further transfer only after it has accepted the master's result, so the
                # instructions after this one are never repeated.
                if transfer != exchange.read.transfer:
                    return replied
            case Send(transfer=transfer):
                # A transfer that is not part of the exchange would be sent twice.
                if transfer != exchange.reply.transfer:
                    return False
                replied = True
            case Compute(nodes=nodes):
                # Updates would be made twice. Random numbers are no obstacle: they depend on the step's number, so a
                # repetition draws the same numbers.
                if any(node.definition.updates for node in nodes):
                    return False
            case Host():
                return False
    return replied
