"""Indexing of tensors: slices, rows, elements; selection between two tensors; scattering and stitching."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from headwater import dtypes
from headwater.dtypes import DType, DTypeLike, as_dtype
from headwater.graph.constants import constant_value, partial_value
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.operation import Tensor
from headwater.graph.registry import SIZES_KNOWN
from headwater.graph.types import Ints, TensorLike
from headwater.shapes import Dimension
from headwater.tf1.functional import arrays, math, reductions
from headwater.tf1.functional.apply import apply, one

if TYPE_CHECKING:
    from headwater.tf1.variables.variables import Variable

newaxis = None

# Slices -----------------------------------------------------------------------------------------------------------


def slice(input_: TensorLike, begin: TensorLike, size: Any, name: str | None = None) -> Tensor:
    """``size`` elements from ``begin`` on, per dimension; -1 is all that follow."""
    input_ = convert_to_tensor(input_, name="input")
    sizes = partial_value(size) if isinstance(size, Tensor) else None if _holds_tensor(size) else list(size)
    if sizes is not None and None not in sizes and -1 not in sizes and _is_computed(begin):
        return one("Slice", input_, begin, size, name=name, **{SIZES_KNOWN: True})
    return one("Slice", input_, begin, size, name=name)


def _holds_tensor(value: Any) -> bool:
    return any(isinstance(item, Tensor) for item in value)


def _is_computed(value: TensorLike) -> bool:
    """Returns whether ``value`` is, or contains, a tensor that is not constant."""
    if isinstance(value, list | tuple):
        return any(_is_computed(item) for item in value)  # pyright: ignore[reportUnknownVariableType]
    return isinstance(value, Tensor) and constant_value(value) is None


def strided_slice(
    input_: TensorLike,
    begin: TensorLike,
    end: TensorLike,
    strides: TensorLike | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Variable | None = None,
    name: str | None = None,
) -> Tensor:
    """Python's slicing: ``input_[begin:end:strides, …]``.

    Bit ``i`` of a mask applies to the ``i``-th elements: ``begin_mask`` and ``end_mask`` ignore them,
    ``ellipsis_mask`` makes them an ellipsis, ``new_axis_mask`` a new dimension, ``shrink_axis_mask`` an index that
    drops its dimension.

    Args:
      var: the variable that ``assign`` of the result changes.
    """
    if strides is None:
        strides = arrays.ones_like(begin)
    masks = {"begin_mask": begin_mask, "end_mask": end_mask, "ellipsis_mask": ellipsis_mask}
    masks |= {"new_axis_mask": new_axis_mask, "shrink_axis_mask": shrink_axis_mask}
    taken = one("StridedSlice", input_, begin, end, strides, name=name, **masks)
    return assignable(taken, var)


def assignable(taken: Tensor, variable: Variable | None = None) -> Tensor:
    """Returns ``taken``, a strided slice of ``variable``, with a method ``assign`` that updates these elements.

    The method of a slice of anything else raises ValueError.
    """

    def assign(value: Any, name: str | None = None) -> Tensor:
        if variable is None:
            raise ValueError("Sliced assignment is only supported for variables")
        return variable.assign_slice(taken.op, value, name or f"{taken.op.name}_assign")

    taken.assign = assign
    return taken


class _Slices:
    """The inputs and masks of a strided slice, collected from a Python subscript."""

    def __init__(self) -> None:
        self.begin: list[TensorLike] = []
        self.end: list[TensorLike] = []
        self.strides: list[Ints] = []
        self.masks = {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
        self.sizes_known = True
        """Whether it takes only single indices and whole dimensions."""

    def _mark(self, mask: str) -> None:
        self.masks[mask] |= 1 << len(self.begin)

    def add(self, item: Any) -> None:
        """Adds a part of the subscript."""
        if isinstance(item, builtins.slice):
            self._add_slice(item)  # pyright: ignore[reportUnknownArgumentType]
        elif item is Ellipsis:
            if self.masks["ellipsis_mask"]:
                raise ValueError("Multiple ellipses in slice spec not allowed")
            self._mark("ellipsis_mask")
            self._put(0, 0, 1)
        elif item is newaxis:
            self._mark("new_axis_mask")
            self._put(0, 0, 1)
        else:
            _check_index(item)
            self._mark("shrink_axis_mask")
            self._put(item, item + 1, 1)

    def _add_slice(self, item: builtins.slice) -> None:
        for bound in (item.start, item.stop, item.step):
            if bound is not None:
                _check_index(bound)
        if item.start is None:
            self._mark("begin_mask")
        if item.stop is None:
            self._mark("end_mask")
        if (item.start, item.stop, item.step) != (None, None, None):
            self.sizes_known = False
        self._put(
            0 if item.start is None else item.start,
            0 if item.stop is None else item.stop,
            1 if item.step is None else item.step,
        )

    def _put(self, begin: TensorLike, end: TensorLike, stride: Ints) -> None:
        self.begin.append(begin)
        self.end.append(end)
        self.strides.append(stride)


def _dtype_of(item: TensorLike) -> DType | None:
    """The element type of a tensor or an array; None for anything else."""
    if not isinstance(item, Tensor | np.ndarray | np.generic):
        return None
    found = cast("DTypeLike", item.dtype)  # pyright: ignore[reportUnknownMemberType]
    return as_dtype(found).base_dtype


def _check_index(item: Any) -> None:
    if isinstance(item, int | Dimension) and not isinstance(item, bool):
        return
    dtype = _dtype_of(item)
    if dtype is not None and dtype.is_integer and (isinstance(item, Tensor) or np.ndim(item) == 0):
        return
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are "
        f"valid indices, got {item!r}"
    )


def getitem(tensor: Tensor, key: TensorLike) -> Tensor:
    """``tensor[key]``: integers, slices, ``...``, ``tf.newaxis``, scalar tensors, or a tensor of truth values.

    Raises:
      TypeError: the key has the wrong type.
    """
    if isinstance(key, bool) or _dtype_of(key) == dtypes.bool_:
        return boolean_mask(tensor, key)
    parts: list[object] = list(key) if isinstance(key, list | tuple) else [key]  # pyright: ignore[reportUnknownArgumentType]
    slices = _Slices()
    for item in parts:
        slices.add(item)
    bounds = (slices.begin, slices.end, slices.strides)
    with name_scope(None, "strided_slice", [tensor, *slices.begin, *slices.end, *slices.strides]) as scope:
        if parts:
            packed = [arrays.stack(values) for values in bounds]
            if any(bound.dtype == dtypes.int64 for bound in packed):
                packed = [math.cast(bound, dtypes.int64) for bound in packed]
        else:
            packed = [constant([], dtypes.int32)] * 3
        known = {SIZES_KNOWN: True} if slices.sizes_known and _is_computed(slices.begin) else {}
        return assignable(one("StridedSlice", tensor, *packed, name=scope, **slices.masks, **known))


# Rows and elements ------------------------------------------------------------------------------------------------


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    name: str | None = None,
    axis: int | None = None,
    batch_dims: int = 0,
) -> Tensor:
    """Returns the slices of ``params`` with the given indices along ``axis``, by default the first after the batch.

    The gradient along the first axis is `IndexedSlices` of the rows that were read. A step with an index out of range
    fails with InvalidArgumentError.
    """
    del validate_indices
    return one("GatherV2", params, indices, batch_dims if axis is None else axis, batch_dims=batch_dims, name=name)


def gather_nd(params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """``params[indices[..., 0], indices[..., 1], …]``: elements, or slices if there are fewer indices than
    dimensions."""
    if batch_dims == 0:
        return one("GatherNd", params, indices, name=name)
    with name_scope(name, "BatchGatherND", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        dims = indices.dims
        if dims is None or None in dims[:-1]:
            raise ValueError(f"batch_dims needs indices of a known shape, not {indices.shape}")
        places: object = np.indices([size or 0 for size in dims[:-1]], np.int32)[:batch_dims]
        batch = np.moveaxis(places, 0, -1).astype(indices.dtype.numpy_dtype)
        return one("GatherNd", params, arrays.concat([constant(batch), indices], -1))


def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """`gather` along the last dimension of ``indices``, all before it being a batch."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        if indices.dims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        return gather(params, indices, axis=len(indices.dims) - 1, batch_dims=len(indices.dims) - 1)


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Zeros of ``shape`` with ``updates`` added at ``indices``."""
    return one("ScatterNd", indices, updates, shape, name=name)


def tensor_scatter_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """Returns ``tensor`` with elements at ``indices`` replaced by ``updates``."""
    return one("TensorScatterUpdate", tensor, indices, updates, name=name)


def tensor_scatter_nd_max(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """Returns ``tensor`` with each element at ``indices`` replaced by the maximum of itself and its ``updates``."""
    return one("TensorScatterMax", tensor, indices, updates, name=name)


def tensor_scatter_nd_min(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """Returns ``tensor`` with each element at ``indices`` replaced by the minimum of itself and its ``updates``."""
    return one("TensorScatterMin", tensor, indices, updates, name=name)


def tensor_scatter_add(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """``tensor`` with ``updates`` added at ``indices``."""
    return one("TensorScatterAdd", tensor, indices, updates, name=name)


def tensor_scatter_sub(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """``tensor`` with ``updates`` subtracted at ``indices``."""
    return one("TensorScatterSub", tensor, indices, updates, name=name)


def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns ``on_value`` (1) at each index along a new dimension of size ``depth``, elsewhere ``off_value`` (0).

    Args:
      axis: position of the new dimension; the last if None.
      dtype: element type; by default the type of the values, or float32.

    Raises:
      TypeError: a value has a different type than ``dtype``, or the values have different types.
    """
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value, axis, dtype]) as scope:
        wanted = None if dtype is None else as_dtype(dtype).base_dtype
        found = [convert_to_tensor(v).dtype for v in (on_value, off_value) if v is not None]
        given = {item.base_dtype for item in found}
        if wanted is not None and given - {wanted}:
            other = next(iter(given - {wanted}))
            raise TypeError(f"dtype {other.name} of on_value or off_value does not match dtype parameter {wanted.name}")
        if len(given) > 1:
            raise TypeError(f"dtypes of on_value and off_value do not match: {sorted(item.name for item in given)}")
        wanted = wanted or next(iter(given), dtypes.float32)
        on = convert_to_tensor(1 if on_value is None else on_value, wanted, name="on_value")
        off = convert_to_tensor(0 if off_value is None else off_value, wanted, name="off_value")
        return one("OneHot", indices, depth, on, off, axis=-1 if axis is None else axis, name=scope)


# Choosing ---------------------------------------------------------------------------------------------------------


def select(condition: TensorLike, t: TensorLike, e: TensorLike, name: str | None = None) -> Tensor:
    """Returns ``t`` where the condition is true, else ``e``; a vector of conditions selects whole rows."""
    return one("Select", condition, t, e, name=name)


def where(condition: TensorLike, x: TensorLike | None = None, y: Any = None, name: str | None = None) -> Tensor:
    """Selects elements as `select`; with the condition alone, returns the indices where it is true, one per row.

    Raises:
      ValueError: only one of ``x`` and ``y`` is given.
    """
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            return one("Where", convert_to_tensor(condition, dtypes.bool_, name="condition"), name=scope)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return one("Select", condition, x, y, name=name)


def where_v2(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Like `where`, but broadcasts all three arguments."""
    if x is not None and y is not None:
        return one("SelectV2", condition, x, y, name=name)
    return where(condition, x, y, name)


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, name: str | None = "boolean_mask", axis: int | None = None
) -> Tensor:
    """Returns the elements, or slices, of ``tensor`` at which ``mask`` is true.

    Args:
      mask: boolean, with the shape of the dimensions of ``tensor`` from ``axis`` on.

    Raises:
      ValueError: the mask is a scalar, has an unknown rank, or its shape does not match.
    """
    with name_scope(name, "boolean_mask", [tensor, mask]):
        tensor, mask = convert_to_tensor(tensor, name="tensor"), convert_to_tensor(mask, name="mask")
        if mask.dims is None:
            raise ValueError("Number of mask dimensions must be specified, even if some dimensions are None.")
        if not mask.dims:
            raise ValueError("mask cannot be scalar.")
        first = 0 if axis is None else int(constant_value(convert_to_tensor(axis)) or 0)
        count = len(mask.dims)
        tensor.shape[first : first + count].assert_is_compatible_with(mask.shape)
        sizes = arrays.shape(tensor)
        rows = reductions.reduce_prod(sizes[first : first + count], [0])
        flat = arrays.reshape(tensor, arrays.concat([sizes[:first], [rows], sizes[first + count :]], 0))
        if tensor.dims is not None:
            held = tensor.shape[first : first + count].num_elements()
            flat.set_shape((*tensor.dims[:first], held, *tensor.dims[first + count :]))
        places = arrays.squeeze(where(arrays.reshape(mask, [-1])), [1])
        return gather(flat, places, axis=first)


def sequence_mask(
    lengths: TensorLike, maxlen: TensorLike | None = None, dtype: DTypeLike = dtypes.bool_, name: str | None = None
) -> Tensor:
    """Returns, for each length n, a row of ``maxlen`` booleans (by default the largest length), the first n true."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            longest = reductions.reduce_max(lengths)
            maxlen = math.maximum(constant(0, longest.dtype), longest)
        maxlen = convert_to_tensor(maxlen)
        if maxlen.dims not in (None, ()):
            raise ValueError("maxlen must be scalar for sequence_mask")
        steps = one("Range", constant(0, maxlen.dtype), maxlen, constant(1, maxlen.dtype))
        mask = math.less(steps, math.cast(arrays.expand_dims(lengths, -1), maxlen.dtype))
        return mask if as_dtype(dtype) == dtypes.bool_ else math.cast(mask, dtype)


# Partitioning and stitching ---------------------------------------------------------------------------------------


def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Splits the slices of ``data`` into ``num_partitions`` tensors."""
    return apply("DynamicPartition", data, partitions, num_partitions=num_partitions, name=name).outputs


def dynamic_stitch(indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """Returns a tensor with ``data[m][i]`` as slice ``indices[m][i]``; the last one wins if indices repeat.

    Raises:
      ValueError: the numbers of indices and data differ.
    """
    if len(indices) != len(data):
        raise ValueError(f"dynamic_stitch takes as many indices as data, not {len(indices)} and {len(data)}")
    return one("DynamicStitch", list(indices), list(data), name=name)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """The first ``seq_lengths[b]`` elements along ``seq_axis`` backwards, for each ``b`` of ``batch_axis``."""
    along = reductions.either(seq_axis, seq_dim, "seq_axis", "seq_dim")
    batch = reductions.either(batch_axis, batch_dim, "batch_axis", "batch_dim")
    return one("ReverseSequence", input, seq_lengths, seq_dim=along, batch_dim=batch or 0, name=name)


def sparse_to_dense(
    sparse_indices: TensorLike,
    output_shape: TensorLike,
    sparse_values: TensorLike,
    default_value: TensorLike = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A tensor of ``default_value`` with ``sparse_values`` at ``sparse_indices``."""
    values = (sparse_indices, output_shape, sparse_values, default_value)
    return one("SparseToDense", *values, validate_indices=validate_indices, name=name)
