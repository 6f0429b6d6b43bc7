"""Host operations in NumPy on sparse tensors, for results whose number of elements depends on values."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headwater.dtypes import DType, bool_, int32, int64
from headwater.errors import InvalidArgumentError
from headwater.graph.kernels.finding import distinct
from headwater.graph.kernels.rows import outside
from headwater.graph.ops.define import host
from headwater.graph.ops.fingerprints import concatenated, fingerprint64
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.graph.resources.host_context import HostContext
from headwater.tables import row_loops

if TYPE_CHECKING:
    from headwater.graph.operation import Operation, Tensor

_MASK = 0xFFFFFFFFFFFFFFFF


def _reordered(inference: Inference) -> Sequence[Spec]:
    indices, values = inference.inputs[:2]
    return [Spec(int64, indices.dims), Spec(values.dtype.base_dtype, values.dims)]


def _reorder_gradient(op: Operation, *grads: Tensor) -> Sequence[object]:
    """Returns the gradient of each element: the gradient at the element's place in the output."""
    graph = op.graph
    count = graph.create_op("Shape", [op.inputs[1]], {"out_type": int64}).outputs[0]
    order = graph.create_op("SparseOrder", [op.inputs[0], count]).outputs[0]
    return [None, graph.create_op("UnsortedSegmentSum", [grads[1], order, count]).outputs[0], None]


def _order(indices: HostArray) -> HostArray:
    return np.lexsort(indices.T[::-1]) if indices.size else np.arange(len(indices))


@host("SparseOrder", infer=lambda inference: [Spec(int64, (None,))])
def order(indices: HostArray, count: HostArray) -> HostArray:
    """Returns the permutation to row-major order: the original position of each element."""
    del count
    return _order(indices).astype(np.int64)


@host(
    "SparseReorder",
    infer=_reordered,
    inputs="input_indices:int64, input_values:T, input_shape:int64",
    gradient=_reorder_gradient,
)
def reorder(indices: HostArray, values: HostArray, shape: HostArray) -> Sequence[HostArray]:
    """The elements in row-major order."""
    del shape
    places = _order(indices)
    return indices[places], values[places]


def _filled(inference: Inference) -> Sequence[Spec]:
    indices, values, shape = inference.inputs[:3]
    rank = None if indices.dims is None else indices.dims[-1]
    rows = inference.partial(2)
    del shape
    return [
        Spec(int64, (None, rank)),
        Spec(values.dtype.base_dtype, (None,)),
        Spec(bool_, (rows[0] if rows else None,)),
        Spec(int64, (None,)),
    ]


def _distinct_spec(inference: Inference) -> Sequence[Spec]:
    rows = inference.partial(2)
    empty = Spec(bool_, (rows[0] if rows else None,))
    return [Spec(int64, (None,)), Spec(int32, (None,)), empty, Spec(int32, (None,)), Spec(int32, ())]


def _fill_gradient(op: Operation, *grads: Tensor) -> Sequence[object]:
    """Returns the gradients of the original elements, and the sum of the added elements' gradients as the gradient of
    the default."""
    graph = op.graph
    axis = graph.create_op("Const", [], {"value": np.array(0, np.int32), "dtype": int32}).outputs[0]
    kept = graph.create_op("GatherV2", [grads[1], op.outputs[3], axis]).outputs[0]
    total = graph.create_op("Sum", [grads[1], axis]).outputs[0]
    own = graph.create_op("Sum", [kept, axis]).outputs[0]
    return [None, kept, None, graph.create_op("Sub", [total, own]).outputs[0]]


@host(
    "SparseFillEmptyRows",
    infer=_filled,
    inputs="indices:int64, values:T, dense_shape:int64, default_value:T",
    gradient=_fill_gradient,
)
def fill_empty_rows(
    indices: HostArray, values: HostArray, dense_shape: HostArray, default: HostArray
) -> Sequence[HostArray]:
    """Returns the elements, including an added element of value ``default`` in each empty row; a boolean for each row
    that tells whether it was empty; and the new position of each original element."""
    rows = int(dense_shape[0])
    bad = outside(indices[:, 0], rows)
    if bad is not None:
        first = int(bad.argmax())
        raise ValueError(f"indices({first}, 0) is invalid: {indices[first, 0]} >= {rows}")
    counts = np.bincount(indices[:, 0], minlength=rows) if len(indices) else np.zeros(rows, np.int64)
    empty = counts == 0
    if not empty.any() and (indices[1:, 0] >= indices[:-1, 0]).all():  # the usual case, three times as fast
        return indices.copy(), values.copy(), empty, np.arange(len(indices))
    missing = np.zeros((int(empty.sum()), indices.shape[1]), np.int64)
    missing[:, 0] = np.flatnonzero(empty)
    added = np.empty(len(missing), values.dtype)
    added[:] = default.item() if values.dtype == object else default
    whole = np.concatenate([indices, missing])
    places = np.argsort(whole[:, 0], kind="stable")
    went = np.empty(len(whole), np.int64)
    went[places] = np.arange(len(whole))
    return whole[places], np.concatenate([values, added])[places], empty, went[: len(indices)]


_CALL_NS: Final = 50_000
"""The fixed time of the NumPy calls that sort ids into bags."""
_ID_NS: Final = 60
"""The additional time of these calls for each id."""


@host("DistinctBags", infer=_distinct_spec, inputs="ids:int64, indices:int64, dense_shape:int64, default_value:int64")
def distinct_bags(
    ids: HostArray, indices: HostArray, dense_shape: HostArray, default: HostArray, *, fills: bool = True
) -> Sequence[HostArray]:
    """Combines the operations on the ids of a safe lookup; see `headwater.graph.passes.bags`.

    Args:
      fills: whether empty bags have the default id. Otherwise it is only one of the distinct ids if a bag is empty.

    Returns:
      The distinct ids of all bags, int64; the index of each id among these, int32; a boolean for each bag, true if it
      is empty; the bag of each id, int32; and the number of bags, int32.
    """
    count = np.array(dense_shape[0], np.int32)
    if indices.ndim == 2 and indices.shape[1] == 2 and row_loops.distinct_bags.pays(_CALL_NS + _ID_NS * ids.size):
        given = row_loops.flat(ids, np.int64), row_loops.flat(indices, np.int64)
        found, numbers, bags, empty, bad = row_loops.distinct_bags(*given, int(count), int(default), fills)
        if bad < 0:
            return found, numbers, empty, bags, count
    kept = ids >= 0
    places, values, empty, _ = fill_empty_rows(indices[kept], ids[kept], dense_shape, default)
    found, numbers, _ = distinct(values)
    numbers, bags = numbers.astype(np.int32), places[:, 0].astype(np.int32)
    own = ... if fills else ~empty[bags]
    return found, numbers[own], empty, bags[own], count


def _reshaped(inference: Inference) -> Sequence[Spec]:
    indices, _, shape = inference.inputs
    count = None if indices.dims is None else indices.dims[0]
    rank = None if shape.dims is None else shape.dims[0]
    return [Spec(int64, (count, rank)), Spec(int64, (rank,))]


@host("SparseReshape", infer=_reshaped, inputs="input_indices:int64, input_shape:int64, new_shape:int64")
def reshape(indices: HostArray, shape: HostArray, new_shape: HostArray) -> Sequence[HostArray]:
    """The same elements in another shape, one size of which may be -1."""
    sizes = [int(size) for size in new_shape]
    total = int(np.prod(shape))
    if -1 in sizes:
        known = int(np.prod([size for size in sizes if size != -1]))
        sizes[sizes.index(-1)] = total // known if known else 0
    if int(np.prod(sizes)) != total:
        raise InvalidArgumentError(
            f"Input to reshape is a tensor with {total} dense values, but the requested shape has {int(np.prod(sizes))}"
        )
    flat = np.ravel_multi_index(tuple(indices.T), tuple(int(s) for s in shape)) if len(indices) else indices[:, 0]
    places = np.stack(np.unravel_index(flat, sizes), 1) if len(indices) else np.zeros((0, len(sizes)), np.int64)
    return places.astype(np.int64), np.array(sizes, np.int64)


def _crossed(inference: Inference) -> Sequence[Spec]:
    return [Spec(int64, (None, 2)), Spec(inference.attrs["out_type"], (None,)), Spec(int64, (2,))]


@host("SparseCross", infer=_crossed)
def cross(
    *inputs: HostArray,
    N: int,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
    out_type: DType,
    internal_type: DType | None = None,
    sparse_types: Sequence[HostArray] = (),
    dense_types: Sequence[HostArray] = (),
) -> Sequence[HostArray]:
    """Returns, for each row, all combinations of one value of every input, as joined strings or as numbers.

    Args:
      inputs: the indices, the values and the shapes of ``N`` sparse matrices, then dense matrices.
      hashed_output: return numbers, below ``num_buckets`` unless that is 0.
      hash_key: the initial value of the hash.
    """
    del internal_type, sparse_types, dense_types
    number = partial(crossed_number, key=hash_key, buckets=num_buckets)
    return _combinations(inputs, N, out_type, number if hashed_output else _joined)


@host("SparseFeatureCross", infer=_crossed)
def feature_cross(
    *inputs: HostArray,
    N: int,
    hashed_output: bool,
    num_buckets: int,
    out_type: DType,
    internal_type: DType | None = None,
    sparse_types: Sequence[HostArray] = (),
    dense_types: Sequence[HostArray] = (),
) -> Sequence[HostArray]:
    """Returns the result of `cross`, with the older hash of ``tf.contrib.layers``."""
    del internal_type, sparse_types, dense_types
    number = partial(_older_crossed_number, buckets=num_buckets)
    return _combinations(inputs, N, out_type, number if hashed_output else _joined)


def _combinations(
    inputs: Sequence[HostArray], N: int, out_type: DType, combine: Callable[[Sequence[Any]], object]
) -> Sequence[HostArray]:
    """Returns the sparse matrix of the combined values; see `cross`."""
    indices, values, shapes, dense = inputs[:N], inputs[N : 2 * N], inputs[2 * N : 3 * N], inputs[3 * N :]
    counts = [int(shape[0]) for shape in shapes] + list(map(len, dense))
    rows = counts[0] if counts else 0
    for position, count in enumerate(counts):
        if count != rows:
            raise InvalidArgumentError(f"Expected batch size {rows} got {count} at position {position}")
    columns: list[list[list[Any]]] = []
    for places, found in zip(indices, values, strict=True):
        column: list[list[Any]] = [[] for _ in range(rows)]
        for place, value in zip(places[:, 0].tolist(), found.tolist(), strict=True):
            column[place].append(value)
        columns.append(column)
    columns.extend([row.tolist() for row in matrix] for matrix in dense)
    out_places: list[tuple[int, int]] = []
    out_values: list[object] = []
    widest = 0
    for row in range(rows):
        combined = list(itertools.product(*(column[row] for column in columns)))
        widest = max(widest, len(combined))
        for number, combination in enumerate(combined):
            out_places.append((row, number))
            out_values.append(combine(combination))
    result = np.empty(len(out_values), out_type.numpy_dtype)
    result[:] = out_values
    return np.array(out_places, np.int64).reshape(-1, 2), result, np.array([rows, widest], np.int64)


def _joined(values: Sequence[Any]) -> bytes:
    return b"_X_".join(value if isinstance(value, bytes) else str(value).encode() for value in values)


def _number(value: Any) -> int:
    return fingerprint64(value) if isinstance(value, bytes) else int(value) & _MASK


def crossed_number(values: Sequence[Any], key: int, buckets: int) -> int:
    """Returns the hash of a combination of values: texts as bytes, or integers."""
    found = key & _MASK
    for value in values:
        found = concatenated(found, _number(value))
    # Without buckets, the result is any non-negative int64.
    return found % (buckets or 0x7FFFFFFFFFFFFFFF)


def _older_crossed_number(values: Sequence[Any], buckets: int) -> int:
    """Returns the hash of a combination as ``tf.contrib.layers`` computes it without a key."""
    found = 0xDECAFCAFFE
    for value in values:
        signed = found - (1 << 64) if found >> 63 else found  # the shift to the right keeps the sign
        found ^= (_number(value) + 0x9E3779B97F4A7800 + (found << 10) + (signed >> 4)) & _MASK
    return found % (buckets or 0x7FFFFFFFFFFFFFFF)


# Two tensors ----------------------------------------------------------------------------------------------------

_TWO_TENSORS = "a_indices:int64, a_values:T, a_shape:int64, b_indices:int64, b_values:T, b_shape:int64"


def _pair_spec(inference: Inference) -> Sequence[Spec]:
    ranks = [inference.inputs[place].dims for place in (0, 3)]
    rank = next((dims[1] for dims in ranks if dims is not None), None)
    return [Spec(int64, (None, rank)), Spec(inference.inputs[1].dtype.base_dtype, (None,))]


def _together(a: Sequence[HostArray], b: Sequence[HostArray], combine: Any) -> tuple[HostArray, HostArray]:
    """Merges two sparse tensors, in order if both are ordered. Returns all indices of both, and for each index the
    combination of the two elements, with 0 for a missing element."""
    if not np.array_equal(a[2], b[2]):
        raise InvalidArgumentError(f"Operands' shapes do not match: got {a[2].tolist()} and {b[2].tolist()}")
    first, second = a[0].tolist(), b[0].tolist()
    none = a[1].dtype.type(0)
    places: list[list[int]] = []
    values: list[Any] = []
    i = j = 0
    while i < len(first) or j < len(second):
        from_a = j == len(second) or (i < len(first) and first[i] <= second[j])
        from_b = i == len(first) or (j < len(second) and second[j] <= first[i])
        places.append(first[i] if from_a else second[j])
        values.append(combine(a[1][i] if from_a else none, b[1][j] if from_b else none))
        i, j = i + from_a, j + from_b
    return np.array(places, np.int64).reshape(-1, len(a[2])), np.array(values, a[1].dtype)


def _add_gradient(op: Operation, *grads: Tensor) -> Sequence[object]:
    graph = op.graph
    found = graph.create_op("SparseAddGrad", [grads[1], op.inputs[0], op.inputs[3], op.outputs[0]])
    return [None, found.outputs[0], None, None, found.outputs[1], None, None]


@host(
    "SparseAdd",
    infer=lambda inference: [*_pair_spec(inference), Spec(int64, inference.inputs[2].dims)],
    inputs=f"{_TWO_TENSORS}, thresh:Treal",
    gradient=_add_gradient,
)
def add(
    a_indices: HostArray,
    a_values: HostArray,
    a_shape: HostArray,
    b_indices: HostArray,
    b_values: HostArray,
    b_shape: HostArray,
    thresh: HostArray,
) -> Sequence[HostArray]:
    """Returns the sum, without elements of absolute value below ``thresh``."""
    places, values = _together((a_indices, a_values, a_shape), (b_indices, b_values, b_shape), lambda x, y: x + y)
    kept = np.abs(values) >= thresh
    return places[kept], values[kept], a_shape


@host(
    "SparseAddGrad",
    infer=lambda inference: [
        Spec(inference.inputs[0].dtype.base_dtype, None if spec.dims is None else spec.dims[:1])
        for spec in inference.inputs[1:3]
    ],
    inputs="backprop_val_grad:T, a_indices:int64, b_indices:int64, sum_indices:int64",
)
def add_grad(
    backprop_val_grad: HostArray, a_indices: HostArray, b_indices: HostArray, sum_indices: HostArray
) -> Sequence[HostArray]:
    """Returns the gradient of each element of both tensors: the gradient of the sum at its place, or 0 if the sum has
    no element there."""
    found: dict[tuple[int, ...], Any] = dict(zip(map(tuple, sum_indices.tolist()), backprop_val_grad, strict=True))
    none = backprop_val_grad.dtype.type(0)
    return [
        np.array([found.get(tuple(place), none) for place in places.tolist()], backprop_val_grad.dtype)
        for places in (a_indices, b_indices)
    ]


def _compared(op_type: str, choose: object) -> None:
    def lower(
        context: HostContext,
        a_indices: HostArray,
        a_values: HostArray,
        a_shape: HostArray,
        b_indices: HostArray,
        b_values: HostArray,
        b_shape: HostArray,
    ) -> Sequence[HostArray]:
        del context
        return _together((a_indices, a_values, a_shape), (b_indices, b_values, b_shape), choose)

    host(op_type, infer=_pair_spec, inputs=_TWO_TENSORS)(lower)


_compared("SparseSparseMaximum", np.maximum)
_compared("SparseSparseMinimum", np.minimum)
