"""``tf.ragged``: ragged tensors of Python values, ranges, masks, stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater import dtypes
from headwater.dtypes import DTypeLike, as_dtype
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant as dense_constant
from headwater.graph.convert import convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.ragged_value import ragged_value
from headwater.graph.types import TensorLike
from headwater.shapes import ShapeLike, as_shape
from headwater.tf1.functional import arrays, indexing, math, reductions, searching
from headwater.tf1.functional.apply import apply
from headwater.tf1.functional.checks import assert_less
from headwater.tf1.functional.control_flow import with_dependencies
from headwater.tf1.functional.ragged_tensor import (
    RaggedTensor,
    as_ragged_or_tensor,
    check_splits,
    gather_rows,
    length_of,
    rows_of_splits,
    same_kind_of_splits,
    splits_of_rows,
)

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray
    from headwater.graph.types import SparseLike


def _is_list(value: TensorLike) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)  # pyright: ignore[reportUnknownMemberType]


def _depths(value: TensorLike) -> tuple[int | None, int]:
    """Returns the depth of scalars in nested lists (None without any), and the depth of the lists themselves.

    Raises:
      ValueError: scalars are nested to different depths.
    """
    if not _is_list(value):
        return 0, 0
    found = [_depths(item) for item in cast("list[Any]", value)]
    scalars = {depth for depth, _ in found if depth is not None}
    if len(scalars) > 1:
        raise ValueError("all scalar values must have the same nesting depth")
    deepest = max((depth for _, depth in found), default=0)
    return (scalars.pop() + 1 if scalars else None), deepest + 1


def _inner_shape(values: Sequence[Tensor], ragged_rank: int) -> tuple[int, ...]:
    """Returns the shape of the first value, which all values must have.

    Raises:
      ValueError: shapes differ.
    """
    items: list[Any] = list(values)
    for _ in range(ragged_rank):
        items = [inner for item in items for inner in item]
    shape: list[int] = []
    while items and isinstance(items[0], list | tuple | np.ndarray):
        sizes = {len(item) for item in items}
        if len(sizes) > 1:
            raise ValueError("inner values have inconsistent shape")
        shape.append(sizes.pop())
        items = [inner for item in items for inner in item]
    return tuple(shape)


def _parts(
    pylist: TensorLike,
    dtype: DTypeLike | None,
    ragged_rank: int | None,
    inner_shape: ShapeLike,
    splits_dtype: DTypeLike,
) -> list[Any]:
    """Flat values and splits, the outermost first."""
    kind = None if dtype is None else as_dtype(dtype).numpy_dtype
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    if not _is_list(pylist):
        if ragged_rank or inner_shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        return [_array(pylist, kind, None)]
    scalar_depth, deepest = _depths(pylist)
    if scalar_depth is not None and deepest > scalar_depth:
        raise ValueError(f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting")
    inner: tuple[Any, ...] | None = None if inner_shape is None else tuple(as_shape(inner_shape).as_list())
    if inner is not None and ragged_rank is not None:
        expected = ragged_rank + len(inner) + 1
        if scalar_depth not in (None, expected) or deepest > expected:
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and inner_shape={inner}"
            )
    if ragged_rank == 0 or (ragged_rank is None and deepest - len(inner or ()) < 2):
        return [_array(pylist, kind, None)]
    if ragged_rank is None:
        depth = deepest if scalar_depth is None else scalar_depth - len(inner or ())
        ragged_rank = max(1, depth - 1)
        inner = inner or ()
    elif scalar_depth is not None and deepest <= ragged_rank:
        raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
    elif inner is None:
        inner = _inner_shape(cast("list[Any]", pylist), ragged_rank)
    values: list[Any] = list(cast("list[Any]", pylist))
    splits: list[Any] = []
    for _ in range(ragged_rank):
        if any(not isinstance(row, list | tuple | np.ndarray) for row in values):
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        lengths = [len(row) for row in values]
        splits.append(np.concatenate([[0], np.cumsum(lengths)]).astype(as_dtype(splits_dtype).numpy_dtype))
        values = [item for row in values for item in row]
    return [_array(values, kind, (len(values), *inner)), *splits]


def _array(values: object, kind: Any, shape: tuple[int, ...] | None) -> HostArray:
    found = np.asarray(values, None if kind is object else kind)
    if found.dtype.kind in "US":
        flat = [item.encode() if isinstance(item, str) else item for item in np.asarray(values, object).ravel()]
        text = np.empty(len(flat), object)
        text[:] = flat
        found = text.reshape(found.shape)
    elif kind is object and not found.size:
        found = found.astype(object)
    return found if shape is None else found.reshape(shape)


def constant(
    pylist: TensorLike,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: ShapeLike = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:
    """Returns a ragged tensor of nested lists; a tensor if they are not nested.

    Args:
      pylist: the lists.
      dtype: the type of the values.
      ragged_rank: number of ragged dimensions; all but the first and the dimensions of ``inner_shape`` if None.
      inner_shape: the shape of each value.
      row_splits_dtype: the type of the splits.

    Raises:
      ValueError: values have different depths, or another depth than the arguments specify.
    """
    with name_scope(name, "RaggedConstant"):
        flat, *splits = _parts(pylist, dtype, ragged_rank, inner_shape, row_splits_dtype)
        if dtype is None and flat.dtype.kind in "fi":
            flat = flat.astype(np.float32 if flat.dtype.kind == "f" or not flat.size else np.int32)
        return RaggedTensor.from_nested_row_splits(
            dense_constant(flat, dtype), [dense_constant(part) for part in splits], validate=False
        )


def constant_value(
    pylist: TensorLike,
    dtype: DTypeLike | None = None,
    ragged_rank: int | None = None,
    inner_shape: ShapeLike = None,
    row_splits_dtype: DTypeLike = "int64",
) -> Any:
    """Like `constant`: the value of a ragged tensor, or an array."""
    return ragged_value(_parts(pylist, dtype, ragged_rank, inner_shape, row_splits_dtype))


def placeholder(
    dtype: DTypeLike, ragged_rank: int, value_shape: ShapeLike | None = None, name: str | None = None
) -> Any:
    """A ragged tensor whose value every run must feed.

    Args:
      dtype: the type of the values.
      ragged_rank: number of ragged dimensions.
      value_shape: the shape of each value: a scalar if None.
    """
    if ragged_rank == 0:
        return arrays.placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder"):
        inner = [] if value_shape is None else as_shape(value_shape).as_list()
        found: object = arrays.placeholder(dtype, [None, *inner], "flat_values")
        splits = [
            arrays.placeholder(dtypes.int64, [None], f"row_splits_{index}") for index in builtin_range(ragged_rank)
        ]
        return RaggedTensor.from_nested_row_splits(found, splits, validate=False)


builtin_range = range


def ragged_range(
    starts: TensorLike,
    limits: TensorLike | None = None,
    deltas: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> RaggedTensor:
    """Returns rows of numbers: each from its start, by its delta, up to but excluding its limit.

    Args:
      starts: start of each row, or of all rows; the limits if ``limits`` is None.
      limits: the limits of each row, or of all.
      deltas: the deltas of each row, or of all.
      dtype: the type of the numbers.
      row_splits_dtype: the type of the splits.
    """
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange", [starts, limits, deltas]):
        if dtype is None:
            parts = [convert_to_tensor(part) for part in (starts, limits, deltas)]
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            kind = order[max(order.index(part.dtype) for part in parts)]
        else:
            kind = as_dtype(dtype)
        parts = [math.cast(part, kind) for part in (starts, limits, deltas)]
        found = apply("RaggedRange", *parts, Tsplits=as_dtype(row_splits_dtype)).outputs
        return RaggedTensor.from_row_splits(found[1], found[0], validate=False)


def row_splits_to_segment_ids(splits: TensorLike, name: str | None = None, out_type: DTypeLike | None = None) -> Tensor:
    """Returns the row of each value, computed from the row splits.

    Raises:
      ValueError: ``splits`` are not integers, not a vector, or empty.
    """
    with name_scope(name, "RaggedSplitsToSegmentIds", [splits]):
        tensor = convert_to_tensor(splits, preferred_dtype=dtypes.int64, name="splits")
        if tensor.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("splits must have dtype int32 or int64")
        tensor.shape.assert_has_rank(1)
        if tensor.dims == (0,):
            raise ValueError("Invalid row_splits: []")
        found = rows_of_splits(tensor)
        return found if out_type is None else math.cast(found, as_dtype(out_type))


def segment_ids_to_row_splits(
    segment_ids: TensorLike,
    num_segments: TensorLike | None = None,
    out_type: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the row splits for the row indices of values, in any order.

    Raises:
      TypeError: ``segment_ids`` are not integers.
      ValueError: ``segment_ids`` are not a vector, or ``num_segments`` is not a scalar.
    """
    with name_scope(name, "SegmentIdsToRaggedSplits", [segment_ids]):
        tensor = convert_to_tensor(segment_ids, preferred_dtype=dtypes.int64, name="segment_ids")
        if not tensor.dtype.is_integer:
            raise TypeError(f"segment_ids must be an integer tensor; dtype={tensor.dtype}")
        tensor.shape.assert_has_rank(1)
        found = splits_of_rows(tensor, num_segments, ascending=False)
        return found if out_type is None else math.cast(found, as_dtype(out_type))


def boolean_mask(data: SparseLike, mask: object, name: str | None = None) -> Any:
    """Returns the values at which ``mask`` is true, in their rows.

    Args:
      data: a tensor or ragged tensor.
      mask: the same, of the first dimensions of ``data``; of rank 1 for whole rows.

    Raises:
      ValueError: ``mask`` is a scalar, its rank is not known, or its shape does not fit ``data``.
      InvalidArgumentError: the rows of ``mask`` and ``data`` differ; when run, unless the rows are known.
    """
    with name_scope(name, "RaggedMask", []):
        rows, chosen = as_ragged_or_tensor(data, name="data"), as_ragged_or_tensor(mask, dtypes.bool_, name="mask")
        rank = chosen.shape.ndims
        if rank is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if rank == 0:
            raise ValueError("mask cannot be scalar.")
        rows.shape[:rank].assert_is_compatible_with(chosen.shape)
        return _masked(rows, chosen, rank)


def _masked(data: Any, mask: Any, rank: int) -> Any:
    if rank == 1:
        if isinstance(data, RaggedTensor):
            return gather_rows(data, arrays.reshape(indexing.where(mask), [-1]))
        return indexing.boolean_mask(data, mask)
    data, mask = (part if isinstance(part, RaggedTensor) else RaggedTensor.from_tensor(part) for part in (data, mask))
    counts = _true_values(mask)
    message = "Inputs must have identical ragged splits"
    with get_default_graph().control_dependencies(check_splits([data.row_splits], [mask.row_splits], message)):
        values = _masked(data.values, mask.values, rank - 1)
    if rank > 2:
        return data.with_values(values)
    return RaggedTensor.from_row_lengths(values, counts, validate=False)


def _true_values(mask: RaggedTensor) -> Tensor:
    kind = mask.row_splits.dtype
    if isinstance(mask.values, RaggedTensor) or mask.values.shape.ndims != 1:
        return mask.row_lengths()
    rows = reductions.cumsum(math.cast(mask.values, kind))
    before = indexing.gather(arrays.concat([arrays.zeros([1], kind), rows], 0), mask.row_splits)
    return before[1:] - before[:-1]


def concatenated_rows(values: Sequence[object]) -> Any:
    """The rows of all, one after the other."""
    if not any(isinstance(value, RaggedTensor) for value in values):
        return arrays.concat(list(values), 0)
    ragged = [value if isinstance(value, RaggedTensor) else RaggedTensor.from_tensor(value) for value in values]
    lengths = arrays.concat([value.row_lengths() for value in ragged], 0)
    return RaggedTensor.from_row_lengths(concatenated_rows([value.values for value in ragged]), lengths, validate=False)


def stack(values: object, axis: int = 0, name: str | None = None, *, keeps_rows: bool = False) -> Any:
    """A ragged tensor with one more dimension, of tensors or ragged tensors of one rank.

    Args:
      values: a list of them.
      axis: the place of the new dimension: 0, or 1.
      keeps_rows: returns a ragged tensor also for vectors, as TensorFlow 2; otherwise these must have one size.

    Raises:
      ValueError: no values, or an ``axis`` that is out of range.
    """
    if not isinstance(values, list | tuple):
        values = [values]
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    if not isinstance(axis, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"axis must be an int, not {axis!r}")
    with name_scope(name, "RaggedStack", []):
        parts = [as_ragged_or_tensor(value) for value in cast("list[Any]", values)]
        same_kind_of_splits(parts)
        rank = parts[0].shape.ndims
        if rank is None:
            raise ValueError("the rank of values must be known")
        if not -rank - 1 <= axis <= rank:
            raise ValueError(f"axis={axis} out of bounds: expected {-rank - 1}<=axis<{rank + 1}")
        return stack_along(parts, rank, axis + rank + 1 if axis < 0 else axis, keeps_rows=keeps_rows)


def stack_along(parts: list[Any], rank: int, axis: int, *, keeps_rows: bool = False) -> Any:
    """Stacks tensors and ragged tensors of ``rank`` dimensions along a new dimension; see `stack`."""
    if rank == 0 or (rank == 1 and not keeps_rows and not any(isinstance(part, RaggedTensor) for part in parts)):
        return arrays.stack(parts, axis)
    if axis == 0:
        if rank > 1:
            parts = [
                p if isinstance(p, RaggedTensor) else RaggedTensor.from_tensor(p, ragged_rank=rank - 1) for p in parts
            ]
        lengths = arrays.stack([length_of(part) for part in parts])
        return RaggedTensor.from_row_lengths(concatenated_rows(parts), lengths, validate=False)
    if axis > 1:
        ragged = [part if isinstance(part, RaggedTensor) else RaggedTensor.from_tensor(part) for part in parts]
        return ragged[0].with_values(stack_along([part.values for part in ragged], rank - 1, axis - 1))
    for part in parts[1:]:
        parts[0].shape[:1].assert_is_compatible_with(part.shape[:1])
    count = length_of(parts[0])
    number = len(parts)
    # Row 0 of each value, then row 1 of each value, and so on.
    order = arrays.reshape(
        arrays.expand_dims(arrays.range(count), 1) + arrays.expand_dims(arrays.range(np.int64(number)) * count, 0), [-1]
    )
    splits = arrays.range(count + 1) * np.int64(number)
    return RaggedTensor.from_row_splits(gather_rows(concatenated_rows(parts), order), splits, validate=False)


def merged_rows(value: RaggedTensor) -> RaggedTensor:
    """Concatenates the inner rows of each row."""
    inner = value.values
    return RaggedTensor(inner.values, indexing.gather(inner.row_splits, value.row_splits), internal=True)


def stack_dynamic_partitions(
    data: TensorLike, partitions: object, num_partitions: TensorLike, name: str | None = None
) -> RaggedTensor:
    """Collects the rows of ``data`` in the rows of the result given by ``partitions``.

    Args:
      data: a tensor or ragged tensor.
      partitions: integers from 0 to below ``num_partitions``.
      num_partitions: how many rows the result has.

    Raises:
      ValueError: the rank of ``partitions`` is unknown, its shape is no prefix of the shape of ``data``, or
        ``num_partitions`` is not a scalar.
      InvalidArgumentError: when run; a partition is out of range, or rows of ``partitions`` and ``data`` differ.
    """
    with name_scope(name, "SegmentStack", []):
        values = as_ragged_or_tensor(data, name="data")
        places = as_ragged_or_tensor(partitions, name="partitions")
        count = math.cast(num_partitions, dtypes.int64)
        rank = places.shape.ndims
        if rank is None:
            raise ValueError("partitions must have known rank.")
        count.shape.assert_has_rank(0)
        places.shape.assert_is_compatible_with(values.shape[:rank])
        if rank == 0:
            row = math.cast(arrays.stack([places]), dtypes.int64)
            return RaggedTensor.from_value_rowids(stack([values]), row, count)
        if rank > 1:
            given, outer = (
                part if isinstance(part, RaggedTensor) else RaggedTensor.from_tensor(part) for part in (places, values)
            )
            message = "data and partitions have incompatible ragged shapes"
            checks = check_splits([outer.row_splits], [given.row_splits], message)
            with get_default_graph().control_dependencies(checks):
                return stack_dynamic_partitions(outer.values, given.values, count)
        order = searching.argsort(places, stable=True)
        rows = math.cast(indexing.gather(places, order), dtypes.int64)
        check = assert_less(rows[-1:], count, message="partitions must be less than num_partitions")
        return RaggedTensor.from_value_rowids(gather_rows(values, order), with_dependencies([check], rows), count)
