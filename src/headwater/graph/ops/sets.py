"""Host operations in NumPy on sets in the rows of tensors, and edit distances of sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from headwater.dtypes import float32, int32, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.ops.define import host
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.shapes import merge_dims

Rows = dict[tuple[int, ...], list[Any]]
"""Maps the index of each row of a tensor to its values; rows without values may be missing."""

_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "a-b": lambda a, b: a - b,
    "b-a": lambda a, b: b - a,
    "intersection": lambda a, b: a & b,
    "union": lambda a, b: a | b,
}


def _rows_of_dense(values: HostArray) -> tuple[Rows, tuple[int, ...]]:
    if values.ndim < 2:
        raise InvalidArgumentError(f"a set needs at least 2 dimensions, not shape {values.shape}")
    return {index: values[index].tolist() for index in np.ndindex(*values.shape[:-1])}, values.shape[:-1]


def _rows_of_sparse(
    indices: HostArray, values: HostArray, shape: HostArray, validate: bool
) -> tuple[Rows, tuple[int, ...]]:
    sizes = tuple(int(size) for size in shape)
    if len(sizes) < 2:
        raise InvalidArgumentError(f"sparse tensors of rows need 2 dimensions or more, not {list(sizes)}")
    rows: Rows = {}
    before: list[int] | None = None
    for index, value in zip(indices.tolist(), values.tolist(), strict=True):
        if validate and (any(not 0 <= i < size for i, size in zip(index, sizes, strict=True)) or index == before):
            raise InvalidArgumentError(f"index {index} is out of bounds or repeated; the shape is {list(sizes)}")
        if validate and before is not None and index < before:
            raise InvalidArgumentError(f"index {index} is out of order; use tf.sparse.reorder")
        rows.setdefault(tuple(index[:-1]), []).append(value)
        before = index
    return rows, sizes[:-1]


def _combined(
    first: tuple[Rows, tuple[int, ...]], second: tuple[Rows, tuple[int, ...]], operation: str, like: HostArray
) -> Sequence[HostArray]:
    """Returns the indices, values and shape of a sparse tensor with the result of ``operation`` for each row, in
    order."""
    (a, shape), (b, other) = first, second
    if shape != other:
        raise InvalidArgumentError(f"Mismatched group shapes {list(shape)} and {list(other)}")
    compute = _OPERATIONS[operation]
    indices: list[tuple[int, ...]] = []
    values: list[Any] = []
    widest = 0
    for row in sorted(a.keys() | b.keys()):
        found = sorted(compute(set(a.get(row, ())), set(b.get(row, ()))))
        widest = max(widest, len(found))
        indices.extend((*row, place) for place in range(len(found)))
        values.extend(found)
    result = np.empty(len(values), like.dtype)
    result[:] = values
    return np.array(indices, np.int64).reshape(-1, len(shape) + 1), result, np.array([*shape, widest], np.int64)


def _set_spec(inference: Inference) -> Sequence[Spec]:
    """Returns the specs of a sparse tensor of the same rank as the inputs."""
    if inference.op_type == "SparseToSparseSetOperation":
        given = [inference.inputs[2].dims, inference.inputs[5].dims]
        ranks = {dims[0] for dims in given if dims is not None and dims[0] is not None}
    else:
        count = 2 if inference.op_type == "DenseToDenseSetOperation" else 1
        ranks = {len(spec.dims) for spec in inference.inputs[:count] if spec.dims is not None}
    if any(rank < 2 for rank in ranks) or len(ranks) > 1:
        raise ValueError(f"sets need two tensors of the same rank, at least 2, not {sorted(ranks)}")
    if inference.op_type == "DenseToDenseSetOperation":
        merge_dims(*(None if spec.dims is None else spec.dims[:-1] for spec in inference.inputs))
    rank = next(iter(ranks), None)
    dtype = inference.inputs[1 if inference.op_type == "SparseToSparseSetOperation" else 0].dtype.base_dtype
    return [Spec(int64, (None, rank)), Spec(dtype, (None,)), Spec(int64, (rank,))]


@host("DenseToDenseSetOperation", infer=_set_spec, inputs="set1:T, set2:T")
def dense_to_dense(
    set1: HostArray, set2: HostArray, *, set_operation: str, validate_indices: bool = True
) -> Sequence[HostArray]:
    """Applies the operation to the sets in the rows of two tensors."""
    del validate_indices
    return _combined(_rows_of_dense(set1), _rows_of_dense(set2), set_operation, set1)


@host(
    "DenseToSparseSetOperation", infer=_set_spec, inputs="set1:T, set2_indices:int64, set2_values:T, set2_shape:int64"
)
def dense_to_sparse(
    set1: HostArray,
    set2_indices: HostArray,
    set2_values: HostArray,
    set2_shape: HostArray,
    *,
    set_operation: str,
    validate_indices: bool = True,
) -> Sequence[HostArray]:
    """Like `dense_to_dense`, with a sparse second tensor."""
    second = _rows_of_sparse(set2_indices, set2_values, set2_shape, validate_indices)
    return _combined(_rows_of_dense(set1), second, set_operation, set1)


@host(
    "SparseToSparseSetOperation",
    infer=_set_spec,
    inputs="set1_indices:int64, set1_values:T, set1_shape:int64, set2_indices:int64, set2_values:T, set2_shape:int64",
)
def sparse_to_sparse(
    set1_indices: HostArray,
    set1_values: HostArray,
    set1_shape: HostArray,
    set2_indices: HostArray,
    set2_values: HostArray,
    set2_shape: HostArray,
    *,
    set_operation: str,
    validate_indices: bool = True,
) -> Sequence[HostArray]:
    """Like `dense_to_dense`, if both tensors are sparse."""
    first = _rows_of_sparse(set1_indices, set1_values, set1_shape, validate_indices)
    second = _rows_of_sparse(set2_indices, set2_values, set2_shape, validate_indices)
    return _combined(first, second, set_operation, set1_values)


def _size_spec(inference: Inference) -> Sequence[Spec]:
    sizes = inference.partial(2)
    return [Spec(int32, None if sizes is None else sizes[:-1])]


@host("SetSize", infer=_size_spec, inputs="set_indices:int64, set_values:T, set_shape:int64")
def set_size(
    set_indices: HostArray, set_values: HostArray, set_shape: HostArray, *, validate_indices: bool = True
) -> HostArray:
    """Returns the number of distinct values in each row."""
    rows, shape = _rows_of_sparse(set_indices, set_values, set_shape, validate_indices)
    result = np.zeros(shape, np.int32)
    for row, values in rows.items():
        result[row] = len(set(values))
    return result


# Edit distance ----------------------------------------------------------------------------------------------------


def _distance_spec(inference: Inference) -> Sequence[Spec]:
    hypothesis, truth = inference.partial(2), inference.partial(5)
    merge_dims(inference.inputs[2].dims, inference.inputs[5].dims)
    if hypothesis is None or truth is None:
        return [Spec(float32, None)]
    sizes = [None if None in pair else max(pair) for pair in zip(hypothesis[:-1], truth[:-1], strict=True)]  # pyright: ignore[reportArgumentType]
    return [Spec(float32, tuple(sizes))]


@host(
    "EditDistance",
    infer=_distance_spec,
    inputs="hypothesis_indices:int64, hypothesis_values:T, hypothesis_shape:int64, truth_indices:int64, "
    "truth_values:T, truth_shape:int64",
)
def edit_distance(
    hypothesis_indices: HostArray,
    hypothesis_values: HostArray,
    hypothesis_shape: HostArray,
    truth_indices: HostArray,
    truth_values: HostArray,
    truth_shape: HostArray,
    *,
    normalize: bool = True,
) -> HostArray:
    """Returns the Levenshtein distance of rows: the minimum number of insertions, deletions and replacements.

    ``normalize`` divides it by the number of values in the truth's row; the result is infinite if that row is empty and
    the other row is not.
    """
    first, sizes = _rows_of_sparse(hypothesis_indices, hypothesis_values, hypothesis_shape, True)
    second, others = _rows_of_sparse(truth_indices, truth_values, truth_shape, True)
    if len(sizes) != len(others):
        raise InvalidArgumentError(
            f"hypothesis and truth must have as many dimensions, not {len(sizes) + 1} and {len(others) + 1}"
        )
    result = np.zeros([max(pair) for pair in zip(sizes, others, strict=True)], np.float32)
    for row in first.keys() | second.keys():
        given, wanted = first.get(row, []), second.get(row, [])
        distance = float(_levenshtein(given, wanted))
        if normalize:
            distance = distance / len(wanted) if wanted else (np.inf if given else 0.0)
        result[row] = distance
    return result


def _levenshtein(given: Sequence[object], wanted: Sequence[object]) -> int:
    *_, last = _levenshtein_rows(given, wanted)
    return last[-1]


def _levenshtein_rows(given: Sequence[object], wanted: Sequence[object]) -> Iterator[list[int]]:
    """Yields, for each prefix of ``given`` from the shortest on, its distances to all prefixes of ``wanted``."""
    row = list(range(len(wanted) + 1))
    yield row
    for count, value in enumerate(given, 1):
        before, row = row, [count]
        for place, other in enumerate(wanted):
            row.append(min(row[-1] + 1, before[place + 1] + 1, before[place] + (value != other)))
        yield row
