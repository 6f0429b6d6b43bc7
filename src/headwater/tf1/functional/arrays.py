"""Shapes of tensors: queries, reshaped tensors with the same elements, and tensors filled with one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater import dtypes
from headwater.dtypes import DType, DTypeLike, as_dtype
from headwater.graph.constants import constant_value
from headwater.graph.context import get_default_graph
from headwater.graph.convert import constant, convert_to_tensor, name_scope
from headwater.graph.indexed_slices import IndexedSlices
from headwater.graph.operation import Tensor
from headwater.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headwater.graph.types import TensorLike
from headwater.shapes import ShapeLike, TensorShape, as_shape, broadcast_dims
from headwater.tf1.functional import math
from headwater.tf1.functional.apply import apply, one
from headwater.tf1.functional.reductions import either

if TYPE_CHECKING:
    from headwater.graph.registry import HostArray

_MAX_CONSTANT = 1000
"""Least number of elements for which a tensor of one value is an operation instead of a constant."""

# Queries of shapes ------------------------------------------------------------------------------------------------


def shape(input: object, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """Returns the sizes of all dimensions; a constant if they are all known."""
    with name_scope(name, "Shape", [input]) as scope:
        return _shape(input, scope, as_dtype(out_type))


def _shape(input: Any, name: str | None, out_type: DType = dtypes.int32, optimize: bool = True) -> Tensor:
    if isinstance(input, SparseTensor | SparseTensorValue):
        return _as_type(input.dense_shape, out_type, name)
    input = convert_to_tensor(input)
    dims = input.dims
    if optimize and dims is not None and None not in dims:
        return constant(dims, out_type, name=name or "Shape")
    return one("Shape", input, out_type=out_type, name=name)


def _as_type(value: TensorLike, dtype: DType, name: str | None = None) -> Tensor:
    return one("Cast", convert_to_tensor(value), DstT=dtype, name=name)


def shape_n(input: Sequence[TensorLike], out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shape of each tensor."""
    return apply("ShapeN", input, out_type=as_dtype(out_type), name=name).outputs


def size(input: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """Returns the number of elements; a constant if it is known."""
    with name_scope(name, "Size", [input]) as scope:
        if isinstance(input, SparseTensor | SparseTensorValue):
            sizes = _as_type(input.dense_shape, as_dtype(out_type))
            return one("Prod", sizes, [0], name=scope)
        input = convert_to_tensor(input)
        count = input.shape.num_elements()
        if count is not None:
            return constant(count, as_dtype(out_type), name=scope)
        return one("Size", input, out_type=as_dtype(out_type), name=scope)


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the number of dimensions; a constant if it is known."""
    with name_scope(name, "Rank", [input]) as scope:
        if isinstance(input, SparseTensor | SparseTensorValue):
            return one("Size", input.dense_shape, out_type=dtypes.int32, name=scope)
        input = convert_to_tensor(input)
        if input.dims is not None:
            return constant(len(input.dims), dtypes.int32, name=scope)
        return one("Rank", input, name=scope)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """Returns the shape to which tensors of two shapes broadcast; ValueError if they do not."""
    return TensorShape(broadcast_dims(as_shape(shape_x).as_dims, as_shape(shape_y).as_dims))


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """Returns the shape to which tensors of two shapes broadcast."""
    return one("BroadcastArgs", shape_x, shape_y)


def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """``x``, after a check that its shape agrees with ``shape``."""
    return one("EnsureShape", x, shape=as_shape(shape), name=name)


# Identities and gradients -----------------------------------------------------------------------------------------


def identity(input: TensorLike, name: str | None = None) -> Any:
    """A tensor with the value of ``input``."""
    if isinstance(input, IndexedSlices):
        shape = None if input.dense_shape is None else one("Identity", input.dense_shape)
        return IndexedSlices(one("Identity", input.values, name=name), one("Identity", input.indices), shape)
    return one("Identity", input, name=name)


def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[Tensor]:
    """Returns copies of several tensors, available once all tensors are computed.

    Raises:
      ValueError: ``input`` is empty.
    """
    if not input:
        raise ValueError("identity_n needs at least one tensor")
    return apply("IdentityN", list(input), name=name).outputs


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """``input``, through which no gradient flows."""
    return one("StopGradient", input, name=name)


def prevent_gradient(input: TensorLike, message: str = "", name: str | None = None) -> Tensor:
    """Returns ``input`` without a gradient: `tf.gradients` raises LookupError with ``message``."""
    return one("PreventGradient", input, message=message, name=name)


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns ``input``, declared as constant by the program."""
    return one("Identity", input, name=name or "GuaranteeConst")


def placeholder(dtype: DTypeLike, shape: ShapeLike | None = None, name: str | None = None) -> Tensor:
    """A tensor whose value every run must feed.

    Args:
      dtype: element type.
      shape: the static shape.
    """
    attrs = {"dtype": as_dtype(dtype).base_dtype, "shape": as_shape(shape)}
    return get_default_graph().create_op("Placeholder", [], attrs, name).outputs[0]


def placeholder_with_default(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """A tensor with the value of ``input`` in runs that do not feed it."""
    return one("PlaceholderWithDefault", input, shape=as_shape(shape), name=name)


# The same elements in another shape -------------------------------------------------------------------------------


def reshape(tensor: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """The elements in row-major order in another shape; one size may be -1."""
    return one("Reshape", tensor, shape, name=name)


def expand_dims(input: Any, axis: int | None = None, name: str | None = None, dim: TensorLike | None = None) -> Tensor:
    """Inserts a dimension of size 1 at ``axis``; -1 is the last."""
    axis = either(axis, dim, "axis", "dim")
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return one("ExpandDims", input, axis, name=name)


def squeeze(input: TensorLike, axis: Any = None, name: str | None = None, squeeze_dims: int | None = None) -> Tensor:
    """Removes the dimensions in ``axis``, which must have size 1; all dimensions of size 1 if None."""
    axis = either(axis, squeeze_dims, "axis", "squeeze_dims")
    axes = () if axis is None else tuple(int(a) for a in np.ravel(axis))
    return one("Squeeze", input, squeeze_dims=axes, name=name)


def transpose(
    a: TensorLike, perm: TensorLike | None = None, name: str = "transpose", conjugate: bool = False
) -> Tensor:
    """Permutes dimensions: ``i`` of the result is ``perm[i]`` of ``a``; reverses them when ``perm`` is None."""
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        op_type = "ConjugateTranspose" if conjugate and a.dtype.is_complex else "Transpose"
        if perm is None:
            perm = _reverse_dimensions(a)
        return one(op_type, a, perm, name=scope)


def _reverse_dimensions(a: Tensor) -> HostArray | Tensor:
    if a.dims is not None:
        return np.arange(len(a.dims), dtype=np.int32)[::-1]
    count = one("Rank", a)
    return (count - 1) - one("Range", 0, count, 1)


def matrix_transpose(a: TensorLike, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two dimensions exchanged.

    Raises:
      ValueError: ``a`` has fewer than two dimensions.
    """
    with name_scope(name, None, [a]):
        a = convert_to_tensor(a, name="a")
        if a.dims is None:
            count = rank(a)
            order = concat([range(count - 2), [count - 1, count - 2]], 0)
        elif len(a.dims) < 2:
            raise ValueError(f"Argument 'a' should be a (batch) matrix, with rank >= 2, got shape {a.shape}")
        else:
            order = [*_count_to(len(a.dims) - 2), len(a.dims) - 1, len(a.dims) - 2]
        return transpose(a, order, conjugate=conjugate)


def _count_to(count: int) -> list[int]:
    return np.arange(count).tolist()


def concat(values: object, axis: TensorLike, name: str = "concat") -> Tensor:
    """Concatenates tensors along a dimension."""
    items: list[Any] = list(values) if isinstance(values, list | tuple) else [values]  # pyright: ignore[reportUnknownArgumentType]
    if len(items) == 1:
        with name_scope(name, "concat") as scope:
            convert_to_tensor(axis, dtypes.int32, name="concat_dim").shape.assert_is_compatible_with(())
            return identity(items[0], name=scope + "concat/" if scope else "concat")
    return one("ConcatV2", items, axis, name=name)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Stacks tensors of one shape along a new dimension.

    Raises:
      ValueError: ``axis`` is out of range.
    """
    if axis == 0:
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass  # the operation's error is more precise
    items = list(values)
    dims = convert_to_tensor(items[0], name="value_shape").dims
    if dims is not None and not -len(dims) - 1 <= axis <= len(dims):
        raise ValueError(f"axis = {axis} not in [{-len(dims) - 1}, {len(dims) + 1})")
    return one("Pack", items, axis=axis, name=name)


def parallel_stack(values: Sequence[TensorLike], name: str = "parallel_stack") -> Tensor:
    """Like `stack` along a new first dimension."""
    return one("Pack", list(values), axis=0, name=name)


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Splits a tensor into its slices along a dimension, which is removed.

    Raises:
      ValueError: the number of slices is neither known nor given, or ``axis`` is out of range.
    """
    value = convert_to_tensor(value)
    if num is None:
        dims = value.dims
        if dims is not None and not -len(dims) <= axis < len(dims):
            raise ValueError(f"axis = {axis} not in [{-len(dims)}, {len(dims)})")
        num = None if dims is None else dims[axis]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {value.shape}")
    return apply("Unpack", value, num=num, axis=axis, name=name).outputs


def split(
    value: TensorLike, num_or_size_splits: Any, axis: TensorLike = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Splits a tensor along a dimension.

    Args:
      num_or_size_splits: the number of equal parts; or the size of each part, of which one may be -1.
      num: number of sizes, if not known.

    Raises:
      ValueError: the number of parts is not known.
    """
    splits = convert_to_tensor(num_or_size_splits)
    if splits.dims == ():
        count = constant_value(splits)
        if count is None:
            raise ValueError(f"Cannot infer num from shape {num_or_size_splits}")
        return apply("Split", axis, value, num_split=int(count), name=name).outputs
    if num is None:
        num = None if splits.dims is None else splits.dims[0]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {splits.shape}")
    return apply("SplitV", value, splits, axis, num_split=num, name=name).outputs


# Repeated, padded, reversed ---------------------------------------------------------------------------------------


def tile(input: TensorLike, multiples: TensorLike, name: str | None = None) -> Tensor:
    """Repeats ``input`` ``multiples[i]`` times along dimension ``i``."""
    return one("Tile", input, multiples, name=name)


def pad(
    tensor: TensorLike,
    paddings: TensorLike,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: TensorLike = 0,
) -> Tensor:
    """Pads a tensor with elements before and after, per dimension.

    Args:
      paddings: an integer matrix, a row [before, after] for each dimension.
      mode: CONSTANT, REFLECT (mirrored without the border) or SYMMETRIC (mirrored with it).
      constant_values: the value for CONSTANT.

    Raises:
      ValueError: ``mode`` is unknown.
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if not isinstance(constant_values, Tensor) and constant_values == 0:
            return one("Pad", tensor, paddings, name=name)
        return one("PadV2", tensor, paddings, constant_values, name=name)
    if mode in ("REFLECT", "SYMMETRIC"):
        return one("MirrorPad", tensor, paddings, mode=mode, name=name)
    raise ValueError(f"Unknown padding mode: {mode}")


def reverse(tensor: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """Reverses a tensor along the dimensions in ``axis``."""
    return one("ReverseV2", tensor, axis, name=name)


def roll(input: TensorLike, shift: TensorLike, axis: TensorLike, name: str | None = None) -> Tensor:
    """Shifts elements along dimensions cyclically."""
    return one("Roll", input, shift, axis, name=name)


# Of one value -----------------------------------------------------------------------------------------------------


def fill(dims: TensorLike, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape ``dims`` with one value."""
    return one("Fill", dims, value, name=name)


def _of(value: int, shape: Any, dtype: Any, name: str | None, default: str) -> Tensor:
    wanted = as_dtype(dtype).base_dtype
    with name_scope(name, default, [shape]) as scope:
        if value and wanted == dtypes.string:
            raise TypeError(f"{default} has no strings: a type of numbers or bool is needed")
        number = "" if wanted == dtypes.string else wanted.numpy_dtype.type(value)
        if not isinstance(shape, Tensor):
            known = _known_shape(shape)
            if known is not None:
                if np.prod(known, dtype=np.int64) < _MAX_CONSTANT:
                    return constant(number, wanted, shape=known, name=scope)
                shape = constant(known, dtypes.int32, name="shape_as_tensor")
        shape = convert_to_tensor(shape, dtypes.int32 if not isinstance(shape, Tensor) else None)
        if shape.dims is None or len(shape.dims) != 1:
            shape = reshape(shape, [-1])
        return fill(shape, constant(number, wanted), name=scope)


def _known_shape(shape: ShapeLike) -> tuple[int, ...] | None:
    """Returns ``shape`` as integers; None if it contains a tensor or an unknown size."""
    try:
        dims = as_shape(shape).as_dims
    except (TypeError, ValueError):
        return None
    return None if dims is None or None in dims else tuple(d for d in dims if d is not None)


def zeros(shape: TensorLike | ShapeLike, dtype: DTypeLike | None = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of zeros (of empty strings)."""
    return _of(0, shape, dtype, name, "zeros")


def ones(shape: TensorLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """A tensor of ones."""
    return _of(1, shape, dtype, name, "ones")


def zeros_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Returns zeros in the shape of ``tensor``, by default of its type.

    Args:
      optimize: make a constant if the shape is known.
    """
    with name_scope(name, "zeros_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else as_dtype(dtype)
        if (optimize and tensor.shape.is_fully_defined()) or wanted != tensor.dtype.base_dtype:
            return _in_shape_of(tensor, zeros, wanted, scope, optimize)
        return one("ZerosLike", tensor, name=scope)


def ones_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Returns ones in the shape of ``tensor``, by default of its type."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else as_dtype(dtype)
        return _in_shape_of(tensor, ones, wanted, scope, optimize)


def _in_shape_of(tensor: Tensor, make: Any, dtype: DType, name: str, optimize: bool) -> Tensor:
    result = make(_shape(tensor, None, optimize=optimize), dtype, name=name)
    result.set_shape(tensor.dims)
    return result


def broadcast_to(input: TensorLike, shape: TensorLike, name: str | None = None) -> Tensor:
    """Broadcasts ``input`` to a larger shape."""
    return one("BroadcastTo", input, shape, name=name)


def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str = "range",
    *,
    casts: bool = False,
) -> Tensor:
    """start, start + delta, … up to, without, limit; ``range(n)`` counts from 0.

    With ``casts``, tensors of other types than ``dtype`` are converted, as in TensorFlow 2.
    """
    if limit is None:
        start, limit = 0, start
    wanted = None if dtype is None else as_dtype(dtype)
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        ends = [
            convert_to_tensor(value, None if casts and hasattr(value, "dtype") else wanted, name=argument)
            for value, argument in ((start, "start"), (limit, "limit"), (delta, "delta"))
        ]
        if wanted is None:
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            found = [end.dtype.base_dtype for end in ends]
            assert all(item in order for item in found), found
            wanted = order[max(order.index(item) for item in found)]
        return one("Range", *(math.cast(end, wanted) for end in ends), name=scope)
