"""Shapes of tensors, and operations that change shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.dtypes import DType, int32
from headwater.graph.kernels.common import check_mirrored, inferred_shape
from headwater.graph.ops.common import (
    AnyArray,
    array_module,
    as_ints,
    constant_int,
    constant_ints,
    normal_axis,
    output,
    product,
)
from headwater.graph.ops.define import pure, unary
from headwater.graph.registry import MAX_KNOWN_ELEMENTS, HostArray, Inference, Spec
from headwater.lazy_jax import jax, jnp
from headwater.shapes import TensorShape, broadcast_dims

# Reading shapes ---------------------------------------------------------------------------------------------------


def _shape_spec(inference: Inference) -> Sequence[Spec]:
    dims = inference.inputs[0].dims
    return [Spec(inference.attrs.get("out_type", int32), (None if dims is None else len(dims),))]


@pure("Shape", inputs="input:T", infer=_shape_spec, differentiable=False, strings=True)
def shape(input: jax.Array, *, out_type: DType = int32) -> HostArray:
    """The sizes of all dimensions."""
    return np.array(input.shape, out_type.numpy_dtype)


def _shape_n_spec(inference: Inference) -> Sequence[Spec]:
    dtype = inference.attrs.get("out_type", int32)
    return [Spec(dtype, (None if spec.dims is None else len(spec.dims),)) for spec in inference.inputs]


@pure("ShapeN", inputs="input:T*", infer=_shape_n_spec, differentiable=False, strings=True)
def shape_n(*input: jax.Array, out_type: DType = int32) -> tuple[HostArray, ...]:
    """The shape of each input."""
    return tuple(np.array(value.shape, out_type.numpy_dtype) for value in input)


def _size_spec(inference: Inference) -> Sequence[Spec]:
    return [Spec(inference.attrs.get("out_type", int32), ())]


@pure("Size", inputs="input:T", infer=_size_spec, differentiable=False, strings=True)
def size(input: jax.Array, *, out_type: DType = int32) -> HostArray:
    """The number of elements."""
    return np.array(input.size, out_type.numpy_dtype)


@pure("Rank", inputs="input:T", infer=_size_spec, differentiable=False, strings=True)
def rank(input: jax.Array) -> HostArray:
    """The number of dimensions."""
    return np.array(input.ndim, np.int32)


def _broadcast_args_spec(inference: Inference) -> Sequence[Spec]:
    lengths = [None if spec.dims is None else spec.dims[0] for spec in inference.inputs]
    length = None if None in lengths else max(lengths)  # pyright: ignore[reportArgumentType, reportCallIssue]
    return [Spec(inference.inputs[0].dtype, (length,))]


@pure("BroadcastArgs", inputs="s0:T|index=int32, s1:T", static=(0, 1), infer=_broadcast_args_spec, differentiable=False)
def broadcast_args(s0: HostArray, s1: HostArray) -> HostArray:
    """The shape that two shapes broadcast to."""
    return np.array(np.broadcast_shapes(as_ints(s0), as_ints(s1)), s0.dtype)


# The same elements in another shape -------------------------------------------------------------------------------


def _reshape_spec(inference: Inference) -> Sequence[Spec]:
    source, wanted = inference.inputs[0].dims, inference.partial(1)
    given = inference.inputs[1].dims
    if given is not None and len(given) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(given)}")
    if wanted is None:
        return output(inference, None)
    count = None if source is None else product(source)
    literal = inference.constant(1) is not None
    open_places = [i for i, d in enumerate(wanted) if d == -1]
    if len(open_places) > 1:
        raise ValueError(f"Cannot infer multiple unknown dimensions in shape {list(wanted)}")
    dims: list[int | None] = [None if d == -1 else d for d in wanted]
    known = product([d for d in dims if d is not None]) or 0
    if source and None not in source and 0 in wanted and open_places and None not in wanted:
        return output(inference, tuple(inferred_shape([d or 0 for d in source], [d or 0 for d in wanted])))
    if open_places and len([d for d in dims if d is None]) == 1 and count is not None:
        if known and count % known:
            raise ValueError(f"Dimension size must be evenly divisible by {known} but is {count}")
        dims[open_places[0]] = count // known if known else 0
    elif count is not None and None not in dims and known != count and literal:
        raise ValueError(
            f"Cannot reshape a tensor with {count} elements to shape {TensorShape(dims)} ({known} elements)"
        )
    return output(inference, tuple(dims))


@pure("Reshape", inputs="tensor:T, shape:Tshape|index=int32", static=(1,), infer=_reshape_spec, strings=True)
def reshape(tensor: AnyArray, shape: HostArray) -> AnyArray:
    """The elements in row-major order in another shape; one size may be -1."""
    return array_module(tensor).reshape(tensor, inferred_shape(tensor.shape, list(as_ints(shape))))


def _expanded(inference: Inference) -> Sequence[Spec]:
    dims, axis = inference.inputs[0].dims, constant_int(inference, 1)
    if dims is None:
        return output(inference, None)
    if axis is None:
        return output(inference, (None,) * (len(dims) + 1))
    if not -len(dims) - 1 <= axis <= len(dims):
        raise ValueError(f"dim {axis} not in the interval [{-len(dims) - 1}, {len(dims)}].")
    axis %= len(dims) + 1
    return output(inference, (*dims[:axis], 1, *dims[axis:]))


@pure("ExpandDims", inputs="input:T, dim:Tdim=int32", static=(1,), infer=_expanded, strings=True)
def expand_dims(input: AnyArray, dim: HostArray) -> AnyArray:
    """The input with a further dimension of size 1, inserted at position ``dim``."""
    return array_module(input).expand_dims(input, as_ints(dim)[0])


def _squeezed(inference: Inference) -> Sequence[Spec]:
    dims, axes = inference.inputs[0].dims, inference.attrs.get("squeeze_dims") or ()
    if dims is None:
        return output(inference, None)
    if not axes:
        return output(inference, None if None in dims else tuple(d for d in dims if d != 1))
    gone = {normal_axis(axis, len(dims)) for axis in axes}
    for axis in gone:
        if dims[axis] not in (None, 1):
            raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
    return output(inference, tuple(d for i, d in enumerate(dims) if i not in gone))


@pure("Squeeze", inputs="input:T", infer=_squeezed, strings=True)
def squeeze(input: AnyArray, *, squeeze_dims: Sequence[int] = ()) -> AnyArray:
    """Removes the given dimensions of size 1, or all dimensions of size 1."""
    return array_module(input).squeeze(input, tuple(squeeze_dims) or None)


def _transposed(inference: Inference) -> Sequence[Spec]:
    dims, order = inference.inputs[0].dims, constant_ints(inference, 1)
    length = inference.inputs[1].dims
    if order is None:
        count = len(dims) if dims is not None else (length[0] if length else None)
        return output(inference, None if count is None else (None,) * count)
    if dims is None:
        return output(inference, (None,) * len(order) if len(order) > 1 else None)
    outside = next((axis for axis in order if not -len(dims) <= axis < len(dims)), None)
    if outside is not None:
        raise ValueError(f"perm dim {outside} is out of range of input rank {len(dims)}")
    if len(order) != len(dims):
        raise ValueError(f"perm {list(order)} does not permute the {len(dims)} dimensions of the input")
    return output(inference, tuple(dims[axis] for axis in order))


@pure("Transpose", inputs="x:T, perm:Tperm=int32", static=(1,), infer=_transposed, strings=True)
def transpose(x: AnyArray, perm: HostArray) -> AnyArray:
    """Dimension ``i`` of the result is dimension ``perm[i]`` of x."""
    return array_module(x).transpose(x, as_ints(perm))


@pure("ConjugateTranspose", inputs="x:T, perm:Tperm=int32", static=(1,), infer=_transposed)
def conjugate_transpose(x: jax.Array, perm: HostArray) -> jax.Array:
    """Like `transpose`, of the conjugate."""
    return jnp.conj(jnp.transpose(x, as_ints(perm)))


# Repeated, padded, reversed ---------------------------------------------------------------------------------------


def _tiled(inference: Inference) -> Sequence[Spec]:
    dims, times = inference.inputs[0].dims, inference.partial(1)
    if dims is None or times is None:
        count = len(dims) if dims is not None else (None if times is None else len(times))
        return output(inference, None if count is None else (None,) * count)
    if len(dims) != len(times):
        raise ValueError(f"Shape must be rank {len(times)} but is rank {len(dims)}")
    return output(inference, tuple(product(pair) for pair in zip(dims, times, strict=True)))


@pure("Tile", inputs="input:T, multiples:Tmultiples|index=int32", static=(1,), infer=_tiled, strings=True)
def tile(input: AnyArray, multiples: HostArray) -> AnyArray:
    """The input repeated ``multiples[i]`` times along each dimension ``i``."""
    return array_module(input).tile(input, as_ints(multiples))


def _padded(inference: Inference) -> Sequence[Spec]:
    dims, pads = inference.inputs[0].dims, inference.constant(1)
    if dims is None:
        length = inference.inputs[1].dims
        return output(inference, None if not length or length[0] is None else (None,) * length[0])
    if pads is None:
        return output(inference, (None,) * len(dims))
    if pads.shape != (len(dims), 2):
        raise ValueError(f"paddings of shape {pads.shape} for an input of {len(dims)} dimensions; must be [n, 2]")
    if (pads < 0).any():
        raise ValueError(f"paddings must be non-negative: {pads.tolist()}")
    return output(inference, tuple(None if d is None else d + int(p.sum()) for d, p in zip(dims, pads, strict=True)))


def _pairs(paddings: object) -> list[tuple[int, int]]:
    return [(int(before), int(after)) for before, after in np.asarray(paddings)]


@pure("Pad", inputs="input:T, paddings:Tpaddings|index=int32", static=(1,), infer=_padded)
def pad(input: AnyArray, paddings: HostArray) -> AnyArray:
    """Adds zeros before and after the elements, by dimension."""
    return array_module(input).pad(input, _pairs(paddings)) if input.ndim else input


@pure("PadV2", inputs="input:T, paddings:Tpaddings|index=int32, constant_values:T", static=(1,), infer=_padded)
def pad_v2(input: jax.Array, paddings: HostArray, constant_values: jax.Array) -> jax.Array:
    """Like `pad`, with ``constant_values`` in place of zeros."""
    return jnp.pad(input, _pairs(paddings), constant_values=constant_values) if input.ndim else input


@pure("MirrorPad", inputs="input:T, paddings:Tpaddings|index=int32", static=(1,), infer=_padded)
def mirror_pad(input: jax.Array, paddings: HostArray, *, mode: str) -> jax.Array:
    """Pads with the input's own elements, mirrored at each border. REFLECT does not repeat the border element,
    SYMMETRIC repeats it."""
    check_mirrored(input.shape, paddings, mode)
    return jnp.pad(input, _pairs(paddings), mode=mode.lower())


def _reversed_spec(inference: Inference) -> Sequence[Spec]:
    dims, axes = inference.inputs[0].dims, constant_ints(inference, 1)
    if dims is not None and axes is not None:
        places = [normal_axis(axis, len(dims)) for axis in axes]
        if len(set(places)) < len(places):
            raise ValueError(f"axis {axes} names a dimension twice")
    return unary(inference)


@pure("ReverseV2", inputs="tensor:T, axis:Tidx=int32", static=(1,), infer=_reversed_spec, strings=True)
def reverse(tensor: AnyArray, axis: HostArray) -> AnyArray:
    """The input with the order of elements reversed along the given dimensions."""
    return array_module(tensor).flip(tensor, as_ints(axis))


@pure("Reverse", inputs="tensor:T, dims:bool", static=(1,), infer=unary, strings=True)
def old_reverse(tensor: AnyArray, dims: HostArray) -> AnyArray:
    """Reverses the flagged dimensions."""
    return array_module(tensor).flip(tensor, tuple(np.flatnonzero(dims).tolist()))


@pure("Roll", inputs="input:T, shift:Tshift|index, axis:Taxis|index", static=(1, 2), infer=unary, strings=True)
def roll(input: AnyArray, shift: HostArray, axis: HostArray) -> AnyArray:
    """Shifts elements cyclically along dimensions."""
    return array_module(input).roll(input, as_ints(shift), as_ints(axis))


# Filled -----------------------------------------------------------------------------------------------------------


def _filled(inference: Inference) -> Sequence[Spec]:
    return output(inference, inference.partial(0), 1)


@pure("Fill", inputs="dims:index_type|index=int32, value:T", static=(0,), infer=_filled, strings=True)
def fill(dims: HostArray, value: AnyArray) -> AnyArray:
    """A tensor of one value."""
    shape = as_ints(dims)
    # Small tensors stay known while compiling, because shapes may be computed from them. A large tensor would become a
    # constant of the executable and occupy memory twice.
    module = array_module(value) if math.prod(shape) <= MAX_KNOWN_ELEMENTS or value.dtype == object else jnp
    return module.full(shape, value, dtype=value.dtype)


@pure(
    "ZerosLike", inputs="x:T", infer=unary, differentiable=False, string_lower=lambda x: np.full(x.shape, b"", object)
)
def zeros_like(x: AnyArray) -> AnyArray:
    """Zeros in the shape of x."""
    return array_module(x).zeros(x.shape, x.dtype)


@pure("OnesLike", inputs="x:T", infer=unary, differentiable=False)
def ones_like(x: AnyArray) -> AnyArray:
    """Ones in the shape of x."""
    return array_module(x).ones(x.shape, x.dtype)


def _broadcast_spec(inference: Inference) -> Sequence[Spec]:
    wanted = inference.partial(1)
    source = inference.inputs[0].dims
    if wanted is not None and source is not None:
        broadcast_dims(source, wanted)
    return output(inference, wanted)


@pure("BroadcastTo", inputs="input:T, shape:Tidx|index=int32", static=(1,), infer=_broadcast_spec, strings=True)
def broadcast_to(input: AnyArray, shape: HostArray) -> AnyArray:
    """The input repeated to a larger shape by the rules of broadcasting."""
    return array_module(input).broadcast_to(input, as_ints(shape))


def _range_spec(inference: Inference) -> Sequence[Spec]:
    bounds = [inference.constant(index) for index in range(3)]
    length = None
    if None not in [None if b is None else 0 for b in bounds]:
        length = _range(*bounds).size
    return output(inference, (length,))


def _range(start: Any, limit: Any, delta: Any) -> jax.Array:
    if delta == 0:
        raise ValueError("Requires delta != 0")
    if (start > limit) if delta > 0 else (start < limit):
        order = "start <= limit when delta > 0" if delta > 0 else "start >= limit when delta < 0"
        raise ValueError(f"Requires {order}: {start}/{limit}")
    whole: Any = np.arange(start, limit, delta)
    return whole.astype(np.asarray(start).dtype)


@pure(
    "Range",
    inputs="start:Tidx|real=int32, limit:Tidx, delta:Tidx",
    static=(0, 1, 2),
    infer=_range_spec,
    differentiable=False,
)
def range_(start: HostArray, limit: HostArray, delta: HostArray) -> jax.Array:
    """The numbers start, start + delta, … below ``limit`` (above it for a negative delta)."""
    return _range(start, limit, delta)


def _lin_space_spec(inference: Inference) -> Sequence[Spec]:
    return output(inference, (constant_int(inference, 2),))


@pure(
    "LinSpace",
    inputs="start:T|floating, stop:T, num:Tidx|index=int32",
    static=(2,),
    infer=_lin_space_spec,
    differentiable=False,
)
def lin_space(start: AnyArray, stop: AnyArray, num: HostArray) -> AnyArray:
    """``num`` numbers from start to stop, both included."""
    return array_module(start, stop).linspace(start, stop, int(num), dtype=start.dtype)


@pure("InvertPermutation", inputs="x:T|index=int32", infer=unary, differentiable=False)
def invert_permutation(x: AnyArray) -> AnyArray:
    """y with y[x[i]] = i."""
    return array_module(x).argsort(x).astype(x.dtype)
