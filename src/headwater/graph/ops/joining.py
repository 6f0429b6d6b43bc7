"""Concatenates, stacks and splits tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headwater.graph.ops.common import AnyArray, array_module, as_ints, constant_int, constant_ints, normal_axis
from headwater.graph.ops.define import pure
from headwater.graph.registry import HostArray, Inference, Spec
from headwater.shapes import Dims, TensorShape, merge_dims

if TYPE_CHECKING:
    import jax


def _joined(inference: Inference, values: Sequence[Spec], axis: int | None) -> Sequence[Spec]:
    dtype = values[0].dtype.base_dtype
    for spec in values:
        if spec.dtype.base_dtype != dtype:
            raise TypeError(f"inputs of '{inference.op_type}' Op have types that don't all match")
    if axis is None:
        count = next((len(spec.dims) for spec in values if spec.dims is not None), None)
        return [Spec(dtype, None if count is None else (None,) * count)]
    total: int | None = 0
    rest: Dims = None
    for spec in values:
        if spec.dims is None:
            total = None
            continue
        if not spec.dims:
            raise ValueError("Can't concatenate scalars (use tf.stack instead)")
        where = normal_axis(axis, len(spec.dims))
        there = spec.dims[where]
        total = None if total is None or there is None else total + there
        rest = merge_dims(rest, (*spec.dims[:where], None, *spec.dims[where + 1 :]))
    if rest is None:
        return [Spec(dtype, None)]
    where = axis % len(rest)
    return [Spec(dtype, (*rest[:where], total, *rest[where + 1 :]))]


def _concat_spec(inference: Inference) -> Sequence[Spec]:
    return _joined(inference, inference.inputs[:-1], constant_int(inference, len(inference.inputs) - 1))


@pure("ConcatV2", inputs="values:T*, axis:Tidx=int32", static=(-1,), infer=_concat_spec, strings=True)
def concat(*inputs: jax.Array) -> AnyArray:
    """Concatenates all inputs but the last along the dimension given by the last."""
    *values, axis = inputs
    return array_module(*values).concatenate(values, axis=int(axis))


def _old_concat_spec(inference: Inference) -> Sequence[Spec]:
    return _joined(inference, inference.inputs[1:], constant_int(inference, 0))


@pure("Concat", inputs="concat_dim:int32, values:T*", static=(0,), infer=_old_concat_spec, strings=True)
def old_concat(concat_dim: HostArray, *values: jax.Array) -> AnyArray:
    """Like `concat`, with the dimension first."""
    return array_module(*values).concatenate(values, axis=int(concat_dim))


def _packed(inference: Inference) -> Sequence[Spec]:
    dims: Dims = None
    dtype = inference.inputs[0].dtype.base_dtype
    for spec in inference.inputs:
        try:
            dims = merge_dims(dims, spec.dims)
        except ValueError:
            raise ValueError(f"Shapes must be equal, but are {TensorShape(dims)}, {TensorShape(spec.dims)}") from None
        if spec.dtype.base_dtype != dtype:
            raise TypeError(f"inputs of '{inference.op_type}' Op have types that don't all match")
    if dims is None:
        return [Spec(dtype, None)]
    axis = normal_axis(inference.attrs.get("axis", 0), len(dims) + 1)
    return [Spec(dtype, (*dims[:axis], len(inference.inputs), *dims[axis:]))]


@pure("Pack", inputs="values:T*", infer=_packed, strings=True)
def pack(*values: jax.Array, axis: int = 0) -> AnyArray:
    """Stacks tensors of one shape along a new dimension."""
    return array_module(*values).stack(values, axis=axis)


def _unpacked(inference: Inference) -> Sequence[Spec]:
    spec, count = inference.inputs[0], inference.attrs["num"]
    dtype = spec.dtype.base_dtype
    if spec.dims is None:
        return [Spec(dtype, None)] * count
    axis = normal_axis(inference.attrs.get("axis", 0), len(spec.dims))
    if spec.dims[axis] not in (None, count):
        raise ValueError(f"Dimension must be {count} but is {spec.dims[axis]}")
    return [Spec(dtype, spec.dims[:axis] + spec.dims[axis + 1 :])] * count


@pure("Unpack", inputs="value:T", infer=_unpacked, strings=True)
def unpack(value: AnyArray, *, num: int, axis: int = 0) -> tuple[AnyArray, ...]:
    """Splits along one dimension, which is removed."""
    if value.shape[axis] != num:
        raise ValueError(f"Input shape axis {axis} must equal {num}, got shape {list(value.shape)}")
    return tuple(array_module(value).moveaxis(value, axis, 0))


def _split_spec(inference: Inference) -> Sequence[Spec]:
    spec, axis, count = inference.inputs[1], constant_int(inference, 0), inference.attrs["num_split"]
    dims = spec.dims
    if dims is not None and axis is None:
        dims = (None,) * len(dims)
    elif dims is not None and axis is not None:
        where = normal_axis(axis, len(dims))
        there = dims[where]
        if there is not None and there % count:
            raise ValueError(f"Dimension size must be evenly divisible by {count} but is {there}")
        dims = (*dims[:where], None if there is None else there // count, *dims[where + 1 :])
    return [Spec(spec.dtype.base_dtype, dims)] * count


@pure("Split", inputs="split_dim:int32, value:T", static=(0,), infer=_split_spec, strings=True)
def split(split_dim: HostArray, value: AnyArray, *, num_split: int) -> tuple[AnyArray, ...]:
    """Splits into ``num_split`` equal parts along one dimension."""
    axis = int(split_dim)
    if value.shape[axis] % num_split:
        raise ValueError(f"Dimension size must be evenly divisible by {num_split} but is {value.shape[axis]}")
    return tuple(array_module(value).split(value, num_split, axis))


def _split_v_spec(inference: Inference) -> Sequence[Spec]:
    spec, count = inference.inputs[0], inference.attrs["num_split"]
    sizes, axis = constant_ints(inference, 1), constant_int(inference, 2)
    dtype = spec.dtype.base_dtype
    if spec.dims is None:
        return [Spec(dtype, None)] * count
    if axis is None:
        return [Spec(dtype, (None,) * len(spec.dims))] * count
    where = normal_axis(axis, len(spec.dims))
    there = spec.dims[where]
    parts: Sequence[int | None] = (None,) * count if sizes is None else _sizes(sizes, there)
    return [Spec(dtype, (*spec.dims[:where], part, *spec.dims[where + 1 :])) for part in parts]


def _sizes(sizes: Sequence[int], total: int | None) -> list[int | None]:
    """Returns the sizes with -1 replaced by the remaining size."""
    known = sum(size for size in sizes if size != -1)
    if total is not None and (known > total or (-1 not in sizes and known != total)):
        raise ValueError(f"sizes {list(sizes)} do not add up to the dimension's {total}")
    return [(None if total is None else total - known) if size == -1 else size for size in sizes]


@pure(
    "SplitV",
    inputs="value:T, size_splits:Tlen|index, split_dim:int32",
    static=(1, 2),
    infer=_split_v_spec,
    strings=True,
)
def split_v(value: AnyArray, size_splits: HostArray, split_dim: HostArray, *, num_split: int) -> tuple[AnyArray, ...]:
    """Splits into parts of the given sizes along one dimension; one size may be -1, for the rest."""
    del num_split
    axis = int(split_dim)
    sizes = [size or 0 for size in _sizes(as_ints(size_splits), value.shape[axis])]
    return tuple(array_module(value).split(value, np.cumsum(sizes)[:-1].tolist(), axis))
