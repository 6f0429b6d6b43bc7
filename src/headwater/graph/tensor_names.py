"""Names of tensors, ``operation:output``, and of the inputs of nodes in graph definitions."""

from __future__ import annotations


def operation_of(tensor: str) -> str:
    """Returns the name of the operation that computes ``tensor``; empty if the name has no output index."""
    return tensor.rpartition(":")[0]


def split_name(tensor: str) -> tuple[str, int]:
    """Returns the name of the operation that computes ``tensor``, and the index of its output."""
    operation, _, index = tensor.rpartition(":")
    return operation, int(index)


def source_of(item: str) -> str:
    """Returns the name of the node of an input: ``x`` for ``x``, ``^x``, ``x:1`` and ``x:values:1``."""
    return item.removeprefix("^").partition(":")[0]


def full_name(item: str) -> str:
    """Adds output 0 to an input without an output: ``x:0`` for ``x``.

    Control inputs (``^x``) and the empty name, which marks an output that a branch does not compute, are unchanged.
    """
    return item if not item or ":" in item or item.startswith("^") else f"{item}:0"
