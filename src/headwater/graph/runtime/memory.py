"""Errors for exhausted memory that name the operation and the variables of an instruction."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.errors import ResourceExhaustedError
from headwater.graph.passes.plan import Compute, Host, Instruction
from headwater.ps.memory import no_memory


def out_of_memory(
    error: Exception, task: str, instruction: Instruction, gpu: Mapping[str, int] | None
) -> ResourceExhaustedError | None:
    """Returns the error of `no_memory` for an instruction, with its operation and variables."""
    return no_memory(error, task, _describe(instruction), gpu)


def _describe(instruction: Instruction) -> str:
    match instruction:
        case Compute(nodes=nodes) if nodes:
            name, names = nodes[-1].name, {node.refs[at] for node in nodes for at in node.definition.updates}
        case Host(node=node):
            name, names = node.name, set(node.refs.values())
        case _:
            return "a tensor on its way to another task"
    variables = ", ".join(map(repr, sorted(names)))
    return f"operation {name!r}" + (f", which was to change {variables}" if variables else "")
