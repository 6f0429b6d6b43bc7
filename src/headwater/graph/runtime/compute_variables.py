"""The variables of a `Compute`: which of them its operations read and change, and checks of their new values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from headwater.errors import OpError
from headwater.graph.passes.plan import Compute, Node
from headwater.graph.registry import Kind
from headwater.graph.resources.containers import Cell
from headwater.graph.runtime.host_values import check_assigned


def draws_without_seed(node: Node) -> bool:
    """Returns whether an operation draws different random numbers when it is repeated in the same step."""
    return node.definition.kind is Kind.RANDOM and not (node.attrs.get("seed") or node.attrs.get("seed2"))


def stored_inputs(compute: Compute) -> dict[str, int] | None:
    """Maps variables to input positions, if the `Compute` only assigns inputs to variables; else None."""
    if compute.outputs or not all(node.type == "Assign" and node.inputs[1] in compute.inputs for node in compute.nodes):
        return None
    return {node.refs[0]: compute.inputs.index(node.inputs[1]) for node in compute.nodes}


def assignment_checks(compute: Compute, written: Sequence[str], read: Collection[str]) -> list[bool | None]:
    """Determines which checks the new values of variables need.

    Returns:
      For each written variable, whether its new value must have the shape of the old one; None for a variable whose old
      value is read, since tracing then compares the shapes. An empty list if the old values of all variables are read.
    """
    keeps: dict[str, bool | None] = dict.fromkeys(written)
    for node in compute.nodes:
        if node.type == "Assign" and node.refs[0] not in read:
            keeps[node.refs[0]] = bool(node.attrs.get("validate_shape", True))
    found = list(keeps.values())
    return found if any(keep is not None for keep in found) else []


def accepted_values(
    written: Iterable[tuple[Cell, Any]], assigned: Sequence[bool | None]
) -> tuple[list[tuple[Cell, Any]], OpError | None]:
    """Returns the acceptable new values, and the error of the first unacceptable one."""
    accepted: list[tuple[Cell, Any]] = []
    refused: OpError | None = None
    for (cell, value), keeps_shape in zip(written, assigned, strict=True):
        try:
            if keeps_shape is not None:
                check_assigned(cell, value, keeps_shape)
            accepted.append((cell, value))
        except OpError as error:
            refused = refused or error
    return accepted, refused


def variables_of(compute: Compute) -> tuple[dict[str, None], dict[str, None]]:
    """Returns the variables whose initial values are read, and the variables that are changed, both in order."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for node in compute.nodes:
        definition = node.definition
        if node.type == "VariableV2" and node.name not in writes:
            reads[node.name] = None
        for position, variable in node.refs.items():
            needed = position not in definition.refs or position in definition.reads
            if needed and variable not in writes:
                reads[variable] = None
        for position in definition.updates:
            writes[node.refs[position]] = None
    return reads, writes
