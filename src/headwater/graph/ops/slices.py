"""Slices of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import as_ref
from headwater.errors import UnimplementedError
from headwater.graph.kernels.slices import Entry, entries, keys, masks_of, slice_key
from headwater.graph.ops.common import as_ints, constant_ints, output
from headwater.graph.ops.define import pure, stateful
from headwater.graph.registry import SIZES_KNOWN, Attrs, HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp, lax
from headwater.shapes import Dims


def _slice_static(attrs: Attrs, count: int) -> frozenset[int]:
    del count
    return frozenset({2}) if attrs.get(SIZES_KNOWN) else frozenset({1, 2})


def _slice_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    begin, size = constant_ints(inference, 1), inference.partial(2)
    if size is None:
        return output(inference, None if dims is None else (None,) * len(dims))
    if dims is not None and len(dims) != len(size):
        raise ValueError(f"Shape must be rank {len(size)} but is rank {len(dims)}")
    result: list[int | None] = []
    for axis, count in enumerate(size):
        dim_size = None if dims is None else dims[axis]
        first = None if begin is None else begin[axis]
        if count is not None and count < -1:
            raise ValueError(f"size {count} of a slice must be -1 (all remaining elements) or at least 0")
        if count == -1:
            result.append(None if dim_size is None or first is None else dim_size - first)
        elif count is not None and first is not None and dim_size is not None and first + count > dim_size:
            raise ValueError(
                f"a slice of {count} elements from index {first} exceeds the dimension, which has size {dim_size}"
            )
        else:
            result.append(count)
    return output(inference, tuple(result))


@pure(
    "Slice", inputs="input:T, begin:Index|index, size:Index", static_of=_slice_static, infer=_slice_spec, strings=True
)
def slice_(input: jax.Array, begin: jax.Array, size: HostArray) -> jax.Array:
    """Returns, for each dimension, ``size`` elements from ``begin`` on.

    Args:
      input: the tensor.
      begin: the first index in each dimension. If it is known only when the step runs (it is not a NumPy array then),
        an index out of range is moved into the range, as in `jax.lax.dynamic_slice`.
      size: the number of elements in each dimension. -1, for all remaining elements, requires a NumPy array ``begin``.

    Raises:
      ValueError: the slice exceeds a dimension, and ``begin`` is a NumPy array.
    """
    if not isinstance(begin, np.ndarray):
        return lax.dynamic_slice(input, [begin[axis] for axis in range(input.ndim)], as_ints(size))
    return input[slice_key(as_ints(begin), as_ints(size), input.shape)]


def dropped_places(attrs: Attrs, count: int, rank: int) -> list[tuple[int, int]]:
    """Returns, for each dimension from which a strided slice takes a single element: the position of the element's
    index in ``begin``, and the number of the dimension."""
    kept = (entry for entry in entries(masks_of(attrs), count, rank) if not entry.adds)
    return [(entry.position, axis) for axis, entry in enumerate(kept) if entry.drops]


def _strided_spec(inference: Inference) -> Sequence[Spec]:
    return output(inference, _strided_dims(inference))


def _strided_dims(inference: Inference) -> Dims:
    """The static shape of a strided slice of the first input."""
    dims = inference.inputs[0].dims
    bounds = [constant_ints(inference, index) for index in (1, 2, 3)]
    lengths = [inference.inputs[index].dims for index in (1, 2, 3)]
    count = next((d[0] for d in lengths if d is not None and d[0] is not None), None)
    if dims is None or count is None:
        return None
    begin, end, strides = bounds
    result: list[int | None] = []
    axis = 0
    for entry in entries(masks_of(inference.attrs), count, len(dims)):
        if entry.adds:
            result.append(1)
            continue
        dim_size = dims[axis]
        axis += 1
        if entry.position == -1:
            result.append(dim_size)
        elif entry.drops:
            first = None if begin is None else begin[entry.position]
            if dim_size is not None and first is not None and not -dim_size <= first < dim_size:
                raise ValueError(f"slice index {first} of dimension {axis - 1} out of bounds.")
        else:
            result.append(_count_of(dim_size, entry, begin, end, strides))
    return tuple(result)


def _count_of(dim_size: int | None, entry: Entry, begin: Any, end: Any, strides: Any) -> int | None:
    """Returns the number of elements that one entry takes from a dimension of size ``dim_size``; None if unknown."""
    if strides is None:
        return None
    step = strides[entry.position]
    if step == 0:
        raise ValueError("strides[i] must be non-zero")
    if (entry.begin and begin is None) or (entry.end and end is None):
        return None
    first = begin[entry.position] if entry.begin else None
    stop = end[entry.position] if entry.end else None
    if dim_size is None:
        if first is None or stop is None or (first < 0) != (stop < 0):
            return None
        return None if range(first, stop, step) else 0
    return len(range(*slice(first, stop, step).indices(dim_size)))


def _strided_static(attrs: Attrs, count: int) -> frozenset[int]:
    del count
    return frozenset({3}) if attrs.get(SIZES_KNOWN) else frozenset({1, 2, 3})


@pure(
    "StridedSlice",
    inputs="input:T, begin:Index|index, end:Index, strides:Index",
    static_of=_strided_static,
    infer=_strided_spec,
    strings=True,
)
def strided_slice(
    input: jax.Array,
    begin: jax.Array,
    end: object,
    strides: HostArray,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> jax.Array | HostArray:
    """Python's slicing: ``input[begin:end:strides, ...]``.

    Bit ``i`` of a mask refers to the ``i``-th entry of begin, end and strides: with ``begin_mask`` or ``end_mask``, the
    begin or end is omitted; with ``ellipsis_mask``, the entry is an ellipsis; with ``new_axis_mask``, a new dimension;
    with ``shrink_axis_mask``, an index that removes its dimension.
    """
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    parts = entries(masks, strides.shape[0], input.ndim)
    if not isinstance(begin, np.ndarray):
        return _take_elements(input, parts, begin)
    key = tuple(keys(parts, as_ints(begin), as_ints(end), as_ints(strides), input.shape))
    result = input[key]
    # If the result is a single element of an object array, NumPy returns the element itself instead of an array.
    return result if hasattr(result, "shape") else np.array(result, input.dtype)


def _take_elements(input: jax.Array, parts: Sequence[Entry], begin: jax.Array) -> jax.Array:
    """Takes one element of each dropped dimension, at an index that is known only when the step runs.

    Keeps the other dimensions whole, and inserts the added dimensions.
    """
    axis = 0
    for entry in parts:
        if entry.adds:
            input = jnp.expand_dims(input, axis)
        elif entry.drops:
            input = lax.dynamic_index_in_dim(input, begin[entry.position], axis, keepdims=False)
            continue
        axis += 1
    return input


# Assignment ------------------------------------------------------------------------------------------------------


def _assigned_spec(inference: Inference) -> Sequence[Spec]:
    ref, value = inference.inputs[0], inference.inputs[4]
    if ref.dtype.base_dtype != value.dtype.base_dtype:
        raise TypeError(
            f"Input 'value' of '{inference.op_type}' Op has type {value.dtype.base_dtype.name} that does not match "
            f"type {ref.dtype.base_dtype.name} of argument 'ref'."
        )
    _strided_dims(inference)
    return [Spec(as_ref(ref.dtype), ref.dims)]


@stateful("StridedSliceAssign", refs=(0,), updates=(0,), infer=_assigned_spec, static_of=_strided_static)
def strided_slice_assign(
    ref: jax.Array,
    begin: jax.Array,
    end: object,
    strides: HostArray,
    value: jax.Array,
    *,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> tuple[jax.Array]:
    """Returns the variable with one slice replaced by ``value``; see `strided_slice`.

    Raises:
      UnimplementedError: ``value`` has a different shape than the slice; TensorFlow does not broadcast it either.
    """
    masks = begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    ref, value = jnp.asarray(ref), jnp.asarray(value)
    parts = entries(masks, strides.shape[0], ref.ndim)
    if isinstance(begin, np.ndarray):
        key = tuple(keys(parts, as_ints(begin), as_ints(end), as_ints(strides), ref.shape))
    else:
        key = tuple(None if entry.adds else begin[entry.position] if entry.drops else slice(None) for entry in parts)
    taken = jax.eval_shape(lambda array: array[key], ref).shape
    if value.shape != taken:
        raise UnimplementedError(f"a slice of shape {list(taken)} cannot take a value of shape {list(value.shape)}")
    # `.at[]` is indexed without the new dimensions; they have size 1, so reshaping the value loses nothing.
    kept = tuple(part for part in key if part is not None)
    return (ref.at[kept].set(value.reshape(jax.eval_shape(lambda array: array[kept], ref).shape)),)
