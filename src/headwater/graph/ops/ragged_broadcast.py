"""Broadcasting of ragged tensors: a dimension with a single row, and a row with a single value, are repeated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import int64
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext


def _specs(inference: Inference) -> Sequence[Spec]:
    levels = len(inference.inputs) // 2
    # The outer splits of both tensors; the splits of a single row have two elements.
    sizes = [spec.dims[0] if spec.dims else None for spec in inference.inputs[::levels]]
    known = [size for size in sizes if size not in (None, 2)]
    outer = known[0] if known else None if None in sizes else 2
    return [Spec(int64, (outer,)), *[Spec(int64, (None,))] * (levels + 1)]


@host("RaggedBroadcast", infer=_specs)
def broadcast(context: HostContext, *splits: HostArray, exact: bool = False) -> Sequence[HostArray]:
    """Broadcasts the rows of two ragged tensors of equal rank, and determines which value of each tensor belongs to
    each place of the result.

    Args:
      splits: the first tensor's splits, from the outermost, then the second tensor's.
      exact: whether rows of one value are not broadcast.

    Returns:
      The splits of the result, and the indices of its values in the first and in the second tensor.

    Raises:
      InvalidArgumentError: the sizes of a dimension differ, and neither is 1.
    """
    levels = len(splits) // 2
    sides = splits[:levels], splits[levels:]
    count = int(_broadcast(context, 0, exact, *(np.array([len(side[0]) - 1]) for side in sides))[0])
    # For each row of the result, the corresponding row of each tensor.
    rows: list[Any] = [np.arange(count) if len(side[0]) - 1 == count else np.zeros(count, np.int64) for side in sides]
    found: list[HostArray] = []
    for level in range(levels):
        lengths = [np.diff(side[level])[at] for side, at in zip(sides, rows, strict=True)]
        wide = _broadcast(context, level + 1, exact, *lengths)
        ends = np.concatenate([[0], np.cumsum(wide)]).astype(np.int64)
        row = np.repeat(np.arange(len(wide)), wide)
        place = np.arange(ends[-1]) - ends[row]
        rows = [
            side[level][at][row] + np.where(length[row] == 1, 0, place)
            for side, at, length in zip(sides, rows, lengths, strict=True)
        ]
        found.append(ends)
    return [*found, *(at.astype(np.int64) for at in rows)]


def _broadcast(context: HostContext, axis: int, exact: bool, first: HostArray, second: HostArray) -> HostArray:
    differ = first != second
    if (differ if exact else differ & (first != 1) & (second != 1)).any():
        raise InvalidArgumentError(
            f"{context.op_name!r}: Unable to broadcast: dimension size mismatch in dimension {axis}: lengths "
            f"{first.tolist()[:10]} and {second.tolist()[:10]}"
        )
    return np.where(first == 1, second, first)
