"""Properties of values that follow from the operations that compute them, unless the program feeds one of the tensors
in between."""

from __future__ import annotations

from collections.abc import Collection

from headwater.graph.operation import Operation, Tensor
from headwater.graph.registry import SAME_NUMBERS


def always_differ(indices: Tensor, fed: Collection[Tensor]) -> bool:
    """Returns whether all elements of ``indices`` are distinct, so that no two rows have the same index."""
    source = _source(indices, fed, SAME_NUMBERS - {"Cast"})
    return source is not None and source.op.type in ("Unique", "UniqueWithCounts") and source is source.op.outputs[0]


def always_fit(op: Operation, fed: Collection[Tensor]) -> bool:
    """Returns whether a loss needs no check of its labels, since they are the result of an argmax."""
    if op.type != "SparseSoftmaxCrossEntropyWithLogits":
        return False
    source = _source(op.inputs[1], fed, SAME_NUMBERS)
    return source is not None and source.op.type == "ArgMax"


def _source(tensor: Tensor, fed: Collection[Tensor], through: Collection[str]) -> Tensor | None:
    """Follows ``tensor`` back through operations of the types ``through``; None if a tensor on the way is fed."""
    while tensor not in fed:
        if tensor.op.type not in through:
            return tensor
        tensor = tensor.op.inputs[0]
    return None
